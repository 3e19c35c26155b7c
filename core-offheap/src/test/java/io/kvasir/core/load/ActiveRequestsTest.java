package io.kvasir.core.load;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.kvasir.core.hash.BlockHasher;
import io.kvasir.core.memory.BuddyArena;
import io.kvasir.core.radix.OverlapScores;

import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

import java.util.ArrayList;
import java.util.List;
import java.util.Set;

class ActiveRequestsTest {
    private static final int SLOTS = 3;
    private static final int ENTRIES = 6;
    private static final long GENERATION = 1L << Integer.SIZE;
    private static final long[] PROMPT = {11, 12, 13, 14};

    private final LoadBoard board = new LoadBoard(SLOTS);
    private final ActiveRequests table =
            new ActiveRequests(new ActiveRequestsConfig(SLOTS, ENTRIES, 10, 100), board);
    private final OverlapScores scores = new OverlapScores(SLOTS);

    @AfterEach
    void close() {
        table.close();
        board.close();
    }

    @Test
    void aBookingReplacesTheProvisionalBlocksByTheRealOnes() {
        assertEquals(4, book(1, 0, PROMPT, 64, 4));
        assertLoad(0, 64, 4, 1);
        assertEquals(1, book(2, 0, new long[] {11, 12, 15}, 16, 3));
        assertLoad(0, 80, 5, 2);
    }

    @Test
    void aSharedPrefixIsFreedWithItsLastRequest() {
        book(1, 0, PROMPT, 0, 4);
        book(2, 0, new long[] {11, 12}, 0, 2);
        assertTrue(table.free(1));
        assertLoad(0, 0, 2, 1);
        assertEquals(2, table.matchActive(PROMPT, 4, scores));
        assertTrue(table.free(2));
        assertLoad(0, 0, 0, 0);
        assertEquals(0, table.matchActive(PROMPT, 4, scores));
    }

    @Test
    void aBookingThatComesTooLateLeavesNoLoad() {
        book(1, 0, PROMPT, 64, 4);
        board.addProvisional(0, 32, 2);
        table.refuse(0, 32, 2);
        assertLoad(0, 64, 4, 1);
        assertEquals(1, table.activeRequests());
        assertEquals(0, table.refusals(), "there was room");
        assertThrows(IndexOutOfBoundsException.class, () -> table.refuse(SLOTS, 0, 0));
    }

    @Test
    void workersShareNoBlocks() {
        book(1, 0, PROMPT, 0, 4);
        assertEquals(4, book(2, 1, PROMPT, 0, 4));
        assertLoad(1, 0, 4, 1);
        table.matchActive(PROMPT, 3, scores);
        assertEquals("{0=3, 1=3}", scores.toString());
    }

    @Test
    void prefillCompletesOnce() {
        book(1, 2, PROMPT, 64, 4);
        assertTrue(table.prefillComplete(1));
        assertFalse(table.prefillComplete(1));
        assertFalse(table.prefillComplete(7));
        assertLoad(2, 0, 4, 1);
        assertTrue(table.free(1));
        assertLoad(2, 0, 0, 0);
    }

    @Test
    void freeingImpliesThatPrefillIsOver() {
        book(1, 0, PROMPT, 64, 4);
        assertTrue(table.free(1));
        assertFalse(table.free(1));
        assertFalse(table.prefillComplete(1));
        assertFalse(table.outputBlocks(1, 1));
        assertLoad(0, 0, 0, 0);
    }

    @Test
    void outputBlocksAreTheRequestsOwn() {
        book(1, 0, PROMPT, 0, 4);
        book(2, 0, PROMPT, 0, 4);
        assertTrue(table.outputBlocks(1, 1));
        assertTrue(table.outputBlocks(2, 1));
        assertLoad(0, 0, 6, 2);
        table.free(2);
        assertLoad(0, 0, 5, 1);
    }

    @Test
    void outputBlocksBeyondAllSenseLeaveNoLoadBehind() {
        book(1, 0, PROMPT, 0, 4);
        assertTrue(table.outputBlocks(1, Integer.MAX_VALUE));
        assertTrue(table.outputBlocks(1, Integer.MAX_VALUE));
        assertLoad(0, 0, (1 << 30) + 4, 1);
        assertTrue(table.outputBlocks(1, -1));
        assertLoad(0, 0, (1 << 30) + 3, 1);
        assertTrue(table.free(1));
        assertLoad(0, 0, 0, 0);
        assertEquals(0, table.corrections());
    }

