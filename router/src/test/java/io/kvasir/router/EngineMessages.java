package io.kvasir.router;

import io.kvasir.pipeline.source.EngineStream;
import io.kvasir.pipeline.source.IndexState;
import io.kvasir.pipeline.source.SourceConfig;
import io.kvasir.testsupport.Eventually;

import java.io.ByteArrayOutputStream;
import java.io.DataOutputStream;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;

/** Event messages as an engine writes them, and waiting for what they cause. */
public final class EngineMessages {

    private EngineMessages() {}

    public static SourceConfig source(String name, int blockSize) {
        return SourceConfig.of(name, 0, blockSize, "");
    }

    /**
     * One batch {@code [0.0, [BlockStored as a map], 0]} of the prompt's first blocks, named from a
     * base up.
     */
    public static byte[] stored(int[] prompt, int blocks, int blockSize, long firstHash) {
        return stored(prompt, blocks, blockSize, firstHash, null);
    }

    /** One batch with {@code AllBlocksCleared}. */
    static byte[] cleared() {
        final ByteArrayOutputStream bytes = new ByteArrayOutputStream();
        try (DataOutputStream out = new DataOutputStream(bytes)) {
            begin(out, 2, "AllBlocksCleared", 0);
            out.writeByte(0);
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
        return bytes.toByteArray();
    }

    /** The same behind a block. */
    static byte[] stored(int[] prompt, int blocks, int blockSize, long firstHash, Long parent) {
        return stored(prompt, blocks, blockSize, firstHash, parent, "GPU");
    }

    /**
     * The same in a medium. Of no prompt there are no tokens, only names, as offloading engines
     * announce.
     */
    static byte[] stored(
            int[] prompt, int blocks, int blockSize, long firstHash, Long parent, String medium) {
        final ByteArrayOutputStream bytes = new ByteArrayOutputStream();
        try (DataOutputStream out = new DataOutputStream(bytes)) {
            begin(out, 7, "BlockStored", blocks);
            for (int i = 0; i < blocks; i++) {
                out.writeByte(0xcf);
                out.writeLong(firstHash + 1 + i);
            }
            text(out, "parent_block_hash");
            if (parent == null) {
                out.writeByte(0xc0);
            } else {
                out.writeByte(0xcf);
                out.writeLong(parent);
            }
            text(out, "token_ids");
            final int tokens = prompt.length == 0 ? 0 : blocks * blockSize;
            array(out, tokens);
            for (int i = 0; i < tokens; i++) {
                out.writeByte(0xce);
                out.writeInt(prompt[i]);
            }
            text(out, "block_size");
            out.writeByte(blockSize);
            text(out, "lora_id");
            out.writeByte(0xc0);
            text(out, "medium");
            text(out, medium);
            out.writeByte(0);
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
        return bytes.toByteArray();
    }

    /** One batch that removes the blocks that {@link #stored} has named, the last first. */
    static byte[] removed(int blocks, long firstHash) {
        return removed(blocks, firstHash, "GPU");
    }

    /** The same from a medium. */
    static byte[] removed(int blocks, long firstHash, String medium) {
        final ByteArrayOutputStream bytes = new ByteArrayOutputStream();
        try (DataOutputStream out = new DataOutputStream(bytes)) {
            begin(out, 3, "BlockRemoved", blocks);
            for (int i = blocks; i > 0; i--) {
                out.writeByte(0xcf);
                out.writeLong(firstHash + i);
            }
            text(out, "medium");
            text(out, medium);
            out.writeByte(0);
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
        return bytes.toByteArray();
    }

    /** A batch up to the hashes of its only event, a map. */
    private static void begin(DataOutputStream out, int entries, String type, int hashes)
            throws IOException {
        out.writeByte(0x93);
        out.writeByte(0xcb);
        out.writeDouble(0);
        out.writeByte(0x91);
        out.writeByte(0x80 | entries);
        text(out, "type");
        text(out, type);
        text(out, "block_hashes");
        array(out, hashes);
    }

    private static void array(DataOutputStream out, int length) throws IOException {
        out.writeByte(0xdc);
        out.writeShort(length);
    }

    private static void text(DataOutputStream out, String text) throws IOException {
        out.writeByte(0xa0 | text.length());
        out.write(text.getBytes(StandardCharsets.US_ASCII));
    }

    /** Waits until decisions see what is booked on a worker, which is a moment after it is. */
    static void awaitLoad(KvRouter router, Worker worker, long requests, long blocks) {
        final Decision seen = new Decision();
        Eventually.holds(
                () -> requests + " requests and " + blocks + " blocks on " + worker,
                () -> {
                    final boolean settled = router.bookingPipeline().backlog() == 0;
                    try {
                        router.select(router.newRequest(), seen);
                    } catch (RouteException e) {
                        // it has looked nevertheless
                    }
                    final int i = router.workers().indexOf(worker);
                    return settled
                            && seen.activeRequests(i) == requests
                            && seen.decodeBlocks(i) == blocks;
                });
    }

    /** A store of blocks {@code from..to} of a prompt, after those before them, in a medium. */
    static byte[] storedPart(
            int[] prompt, int from, int to, int blockSize, long firstName, String medium) {
        return stored(
                Arrays.copyOfRange(prompt, from * blockSize, to * blockSize),
                to - from,
                blockSize,
                firstName + from,
                from == 0 ? null : firstName + from - 1,
                medium);
    }

    static void awaitApplied(KvRouter router, Worker worker, long message) {
        Eventually.holds(
                () -> "message " + message + " of " + worker,
                () -> router.index().appliedSequence(worker.slot()) == message);
    }

    /** Loses a message, so that what the worker holds counts in part; the next removes a block. */
    static void lose(EngineStream stream, Worker worker, long message, long removed) {
        stream.onMessage(message + 1, removed(1, removed, "GPU"));
        Eventually.holds(() -> "the loss at " + worker, () -> worker.state() != IndexState.EXACT);
    }
}
