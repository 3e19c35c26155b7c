package io.kvasir.router.disagg;

import java.util.ArrayDeque;
import java.util.Objects;
import java.util.Queue;

/**
 * One request on its way through {@link SplitTable}: takes events from any thread, and has {@link
 * SplitLegs} do what the table says. Events are worked off one at a time, in the order in which
 * they came, by one of the threads that reported them; no lock is held meanwhile.
 *
 * <p>Whatever happens, the flow ends after a bounded number of steps, as long as the legs do not
 * report decode workers without end that have not got the request: each failure either ends it or
 * uses up one of the prefills that it may try. Until its end it sees to it that a prefill worker's
 * blocks are fetched or freed.
 *
 * <p>Prefills and decodes are numbered from 1. An event that names another one than the current is
 * late and ignored, and so is one that the state has no row for: what it is about was given up.
 *
 * <p>What a method of the legs throws fails that leg, with the kind {@link #INTERNAL}; the other
 * actions of the row are done, and the thread that worked the event off gets the exception.
 */
public final class SplitFlow {
    /** Kind of failure: a leg's method has thrown something. */
    public static final String INTERNAL = "internal";

    /** Kind of failure: the request is wrong. */
    public static final String REFUSED = "refused";

    /** Kind of failure: a prefill took longer than it may. */
    public static final String TIMEOUT = "timeout";

    /**
     * What is set of it.
     *
     * @param fallback what follows a failure before the client has a byte
     * @param prefills how often a prompt is sent to a prefill worker, at most; at least 1
     * @param prefillTimeoutNs how long a prefill may take
     */
    public record Rules(FallbackPolicy fallback, int prefills, long prefillTimeoutNs) {
        /** Checks the values. */
        public Rules {
            Objects.requireNonNull(fallback, "fallback");
            if (prefills < 1) {
                throw new IllegalArgumentException("prefills=" + prefills + ", at least 1");
            }
            if (prefillTimeoutNs < 1) {
                throw new IllegalArgumentException("prefill timeout " + prefillTimeoutNs + " ns");
            }
        }
    }

    /** How a prefill worker hands its blocks over. */
    public enum Path {
        /** Its answer names the blocks; the decode worker gets the request after that. */
        COMPLETED,
        /** Both workers get the request at once, and meet. */
        RENDEZVOUS
    }

    private final Rules rules;
    private final SplitLegs legs;
    private final Deadlines deadlines;

    private final Queue<Runnable> events = new ArrayDeque<>(); // guarded by this
    private boolean working; // guarded by this

    // of the thread that works events off; volatile for those that ask
    private boolean begun;
    private volatile SplitState state = SplitState.SELECT_PREFILL;
    private volatile int attempt = 1;
    private volatile boolean split = true;
    private Path path = Path.COMPLETED;
    private boolean prefillDone;
    private int decode; // 0 before the first
    private boolean started; // the decode worker answers
    private boolean refused; // the client gets the decode worker's error
    private LegFailure failure;
    private Runnable deadline; // cancels it; null while none runs
    private int deadlineNumber; // of the one that runs: another one that fires is late

    /**
     * Prepares a flow; nothing happens before {@link #start}.
     *
     * @param rules what is set
     * @param legs what is done to workers
     * @param deadlines time
     */
    public SplitFlow(Rules rules, SplitLegs legs, Deadlines deadlines) {
        this.rules = rules;
        this.legs = legs;
        this.deadlines = deadlines;
    }

    /** Begins, unless the client has left already. A second call does nothing. */
    public void start() {
        post(
                () -> {
                    if (!begun && !state.isEnd()) {
                        begun = true;
                        act(SplitAction.CHOOSE_PREFILL, attempt);
                    }
                });
    }

    /**
     * A prefill worker is booked.
     *
     * @param of attempt that it was booked for
     * @param how it hands over
     */
    public void prefillChosen(int of, Path how) {
        post(
                () -> {
                    if (of == attempt && state == SplitState.SELECT_PREFILL) {
                        path = how;
                        take(
                                how == Path.COMPLETED
                                        ? SplitEvent.PREFILL_CHOSEN
                                        : SplitEvent.RENDEZVOUS_CHOSEN);
                    }
                });
    }

    /**
     * The request is not to be split: one worker does all of it.
     *
     * @param of attempt that finds so, before or after its prefill was sent
     */
    public void notSplit(int of) {
        post(
                () -> {
                    if (of == attempt && prefillCounts()) {
                        take(SplitEvent.DECODE_ALONE);
                    }
                });
    }

    /**
     * The prefill worker has answered; in a rendezvous, its part is over.
     *
     * @param of which attempt
     */
    public void prefillAnswered(int of) {
        post(
                () -> {
                    if (of == attempt && prefillCounts()) {
                        prefillDone = true;
                        endDeadline();
                        take(SplitEvent.PREFILL_ANSWERED);
                    }
                });
    }

