package io.kvasir.pipeline.booking;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.kvasir.core.load.ActiveRequests;
import io.kvasir.core.load.ActiveRequestsConfig;
import io.kvasir.core.load.LoadBoard;

import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

import java.util.Arrays;
import java.util.concurrent.TimeUnit;

/** What other routers are sent of bookings, and how theirs enter the load. */
class ReplicaPortTest {
    private static final int SLOTS = 8;
    private static final long[] PROMPT = {1, 2, 3};
    private static final long PATIENCE_NS = TimeUnit.SECONDS.toNanos(60);

    private final BookingPipelineConfig config =
            BookingPipelineConfig.of(16).withReplicaRequests(8);
    private final LoadBoard board = new LoadBoard(SLOTS);
    private final ActiveRequests table =
            new ActiveRequests(
                    new ActiveRequestsConfig(SLOTS, config.tableEntries(), 1 << 12, 4_096), board);
    private final BookingPipeline pipeline = new BookingPipeline(config, table);
    private final ReplicaPort port = pipeline.replicaPortOrNull();
    private final ReplicaRecord record = new ReplicaRecord();
    private final long foreign = 1L << Integer.SIZE | port.firstIndex();

    @AfterEach
    void close() {
        pipeline.close();
        table.close();
        board.close();
    }

    private void settle() {
        final long start = System.nanoTime();
        while (pipeline.backlog() > 0) {
            assertTrue(System.nanoTime() - start < PATIENCE_NS, "records are applied");
            Thread.onSpinWait();
        }
    }

    private void assertNext(ReplicaRecord.Kind kind, long booking) {
        assertTrue(port.outbox().poll(record), () -> "a record: " + kind);
        assertEquals(kind, record.kind());
        assertEquals(booking, record.booking());
    }

    private void assertLoad(int slot, long tokens, long blocks, long requests) {
        settle();
        assertEquals(tokens, board.prefillTokens(slot));
        assertEquals(blocks, board.activeBlocks(slot));
        assertEquals(requests, board.activeRequests(slot));
    }

    @Test
    void aPipelineWithoutReplicasHasNoPort() {
        try (ActiveRequests own =
                        new ActiveRequests(
                                new ActiveRequestsConfig(
                                        SLOTS, BookingPipelineConfig.of(4).entries(), 64, 64),
                                board);
                BookingPipeline alone = new BookingPipeline(BookingPipelineConfig.of(4), own)) {
            assertNull(alone.replicaPortOrNull());
        }
    }

    @Test
    void whatBecomesOfAnOwnBookingIsSaidInItsOrder() {
        final long number = pipeline.book(3, PROMPT, 3, 48, 3);
        settle();
        pipeline.prefillComplete(number);
        settle();
        pipeline.outputBlocks(number, 2);
        pipeline.outputBlocks(number, 1);
        settle();
        pipeline.free(number);
        settle();
        assertNext(ReplicaRecord.Kind.ADDED, number);
        assertEquals(3, record.slot());
        assertEquals(48, record.prefillTokens());
        assertEquals(0, record.ownBlocks());
        assertEquals(3, record.pathBlocks());
        assertArrayEquals(PROMPT, Arrays.copyOf(record.items(), record.itemCount()));
        assertEquals(1, record.sequence());
        assertNext(ReplicaRecord.Kind.PREFILLED, number);
        ReplicaRecord.Kind last = ReplicaRecord.Kind.PREFILLED;
        int own = 0;
        while (port.outbox().poll(record)) {
            last = record.kind();
            own = Math.max(own, record.ownBlocks());
        }
        assertEquals(3, own, "the total, together or one after the other");
        assertEquals(ReplicaRecord.Kind.FREED, last);
        assertEquals(3, record.sequence(), "outputs have no numbers");
    }

    @Test
    void endsThatNobodyAskedForAreSaidToo() {
        final long gone = pipeline.book(1, PROMPT, 3, 48, 3);
        final long due = pipeline.book(2, 0, PROMPT, 3, 48, 3, TimeUnit.SECONDS.toNanos(1), false);
        settle();
        pipeline.workerGone(1, () -> {});
        settle();
        pipeline.tick(TimeUnit.SECONDS.toNanos(2));
        settle();
        assertNext(ReplicaRecord.Kind.ADDED, gone);
        assertNext(ReplicaRecord.Kind.ADDED, due);
        assertNext(ReplicaRecord.Kind.FREED, gone);
        assertNext(ReplicaRecord.Kind.FREED, due);
        assertFalse(port.outbox().poll(record));
    }

