package io.kvasir.router;

import io.kvasir.pipeline.source.IndexState;
import io.kvasir.router.journal.DecisionJournal;
import io.kvasir.router.load.BusyProbe;
import io.kvasir.router.settings.RouterSettings;

import java.lang.ref.Reference;
import java.util.concurrent.atomic.AtomicIntegerFieldUpdater;

/**
 * A booking: the load of one request on one worker, from {@link KvRouter#reserve} to {@link
 * #close}. Any thread may call it; late and repeated calls do nothing.
 *
 * <p>Caller-owned and reusable: the object may take the next booking once this one has ended, and a
 * caller that kept it for the old one then acts on the new one. The booking of a lease that is
 * forgotten, collected without having been closed, is released then and counted ({@link
 * RouterStatus#forgottenLeases}).
 */
public final class Lease implements AutoCloseable {
    private static final AtomicIntegerFieldUpdater<Lease> HITS =
            AtomicIntegerFieldUpdater.newUpdater(Lease.class, "hits");

    private final HeldBooking held = HeldBooking.of(this);
    private Bookings bookings; // null before the first booking
    private Worker worker;
    private int tailTokens;
    private int outputBlocks;
    private long activityBefore; // of the worker's events, as of the booking
    private boolean computesBlocks; // which its engine would announce
    private boolean tracksOutput;
    private double tokensToCompute;
    private int ownTokens;
    private long bookedNs; // 0 where nothing is learned from it, or was
    private WatchedPrompt watched; // null where the caller sees the first token
    private boolean reported;

    @SuppressWarnings("UnusedVariable") // read and written through HITS
    private volatile int hits; // that were stated of the booking: 0 or 1

    private DecisionJournal journal; // null where the decision is not kept
    private long journalNumber;
    private long decidedNs;
    private IndexState decidedBy;
    private int promptTokens; // that the worker prefills; 0 where it does not
    private int deviceTokens; // cached on the device, by what was known
    private int believedTokens; // cached in any tier
    private int inUseTokens; // of running requests
    private boolean wasIdle;
    private BusyProbe probe; // null where the request is none, or none any more

    /** A lease without a booking: closed. */
    public Lease() {}

    /**
     * Takes a booking.
     *
     * @param newBlocks full blocks of the prompt that the worker is not known to hold
     * @param toCompute tokens that it computes until the prompt is, those before included
     * @param own those of the prompt alone
     * @param atNs when it was booked; 0 where nothing is to be learned from it
     * @param prompt what is watched; null where the caller sees the first token
     */
    void hold(
            Bookings in,
            Worker bookedOn,
            long number,
            RouteRequest request,
            int newBlocks,
            double toCompute,
            int own,
            long atNs,
            WatchedPrompt prompt) {
        try {
            bookings = in;
            held.hold(in.weakly(), number);
            worker = bookedOn;
            tailTokens = request.tokenCount() % in.blockSize();
            outputBlocks = 0;
            tracksOutput = request.tracksOutput();
            computesBlocks = newBlocks > 0 && request.announcesNewBlocks();
            activityBefore = bookedOn.activityMark();
            tokensToCompute = toCompute;
            ownTokens = own;
            bookedNs = atNs;
            watched = prompt;
            reported = false;
            hits = 0;
            journal = null;
            probe = null;
        } finally {
            Reference.reachabilityFence(this); // not forgotten before all of it is written
        }
    }

    /** What was known of the prompt when it was decided, for what the engine says later. */
    void believes(IndexState state, int tokens, int device, int believed, int inUse, boolean idle) {
        decidedBy = state;
        promptTokens = tokens;
        deviceTokens = device;
        believedTokens = believed;
        inUseTokens = inUse;
        wasIdle = idle;
    }

    /** The request shows whether its worker, which was full, gets requests again. */
    void probes(BusyProbe full) {
        probe = full;
    }

    /** The decision is kept, and what comes of it. */
    void journaled(DecisionJournal in, long number, long atNs) {
        journal = in;
        journalNumber = number;
        decidedNs = atNs;
    }

    /**
     * Number of the decision in the router's journal.
     *
     * @return {@link DecisionJournal#NONE} where it is not kept
     */
    public long journalNumber() {
        return journal == null ? DecisionJournal.NONE : journalNumber;
    }

    /**
     * Says what the engine reports that it took from its cache of the prompt, of an answer that is
     * complete and of a prompt that it has counted as many tokens of: kept in the router's journal
     * beside what was predicted, and compared with what was believed. Once for a booking, before or
     * after its end. A worker whose forecasts are persistently wrong loses a part of its credit
     * until they are right again.
     *
     * @param tokens of the prompt; a negative number says nothing and does nothing
     */
    public void engineCachedTokens(int tokens) {
        if (tokens < 0 || !HITS.compareAndSet(this, 0, 1)) {
            return;
        }
        if (journal != null) {
            journal.engineCachedTokens(journalNumber, tokens);
        }
        if (promptTokens > 0) {
            worker.engineHit(
                    decidedBy,
                    promptTokens,
                    deviceTokens,
                    believedTokens,
                    inUseTokens,
                    tokens,
                    wasIdle && worker.activeRequests() <= 1,
                    activityBefore);
        }
    }