    /**
     * A prefill failed: none can be booked, its worker failed, or its answer cannot be used. Means
     * nothing once the request of the decode worker is made of its answer: the decode worker will
     * say whether it can fetch the blocks.
     *
     * @param of which attempt
     * @param kind what happened, as metrics write it
     */
    public void prefillFailed(int of, String kind) {
        prefillFailed(of, new LegFailure(Leg.PREFILL, kind, true));
    }

    /**
     * The prefill worker finds fault with the request, as any other would: nothing else is tried.
     *
     * @param of which attempt
     */
    public void prefillRefused(int of) {
        prefillFailed(of, new LegFailure(Leg.PREFILL, REFUSED, false));
    }

    private void prefillFailed(int of, LegFailure how) {
        post(
                () -> {
                    if (of == attempt && prefillCounts()) {
                        recover(how);
                    }
                });
    }

    /** Whether it still matters how the prefill goes. */
    private boolean prefillCounts() {
        return switch (state) {
            case SELECT_PREFILL, PREFILLING, HANDOFF -> true;
            case SELECT_DECODE, DECODING ->
                    split && path == Path.RENDEZVOUS && !prefillDone && !started;
            case DONE, FAILED -> false;
        };
    }

    /**
     * The request of the decode worker is ready.
     *
     * @param of attempt that it was made of
     */
    public void handedOver(int of) {
        post(
                () -> {
                    if (of == attempt) {
                        take(SplitEvent.HANDED_OVER);
                    }
                });
    }

    /**
     * The prefill worker's answer is all of the client's: its first token was the last.
     *
     * @param of which attempt
     */
    public void prefillComplete(int of) {
        post(
                () -> {
                    if (of == attempt) {
                        take(SplitEvent.PREFILL_COMPLETE);
                    }
                });
    }

    /**
     * A decode worker is booked.
     *
     * @param of which decode
     */
    public void decodeChosen(int of) {
        postOfDecode(of, () -> take(SplitEvent.DECODE_CHOSEN));
    }

    /**
     * The client is about to get the first bytes of the decode worker's answer. Those of its body:
     * an engine may send the head before it has fetched the blocks.
     *
     * @param of which decode
     */
    public void decodeStarted(int of) {
        postOfDecode(
                of,
                () -> {
                    if (state == SplitState.DECODING && !started) {
                        started = true;
                        take(SplitEvent.DECODE_STARTED);
                    }
                });
    }

    /**
     * The client is about to get the first bytes of an error that the decode worker answers with:
     * however the prefill goes, nothing else is tried.
     *
     * @param of which decode
     */
    public void errorStarted(int of) {
        postOfDecode(
                of,
                () -> {
                    if (state == SplitState.DECODING) {
                        refused = true;
                        endDeadline();
                    }
                });
    }

    /**
     * The decode worker's answer is complete.
     *
     * @param of which decode
     */
    public void decodeDone(int of) {
        postOfDecode(of, () -> take(SplitEvent.DECODE_DONE));
    }

    /**
     * No byte of the request has reached the decode worker, or it has not looked at it.
     *
     * @param of which decode
     */
    public void decodeUnsent(int of) {
        postOfDecode(
                of,
                () -> {
                    if (started) {
                        lost(new LegFailure(Leg.DECODE, INTERNAL, false)); // it cannot be both
                    } else {
                        take(SplitEvent.DECODE_UNSENT);
                    }
                });
    }

    /**
     * The decode worker failed after it had the request, or none can be booked. Its parameters must
     * not be used again: it may have fetched the blocks, and a worker that fetches them later may
     * get another prompt's.
     *
     * @param of which decode
     * @param how what happened
     */
    public void decodeFailed(int of, LegFailure how) {
        postOfDecode(of, () -> lost(how));
    }

    private void lost(LegFailure how) {
        if (started) {
            followed(how, SplitEvent.ABANDONED); // the client has a part of the answer already
        } else {
            recover(how);
        }
    }

    private void postOfDecode(int of, Runnable event) {
        post(
                () -> {
                    if (of == decode
                            && (state == SplitState.SELECT_DECODE
                                    || state == SplitState.DECODING)) {
                        event.run();
                    }
                });
    }

    /** The client has left, or the gateway ends: nothing is to be answered any more. */
    public void abandoned() {
        post(() -> take(SplitEvent.ABANDONED));
    }

    /**
     * Where the request is; for inspection.
     *
     * @return may be behind by events that are being worked off
     */
    public SplitState state() {
        return state;
    }

    /**
     * Whether the request is split, as far as is decided.
     *
     * @return false once one worker does all of it
     */
    public boolean isSplit() {
        return split;
    }

    /**
     * Prefills begun.
     *
     * @return the number of the current one
     */
    public int attempt() {
        return attempt;
    }

    private void recover(LegFailure how) {
        failure = how;
        followed(how, refused ? SplitEvent.ABANDONED : next(how));
    }

    private void followed(LegFailure how, SplitEvent next) {
        rethrow(caught(caught(null, () -> legs.failed(how, next)), () -> take(next)));
    }

