package io.kvasir.registry.etcd;

import java.io.FilterInputStream;
import java.io.IOException;
import java.io.InputStream;

/** A stream of answers, each of at most so many bytes. One thread reads it. */
final class BoundedAnswers extends FilterInputStream {
    /** An answer has more. */
    static final class TooLarge extends IOException {
        private static final long serialVersionUID = 1L;

        private TooLarge(int limit) {
            super("an answer has more than " + limit + " bytes");
        }
    }

    private final int limit;
    private int left;

    BoundedAnswers(InputStream in, int limit) {
        super(in);
        this.limit = limit;
        left = limit;
    }

    /** An answer has been read; what was read ahead counts as its own. */
    void next() {
        left = limit;
    }

    @Override
    public int read() throws IOException {
        final byte[] one = new byte[1];
        return read(one, 0, 1) < 0 ? -1 : one[0] & 0xff;
    }

    @Override
    public int read(byte[] to, int offset, int length) throws IOException {
        if (left == 0 && length > 0) {
            throw new TooLarge(limit);
        }
        final int count = super.read(to, offset, Math.min(length, left));
        left -= Math.max(0, count);
        return count;
    }
}
