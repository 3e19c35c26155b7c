package io.kvasir.bench;

import io.kvasir.pipeline.source.EngineStream;

import java.util.List;
import java.util.SplittableRandom;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;

/**
 * Events that workers send while something else is measured: each stores a prompt of its own and
 * removes it again, one worker after the other, at a steady rate. What is late is sent at once.
 */
final class EventLoad implements AutoCloseable {
    /** Blocks of a message. */
    static final int BLOCKS = 16;

    private static final long FIRST_NAME = 1L << 40; // beyond the names of what is held

    private final List<EngineStream> streams;
    private final long[] sequences;
    private final byte[][] stores;
    private final byte[] removal = StoredEvents.removal(FIRST_NAME, BLOCKS);
    private final long periodNs;
    private final Thread thread = new Thread(this::send, "events");
    private volatile boolean closed;
    private volatile long sent;

    /**
     * @param streams one a worker
     * @param sequences number of the next message of each; advanced by this
     * @param blockSize tokens per block
     * @param perSecond messages of all workers together, at least 1
     */
    EventLoad(List<EngineStream> streams, long[] sequences, int blockSize, int perSecond) {
        this.streams = streams;
        this.sequences = sequences;
        periodNs = TimeUnit.SECONDS.toNanos(1) / perSecond;
        final SplittableRandom random = new SplittableRandom(7);
        stores = new byte[streams.size()][];
        for (int w = 0; w < stores.length; w++) {
            final int[] tokens = random.ints((long) BLOCKS * blockSize, 0, 150_000).toArray();
            stores[w] = StoredEvents.message(tokens, blockSize, FIRST_NAME);
        }
        thread.setDaemon(true);
        thread.start();
    }

    /** Messages sent so far. */
    long sent() {
        return sent;
    }

    private void send() {
        long due = System.nanoTime();
        for (int message = 0; !closed; message++) {
            final int worker = message % stores.length;
            final boolean stored = (message / stores.length & 1) == 0;
            streams.get(worker).onMessage(sequences[worker]++, stored ? stores[worker] : removal);
            sent = message + 1L;
            due += periodNs;
            LockSupport.parkNanos(due - System.nanoTime());
        }
    }

    /** Ends the sender. */
    @Override
    public void close() {
        closed = true;
        try {
            thread.join();
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
    }
}
