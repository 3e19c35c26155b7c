package io.kvasir.nats.state;

import io.nats.client.api.MessageInfo;
import io.nats.client.api.ObjectInfo;
import io.nats.client.api.ObjectMetaOptions;

import java.io.EOFException;
import java.io.IOException;
import java.io.InputStream;

/**
 * Reads the content of one object chunk by chunk; where chunks are missing it ends with an {@link
 * EOFException}. One thread.
 */
final class ChunkDownload extends InputStream {
    /** Reads chunks. */
    @FunctionalInterface
    interface ChunkReader {
        /** First chunk at or after a number in the stream; null if there is none. */
        MessageInfo read(String chunks, long inStream) throws IOException;
    }

    private static final byte[] NOTHING = {};

    private final ChunkReader reader;
    private final ObjectInfo info;
    private byte[] chunk = NOTHING;
    private int at; // byte of the chunk that comes next
    private long taken; // bytes of all chunks up to this one
    private long next = 1; // number in the stream

    ChunkDownload(ChunkReader reader, ObjectInfo info) {
        this.reader = reader;
        this.info = info;
    }

    /**
     * Goes on to a byte of the object; before the first read.
     *
     * <p>A chunk cannot come before as many numbers after the first one as there are chunks
     * between; mostly it is just there. Chunks without numbers are read one by one.
     */
    void skipTo(long offset) throws IOException {
        final long wanted = Math.min(offset, info.getSize());
        final int chunkBytes = chunkBytes();
        final long number = chunkBytes <= 0 ? 0 : wanted / chunkBytes;
        if (number > 0 && number < info.getChunks()) {
            jump(number, chunkBytes);
        }
        skipNBytes(wanted - taken + chunk.length - at);
    }

    /** Length of all chunks but the last; 0 where the object does not say it. */
    private int chunkBytes() {
        final ObjectMetaOptions options = info.getObjectMeta().getObjectMetaOptions();
        return options == null ? 0 : options.getChunkSize();
    }

    private void jump(long number, int chunkBytes) throws IOException {
        final MessageInfo first = reader.read(info.getNuid(), next);
        final MessageInfo guess =
                first == null ? null : reader.read(info.getNuid(), first.getSeq() + number);
        final long found = guess == null ? -1 : ObjectBucket.numberOf(guess);
        if (found >= 0 && found <= number) {
            taken = found * chunkBytes;
            next = guess.getSeq();
        }
    }

    private boolean fill() throws IOException {
        while (at == chunk.length) {
            if (taken >= info.getSize()) {
                return false;
            }
            final MessageInfo message = reader.read(info.getNuid(), next);
            if (message == null) {
                throw new EOFException(
                        info.getObjectName()
                                + " ends after "
                                + taken
                                + " of "
                                + info.getSize()
                                + " bytes");
            }
            next = message.getSeq() + 1;
            chunk = message.getData();
            at = 0;
            taken += chunk.length;
        }
        return true;
    }

    @Override
    public int read() throws IOException {
        return fill() ? chunk[at++] & 0xff : -1;
    }

    @Override
    public int read(byte[] bytes, int offset, int length) throws IOException {
        if (length == 0) {
            return 0;
        }
        if (!fill()) {
            return -1;
        }
        final int part = Math.min(length, chunk.length - at);
        System.arraycopy(chunk, at, bytes, offset, part);
        at += part;
        return part;
    }
}
