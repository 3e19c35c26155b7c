package io.kvasir.router.disagg;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

import java.util.ArrayDeque;
import java.util.Deque;
import java.util.EnumMap;
import java.util.EnumSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.function.Predicate;
import java.util.stream.Collectors;
import java.util.stream.Stream;

/** Laws that the table keeps. */
class SplitTableTest {
    private static final Set<SplitEvent> FAILURES =
            EnumSet.of(
                    SplitEvent.DECODE_ALONE,
                    SplitEvent.PREFILL_AGAIN,
                    SplitEvent.GIVE_UP,
                    SplitEvent.ABANDONED);

    /** What is begun in each state, and waited for. */
    private static final Map<SplitState, SplitAction> BEGUN =
            new EnumMap<>(
                    Map.of(
                            SplitState.SELECT_PREFILL, SplitAction.CHOOSE_PREFILL,
                            SplitState.PREFILLING, SplitAction.SEND_PREFILL,
                            SplitState.HANDOFF, SplitAction.HAND_OVER,
                            SplitState.SELECT_DECODE, SplitAction.CHOOSE_DECODE,
                            SplitState.DECODING, SplitAction.SEND_DECODE));

    @ParameterizedTest
    @EnumSource(
            names = {"DONE", "FAILED"},
            mode = EnumSource.Mode.EXCLUDE)
    void everyOpenStateHasARowForEveryFailure(SplitState state) {
        for (SplitEvent failure : FAILURES) {
            assertNotNull(SplitTable.row(state, failure), state + " " + failure);
        }
    }

    @Test
    void anEndHasNoRows() {
        for (SplitState state : SplitState.values()) {
            for (SplitEvent event : SplitEvent.values()) {
                assertTrue(!state.isEnd() || SplitTable.row(state, event) == null);
            }
        }
    }

    @Test
    void aRowIsFoundByItsStateAndEvent() {
        int found = 0;
        for (SplitState state : SplitState.values()) {
            for (SplitEvent event : SplitEvent.values()) {
                found += SplitTable.row(state, event) == null ? 0 : 1;
            }
        }
        assertEquals(SplitTable.rows().size(), found);
        for (SplitTable.Row row : SplitTable.rows()) {
            assertEquals(row, SplitTable.row(row.state(), row.event()));
        }
    }

    @Test
    void aDecodeThatMayBeBookedIsEndedUnlessItGoesOnOrHasEndedItself() {
        for (SplitTable.Row row : rows(r -> r.state() == SplitState.SELECT_DECODE)) {
            assertTrue(
                    row.event() == SplitEvent.DECODE_CHOSEN
                            || row.actions().contains(SplitAction.ABORT_DECODE),
                    row.toString());
        }
        for (SplitTable.Row row : rows(r -> r.state() == SplitState.DECODING)) {
            final boolean goesOn = row.next() == SplitState.DECODING;
            final boolean isDone =
                    row.event() == SplitEvent.DECODE_DONE && row.next() == SplitState.DONE;
            final boolean hasEnded =
                    row.event() == SplitEvent.DECODE_UNSENT
                            && row.next() == SplitState.SELECT_DECODE;
            assertTrue(
                    goesOn
                            || isDone
                            || hasEnded
                            || row.actions().contains(SplitAction.ABORT_DECODE),
                    row.toString());
        }
    }

    @Test
    void aPrefillThatIsLeftBehindIsFreedOrFetched() {
        for (SplitTable.Row row : SplitTable.rows()) {
            final boolean leavesBehind =
                    row.next().isEnd()
                            || row.next() == SplitState.SELECT_PREFILL
                            || row.event() == SplitEvent.DECODE_ALONE;
            assertTrue(
                    !leavesBehind
                            || row.actions().contains(SplitAction.FREE_PREFILL)
                            || row.actions().contains(SplitAction.BLOCKS_FETCHED),
                    row.toString());
        }
    }

    @Test
    void aPrefillThatIsNotLeftBehindKeepsItsBlocks() {
        for (SplitTable.Row row : rows(r -> !r.next().isEnd() && !FAILURES.contains(r.event()))) {
            assertFalse(row.actions().contains(SplitAction.FREE_PREFILL), row.toString());
        }
    }

    @Test
    void blocksAreFetchedByADecodeWorkerThatAnswersOnly() {
        for (SplitTable.Row row : SplitTable.rows()) {
            assertEquals(
                    row.event() == SplitEvent.DECODE_STARTED
                            || row.event() == SplitEvent.DECODE_DONE,
                    row.actions().contains(SplitAction.BLOCKS_FETCHED),
                    row.toString());
        }
    }

