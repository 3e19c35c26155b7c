package io.kvasir.router.disagg;

import java.util.ArrayDeque;
import java.util.Objects;
import java.util.Queue;

/**
 * One request on its way through {@link SplitTable}: takes events from any thread, and has {@link
 * SplitLegs} do what the table says. Events are worked off one at a time, in the order in which
 * they came, by one of the threads that reported them; no lock is held meanwhile.
 *
 * <p>Whatever happens, the flow ends after a bounded number of steps: each failure either ends it
 * or uses up one of the prefills that it may try, and what is waited for has a deadline. Until its
 * end it sees to it that a prefill worker's blocks are fetched or freed.
 */
public final class SplitFlow {
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
    private volatile SplitState state = SplitState.SELECT_PREFILL;
    private volatile int attempt = 1;
    private volatile boolean split = true;
    private Path path = Path.COMPLETED;
    private boolean prefillDone; // of a rendezvous
    private boolean started; // the decode worker answers
    private LegFailure failure;
    private Runnable deadline = () -> {};

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

    /** Begins. Once. */
    public void start() {
        post(() -> legs.choosePrefill(attempt));
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
                    if (of == attempt) {
                        path = how;
                        prefillDone = false;
                        take(
                                how == Path.COMPLETED
                                        ? SplitEvent.PREFILL_CHOSEN
                                        : SplitEvent.RENDEZVOUS_CHOSEN);
                    }
                });
    }

    /** The request is not to be split: one worker does all of it. */
    public void notSplit() {
        post(() -> take(SplitEvent.DECODE_ALONE));
    }

    /**
     * The prefill worker has answered; in a rendezvous, its part is over.
     *
     * @param of which attempt
     */
    public void prefillAnswered(int of) {
        post(
                () -> {
                    if (of == attempt) {
                        prefillDone = true;
                        endDeadline();
                        take(SplitEvent.PREFILL_ANSWERED);
                    }
                });
    }

    /**
     * A prefill failed: none can be booked, its worker failed, or its answer cannot be used.
     *
     * @param of which attempt
     * @param kind what happened, as metrics write it
     */
    public void prefillFailed(int of, String kind) {
        post(() -> lost(of, kind));
    }

    private void lost(int of, String kind) {
        if (of != attempt || !split || started || (path == Path.RENDEZVOUS && prefillDone)) {
            return; // late, or of no consequence: the blocks are where they are needed
        }
        recover(new LegFailure(Leg.PREFILL, kind, true));
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

    /** A decode worker is booked. */
    public void decodeChosen() {
        post(() -> take(SplitEvent.DECODE_CHOSEN));
    }

    /** The client is about to get the first bytes of the decode worker's answer. */
    public void decodeStarted() {
        post(
                () -> {
                    if (state == SplitState.DECODING && !started) {
                        started = true;
                        take(SplitEvent.DECODE_STARTED);
                    }
                });
    }

    /** The decode worker's answer is complete. */
    public void decodeDone() {
        post(() -> take(SplitEvent.DECODE_DONE));
    }

    /** No byte of the request has reached the decode worker, or it has not looked at it. */
    public void decodeUnsent() {
        post(() -> take(SplitEvent.DECODE_UNSENT));
    }

    /**
     * The decode worker failed after it had the request, or none can be booked. Its parameters must
     * not be used again: it may have fetched the blocks, and a worker that fetches them later may
     * get another prompt's.
     *
     * @param how what happened
     */
    public void decodeFailed(LegFailure how) {
        post(
                () -> {
                    if (started) {
                        failure = how;
                        take(SplitEvent.ABANDONED); // the client has a part of the answer already
                    } else {
                        recover(how);
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
        if (state.isEnd()) {
            return;
        }
        failure = how;
        if (!split || !how.retryable()) {
            take(SplitEvent.GIVE_UP); // one worker was to do all of it, which is the last resort
        } else if (rules.fallback() == FallbackPolicy.DECODE_ONLY) {
            take(SplitEvent.DECODE_ALONE);
        } else if (rules.fallback() == FallbackPolicy.OTHER_PREFILL && attempt < rules.prefills()) {
            take(SplitEvent.PREFILL_AGAIN);
        } else {
            take(SplitEvent.GIVE_UP);
        }
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
        if (row.next().isEnd() || event == SplitEvent.DECODE_STARTED) {
            endDeadline();
        }
        Throwable first = null;
        for (SplitAction action : row.actions()) {
            first = caught(first, () -> act(action, leaving));
        }
        rethrow(first);
    }

    private void act(SplitAction action, int leaving) {
        switch (action) {
            case CHOOSE_PREFILL -> legs.choosePrefill(attempt);
            case SEND_PREFILL -> {
                beginDeadline();
                legs.sendPrefill(attempt);
            }
            case HAND_OVER -> legs.handOver(attempt);
            case CHOOSE_DECODE -> legs.chooseDecode(split);
            case SEND_DECODE -> {
                if (split && path == Path.RENDEZVOUS && !prefillDone) {
                    beginDeadline();
                }
                legs.sendDecode();
            }
            case BLOCKS_FETCHED -> legs.blocksFetched();
            case ABORT_DECODE -> legs.abortDecode();
            case FREE_PREFILL -> {
                endDeadline();
                legs.freePrefill(leaving);
            }
            case REPORT -> legs.report(failure);
        }
    }

    private void beginDeadline() {
        endDeadline();
        final int of = attempt;
        deadline = deadlines.after(rules.prefillTimeoutNs(), () -> prefillFailed(of, "timeout"));
    }

    private void endDeadline() {
        deadline.run();
        deadline = () -> {};
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