    @Test
    void aBookingWhoseEntryIsTakenIsRefusedAndItsProvisionalLoadTakenBack() {
        book(GENERATION | 1, 0, PROMPT, 64, 4);
        assertEquals(ActiveRequests.TAKEN, book(GENERATION | 1, 1, PROMPT, 64, 4));
        assertEquals(ActiveRequests.TAKEN, book(2 * GENERATION | 1, 1, PROMPT, 64, 4));
        assertLoad(1, 0, 0, 0);
        assertLoad(0, 64, 4, 1);
        assertEquals(2, table.refusals());
        assertFalse(table.free(2 * GENERATION | 1));
        assertTrue(table.free(GENERATION | 1));
        assertEquals(4, book(2 * GENERATION | 1, 1, PROMPT, 64, 4));
    }

    @Test
    void everyEntryTakesARequest() {
        for (int index = 0; index < ENTRIES; index++) {
            assertEquals(index == 0 ? 4 : 0, book(GENERATION | index, 0, PROMPT, 64, 4));
        }
        assertLoad(0, ENTRIES * 64, 4, ENTRIES);
        assertEquals(ENTRIES, table.activeRequests());
        final long beyond = GENERATION | ENTRIES;
        assertThrows(IndexOutOfBoundsException.class, () -> tryBook(beyond, 0, PROMPT, 4));
        assertThrows(IndexOutOfBoundsException.class, () -> tryBook(-1, 0, PROMPT, 4));
        assertThrows(
                IllegalArgumentException.class,
                () -> tryBook(ActiveRequests.NO_REQUEST, 0, PROMPT, 4));
        assertEquals(0, table.refusals());
    }

    @Test
    void aPromptThatDoesNotFitWeighsItsOwnBlocksUntilItEnds() {
        final long[] seven = {1, 2, 3, 4, 5, 6, 7};
        assertEquals(4, book(1, 0, PROMPT, 64, 4)); // of ten blocks
        assertEquals(7, book(2, 1, seven, 8, 7));
        assertEquals(7, book(3, 1, seven, 8, 0), "shares nothing");
        assertLoad(1, 16, 14, 2);
        assertEquals(2, table.pathlessBookings());
        assertEquals(4, table.activeBlocks());
        table.matchActive(seven, 7, scores);
        assertEquals(0, scores.depth(1));

        assertTrue(table.prefillComplete(3));
        assertTrue(table.outputBlocks(3, 1));
        assertLoad(1, 8, 15, 2);
        assertTrue(table.free(1)); // there is room again, for those that come
        assertEquals(7, book(4, 1, seven, 8, 7));
        assertEquals(2, table.pathlessBookings());
        table.matchActive(seven, 7, scores);
        assertEquals(7, scores.depth(1));
        assertTrue(table.free(2));
        assertTrue(table.free(3));
        assertLoad(1, 8, 7, 1);
        assertTrue(table.free(4));
        assertLoad(1, 0, 0, 0);
        assertEquals(0, table.refusals());
    }

    @Test
    void blocksWithoutAHashAreTheRequestsOwn() {
        board.addProvisional(0, 96, 6);
        assertEquals(6, table.book(1, 0, PROMPT, 4, 2, 96, 6, ActiveRequests.NO_DEADLINE));
        board.addProvisional(0, 96, 2);
        assertEquals(2, table.book(2, 0, PROMPT, 4, 2, 96, 2, ActiveRequests.NO_DEADLINE));
        assertLoad(0, 192, 8, 2);
        assertTrue(table.free(1));
        assertLoad(0, 96, 6, 1);
    }

    @Test
    void aGoneWorkerTakesItsRequestsAlong() {
        book(1, 0, PROMPT, 64, 4);
        book(2, 0, new long[] {5}, 64, 1);
        book(3, 1, PROMPT, 64, 4);
        final List<Long> ended = new ArrayList<>();
        assertEquals(2, table.workerGone(0, ended::add));
        assertEquals(Set.of(1L, 2L), Set.copyOf(ended));
        assertLoad(0, 0, 0, 0);
        assertLoad(1, 64, 4, 1);
        assertFalse(table.free(1));
        assertEquals(1, table.activeRequests());
    }

