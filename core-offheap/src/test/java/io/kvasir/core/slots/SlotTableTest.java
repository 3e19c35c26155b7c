package io.kvasir.core.slots;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.kvasir.core.hash.BlockHasher;
import io.kvasir.core.index.OverlapScores;

import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

class SlotTableTest {
    private static final int SLOTS = 3;
    private static final long[] PROMPT = {11, 12, 13, 14};

    private final LoadBoard board = new LoadBoard(SLOTS);
    private final SlotTable table = new SlotTable(new SlotTableConfig(SLOTS, 4, 10, 100), board);
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
        assertFalse(table.outputBlock(1));
        assertLoad(0, 0, 0, 0);
    }

    @Test
    void outputBlocksAreTheRequestsOwn() {
        book(1, 0, PROMPT, 0, 4);
        book(2, 0, PROMPT, 0, 4);
        assertTrue(table.outputBlock(1));
        assertTrue(table.outputBlock(2));
        assertLoad(0, 0, 6, 2);
        table.free(2);
        assertLoad(0, 0, 5, 1);
    }

    @Test
    void aRunningIdIsRefusedAndItsProvisionalLoadTakenBack() {
        book(1, 0, PROMPT, 64, 4);
        assertEquals(SlotTable.DUPLICATE, book(1, 1, PROMPT, 64, 4));
        assertLoad(1, 0, 0, 0);
        assertLoad(0, 64, 4, 1);
        assertEquals(1, table.duplicates());
    }

    @Test
    void aBookingWithoutRoomIsRefusedAndItsProvisionalLoadTakenBack() {
        for (int id = 0; id < 4; id++) {
            assertEquals(id == 0 ? 4 : 0, book(id, 0, PROMPT, 64, 4));
        }
        assertEquals(SlotTable.FULL, book(9, 0, PROMPT, 64, 4)); // four requests
        assertLoad(0, 256, 4, 4);
        table.free(1);
        assertEquals(SlotTable.FULL, book(9, 1, new long[] {1, 2, 3, 4, 5, 6, 7}, 8, 7));
        assertLoad(1, 0, 0, 0);
        assertEquals(6, book(9, 1, new long[] {1, 2, 3, 4, 5, 6}, 8, 6)); // ten blocks
        assertEquals(2, table.refusals());
    }

    @Test
    void aGoneWorkerTakesItsRequestsAlong() {
        book(1, 0, PROMPT, 64, 4);
        book(2, 0, new long[] {5}, 64, 1);
        book(3, 1, PROMPT, 64, 4);
        assertEquals(2, table.workerGone(0));
        assertLoad(0, 0, 0, 0);
        assertLoad(1, 64, 4, 1);
        assertFalse(table.free(1));
        assertEquals(1, table.activeRequests());
    }

    @Test
    void blocksBehindTheLimitCountButAreNotShared() {
        try (LoadBoard own = new LoadBoard(1);
                SlotTable shallow = new SlotTable(new SlotTableConfig(1, 4, 10, 2), own)) {
            assertEquals(4, shallow.add(1, 0, PROMPT, 4, 0, 0));
            assertEquals(2, shallow.add(2, 0, PROMPT, 4, 0, 0));
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
        assertEquals(1, book(3, 0, second, 0, 2));
        assertLoad(0, 0, 5, 3);
        table.free(3);
        table.free(2);
        assertLoad(0, 0, 2, 1);
        assertEquals(2, table.matchActive(first, 2, scores));
        table.free(1);
        assertLoad(0, 0, 0, 0);
        assertEquals(0, table.activeBlocks());
    }

    @Test
    void slotsAndCountsOutOfRangeAreRefused() {
        assertThrows(IndexOutOfBoundsException.class, () -> table.add(1, SLOTS, PROMPT, 4, 0, 0));
        assertThrows(IndexOutOfBoundsException.class, () -> table.add(1, 0, PROMPT, 5, 0, 0));
        assertThrows(IndexOutOfBoundsException.class, () -> table.workerGone(-1));
        assertThrows(IndexOutOfBoundsException.class, () -> board.activeBlocks(SLOTS));
        assertThrows(IllegalArgumentException.class, () -> new SlotTableConfig(1, 1, 0, 1));
        assertThrows(
                IllegalArgumentException.class,
                () -> new SlotTable(new SlotTableConfig(SLOTS + 1, 1, 1, 1), board));
    }

    private int book(long id, int slot, long[] prompt, long prefillTokens, int provisional) {
        board.addPrefillTokens(slot, prefillTokens);
        board.addActiveBlocks(slot, provisional);
        board.addActiveRequests(slot, 1);
        return table.add(id, slot, prompt, prompt.length, prefillTokens, provisional);
    }

    private void assertLoad(int slot, long prefillTokens, long blocks, long requests) {
        assertEquals(prefillTokens, board.prefillTokens(slot));
        assertEquals(blocks, board.activeBlocks(slot));
        assertEquals(requests, board.activeRequests(slot));
    }
}
