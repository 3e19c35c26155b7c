package io.kvasir.pipeline.booking;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.kvasir.testsupport.Allocations;
import io.kvasir.testsupport.Seeds;

import org.junit.jupiter.api.Test;

import java.util.Arrays;
import java.util.Random;
import java.util.concurrent.TimeUnit;

class ReplicaOutboxTest {
    private static final int WORDS = 256;

    private final ReplicaOutbox outbox = new ReplicaOutbox(WORDS);
    private final ReplicaRecord record = new ReplicaRecord();
    private final long[] items = new long[WORDS];

    /** All of a record follows from its sequence, so that a torn one is seen. */
    private void offer(long sequence, int count) {
        Arrays.fill(items, 0, count, sequence * 31 + count);
        outbox.offer(
                ReplicaRecord.Kind.ADDED,
                sequence,
                -sequence,
                (int) (sequence & 0x7fff),
                (int) ~sequence,
                sequence << 7,
                count,
                count + 1,
                items,
                count);
    }

    private void check() {
        final long sequence = record.sequence();
        assertEquals(ReplicaRecord.Kind.ADDED, record.kind());
        assertEquals(-sequence, record.booking());
        assertEquals((int) (sequence & 0x7fff), record.slot());
        assertEquals((int) ~sequence, record.slotGeneration());
        assertEquals(sequence << 7, record.prefillTokens());
        assertEquals(record.itemCount(), record.ownBlocks());
        assertEquals(record.itemCount() + 1, record.pathBlocks());
        for (int i = 0; i < record.itemCount(); i++) {
            assertEquals(sequence * 31 + record.itemCount(), record.items()[i]);
        }
    }

    @Test
    void anEmptyOutboxHasNothing() {
        assertFalse(outbox.poll(record));
        assertTrue(outbox.isEmpty());
        assertEquals(0, outbox.fill());
    }

    @Test
    void aFullOutboxDropsTheOldestAndCountsThem() {
        for (int i = 1; i <= 10; i++) {
            offer(i, 44); // five of them fit
        }
        assertEquals(5, outbox.dropped());
        for (int i = 6; i <= 10; i++) {
            assertTrue(outbox.poll(record));
            assertEquals(i, record.sequence());
            check();
        }
        assertFalse(outbox.poll(record));
    }

    @Test
    void aRecordThatCanNeverFitIsDroppedAloneAndTheOthersStay() {
        offer(1, 3);
        offer(2, outbox.maxItems() + 1);
        assertEquals(1, outbox.dropped());
        assertTrue(outbox.poll(record));
        assertEquals(1, record.sequence());
        offer(3, outbox.maxItems());
        assertTrue(outbox.poll(record));
        check();
    }

    @Test
    void capacitiesThatAreNoPowersOfTwoAreRefused() {
        assertThrows(IllegalArgumentException.class, () -> new ReplicaOutbox(100));
        assertThrows(IllegalArgumentException.class, () -> new ReplicaOutbox(32));
    }

    @Test
    void neitherSideAllocatesOnceTheRecordHasGrown() {
        final int[] sequence = {0};
        assertEquals(
                0,
                Allocations.bytesPerRound(
                        10_000,
                        () -> {
                            offer(++sequence[0], sequence[0] % 50);
                            outbox.poll(record);
                        }));
    }

    @Test
    void aReaderBesideAWriterSeesWholeRecordsInOrderAndEachIsReadOrDropped()
            throws InterruptedException {
        final long seed = Seeds.next("ReplicaOutboxTest");
        final int count = 300_000;
        final Thread writer =
                Thread.ofPlatform()
                        .start(
                                () -> {
                                    final Random random = new Random(seed);
                                    for (int i = 1; i <= count; i++) {
                                        offer(i, random.nextInt(60));
                                        if (i % 64 == 0) {
                                            outbox.wake();
                                        }
                                    }
                                    outbox.wake();
                                });
        long read = 0;
        long last = 0;
        while (last < count) {
            while (outbox.poll(record)) {
                assertTrue(record.sequence() > last, "in order");
                check();
                last = record.sequence();
                read++;
            }
            outbox.await(TimeUnit.MILLISECONDS.toNanos(50), () -> false);
        }
        writer.join();
        assertEquals(count, read + outbox.dropped());
    }
}