    private SplitEvent next(LegFailure how) {
        if (!split || !how.retryable()) {
            return SplitEvent.GIVE_UP; // one worker was to do all of it, which is the last resort
        }
        return switch (rules.fallback()) {
            case DECODE_ONLY -> legs.canAnswerAlone() ? SplitEvent.DECODE_ALONE : prefillAgain();
            case OTHER_PREFILL -> prefillAgain();
            case FAIL -> SplitEvent.GIVE_UP;
        };
    }

    private SplitEvent prefillAgain() {
        return attempt < rules.prefills() ? SplitEvent.PREFILL_AGAIN : SplitEvent.GIVE_UP;
    }

    private void take(SplitEvent event) {
        final SplitTable.Row row = SplitTable.row(state, event);
        if (row == null) {
            return; // late
        }
        final int leaving = attempt;
        state = row.next();
        if (event == SplitEvent.DECODE_ALONE) {
            split = false;
        }
        if (event == SplitEvent.PREFILL_AGAIN) {
            attempt = leaving + 1;
        }
        if (state.isEnd() || event == SplitEvent.DECODE_STARTED) {
            endDeadline();
        }
        Throwable first = null;
        for (SplitAction action : row.actions()) {
            first = caught(first, () -> act(action, leaving));
        }
        rethrow(first);
    }

    /** Does it; what a leg that is waited for from here on throws is its failure. */
    private void act(SplitAction action, int leaving) {
        try {
            work(action, leaving);
        } catch (RuntimeException | Error e) {
            failed(action);
            throw e;
        }
    }

    private void work(SplitAction action, int leaving) {
        switch (action) {
            case CHOOSE_PREFILL -> {
                path = Path.COMPLETED;
                prefillDone = false;
                legs.choosePrefill(attempt);
            }
            case SEND_PREFILL -> {
                beginPrefillDeadline();
                legs.sendPrefill(attempt);
            }
            case HAND_OVER -> legs.handOver(attempt);
            case ANSWER -> legs.answer(attempt);
            case CHOOSE_DECODE -> {
                decode++;
                legs.chooseDecode(decode, split);
            }
            case SEND_DECODE -> {
                if (split && path == Path.RENDEZVOUS && !prefillDone && deadline == null) {
                    beginPrefillDeadline();
                }
                legs.sendDecode();
            }
            case BLOCKS_FETCHED -> {
                if (split) {
                    legs.blocksFetched();
                }
            }
            case ABORT_DECODE -> legs.abortDecode();
            case FREE_PREFILL -> {
                endDeadline();
                legs.freePrefill(leaving);
            }
            case REPORT -> legs.report(failure);
        }
    }

    private void failed(SplitAction action) {
        switch (action) {
            case CHOOSE_PREFILL, SEND_PREFILL, HAND_OVER -> prefillFailed(attempt, INTERNAL);
            case CHOOSE_DECODE, SEND_DECODE ->
                    decodeFailed(decode, new LegFailure(Leg.DECODE, INTERNAL, true));
            case BLOCKS_FETCHED, ABORT_DECODE, FREE_PREFILL, ANSWER, REPORT -> {
                // nothing waits for them
            }
        }
    }

    private void beginPrefillDeadline() {
        beginDeadline(
                rules.prefillTimeoutNs(),
                () -> recover(new LegFailure(Leg.PREFILL, TIMEOUT, true)));
    }

    private void beginDeadline(long delayNs, Runnable late) {
        endDeadline();
        final int number = deadlineNumber;
        deadline =
                deadlines.after(
                        delayNs,
                        () ->
                                post(
                                        () -> {
                                            if (number == deadlineNumber) {
                                                endDeadline();
                                                late.run();
                                            }
                                        }));
    }

    /**
     * What was waited for is there, or given up: the deadline does nothing, should it have fired.
     */
    private void endDeadline() {
        deadlineNumber++;
        final Runnable cancel = deadline;
        deadline = null;
        if (cancel != null) {
            cancel.run();
        }
    }

    /** Works it off, after what came before; on this thread unless another one is at it. */
    private void post(Runnable event) {
        synchronized (this) {
            events.add(event);
            if (working) {
                return;
            }
            working = true;
        }
        Throwable first = null;
        for (Runnable next = event(); next != null; next = event()) {
            first = caught(first, next);
        }
        rethrow(first);
    }

    /** Runs a step; what a defect throws must not stop the steps after it. */
    private static Throwable caught(Throwable first, Runnable step) {
        try {
            step.run();
            return first;
        } catch (RuntimeException | Error e) {
            return first == null ? e : first;
        }
    }

    private static void rethrow(Throwable first) {
        if (first instanceof RuntimeException defect) {
            throw defect;
        }
        if (first instanceof Error defect) {
            throw defect;
        }
    }

    private synchronized Runnable event() {
        final Runnable next = events.poll();
        working = next != null;
        return next;
    }
}
