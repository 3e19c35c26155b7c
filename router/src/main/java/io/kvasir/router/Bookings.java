package io.kvasir.router;

import io.kvasir.core.load.ActiveRequests;
import io.kvasir.pipeline.booking.BookingPipeline;
import io.kvasir.pipeline.source.IndexState;
import io.kvasir.router.settings.RouterSettings;

import java.lang.ref.WeakReference;
import java.util.function.LongSupplier;

/**
 * The bookings of one router: made for decisions, carried on and ended through {@link Lease}s, and
 * ended by their deadlines. Any thread; no method waits, and none of those of a booking allocates.
 */
final class Bookings {
    private final RouterParts parts;
    private final BookingPipeline pipeline;
    private final ForgottenLeases forgotten = new ForgottenLeases();
    private final LongSupplier clock;
    private final int blockSize;
    private final PromptWatch watch;
    private final CurrentRules rules;
    private final WeakReference<Bookings> weakly = new WeakReference<>(this);

    Bookings(RouterConfig config, RouterParts parts, CurrentRules rules) {
        this.rules = rules;
        this.parts = parts;
        pipeline = parts.bookingPipeline;
        clock = config.clock();
        watch =
                new PromptWatch(
                        pipeline,
                        parts.index,
                        parts.board.slots(),
                        clock,
                        this::computedUnseen,
                        parts::matchFailed);
        blockSize = config.get(RouterSettings.BLOCK_SIZE);
    }

    int blockSize() {
        return blockSize;
    }

    /** This, for what may outlive the router. */
    WeakReference<Bookings> weakly() {
        return weakly;
    }

    /** Refuses a request for which a booking could not be made, before it is decided. */
    void checkRoom() throws RouteException {
        if (pipeline.isFull()) {
            throw refused();
        }
    }

    /**
     * Books what was decided.
     *
     * @param lease takes the booking; has no open one
     * @throws RouteException if as many are open as may be; the lease is then as it was
     * @throws io.kvasir.core.memory.ClosedException if the router is closed; likewise
     */
    void book(RouteRequest request, Decision decision, Lease lease) throws RouteException {
        final Worker worker = decision.worker();
        final RouterRules decided = decision.selection().rules();
        final PrefillPaces pacesOrNull = decided.pacesOrNull();
        final boolean finds = pacesOrNull != null && worker.prefillTokens() > 0;
        final long number =
                pipeline.book(
                        worker.slot(),
                        worker.slotGeneration(),
                        request.localHashes,
                        request.blockCount,
                        request.tracksPrefill() ? decision.prefillTokens() : 0,
                        request.blockCount - decision.activePrefixBlocks(),
                        request.hasUsualDeadline()
                                ? usualDeadlineNs(decided.bookingTimeoutNs())
                                : request.deadlineNs(),
                        worker.state() == IndexState.PREDICTED,
                        request.reuses());
        if (number == BookingPipeline.NONE) {
            throw refused();
        }
        boolean held = false;
        try {
            hold(request, decision, lease, number, finds);
            held = true;
        } finally {
            if (!held) {
                pipeline.free(number); // nothing else would: the lease may not have it
            }
        }
    }

    private void hold(
            RouteRequest request, Decision decision, Lease lease, long number, boolean finds) {
        final Worker worker = decision.worker();
        final PrefillPaces pacesOrNull = decision.selection().rules().pacesOrNull();
        final int newBlocks =
                request.prefills() ? request.blockCount - decision.overlapBlocks() : 0;
        final double toCompute = decision.tokensToCompute();
        final boolean timed =
                request.prefills()
                        && (request.isWatched() || watch.isNeeded() || pacesOrNull != null);
        final long nowNs = timed ? clock.getAsLong() : 0;
        if (timed && pacesOrNull != null && !finds) {
            pacesOrNull.of(worker).begins(nowNs);
        }
        final WatchedPrompt prompt =
                request.isWatched()
                        ? new WatchedPrompt(
                                number,
                                worker,
                                nowNs,
                                toCompute,
                                request.hashesOf(newBlocks),
                                request.eagleHashesOf(newBlocks))
                        : null;
        lease.hold(
                this,
                worker,
                number,
                request,
                newBlocks,
                toCompute,
                decision.prefillTokens(),
                nowNs,
                prompt);
        lease.believes(
                decision.indexState(),
                request.prefills() ? request.tokenCount() : 0,
                decision.believedDeviceTokens(),
                decision.believedCachedTokens(),
                decision.activePrefixTokens(),
                decision.activeRequests() == 0);
        if (prompt != null) {
            watch.add(prompt);
        }
    }

