package io.kvasir.nats.state;

import io.nats.client.JetStreamApiException;
import io.nats.client.api.MessageInfo;

import java.io.IOException;
import java.io.OutputStream;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Base64;
import java.util.List;

/** Writes the content of one object as chunks, and reads them back. One thread. */
final class ChunkUpload extends OutputStream {
    /** Writes one chunk. */
    @FunctionalInterface
    interface ChunkWriter {
        /** Returns its number in the stream. */
        long write(String chunks, long number, byte[] bytes) throws IOException;
    }

    private static final String ALGORITHM = "SHA-256";

    private final ChunkWriter writer;
    private final String chunks;
    private final MessageDigest digest = newDigest();
    private final List<Long> inStream = new ArrayList<>(); // numbers of the chunks
    private final byte[] buffer; // one chunk
    private int buffered;
    private long size;
    private byte[] sum = {}; // of all, once it is closed

    /**
     * @param chunks name of all chunks
     * @param chunkBytes length of each but the last
     */
    ChunkUpload(ChunkWriter writer, String chunks, int chunkBytes) {
        this.writer = writer;
        this.chunks = chunks;
        buffer = new byte[chunkBytes];
    }

    private static MessageDigest newDigest() {
        try {
            return MessageDigest.getInstance(ALGORITHM);
        } catch (NoSuchAlgorithmException e) {
            throw new AssertionError("every JVM has " + ALGORITHM, e);
        }
    }

    @Override
    public void write(int b) throws IOException {
        write(new byte[] {(byte) b}, 0, 1);
    }

    @Override
    public void write(byte[] bytes, int offset, int length) throws IOException {
        for (int done = 0; done < length; ) {
            final int part = Math.min(length - done, buffer.length - buffered);
            System.arraycopy(bytes, offset + done, buffer, buffered, part);
            buffered += part;
            done += part;
            if (buffered == buffer.length) {
                writeChunk();
            }
        }
    }

    private void writeChunk() throws IOException {
        digest.update(buffer, 0, buffered);
        inStream.add(writer.write(chunks, inStream.size(), Arrays.copyOf(buffer, buffered)));
        size += buffered;
        buffered = 0;
    }

    /** Writes what is left. */
    @Override
    public void close() throws IOException {
        if (buffered > 0) {
            writeChunk();
        }
        sum = digest.digest();
    }

    /**
     * Reads all chunks back.
     *
     * @throws IOException if these are not the bytes that were written
     */
    void verify(ObjectBucket bucket) throws IOException, JetStreamApiException {
        final MessageDigest read = newDigest();
        for (int number = 0; number < inStream.size(); number++) {
            final MessageInfo chunk = bucket.message(inStream.get(number));
            if (chunk == null) {
                throw new IOException("chunk " + number + " of " + count() + " is not there");
            }
            read.update(chunk.getData());
        }
        if (!MessageDigest.isEqual(sum, read.digest())) {
            throw new IOException("other bytes were read than had been written");
        }
    }

    String chunks() {
        return chunks;
    }

    /** Length of each chunk but the last. */
    int chunkBytes() {
        return buffer.length;
    }

    /** Chunks that were written. */
    long count() {
        return inStream.size();
    }

    /** Bytes in them. */
    long size() {
        return size;
    }

    /** Their checksum, as object stores write it. */
    String digest() {
        return ALGORITHM + "=" + Base64.getUrlEncoder().encodeToString(sum);
    }
}
