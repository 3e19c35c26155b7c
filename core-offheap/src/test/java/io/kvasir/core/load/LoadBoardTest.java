package io.kvasir.core.load;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.function.Consumer;

class LoadBoardTest {
    @ParameterizedTest
    @CsvSource({"0, 0, 0", "63, 0, 504", "64, 5760, 0", "130, 11520, 16"})
    void groupsOf64SlotsFollowEachOther(int slot, long group, long value) {
        assertEquals(group, LoadBoardDescriptor.groupOffsetOf(slot));
        assertEquals(value, LoadBoardDescriptor.valueOffset(slot));
    }

    @ParameterizedTest
    @CsvSource({"1, 1", "64, 1", "65, 2", "10000, 157"})
    void aBoardHasAsManyGroupsAsItsSlotsNeed(int slots, int groups) {
        assertEquals(groups, LoadBoardDescriptor.groups(slots));
    }

    @Test
    void valuesOfOneKindAreSideBySideBehindAHeaderOfTwoLines() {
        assertEquals(0, LoadBoardDescriptor.VERSION_OFFSET);
        assertEquals(8, LoadBoardDescriptor.OPEN_SLOTS_OFFSET);
        assertEquals(128, LoadBoardDescriptor.PREFILL_TOKENS_OFFSET);
        assertEquals(640, LoadBoardDescriptor.ACTIVE_BLOCKS_OFFSET);
        assertEquals(1_152, LoadBoardDescriptor.ACTIVE_REQUESTS_OFFSET);
        assertEquals(1_664, LoadBoardDescriptor.PROVISIONS_OFFSET);
        assertEquals(5_760, LoadBoardDescriptor.GROUP_LENGTH);
    }

    @Test
    void slotsAreClosedUntilTheyAreOpened() {
        try (LoadBoard board = new LoadBoard(70)) {
            assertFalse(board.isOpen(3));
            board.open(3, true);
            board.open(69, true);
            assertTrue(board.isOpen(3));
            assertTrue(board.isOpen(69));
            assertFalse(board.isOpen(5));
            board.open(3, false);
            assertFalse(board.isOpen(3));
            assertTrue(board.isOpen(69));
        }
    }

    @Test
    void aListenerHearsOfWhateverMayGiveASlotRoomAfterTheChange() {
        try (LoadBoard board = new LoadBoard(70)) {
            final List<String> received = new ArrayList<>();
            final RoomListener listener =
                    slot ->
                            received.add(
                                    slot
                                            + ": "
                                            + board.prefillTokens(slot)
                                            + (board.isOpen(slot) ? " open" : " closed"));
            board.addListener(listener);
            board.open(69, true);
            board.addProvisional(69, 100, 7);
            board.addPrefillTokens(69, 20);
            board.addPrefillTokens(69, -30);
            board.addActiveBlocks(69, -7);
            board.takeBackProvisional(69, 90, 0);
            board.open(69, false);
            board.roomMayBe(3);
            board.open(69, false);
            assertEquals(
                    List.of(
                            "69: 0 open",
                            "69: 90 open",
                            "69: 90 open",
                            "69: 0 open",
                            "69: 0 closed",
                            "3: 0 closed",
                            "69: 0 closed"),
                    received);
            board.removeListener(listener);
            board.removeListener(listener);
            board.open(69, true);
            assertEquals(7, received.size());
        }
    }

    @Test
    void aListenerLearnsOfWhatEnginesReportAfterTheChange() {
        try (LoadBoard board = new LoadBoard(70)) {
            final List<String> received = new ArrayList<>();
            board.addListener(
                    slot ->
                            received.add(
                                    slot
                                            + ": "
                                            + board.value(
                                                    slot, LoadBoardDescriptor.ENGINE_RUNNING_OFFSET)
                                            + " of "
                                            + board.reportedSlots(1)));
            board.report(69, running(5), OthersLoad.NONE);
            board.report(69, running(2), OthersLoad.NONE);
            board.clearReport(69);
            assertEquals(List.of("69: 5 of 32", "69: 2 of 32", "69: 2 of 0"), received);
        }
    }

    private static EngineLoad running(long requests) {
        return new EngineLoad(requests, 0, 0, 0, 100, 0);
    }

    @Test
    void aListenerThatThrowsHindersNeitherTheChangeNorTheOthers() {
        final List<Throwable> errors = new ArrayList<>();
        final List<Integer> received = new ArrayList<>();
        try (LoadBoard board = new LoadBoard(70, errors::add)) {
            final AssertionError error = new AssertionError("a defect of the listener");
            board.addListener(
                    _ -> {
                        throw error;
                    });
            board.addListener(received::add);
            board.addProvisional(69, 100, 7);
            board.takeBackProvisional(69, 100, 7);
            board.open(3, true);
            board.roomMayBe(5);
            assertEquals(List.of(69, 3, 5), received);
            assertEquals(List.of(error, error, error), errors);
            assertEquals(3, board.listenerFailures());
            assertEquals(
                    LoadBoardDescriptor.ONE_BEGUN + LoadBoardDescriptor.ONE_TAKEN_BACK,
                    board.provisions(69),
                    "what follows the call is done");
        }
    }

    @Test
    void errorsThatCannotBeTakenAreCountedToo() {
        final Consumer<Throwable> broken =
                _ -> {
                    throw new IllegalStateException("no room for errors");
                };
        try (LoadBoard board = new LoadBoard(1, broken)) {
            board.addListener(
                    _ -> {
                        throw new IllegalStateException("a defect of the listener");
                    });
            board.roomMayBe(0);
            assertEquals(2, board.listenerFailures());
        }
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
                            board.add(1, 0, 0, 1);
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
    void addingReturnsTheNewValueAndChangesOneSlot() {
        try (LoadBoard board = new LoadBoard(2)) {
            assertEquals(5, board.addActiveBlocks(0, 5));
            assertEquals(3, board.addActiveBlocks(0, -2));
            board.addPrefillTokens(0, 9);
            board.add(0, 0, 0, 1);
            board.add(1, 0, 0, 1);
            board.add(0, 1, 2, 3);
            assertEquals(10, board.prefillTokens(0));
            assertEquals(5, board.activeBlocks(0));
            assertEquals(4, board.activeRequests(0));
            assertEquals(1, board.activeRequests(1));
        }
    }

    @Test
    void slotsOutOfRangeAreRefused() {
        assertThrows(IllegalArgumentException.class, () -> new LoadBoard(0));
        try (LoadBoard board = new LoadBoard(2)) {
            assertThrows(IndexOutOfBoundsException.class, () -> board.addActiveBlocks(2, 1));
            assertThrows(IndexOutOfBoundsException.class, () -> board.add(2, 1, 1, 1));
            assertThrows(IndexOutOfBoundsException.class, () -> board.open(-1, true));
            assertThrows(IndexOutOfBoundsException.class, () -> board.prefillTokens(-1));
        }
    }
}
