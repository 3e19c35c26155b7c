package io.kvasir.pipeline.snapshot;

import java.io.BufferedInputStream;
import java.io.IOException;
import java.io.InputStream;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.zip.CRC32C;

/** Reads chunks one by one, and finds the next one after bytes that are none. One thread. */
final class ChunkInput {
    /** What was found. */
    enum Found {
        /** A whole chunk. */
        CHUNK,
        /** A chunk whose payload is not what was written: its header is read. */
        DAMAGED,
        /** Bytes that are no chunk; the next chunk, if there is one, is read by the next call. */
        NO_CHUNK,
        /** A chunk of a later version: its header is read. */
        FUTURE,
        /** The bytes end within a chunk. */
        TRUNCATED,
        /** The end. */
        END
    }

    private static final int BUFFER_BYTES = 1 << 16;

    private final BufferedInputStream in;
    private final CRC32C crc = new CRC32C();
    private final byte[] headerBytes = new byte[ChunkDescriptor.HEADER_LENGTH];
    private final ByteBuffer header = ByteBuffer.wrap(headerBytes).order(ByteOrder.LITTLE_ENDIAN);
    private byte[] payload = {};
    private long offset;
    private long chunkOffset;

    /**
     * @param from its bytes; not closed here
     * @param offset of the first of them
     */
    ChunkInput(InputStream from, long offset) {
        this.in = new BufferedInputStream(from, BUFFER_BYTES);
        this.offset = offset;
    }

    /** Reads on to the end of the next chunk. */
    Found next() throws IOException {
        chunkOffset = offset;
        in.mark(ChunkDescriptor.HEADER_LENGTH);
        final int read = in.readNBytes(headerBytes, 0, ChunkDescriptor.HEADER_LENGTH);
        if (read == 0) {
            return Found.END;
        }
        if (read == ChunkDescriptor.HEADER_LENGTH && isHeader()) {
            offset += read;
            return readPayload();
        }
        in.reset();
        return findHeader() ? Found.NO_CHUNK : Found.TRUNCATED;
    }

    /** Skips bytes up to a header; false at the end. */
    private boolean findHeader() throws IOException {
        while (in.skip(1) == 1) {
            offset++;
            in.mark(ChunkDescriptor.HEADER_LENGTH);
            final int read = in.readNBytes(headerBytes, 0, ChunkDescriptor.HEADER_LENGTH);
            final boolean found = read == ChunkDescriptor.HEADER_LENGTH && isHeader();
            in.reset();
            if (found) {
                return true;
            }
        }
        return false;
    }

    private boolean isHeader() {
        return header.getInt(ChunkDescriptor.MAGIC_OFFSET) == ChunkDescriptor.MAGIC
                && header.getInt(ChunkDescriptor.HEADER_CRC_OFFSET)
                        == crcOf(headerBytes, ChunkDescriptor.HEADER_CRC_OFFSET)
                && length() >= 0
                && length() <= ChunkDescriptor.MAX_LENGTH;
    }

    private Found readPayload() throws IOException {
        payload = in.readNBytes(length());
        offset += payload.length;
        if (payload.length < length()) {
            return Found.TRUNCATED;
        }
        if (header.get(ChunkDescriptor.VERSION_OFFSET) > ChunkDescriptor.VERSION) {
            return Found.FUTURE;
        }
        return header.getInt(ChunkDescriptor.PAYLOAD_CRC_OFFSET) == crcOf(payload, payload.length)
                ? Found.CHUNK
                : Found.DAMAGED;
    }

    private int crcOf(byte[] of, int length) {
        crc.reset();
        crc.update(of, 0, length);
        return (int) crc.getValue();
    }

    private int length() {
        return header.getInt(ChunkDescriptor.LENGTH_OFFSET);
    }

    /** Offset of the chunk, or of the bytes that are none. */
    long chunkOffset() {
        return chunkOffset;
    }

    byte type() {
        return header.get(ChunkDescriptor.TYPE_OFFSET);
    }

    byte version() {
        return header.get(ChunkDescriptor.VERSION_OFFSET);
    }

    int worker() {
        return header.getInt(ChunkDescriptor.WORKER_OFFSET);
    }

    /** Payload of the chunk; the caller's. */
    byte[] payload() {
        return payload;
    }
}
