package io.kvasir.services.indexer;

import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

import java.io.FilterInputStream;
import java.io.IOException;
import java.io.InputStream;
import java.util.concurrent.locks.LockSupport;
import java.util.function.LongSupplier;

/**
 * A body that is closed when its reader has waited for long and no byte of it has come. The time
 * between two reads is the reader's own. One thread reads, another one {@linkplain #watch watches}.
 */
final class WatchedStream extends FilterInputStream {
    private static final Logger LOG = LoggerFactory.getLogger(WatchedStream.class);
    private static final long CHECK_NS = 100_000_000L;

    private final long patienceNs;
    private final LongSupplier nanoClock;
    private volatile long sinceNs; // when the last read began; written before the next one
    private volatile boolean reading;
    private volatile boolean closed;

    WatchedStream(InputStream in, long patienceNs, LongSupplier nanoClock) {
        super(in);
        this.patienceNs = patienceNs;
        this.nanoClock = nanoClock;
    }

    /** Returns when the body is closed. */
    void watch() {
        while (!closed) {
            LockSupport.parkNanos(CHECK_NS);
            check();
        }
    }

    /** Closes the body if a read waits for too long. */
    void check() {
        if (reading && nanoClock.getAsLong() - sinceNs > patienceNs) {
            try {
                close();
            } catch (IOException e) {
                LOG.debug("a peer's answer did not close cleanly", e);
            }
        }
    }

    private void begin() {
        sinceNs = nanoClock.getAsLong();
        reading = true;
    }

    @Override
    public int read() throws IOException {
        begin();
        try {
            return super.read();
        } finally {
            reading = false;
        }
    }

    @Override
    public int read(byte[] to, int offset, int length) throws IOException {
        begin();
        try {
            return super.read(to, offset, length);
        } finally {
            reading = false;
        }
    }

    @Override
    public void close() throws IOException {
        closed = true;
        super.close();
    }
}
