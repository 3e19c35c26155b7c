package io.kvasir.pipeline;

import com.lmax.disruptor.TimeoutException;
import com.lmax.disruptor.dsl.Disruptor;

import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;

/** Stops a ring whose publishers have stopped. */
final class RingShutdown {
    private static final Logger LOG = LoggerFactory.getLogger(RingShutdown.class);
    private static final long TIMEOUT_NS = TimeUnit.SECONDS.toNanos(5);
    private static final long PARK_NS = 200_000;

    private RingShutdown() {}

    /** Lets the consumer finish what is in the ring, then stops it; gives up after 5 seconds. */
    static void drainAndStop(Disruptor<?> disruptor) {
        final long deadline = System.nanoTime() + TIMEOUT_NS;
        // the library's own shutdown does not wait for a consumer whose thread has yet to start
        while (backlog(disruptor) > 0 && System.nanoTime() < deadline) {
            LockSupport.parkNanos(PARK_NS);
        }
        try {
            disruptor.shutdown(Math.max(0, deadline - System.nanoTime()), TimeUnit.NANOSECONDS);
        } catch (TimeoutException e) {
            LOG.warn("{} records of a ring were not applied within 5 s", backlog(disruptor), e);
            disruptor.halt();
        }
    }

    private static long backlog(Disruptor<?> disruptor) {
        return disruptor.getBufferSize() - disruptor.getRingBuffer().remainingCapacity();
    }
}