    @Test
    void blocksAreFreedAfterTheDecodeWorkerThatMayReadThemHasEnded() {
        for (SplitTable.Row row : rows(r -> r.actions().contains(SplitAction.ABORT_DECODE))) {
            assertTrue(
                    row.actions().indexOf(SplitAction.ABORT_DECODE)
                            < row.actions().indexOf(SplitAction.FREE_PREFILL),
                    row.toString());
        }
    }

    @Test
    void whatAStateWaitsForIsBegunByEachRowIntoItAfterAllElseHasEnded() {
        for (SplitTable.Row row : rows(r -> r.state() != r.next())) {
            final SplitAction begun = BEGUN.get(row.next());
            assertTrue(begun == null || row.actions().getLast() == begun, row.toString());
        }
    }

    @Test
    void nothingIsBegunThatTheNextStateDoesNotWaitFor() {
        for (SplitTable.Row row : SplitTable.rows()) {
            for (SplitAction action : row.actions()) {
                assertTrue(
                        !BEGUN.containsValue(action) || BEGUN.get(row.next()) == action,
                        row.toString());
            }
        }
    }

    @Test
    void aFailureIsReportedByTheRowsThatGiveUpAndByNoOthers() {
        for (SplitTable.Row row : SplitTable.rows()) {
            assertEquals(
                    row.event() == SplitEvent.GIVE_UP,
                    row.actions().contains(SplitAction.REPORT),
                    row.toString());
        }
    }

    @Test
    void noActionIsDoneTwiceInARow() {
        for (SplitTable.Row row : SplitTable.rows()) {
            assertEquals(row.actions().size(), Set.copyOf(row.actions()).size(), row.toString());
        }
    }

    @Test
    void everyEventAndEveryActionIsUsed() {
        assertEquals(
                EnumSet.allOf(SplitEvent.class),
                SplitTable.rows().stream()
                        .map(SplitTable.Row::event)
                        .collect(Collectors.toCollection(() -> EnumSet.noneOf(SplitEvent.class))));
        assertEquals(
                EnumSet.allOf(SplitAction.class),
                SplitTable.rows().stream()
                        .flatMap(row -> row.actions().stream())
                        .collect(Collectors.toCollection(() -> EnumSet.noneOf(SplitAction.class))));
    }

    @Test
    void everyStateCanBeReachedAndBothEndsFromEveryOpenOne() {
        assertEquals(
                EnumSet.allOf(SplitState.class), reachable(SplitState.SELECT_PREFILL, _ -> true));
        for (SplitState state : SplitState.values()) {
            assertEquals(
                    !state.isEnd(),
                    reachable(state, _ -> true)
                            .containsAll(EnumSet.of(SplitState.DONE, SplitState.FAILED)),
                    state.toString());
        }
    }

    @Test
    void onlyWhatIsCountedLeadsBack() {
        final Set<SplitEvent> counted =
                EnumSet.of(
                        SplitEvent.PREFILL_AGAIN, // prefills
                        SplitEvent.DECODE_UNSENT, // decode workers
                        SplitEvent.DECODE_ALONE, // once: a request alone that fails gives up
                        SplitEvent.DECODE_STARTED); // once
        for (SplitState state : SplitState.values()) {
            for (SplitTable.Row row :
                    rows(r -> r.state() == state && !counted.contains(r.event()))) {
                assertFalse(
                        row.next() == state
                                || reachable(row.next(), r -> !counted.contains(r.event()))
                                        .contains(state),
                        row.toString());
            }
        }
    }

    @Test
    void theRowsCannotBeChanged() {
        final List<SplitTable.Row> rows = SplitTable.rows();
        assertThrows(UnsupportedOperationException.class, rows::removeFirst);
        assertThrows(
                UnsupportedOperationException.class, () -> rows.getFirst().actions().removeFirst());
        assertNull(SplitTable.row(SplitState.DONE, SplitEvent.ABANDONED));
    }

    private static List<SplitTable.Row> rows(Predicate<SplitTable.Row> which) {
        return SplitTable.rows().stream().filter(which).toList();
    }

    /** States from one on, itself included. */
    private static Set<SplitState> reachable(SplitState from, Predicate<SplitTable.Row> which) {
        final Set<SplitState> found = EnumSet.of(from);
        final Deque<SplitState> open = new ArrayDeque<>(Set.of(from));
        while (!open.isEmpty()) {
            final SplitState state = open.pop();
            Stream.of(SplitEvent.values())
                    .map(event -> SplitTable.row(state, event))
                    .filter(row -> row != null && which.test(row))
                    .map(SplitTable.Row::next)
                    .filter(found::add)
                    .forEach(open::push);
        }
        return found;
    }
}
