package io.kvasir.core.slots;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;

import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;

class LoadBoardTest {
    @ParameterizedTest
    @CsvSource({"0, 0", "1, 128", "3, 384"})
    void cellsAreTwoCacheLinesApart(int slot, long offset) {
        assertEquals(offset, LoadCellDescriptor.cellOffset(slot));
    }

    @Test
    void valuesOfACellFollowEachOther() {
        assertEquals(0, LoadCellDescriptor.PREFILL_TOKENS_OFFSET);
        assertEquals(8, LoadCellDescriptor.ACTIVE_BLOCKS_OFFSET);
        assertEquals(16, LoadCellDescriptor.ACTIVE_REQUESTS_OFFSET);
    }

    @Test
    void addsOfManyThreadsAllCount() throws Exception {
        try (LoadBoard board = new LoadBoard(2);
                ExecutorService threads = Executors.newFixedThreadPool(2)) {
            final Runnable adds =
                    () -> {
                        for (int i = 0; i < 100_000; i++) {
                            board.addPrefillTokens(1, 3);
                            board.addActiveBlocks(1, 2);
                            board.addActiveRequests(1, 1);
                            board.addActiveBlocks(1, -1);
                        }
                    };
            final Future<?> first = threads.submit(adds);
            final Future<?> second = threads.submit(adds);
            first.get();
            second.get();
            assertEquals(600_000, board.prefillTokens(1));
            assertEquals(200_000, board.activeBlocks(1));
            assertEquals(200_000, board.activeRequests(1));
            assertEquals(0, board.prefillTokens(0));
        }
    }

    @Test
    void addingReturnsTheNewValueAndResetForgets() {
        try (LoadBoard board = new LoadBoard(2)) {
            assertEquals(5, board.addActiveBlocks(0, 5));
            assertEquals(3, board.addActiveBlocks(0, -2));
            board.addPrefillTokens(0, 9);
            board.addActiveRequests(0, 1);
            board.addActiveRequests(1, 1);
            board.reset(0);
            assertEquals(0, board.activeBlocks(0));
            assertEquals(0, board.prefillTokens(0));
            assertEquals(0, board.activeRequests(0));
            assertEquals(1, board.activeRequests(1));
        }
    }

    @Test
    void slotsOutOfRangeAreRefused() {
        assertThrows(IllegalArgumentException.class, () -> new LoadBoard(0));
        try (LoadBoard board = new LoadBoard(2)) {
            assertThrows(IndexOutOfBoundsException.class, () -> board.addActiveBlocks(2, 1));
            assertThrows(IndexOutOfBoundsException.class, () -> board.prefillTokens(-1));
        }
    }
}
