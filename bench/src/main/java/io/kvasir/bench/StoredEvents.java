package io.kvasir.bench;

import java.io.ByteArrayOutputStream;
import java.io.DataOutputStream;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;

/** Writes event messages as an engine sends them: msgpack, map form, one event per message. */
final class StoredEvents {
    private StoredEvents() {}

    /**
     * A batch of one root store.
     *
     * @param tokens the blocks' tokens, whole blocks
     * @param blockSize tokens per block
     * @param firstName the engine's name of the first block; the others count up
     */
    static byte[] message(int[] tokens, int blockSize, long firstName) {
        final int blocks = tokens.length / blockSize;
        final ByteArrayOutputStream bytes = new ByteArrayOutputStream(5 * tokens.length + 256);
        try (DataOutputStream out = new DataOutputStream(bytes)) {
            begin(out, "BlockStored", 5);
            names(out, firstName, blocks);
            text(out, "parent_block_hash");
            out.writeByte(0xc0);
            text(out, "token_ids");
            array(out, tokens.length);
            for (int token : tokens) {
                out.writeByte(0xce);
                out.writeInt(token);
            }
            text(out, "block_size");
            out.writeByte(blockSize);
            out.writeByte(0);
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
        return bytes.toByteArray();
    }

    /**
     * A batch of one removal.
     *
     * @param firstName the engine's name of the first block; the others count up
     * @param blocks how many
     */
    static byte[] removal(long firstName, int blocks) {
        final ByteArrayOutputStream bytes = new ByteArrayOutputStream(9 * blocks + 64);
        try (DataOutputStream out = new DataOutputStream(bytes)) {
            begin(out, "BlockRemoved", 2);
            names(out, firstName, blocks);
            out.writeByte(0);
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
        return bytes.toByteArray();
    }

    private static void begin(DataOutputStream out, String type, int members) throws IOException {
        out.writeByte(0x93); // [time, events, rank]
        out.writeByte(0xcb);
        out.writeDouble(0);
        out.writeByte(0x91);
        out.writeByte(0x80 | members);
        text(out, "type");
        text(out, type);
    }

    private static void names(DataOutputStream out, long first, int count) throws IOException {
        text(out, "block_hashes");
        array(out, count);
        for (int i = 0; i < count; i++) {
            out.writeByte(0xcf);
            out.writeLong(first + i);
        }
    }

    private static void text(DataOutputStream out, String text) throws IOException {
        out.writeByte(0xa0 | text.length());
        out.write(text.getBytes(StandardCharsets.US_ASCII));
    }

    private static void array(DataOutputStream out, int length) throws IOException {
        out.writeByte(0xdd);
        out.writeInt(length);
    }
}