    @Test
    void blocksBehindTheLimitCountButAreNotShared() {
        try (LoadBoard own = new LoadBoard(1);
                ActiveRequests shallow =
                        new ActiveRequests(new ActiveRequestsConfig(1, 4, 10, 2), own)) {
            assertEquals(4, add(shallow, 1, 0, PROMPT, 4, 0, 0));
            assertEquals(2, add(shallow, 2, 0, PROMPT, 4, 0, 0));
            assertEquals(6, own.activeBlocks(0));
            assertEquals(2, shallow.matchActive(PROMPT, 4, new OverlapScores(1)));
            shallow.free(1);
            assertEquals(4, own.activeBlocks(0));
            shallow.free(2);
            assertEquals(0, own.activeBlocks(0));
        }
    }

    @Test
    void potentialLoadsCountThePromptWithoutItsActivePrefix() {
        book(1, 0, new long[] {11, 12}, 8, 2);
        book(2, 1, new long[] {21}, 8, 1);
        final PotentialLoads loads = new PotentialLoads(SLOTS);
        table.potentialLoads(new long[] {11, 13}, 2, 0, scores, loads);
        assertEquals(3, loads.decodeBlocks(0)); // as seen on a live slot tracker of a peer
        assertEquals(3, loads.decodeBlocks(1));
        assertEquals(2, loads.decodeBlocks(2));
        table.potentialLoads(new long[] {11, 13}, 2, 1, scores, loads);
        assertEquals(4, loads.decodeBlocks(0));
        assertThrows(IndexOutOfBoundsException.class, () -> loads.decodeBlocks(SLOTS));
    }

    @Test
    void aPromptWithoutFullBlocksIsARequestAllTheSame() {
        assertEquals(0, book(1, 0, new long[0], 7, 0));
        assertLoad(0, 7, 0, 1);
        assertTrue(table.free(1));
        assertLoad(0, 0, 0, 0);
    }

    @Test
    void twoPrefixesWithOneHashAreNotTakenForEachOther() {
        // where one factor of XXH3's 16-byte product is zero, the hash can be solved for
        final long zeroesPrevious = (0x1F67B3B7A4A44072L ^ 0x78E5C0CC4EE679CBL) + 1337;
        final long zeroesLocal = (0x2172FFCC7DD05A82L ^ 0x8E2443F7744608B8L) - 1337;
        final long other = 4711;
        final long[] first = {
            zeroesPrevious, Long.reverseBytes(other ^ zeroesPrevious) ^ zeroesLocal
        };
        final long[] second = {other, zeroesLocal};
        assertEquals(
                BlockHasher.nextSequenceHash(first[0], first[1]),
                BlockHasher.nextSequenceHash(second[0], second[1]));

        assertEquals(2, book(1, 0, first, 0, 2));
        assertEquals(2, book(2, 0, second, 0, 2));
        assertEquals(0, book(3, 0, second, 0, 2));
        assertLoad(0, 0, 4, 3);
        table.free(3);
        table.free(2);
        assertLoad(0, 0, 2, 1);
        assertEquals(2, table.matchActive(first, 2, scores));
        table.free(1);
        assertLoad(0, 0, 0, 0);
        assertEquals(0, table.activeBlocks());
    }

    @Test
    void aPathThatEndsInsideARunSplitsItAndKeepsTheEndsOfOthers() {
        book(1, 0, PROMPT, 0, 4);
        book(2, 0, PROMPT, 0, 4);
        book(3, 1, PROMPT, 0, 4);
        assertEquals(1, table.runs());
        assertEquals(0, book(4, 0, new long[] {11}, 0, 0)); // splits behind 11
        assertEquals(2, table.runs());
        table.free(1);
        assertLoad(0, 0, 4, 2);
        assertEquals(0, book(5, 0, new long[] {11, 12, 13}, 0, 0)); // splits the lower segment
        assertEquals(3, table.runs());
        table.free(2);
        assertLoad(0, 0, 3, 2);
        table.matchActive(PROMPT, 4, scores);
        assertEquals("{0=3, 1=4}", scores.toString());
        table.free(4); // nothing ends behind 11 any more
        assertEquals(2, table.runs());
        assertLoad(0, 0, 3, 1);
        table.free(5);
        assertEquals(1, table.runs());
        table.matchActive(PROMPT, 4, scores);
        assertEquals("{1=4}", scores.toString());
        table.free(3);
        assertEquals(0, table.runs());
        assertEquals(0, table.activeBlocks());
    }