    /** A prompt was computed; its first token was seen. */
    void computed(Worker worker, double tokens, int ownTokens, long bookedNs) {
        final long nowNs = watch.nowNs();
        if (watch.isNeeded()) {
            watch.learn(worker, tokens, nowNs - bookedNs);
        }
        final PrefillPaces pacesOrNull = rules.get().pacesOrNull();
        if (pacesOrNull != null) {
            pacesOrNull.of(worker).completed(ownTokens, bookedNs, nowNs);
        }
    }

    /**
     * A prompt was found to be computed whose first token was not seen. Of a worker that was
     * removed it says nothing: its slot may be another one's.
     */
    void computedUnseen(Worker worker, long nowNs) {
        final PrefillPace paceOrNull = ownPaceOrNull(worker);
        if (paceOrNull != null) {
            paceOrNull.passed(nowNs);
        }
    }

    /** A prompt was given up before its first token; likewise. */
    void givenUp(Worker worker, long bookedNs) {
        final PrefillPace paceOrNull = ownPaceOrNull(worker);
        if (paceOrNull != null) {
            paceOrNull.givenUp(bookedNs, clock.getAsLong());
        }
    }

    private PrefillPace ownPaceOrNull(Worker worker) {
        final PrefillPaces pacesOrNull = rules.get().pacesOrNull();
        return pacesOrNull == null || worker.isRemoved() ? null : pacesOrNull.of(worker);
    }

    /** The time by the router's clock. */
    long nowNs() {
        return clock.getAsLong();
    }

    /** What finds out when prompts are computed. */
    PromptWatch watch() {
        return watch;
    }

    private long usualDeadlineNs(long timeoutNs) {
        return timeoutNs == 0
                ? ActiveRequests.NO_DEADLINE
                : deadline(clock.getAsLong() + timeoutNs);
    }

    /** A time as a deadline: the one that means none is moved by a nanosecond. */
    static long deadline(long timeNs) {
        return timeNs == ActiveRequests.NO_DEADLINE ? timeNs + 1 : timeNs;
    }

    private RouteException refused() {
        parts.checkOpen();
        final int open = pipeline.openBookings();
        final int most = pipeline.maxRequests();
        return new RouteException(
                RouteException.Kind.OVERLOADED,
                open >= most
                        ? "too many requests booked at once: open="
                                + open
                                + ", max-active-requests="
                                + most
                                + "; raise it or close leases earlier"
                        : "the booking writer is behind: open="
                                + open
                                + " of max-active-requests="
                                + most
                                + ", records waiting="
                                + pipeline.backlog()
                                + "; give the process more CPU, set booking-wait to yielding, or"
                                + " raise max-active-requests");
    }

    boolean isOpen(long number) {
        return pipeline.isOpen(number);
    }

    boolean isPrefilling(long number) {
        return pipeline.isPrefilling(number);
    }

    /** Records that a prompt is computed; false if it was before, or the booking has ended. */
    boolean prefillCompleted(long number) {
        return pipeline.prefillComplete(number);
    }

    void outputBlocks(long number, int blocks) {
        pipeline.outputBlocks(number, blocks);
    }

    void release(long number) {
        pipeline.free(number);
    }

    /** Ends the booking of a lease that was collected, and counts it if it was open. */
    void releaseForgotten(long number) {
        if (pipeline.free(number)) {
            forgotten.add();
        }
    }

    long forgottenLeases() {
        return forgotten.count();
    }

    /** See {@link KvRouter#forgetPredicted}. */
    boolean forgetPredicted(Worker worker) {
        // removed at this moment: at worst what its successor was sent until then is forgotten
        worker.forgetHits();
        return worker.state() != IndexState.PREDICTED || pipeline.forgetPredicted(worker.slot());
    }

    int open() {
        return pipeline.openBookings();
    }

    /** Lets the writer end what is due; false once closed. */
    boolean tick(long nowNs) {
        final boolean running = pipeline.tick(nowNs);
        if (running) {
            forgotten.look(nowNs);
        }
        return running;
    }
}
