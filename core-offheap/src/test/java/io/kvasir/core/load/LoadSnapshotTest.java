package io.kvasir.core.load;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;

import io.kvasir.testsupport.Allocations;
import io.kvasir.testsupport.Seeds;

import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

import java.util.Random;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;

class LoadSnapshotTest {
    private static final double[] WEIGHTS = {1 / 16.0, 0, 0.3};

    @ParameterizedTest
    @ValueSource(ints = {1, 8, 64, 65, 300})
    void afterARefreshItSaysWhatALookAtEverySlotSays(int slots) {
        final Random random = new Random(Seeds.next("afterARefreshItSaysWhatALookAtEverySlotSays"));
        final LoadSnapshot mirror = new LoadSnapshot(slots);
        try (LoadBoard board = new LoadBoard(slots)) {
            double weight = WEIGHTS[0];
            for (int round = 0; round < 500; round++) {
                for (int i = random.nextInt(4); i > 0; i--) {
                    change(board, random);
                }
                weight = random.nextInt(20) == 0 ? WEIGHTS[random.nextInt(3)] : weight;
                mirror.refresh(board, weight);
                check(board, mirror, weight, random);
            }
        }
    }

    private static void change(LoadBoard board, Random random) {
        final int slot = random.nextInt(board.slots());
        switch (random.nextInt(6)) {
            case 0 -> board.open(slot, random.nextInt(4) > 0);
            case 1 -> board.add(slot, -board.prefillTokens(slot), -board.activeBlocks(slot), -1);
            case 2 -> board.addPrefillTokens(slot, random.nextInt(64));
            case 3 -> board.addActiveBlocks(slot, random.nextInt(4) - 1);
            case 4 -> board.add(slot, 0, 0, 1);
            default -> board.add(slot, 16L * random.nextInt(4), random.nextInt(4), 1);
        }
    }

    private static void check(LoadBoard board, LoadSnapshot mirror, double weight, Random random) {
        for (int group = 0; group < mirror.groups(); group++) {
            final long among = random.nextLong();
            double least = Double.POSITIVE_INFINITY;
            double leastAmong = Double.POSITIVE_INFINITY;
            for (int slot = group * 64; slot < Math.min(board.slots(), group * 64 + 64); slot++) {
                final double load = weighted(board, slot, weight);
                assertEquals(load, mirror.weighted(slot));
                assertEquals(board.isOpen(slot), mirror.isOpen(slot));
                assertEquals(board.prefillTokens(slot), mirror.prefillTokens(slot));
                assertEquals(board.activeBlocks(slot), mirror.activeBlocks(slot));
                assertEquals(board.activeRequests(slot), mirror.activeRequests(slot));
                least = Math.min(least, load);
                leastAmong = (among >>> slot & 1) == 0 ? leastAmong : Math.min(leastAmong, load);
            }
            assertEquals(least, mirror.least(group));
            assertEquals(leastAmong, mirror.leastAmong(group, among));
            long expected = 0;
            for (int slot = group * 64; slot < Math.min(board.slots(), group * 64 + 64); slot++) {
                if (board.isOpen(slot) && weighted(board, slot, weight) == leastAmong) {
                    expected |= 1L << slot;
                }
            }
            assertEquals(expected & among, mirror.slotsWith(group, among, leastAmong));
        }
    }

    private static double weighted(LoadBoard board, int slot, double weight) {
        return board.isOpen(slot)
                ? weight * board.prefillTokens(slot) + board.activeBlocks(slot)
                : Double.POSITIVE_INFINITY;
    }

    @Test
    void theNumbersStandStillBetweenRefreshes() {
        final LoadSnapshot mirror = new LoadSnapshot(2);
        try (LoadBoard board = new LoadBoard(2)) {
            board.open(0, true);
            mirror.refresh(board, 1);
            board.add(0, 5, 6, 7);
            board.open(1, true);
            assertEquals(0, mirror.activeBlocks(0));
            assertEquals(0, mirror.weighted(0));
            assertFalse(mirror.isOpen(1));
            mirror.refresh(board, 1);
            assertEquals(11, mirror.weighted(0));
            assertEquals(0, mirror.least(0));
        }
    }