    /**
     * The worker that the request is booked on.
     *
     * @return null before the first booking
     */
    public Worker worker() {
        return worker;
    }

    /**
     * The booking's number, unique in this router.
     *
     * @return for logs; 0 before the first booking
     */
    public long requestId() {
        return held.number();
    }

    /**
     * Whether the booking counts as load.
     *
     * @return false before the first booking, after {@link #close}, at the first {@link
     *     KvRouter#tick} after its deadline, and once its worker has been removed
     */
    public boolean isOpen() {
        final Bookings in = bookings;
        return in != null && in.isOpen(held.number());
    }

    /**
     * The first output token is there: the prompt no longer counts as work to prefill. Of an answer
     * that is not streamed: it is there; see {@link RouteRequest#firstTokenUnseen}.
     */
    public void prefillComplete() {
        final Bookings in = bookings;
        if (in == null || reported) {
            return;
        }
        reported = true;
        final BusyProbe tried = probe;
        if (tried != null) {
            tried.answered();
        }
        final boolean first = in.prefillCompleted(held.number());
        final boolean found = watched != null && watched.end() != PromptEnd.NOT_YET;
        if ((first || found) && computesBlocks) {
            worker.served(activityBefore);
        }
        if (first && watched == null && bookedNs != 0) {
            in.computed(worker, tokensToCompute, ownTokens, bookedNs);
            bookedNs = 0; // that was its end
        }
        if (isEndUnseen()) {
            in.computedUnseen(worker, in.nowNs());
        }
        bookedNs = 0;
        if (first && watched == null && journal != null) {
            journal.firstToken(journalNumber, in.nowNs() - decidedNs);
        }
    }

    /**
     * Whether nothing has said before that the worker computes the prompt no more. Also after the
     * timeout of the booking. Of two threads that end it at once both may see that, which is one
     * end.
     */
    private boolean isEndUnseen() {
        return bookedNs != 0 && (watched == null || watched.end() == PromptEnd.NOT_YET);
    }

    /**
     * How it is known that the prompt is computed.
     *
     * @return as of now; the prompt of a booking that was released before is not
     */
    public PromptEnd promptEnd() {
        final PromptEnd found = watched == null ? PromptEnd.NOT_YET : watched.end();
        return found == PromptEnd.NOT_YET && reported ? PromptEnd.REPORTED : found;
    }

    /**
     * When the router has found that the prompt is computed, after the booking.
     *
     * @return ns; -1 where the end is not {@link PromptEnd#STORED} or {@link PromptEnd#EXPECTED}
     */
    public long promptEndNs() {
        return watched == null || watched.end() == PromptEnd.NOT_YET ? -1 : watched.durationNs();
    }

    /**
     * Reports generated tokens; each block that they fill becomes an active block where the router
     * tracked output blocks when the request was booked. One thread at a time.
     *
     * @param total tokens generated so far, not since the last call
     * @throws IllegalArgumentException if it is negative
     */
    public void outputTokens(int total) {
        if (total < 0) {
            throw new IllegalArgumentException("output tokens=" + total + " are negative");
        }
        final Bookings in = bookings;
        if (in == null || !tracksOutput) {
            return;
        }
        final int filled = (int) (((long) tailTokens + total) / in.blockSize());
        if (filled > outputBlocks) {
            in.outputBlocks(held.number(), filled - outputBlocks);
            outputBlocks = filled;
        }
    }

    /**
     * The worker has failed the request. Where the request was the one that a full worker was tried
     * with ({@link RouterSettings#BUSY_LEASE}), the worker is left out for a further lease, rather
     * than be tried with the next one at once, as after a {@link #close} without an answer.
     */
    public void workerFailed() {
        probe = null;
    }

    /** Releases the booking; implies {@link #prefillComplete}. */
    @Override
    public void close() {
        try {
            final Bookings in = bookings;
            if (in != null) {
                in.release(held.number());
                giveProbeBack();
                if (isEndUnseen()) {
                    in.givenUp(worker, bookedNs);
                }
                bookedNs = 0;
            }
        } finally {
            Reference.reachabilityFence(this); // not forgotten while this call releases it
        }
    }

    private void giveProbeBack() {
        final BusyProbe untried = probe;
        if (untried != null) {
            probe = null;
            untried.giveBack(); // does nothing where it was answered
        }
    }
}