    @Test
    void aBookingOfAnotherRouterIsLoadAndIsNotSaid() {
        pipeline.book(3, PROMPT, 3, 48, 3);
        settle();
        port.book(foreign, 3, 0, PROMPT, 2, 40, false);
        assertLoad(3, 88, 5, 2); // the prompt's blocks are shared
        port.prefillComplete(foreign);
        port.outputBlocks(foreign, 4);
        assertLoad(3, 48, 9, 2);
        port.free(foreign);
        port.free(foreign);
        assertLoad(3, 48, 3, 1);
        assertTrue(port.outbox().poll(record), "the own booking");
        assertFalse(port.outbox().poll(record), "and no other");
        assertEquals(1, pipeline.openBookings(), "limits are of own ones");
    }

    @Test
    void aBookingForAFormerTenantOfTheSlotIsNone() {
        pipeline.workerGone(3, () -> {});
        port.book(foreign, 3, 0, PROMPT, 0, 40, false);
        assertLoad(3, 0, 0, 0);
        port.book(foreign, 3, 1, PROMPT, 0, 40, false);
        assertLoad(3, 40, 3, 1);
        pipeline.workerGone(3, () -> {});
        assertLoad(3, 0, 0, 0);
        port.free(foreign); // it has ended with its worker
        assertLoad(3, 0, 0, 0);
        assertEquals(0, pipeline.failures());
    }

    @Test
    void comparisonsOfTheLoadLeaveBookingsOfOthersAlone() {
        port.book(foreign, 3, 0, PROMPT, 0, 40, false);
        settle();
        for (int i = 1; i < 30; i++) {
            pipeline.tick(TimeUnit.SECONDS.toNanos(i));
            settle();
        }
        assertLoad(3, 40, 3, 1);
        assertEquals(0, table.corrections());
    }

    @Test
    void digestsSumUpOwnBookingsAloneAndNameASlotForSomeTimeAfterTheLast() {
        final long one = pipeline.book(3, PROMPT, 3, 48, 3);
        final long two = pipeline.book(3, PROMPT, 2, 10, 2);
        port.book(foreign, 3, 0, PROMPT, 0, 40, false);
        settle();
        while (port.outbox().poll(record)) {
            assertNotEquals(ReplicaRecord.Kind.DIGEST, record.kind());
        }
        port.digest();
        assertDigest(2, 58, ReplicaRecord.mix(one) + ReplicaRecord.mix(two));
        pipeline.free(one);
        pipeline.free(two);
        settle();
        assertNext(ReplicaRecord.Kind.FREED, one);
        assertNext(ReplicaRecord.Kind.FREED, two);
        port.digest();
        assertDigest(0, 0, 0);
    }

    private void assertDigest(int bookings, int tokens, long numbers) {
        settle();
        assertNext(ReplicaRecord.Kind.DIGEST, BookingPipeline.NONE);
        for (int i = 0; i < record.itemCount(); i += ReplicaRecord.DIGEST_ITEMS) {
            if (record.items()[i] == 3) {
                assertEquals(bookings, record.items()[i + 1]);
                assertEquals(tokens, record.items()[i + 2]);
                assertEquals(0, record.items()[i + 3]);
                assertEquals(numbers, record.items()[i + 4]);
                return;
            }
        }
        throw new AssertionError("slot 3 is not named");
    }

    @Test
    void listsNameOwnBookingsAndSingleOnesAreSaidAgainAsTheyAre() {
        final long one = pipeline.book(3, PROMPT, 3, 48, 3);
        pipeline.prefillComplete(one);
        pipeline.outputBlocks(one, 2);
        port.book(foreign, 3, 0, PROMPT, 0, 40, false);
        settle();
        while (port.outbox().poll(record)) {
            assertEquals(one, record.booking());
        }
        port.list(3, 0);
        port.list(3, 9); // a tenant that is not there
        port.resend(one);
        port.resend(one + (1L << Integer.SIZE)); // another one's number
        port.resend(foreign);
        settle();
        assertNext(ReplicaRecord.Kind.LIST, BookingPipeline.NONE);
        assertArrayEquals(
                new long[] {one, 0, 2}, Arrays.copyOf(record.items(), record.itemCount()));
        assertNext(ReplicaRecord.Kind.ADDED, one);
        assertEquals(0, record.prefillTokens());
        assertEquals(2, record.ownBlocks());
        assertArrayEquals(PROMPT, Arrays.copyOf(record.items(), record.itemCount()));
        assertFalse(port.outbox().poll(record));
    }

    @Test
    void stepsAfterTheCloseDoNothing() {
        pipeline.close();
        port.book(foreign, 3, 0, PROMPT, 0, 40, false);
        assertEquals(0, port.waitingSteps());
    }
}