    @Test
    void segmentsAreJoinedWhenTheBranchBetweenThemIsGone() {
        book(1, 0, PROMPT, 0, 4);
        book(2, 0, new long[] {11, 12, 15}, 0, 3);
        assertEquals(3, table.runs());
        book(3, 2, new long[] {11, 12, 13, 14}, 0, 4); // ends in the lower segment
        table.free(2);
        assertEquals(1, table.runs());
        table.matchActive(PROMPT, 4, scores);
        assertEquals("{0=4, 2=4}", scores.toString());
        table.free(3);
        table.matchActive(PROMPT, 4, scores);
        assertEquals("{0=4}", scores.toString());
        table.free(1);
        assertEquals(0, table.runs());
    }

    @Test
    void aPathBehindTheEndOfAnotherDoesNotLengthenTheOther() {
        book(1, 0, new long[] {11, 12}, 0, 2);
        assertEquals(2, book(2, 1, new long[] {11, 12}, 0, 2));
        assertEquals(2, book(3, 1, PROMPT, 0, 2));
        table.matchActive(PROMPT, 4, scores);
        assertEquals("{0=2, 1=4}", scores.toString());
        table.free(3);
        table.matchActive(PROMPT, 4, scores);
        assertEquals("{0=2, 1=2}", scores.toString());
    }

    @Test
    void aNumberStandsForOneRequestOnly() {
        final long first = GENERATION | 1;
        book(first, 0, PROMPT, 64, 4);
        assertTrue(table.outputBlocks(first, 1));
        assertTrue(table.prefillComplete(first));
        assertFalse(table.prefillComplete(first));
        assertTrue(table.free(first));

        final long second = 2 * GENERATION | 1;
        book(second, 0, PROMPT, 64, 4);
        assertFalse(table.free(first));
        assertFalse(table.outputBlocks(first, 1));
        assertFalse(table.prefillComplete(first));
        assertLoad(0, 64, 4, 1);
        final long[] others = {
            0, 1, -1, ENTRIES, GENERATION, GENERATION | 2, GENERATION | ENTRIES, Long.MAX_VALUE
        };
        for (long other : others) {
            assertFalse(table.free(other));
        }
        assertTrue(table.free(second));
        assertFalse(table.free(second));
        assertLoad(0, 0, 0, 0);
    }

    @Test
    void theLastGenerationIsFollowedByTheFirst() {
        final long last = -1L << Integer.SIZE | 1;
        book(last, 0, PROMPT, 64, 4);
        assertTrue(table.prefillComplete(last));
        assertEquals(1, table.workerGone(0, number -> assertEquals(last, number)));
        book(GENERATION | 1, 0, PROMPT, 64, 4);
        assertFalse(table.free(last));
        assertLoad(0, 64, 4, 1);
    }

    @Test
    void requestsEndAtTheirDeadline() {
        final long ms = 1_000_000;
        final List<Long> ended = new ArrayList<>();
        table.book(1, 0, PROMPT, 4, 0, 64, 0, 100 * ms);
        table.book(2, 0, PROMPT, 4, 0, 64, 0, 300 * ms);
        table.book(3, 0, PROMPT, 4, 0, 64, 0, 3_600_000 * ms);
        table.book(4, 0, PROMPT, 4, 0, 64, 0, ActiveRequests.NO_DEADLINE);
        assertEquals(0, table.expire(100 * ms, ended::add));
        assertEquals(1, table.expire(102 * ms, ended::add));
        assertEquals(0, table.expire(50 * ms, ended::add));
        assertTrue(table.free(2));
        table.book(5, 0, PROMPT, 4, 0, 64, 0, 1 * ms); // over already
        assertEquals(1, table.expire(400 * ms, ended::add));
        assertEquals(0, table.expire(3_600_000 * ms, ended::add));
        assertEquals(1, table.expire(3_600_002 * ms, ended::add));
        assertEquals(0, table.expire(Long.MAX_VALUE, ended::add));
        assertEquals(List.of(1L, 5L, 3L), ended);
        assertEquals(3, table.expiredLeases());
        assertEquals(1, table.activeRequests());
    }

