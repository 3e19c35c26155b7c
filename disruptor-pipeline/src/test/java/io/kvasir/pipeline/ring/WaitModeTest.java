package io.kvasir.pipeline.ring;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.lmax.disruptor.RingBuffer;
import com.lmax.disruptor.dsl.Disruptor;
import com.lmax.disruptor.dsl.ProducerType;

import io.kvasir.testsupport.Cores;

import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.locks.LockSupport;

/** No record waits for another one to be seen: a wake-up that is lost would never come. */
class WaitModeTest {
    private static final int RING = 64;
    private static final int RECORDS = 20_000;
    private static final int SINGLE_RECORDS = 1_000;
    private static final int PUBLISHERS = 4;
    private static final long LIMIT_NS = TimeUnit.SECONDS.toNanos(60);

    private final AtomicLong consumed = new AtomicLong();

    private Disruptor<long[]> start(WaitMode mode) {
        return start(mode, new Thread[1]);
    }

    /** The thread that waits is left in {@code made}. */
    private Disruptor<long[]> start(WaitMode mode, Thread[] made) {
        final Disruptor<long[]> disruptor =
                new Disruptor<>(
                        () -> new long[1],
                        RING,
                        task -> {
                            made[0] = Thread.ofPlatform().daemon().unstarted(task);
                            return made[0];
                        },
                        ProducerType.MULTI,
                        mode.strategy());
        disruptor.handleEventsWith((record, sequence, isLast) -> consumed.getAndIncrement());
        disruptor.start();
        return disruptor;
    }

    private static void publish(RingBuffer<long[]> ring) {
        ring.publish(ring.next());
    }

    private void await(long records) {
        long sinceNs = System.nanoTime();
        long before = -1;
        while (consumed.get() < records) {
            final long now = consumed.get();
            if (now != before) { // however slow, it goes on
                before = now;
                sinceNs = System.nanoTime();
            }
            assertTrue(
                    System.nanoTime() - sinceNs < LIMIT_NS,
                    "lost at " + consumed + " of " + records);
            Cores.giveWay();
        }
    }

    @ParameterizedTest
    @EnumSource(WaitMode.class)
    void eachRecordThatIsPublishedAloneIsConsumed(WaitMode mode) {
        final Disruptor<long[]> disruptor = start(mode);
        try {
            for (int i = 1; i <= SINGLE_RECORDS; i++) {
                if (i % 16 == 0) {
                    LockSupport.parkNanos(i % 4_096); // around the moment at which it parks
                }
                publish(disruptor.getRingBuffer());
                await(i);
            }
        } finally {
            disruptor.halt();
        }
    }

    @ParameterizedTest
    @EnumSource(WaitMode.class)
    void whatManyPublishIsConsumedToTheLast(WaitMode mode) throws Exception {
        final Disruptor<long[]> disruptor = start(mode);
        try (ExecutorService threads = Executors.newFixedThreadPool(PUBLISHERS)) {
            for (int p = 0; p < PUBLISHERS; p++) {
                threads.execute(
                        () -> {
                            for (int i = 0; i < RECORDS; i++) {
                                publish(disruptor.getRingBuffer());
                            }
                        });
            }
            await((long) PUBLISHERS * RECORDS);
        } finally {
            disruptor.halt();
        }
        assertEquals((long) PUBLISHERS * RECORDS, consumed.get());
    }

    /** A record wakes the thread that nothing else would wake. */
    @ParameterizedTest
    @EnumSource(
            value = WaitMode.class,
            names = {"BLOCKING", "SLEEPING"})
    void aThreadWithNothingToDoIsParkedUntilThereIs(WaitMode mode) {
        final Thread[] made = new Thread[1];
        final Disruptor<long[]> disruptor = start(mode, made);
        try {
            for (int i = 1; i <= 5; i++) {
                while (made[0].getState() != Thread.State.WAITING) {
                    Cores.giveWay();
                }
                publish(disruptor.getRingBuffer());
                await(i);
            }
        } finally {
            disruptor.halt();
        }
    }

    @ParameterizedTest
    @EnumSource(WaitMode.class)
    void aThreadThatWaitsEndsWhenItIsAsked(WaitMode mode) throws Exception {
        for (int round = 0; round < 50; round++) {
            final Thread[] made = new Thread[1];
            final Disruptor<long[]> disruptor = start(mode, made);
            publish(disruptor.getRingBuffer());
            await(round + 1);
            LockSupport.parkNanos(round * 2_000L);
            disruptor.halt();
            made[0].join(TimeUnit.NANOSECONDS.toMillis(LIMIT_NS));
            assertTrue(!made[0].isAlive(), "round " + round);
        }
    }
}
