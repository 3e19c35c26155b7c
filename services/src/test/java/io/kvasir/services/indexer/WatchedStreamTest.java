package io.kvasir.services.indexer;

import static org.junit.jupiter.api.Assertions.assertEquals;

import org.junit.jupiter.api.Test;

import java.io.IOException;
import java.io.InputStream;
import java.util.concurrent.atomic.AtomicLong;

/** A peer's answer whose bytes come late, or are read late; on a clock of the test. */
class WatchedStreamTest {
    private static final long PATIENCE_NS = 10;

    private final AtomicLong nowNs = new AtomicLong();
    private long comesAfterNs;
    private int closes;
    private final WatchedStream watched = new WatchedStream(new Peer(), PATIENCE_NS, nowNs::get);

    /** A body whose next byte takes some time, in which it is watched. */
    private final class Peer extends InputStream {
        @Override
        public int read() {
            nowNs.addAndGet(comesAfterNs);
            watched.check();
            return 1;
        }

        @Override
        public int read(byte[] to, int offset, int length) {
            to[offset] = (byte) read();
            return 1;
        }

        @Override
        public void close() {
            closes++;
        }
    }

    @Test
    void theReadersOwnTimeIsNoSilenceOfThePeer() throws IOException {
        for (int i = 0; i < 3; i++) {
            assertEquals(1, watched.read());
            assertEquals(1, watched.read(new byte[2], 0, 2));
            nowNs.addAndGet(PATIENCE_NS * 1_000);
            watched.check();
        }
        assertEquals(0, closes);
    }

    @Test
    void aByteThatTakesTooLongEndsIt() throws IOException {
        comesAfterNs = PATIENCE_NS;
        assertEquals(1, watched.read());
        assertEquals(0, closes);
        comesAfterNs = PATIENCE_NS + 1;
        assertEquals(1, watched.read(new byte[2], 0, 2));
        assertEquals(1, closes);
        watched.watch(); // and so does the watch
    }
}