    @Test
    void aPromptIsBookedWithoutAPathWhenMemoryEndsBeforeTheLimits() {
        final int slots = 300;
        try (LoadBoard own = new LoadBoard(slots);
                ActiveRequests tight =
                        new ActiveRequests(
                                new ActiveRequestsConfig(slots, 5_000, 1 << 20, 4_096, 64 << 10),
                                own)) {
            final long bytes = tight.bytes();
            final long[] prompt = new long[1_500];
            int booked = 0;
            long id = 0;
            while (tight.pathlessBookings() == 0) {
                fillPrompt(prompt, id);
                assertEquals(
                        1_500, add(tight, ++id, (int) id % slots, prompt, prompt.length, 0, 0));
                booked++;
            }
            assertTrue(booked > 3, "booked " + booked);
            final long used = tight.activeBlocks();
            final long runs = tight.runs();
            final OverlapScores found = new OverlapScores(slots);
            fillPrompt(prompt, 0);
            prompt[0]++;
            tight.matchActive(prompt, prompt.length, found);
            assertEquals(0, found.matchedSlots());
            assertEquals(booked, tight.activeRequests());

            // no path behind a split: the split is taken back
            fillPrompt(prompt, 0);
            prompt[700] = -1;
            assertEquals(1_500, add(tight, ++id, 7, prompt, prompt.length, 0, 0));
            assertEquals(2, tight.pathlessBookings());
            assertEquals(runs, tight.runs());
            assertEquals(used, tight.activeBlocks());
            tight.matchActive(prompt, prompt.length, found);
            assertEquals("{1=700}", found.toString());
            fillPrompt(prompt, 0);
            tight.matchActive(prompt, prompt.length, found);
            assertEquals("{1=1500}", found.toString());

            for (int slot = 0; slot < slots; slot++) {
                tight.workerGone(slot);
            }
            assertEquals(0, tight.runs());
            assertEquals(0, tight.activeBlocks());
            assertEquals(bytes, tight.bytes());
            fillPrompt(prompt, 1);
            assertEquals(1_500, add(tight, ++id, 0, prompt, prompt.length, 0, 0));
        }
    }

    private static void fillPrompt(long[] prompt, long number) {
        for (int i = 0; i < prompt.length; i++) {
            prompt[i] = number << 32 | i;
        }
    }

    @Test
    void slotsAndCountsOutOfRangeAreRefused() {
        assertThrows(IndexOutOfBoundsException.class, () -> tryBook(1, SLOTS, PROMPT, 4));
        assertThrows(IndexOutOfBoundsException.class, () -> tryBook(1, 0, PROMPT, 5));
        assertThrows(IndexOutOfBoundsException.class, () -> table.workerGone(-1));
        assertThrows(IndexOutOfBoundsException.class, () -> board.activeBlocks(SLOTS));
        assertThrows(IllegalArgumentException.class, () -> new ActiveRequestsConfig(1, 1, 0, 1));
        assertThrows(IllegalArgumentException.class, () -> new ActiveRequestsConfig(1, 1, 1, 1, 9));
        assertThrows(IndexOutOfBoundsException.class, () -> table.matchActive(PROMPT, 5, scores));
        assertThrows(
                IllegalArgumentException.class,
                () -> new ActiveRequests(new ActiveRequestsConfig(SLOTS + 1, 1, 1, 1), board));
    }

    private int book(long id, int slot, long[] prompt, long prefillTokens, int provisional) {
        board.addPrefillTokens(slot, prefillTokens);
        board.addActiveBlocks(slot, provisional);
        board.add(slot, 0, 0, 1);
        return table.book(
                id,
                slot,
                prompt,
                prompt.length,
                0,
                prefillTokens,
                provisional,
                ActiveRequests.NO_DEADLINE);
    }

    private int tryBook(long number, int slot, long[] prompt, int count) {
        return table.book(number, slot, prompt, count, 0, 0, 0, ActiveRequests.NO_DEADLINE);
    }

    private static int add(
            ActiveRequests to,
            long number,
            int slot,
            long[] prompt,
            int count,
            long prefillTokens,
            int provisional) {
        return to.book(
                number,
                slot,
                prompt,
                count,
                0,
                prefillTokens,
                provisional,
                ActiveRequests.NO_DEADLINE);
    }

    private void assertLoad(int slot, long prefillTokens, long blocks, long requests) {
        assertEquals(prefillTokens, board.prefillTokens(slot));
        assertEquals(blocks, board.activeBlocks(slot));
        assertEquals(requests, board.activeRequests(slot));
    }

    @Test
    void theBudgetOfManyRequestsIsOneThatAnArenaCanHave() {
        final int entries = 3 << 26; // of a router with the most requests that may be set
        final ActiveRequestsConfig most = new ActiveRequestsConfig(1, entries, 1 << 30, 1);
        assertEquals(Integer.MAX_VALUE - 1, BuddyArena.lines(most.budgetBytes()));
        final ActiveRequestsConfig few = new ActiveRequestsConfig(1, 1 << 10, 1, 1);
        assertEquals((64 << 10) + 10 + (1 << 20) + (1 << 10), few.budgetBytes());
    }
}
