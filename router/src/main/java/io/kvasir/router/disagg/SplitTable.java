package io.kvasir.router.disagg;

import static io.kvasir.router.disagg.SplitAction.ABORT_DECODE;
import static io.kvasir.router.disagg.SplitAction.ANSWER;
import static io.kvasir.router.disagg.SplitAction.BLOCKS_FETCHED;
import static io.kvasir.router.disagg.SplitAction.CHOOSE_DECODE;
import static io.kvasir.router.disagg.SplitAction.CHOOSE_PREFILL;
import static io.kvasir.router.disagg.SplitAction.FREE_PREFILL;
import static io.kvasir.router.disagg.SplitAction.HAND_OVER;
import static io.kvasir.router.disagg.SplitAction.REPORT;
import static io.kvasir.router.disagg.SplitAction.SEND_DECODE;
import static io.kvasir.router.disagg.SplitAction.SEND_PREFILL;

import java.util.ArrayList;
import java.util.EnumMap;
import java.util.List;
import java.util.Map;

/**
 * The state machine of a request that may be split: state × event → next state, actions. An event
 * that a state has no row for is late and means nothing: its leg was given up before.
 *
 * <p>Obligation: each row that leaves a leg behind ends it, and each row into an end frees the
 * prefill worker's blocks unless the decode worker has fetched them.
 */
public final class SplitTable {
    /**
     * One row.
     *
     * @param state before
     * @param event what happens
     * @param next state after
     * @param actions in the order in which they are done
     */
    public record Row(
            SplitState state, SplitEvent event, SplitState next, List<SplitAction> actions) {}

    private static final List<Row> ROWS = new ArrayList<>();
    private static final Map<SplitState, Map<SplitEvent, Row>> BY_STATE =
            new EnumMap<>(SplitState.class);

    static {
        row(
                SplitState.SELECT_PREFILL,
                SplitEvent.PREFILL_CHOSEN,
                SplitState.PREFILLING,
                SEND_PREFILL);
        row(SplitState.SELECT_PREFILL, SplitEvent.RENDEZVOUS_CHOSEN, SplitState.HANDOFF, HAND_OVER);
        failures(SplitState.SELECT_PREFILL, FREE_PREFILL);

        row(SplitState.PREFILLING, SplitEvent.PREFILL_ANSWERED, SplitState.HANDOFF, HAND_OVER);
        failures(SplitState.PREFILLING, FREE_PREFILL);

        row(SplitState.HANDOFF, SplitEvent.HANDED_OVER, SplitState.SELECT_DECODE, CHOOSE_DECODE);
        row(SplitState.HANDOFF, SplitEvent.PREFILL_COMPLETE, SplitState.DONE, FREE_PREFILL, ANSWER);
        failures(SplitState.HANDOFF, FREE_PREFILL);

        row(SplitState.SELECT_DECODE, SplitEvent.DECODE_CHOSEN, SplitState.DECODING, SEND_DECODE);
        failures(SplitState.SELECT_DECODE, ABORT_DECODE, FREE_PREFILL);

        row(SplitState.DECODING, SplitEvent.DECODE_STARTED, SplitState.DECODING, BLOCKS_FETCHED);
        row(SplitState.DECODING, SplitEvent.DECODE_UNSENT, SplitState.SELECT_DECODE, CHOOSE_DECODE);
        row(SplitState.DECODING, SplitEvent.DECODE_DONE, SplitState.DONE, BLOCKS_FETCHED);
        failures(SplitState.DECODING, ABORT_DECODE, FREE_PREFILL);
    }

    private SplitTable() {}

    /** What a failure leads to: every state knows all four, after the same actions. */
    private static void failures(SplitState state, SplitAction... first) {
        row(state, SplitEvent.DECODE_ALONE, SplitState.SELECT_DECODE, first, CHOOSE_DECODE);
        row(state, SplitEvent.PREFILL_AGAIN, SplitState.SELECT_PREFILL, first, CHOOSE_PREFILL);
        row(state, SplitEvent.GIVE_UP, SplitState.FAILED, first, REPORT);
        row(state, SplitEvent.ABANDONED, SplitState.FAILED, first);
    }

    private static void row(
            SplitState state,
            SplitEvent event,
            SplitState next,
            SplitAction[] first,
            SplitAction last) {
        final List<SplitAction> actions = new ArrayList<>(List.of(first));
        actions.add(last);
        row(state, event, next, actions.toArray(SplitAction[]::new));
    }

    private static void row(
            SplitState state, SplitEvent event, SplitState next, SplitAction... actions) {
        final Row row = new Row(state, event, next, List.of(actions));
        ROWS.add(row);
        if (BY_STATE.computeIfAbsent(state, _ -> new EnumMap<>(SplitEvent.class)).put(event, row)
                != null) {
            throw new AssertionError("two rows of " + state + " and " + event);
        }
    }

    /**
     * All rows.
     *
     * @return in order of the states
     */
    public static List<Row> rows() {
        return List.copyOf(ROWS);
    }

    /**
     * Finds what an event means.
     *
     * @param state before
     * @param event what happens
     * @return null where it means nothing
     */
    static Row row(SplitState state, SplitEvent event) {
        final Map<SplitEvent, Row> rows = BY_STATE.get(state);
        return rows == null ? null : rows.get(event);
    }
}