    @Test
    void anotherBoardIsCopiedAsAWhole() {
        final LoadSnapshot mirror = new LoadSnapshot(2);
        try (LoadBoard first = new LoadBoard(2);
                LoadBoard second = new LoadBoard(2);
                LoadBoard larger = new LoadBoard(3)) {
            first.open(0, true);
            second.open(1, true);
            mirror.refresh(first, 1);
            mirror.refresh(second, 1);
            assertFalse(mirror.isOpen(0));
            assertThrows(IllegalArgumentException.class, () -> mirror.refresh(larger, 1));
        }
    }

    @Test
    void refreshingAllocatesNothing() {
        final LoadSnapshot mirror = new LoadSnapshot(200);
        try (LoadBoard board = new LoadBoard(200)) {
            assertEquals(
                    0,
                    Allocations.bytesPerRound(
                            20_000,
                            () -> {
                                board.add(150, 16, 1, 1);
                                mirror.refresh(board, 0.5);
                            }));
        }
    }

    @Test
    void nothingIsMissedWhileOthersAdd() throws Exception {
        final int adds = 300_000;
        final LoadSnapshot mirror = new LoadSnapshot(64);
        try (LoadBoard board = new LoadBoard(64);
                ExecutorService threads = Executors.newFixedThreadPool(2)) {
            final Runnable adder =
                    () -> {
                        for (int i = 0; i < adds; i++) {
                            board.add(i & 63, 1, 1, 1);
                        }
                    };
            final Future<?> first = threads.submit(adder);
            final Future<?> second = threads.submit(adder);
            long before = 0;
            while (!first.isDone() || !second.isDone()) {
                mirror.refresh(board, 1);
                final long now = total(mirror);
                assertEquals(Math.max(before, now), now, "a value went back");
                before = now;
            }
            first.get();
            second.get();
            mirror.refresh(board, 1);
            assertEquals(2L * adds, total(mirror));
        }
    }

    private static long total(LoadSnapshot mirror) {
        long total = 0;
        for (int slot = 0; slot < mirror.slots(); slot++) {
            total += mirror.activeBlocks(slot);
        }
        return total;
    }

    @Test
    void whatOthersHaveSentCountsBesideWhatIsBookedUntilTheReportIsCleared() {
        final LoadSnapshot mirror = new LoadSnapshot(70);
        try (LoadBoard board = new LoadBoard(70)) {
            board.open(3, true);
            board.open(66, true);
            board.add(66, 32, 5, 2);

            board.report(66, new EngineLoad(7, 4, -1, 50, 200, -1), new OthersLoad(160, 45, 9));
            mirror.refresh(board, 1 / 16.0);

            assertEquals(192, mirror.prefillTokens(66));
            assertEquals(50, mirror.activeBlocks(66));
            assertEquals(11, mirror.activeRequests(66));
            assertEquals(62, mirror.weighted(66));
            assertEquals(7, mirror.engineRunning(66));
            assertEquals(4, mirror.engineWaiting(66));
            assertEquals(50, mirror.engineUsedBlocks(66));
            assertEquals(200, mirror.engineBlocks(66));
            assertEquals(160, mirror.othersPrefillTokens(66));
            assertEquals(45, mirror.othersBlocks(66));
            assertEquals(9, mirror.othersRequests(66));
            assertFalse(mirror.isReported(3));
            assertEquals(EngineLoad.UNKNOWN, mirror.engineWaiting(3));
            assertEquals(0, mirror.othersBlocks(3));
            assertEquals(5, board.activeBlocks(66)); // the booked ones alone

            board.clearReport(66);
            mirror.refresh(board, 1 / 16.0);

            assertEquals(7, mirror.weighted(66));
            assertFalse(mirror.isReported(66));
        }
    }
}
