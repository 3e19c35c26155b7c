package io.kvasir.router;

import io.kvasir.core.index.PrefixIndex;
import io.kvasir.core.index.PrefixIndexConfig;
import io.kvasir.core.load.ActiveRequests;
import io.kvasir.core.load.ActiveRequestsConfig;
import io.kvasir.core.load.LoadBoard;
import io.kvasir.core.load.PredictedPrefixes;
import io.kvasir.core.load.PredictedPrefixesConfig;
import io.kvasir.core.memory.ClosedException;
import io.kvasir.core.memory.MemoryGate;
import io.kvasir.core.radix.OverlapScores;
import io.kvasir.pipeline.BookingPipeline;
import io.kvasir.pipeline.BookingPipelineConfig;
import io.kvasir.pipeline.EngineStream;
import io.kvasir.pipeline.EventSource;
import io.kvasir.pipeline.FreshnessLimits;
import io.kvasir.pipeline.IndexPipeline;
import io.kvasir.pipeline.IndexState;
import io.kvasir.pipeline.SourceConfig;
import io.kvasir.pipeline.WaitMode;

import java.security.SecureRandom;
import java.time.Duration;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.concurrent.locks.LockSupport;
import java.util.function.LongSupplier;

/**
 * The router: knows which worker holds which blocks and how loaded each is, and picks the cheapest.
 *
 * <p>{@link #select} and {@link #reserve} run on the caller's thread, take no lock and never wait;
 * they are safe from any thread, each with its own {@link RouteRequest} and {@link Decision}.
 * Registration ({@link #addWorker}, {@link #removeWorker}) takes a lock that the former never
 * touch.
 *
 * <p>All state belongs to this object: several routers live side by side in one process.
 *
 * <p>{@link #close} may be called at any time, by any thread, with callers inside. From then on
 * {@link #select}, {@link #reserve}, {@link #awaitReady} and methods that register or open
 * something throw {@link ClosedException}; leases, gauges and counters, those of {@link Worker}
 * too, may be used as before and keep their last values. The off-heap memory is given back when the
 * last caller is out and the writer threads have ended.
 */
public final class KvRouter implements AutoCloseable {
    static final String NAME = "the router";

    private static final long READY_POLL_MS = 1;
    private static final long DRAIN_PAUSE_NS = 1_000_000;

    /** How long a new worker may wait for the slot of a removed one to be swept. */
    private static final long SLOT_WAIT_NS = 5_000_000_000L;

    /** Weights beyond it choose the same: costs stay far from the largest number. */
    private static final double MAX_WEIGHT = 1e100;

    private final Settings settings;
    private final int blockSize;
    private final long hashSeed;
    private final int maxActiveRequests;
    private final double overlapWeight;
    private final double temperature;
    private final boolean trackOutputBlocks;
    private final MemoryGate gate = new MemoryGate(NAME);
    private final WorkerSelector chooser;
    private final PrefixIndex index;
    private final LoadBoard board;
    private final ActiveRequests slotTable;
    private final PredictedPrefixes routed; // null when nothing is predicted
    private final IndexPipeline events;
    private final BookingPipeline life;
    private final FillWatch fillWatch = new FillWatch(this::status);
    private final ForgottenLeases forgotten = new ForgottenLeases();
    private final LongSupplier clock;
    private final long bookingTimeoutNs; // 0 = none
    private final RouterTicker tickerOrNull; // null where the embedder calls tick
    private final WorkerSlots slots;
    private final Map<NamedRank, Worker> named = new HashMap<>(); // guarded by this
    private final int[] tenancies; // workers removed so far, per slot; guarded by this
    private volatile RoutingMode mode;
    private volatile WorkerSet roster = WorkerSet.EMPTY;
    private volatile boolean closed;

    /** By which a worker is registered once. */
    private record NamedRank(String name, int dpRank) {}

    private KvRouter(Builder builder) {
        settings = builder.settings.build();
        blockSize = settings.get(RouterSettings.BLOCK_SIZE);
        final Long seedOrNull = settings.get(RouterSettings.HASH_SEED);
        hashSeed = seedOrNull == null ? new SecureRandom().nextLong() : seedOrNull;
        maxActiveRequests = settings.get(RouterSettings.MAX_ACTIVE_REQUESTS);
        overlapWeight = settings.get(RouterSettings.OVERLAP_WEIGHT);
        temperature = settings.get(RouterSettings.TEMPERATURE);
        trackOutputBlocks = settings.get(RouterSettings.TRACK_OUTPUT_BLOCKS);
        mode = settings.get(RouterSettings.MODE);
        clock = builder.clockOrNull == null ? System::nanoTime : builder.clockOrNull;
        bookingTimeoutNs = settings.get(RouterSettings.BOOKING_TIMEOUT).toNanos();
        tickerOrNull = builder.clockOrNull == null ? new RouterTicker(clock, this::tick) : null;
        final PrefixIndexConfig sizes = RouterSettings.index(settings);
        slots = new WorkerSlots(sizes.maxWorkerSlots());
        tenancies = new int[sizes.maxWorkerSlots()];
        board = new LoadBoard(sizes.maxWorkerSlots());
        chooser =
                new WorkerSelector(
                        builder.costModel,
                        builder.randomSource(settings),
                        board,
                        settings.get(RouterSettings.DEGRADED_CREDIT));
        IndexPipeline started = null;
        try {
            index = new PrefixIndex(sizes, gate);
            slotTable =
                    new ActiveRequests(
                            new ActiveRequestsConfig(
                                    sizes.maxWorkerSlots(),
                                    maxActiveRequests,
                                    sizes.maxBlocks(),
                                    settings.get(RouterSettings.MAX_BLOCKS_PER_REQUEST)),
                            board,
                            gate);
            final PredictedPrefixesConfig predicted = builder.routedPrefixesConfig(settings);
            routed = predicted == null ? null : new PredictedPrefixes(predicted, gate);
            started = new IndexPipeline(RouterSettings.events(settings), index);
            life =
                    new BookingPipeline(
                            BookingPipelineConfig.of(maxActiveRequests)
                                    .withWaitMode(settings.get(RouterSettings.BOOKING_WAIT)),
                            slotTable,
                            routed);
            events = started;
        } catch (Throwable t) {
            gate.close();
            if (started != null) {
                started.close();
            }
            throw t;
        }
    }

    /**
     * Starts a configuration with the defaults.
     *
     * @return a builder
     */
    public static Builder builder() {
        return new Builder();
    }

    /**
     * The sizes and defaults of this router; see {@link RouterSettings}.
     *
     * @return as built; the mode may have been changed since by {@link #mode(RoutingMode)}
     */
    public Settings settings() {
        return settings;
    }

    /**
     * The mode of requests that do not override it.
     *
     * @return the current mode
     */
    public RoutingMode mode() {
        return mode;
    }

    /**
     * Changes the mode of requests that do not override it.
     *
     * @param changed the mode from now on
     */
    public void mode(RoutingMode changed) {
        mode = Objects.requireNonNull(changed, "mode");
    }

    /**
     * Registers a worker (one data-parallel rank) and opens its event source. Where all slots are
     * taken and some of them are those of removed workers, waits without a lock until one has been
     * swept, at most five seconds.
     *
     * @param spec what is known of it
     * @return the registered worker
     * @throws IllegalStateException if {@code maxWorkers} are registered already
     * @throws ClosedException if the router is closed
     * @throws IllegalArgumentException if a worker of that name and rank is registered already, or
     *     its events are of another block size than the router's
     */
    public Worker addWorker(WorkerSpec spec) {
        checkNew(spec);
        final int slot = slots.take(SLOT_WAIT_NS);
        if (slot < 0) {
            throw new IllegalStateException(
                    "no slot left for worker "
                            + spec.name()
                            + ": max-workers="
                            + slots.count()
                            + "; raise max-workers");
        }
        return addWorker(spec, slot);
    }

    private synchronized void checkNew(WorkerSpec spec) {
        checkOpen();
        if (spec.events() != null) {
            checkBlockSize(spec.events());
        }
        final Worker other = named.get(new NamedRank(spec.name(), spec.dpRank()));
        if (other != null) {
            throw new IllegalArgumentException("worker " + other + " is registered already");
        }
    }

    private synchronized Worker addWorker(WorkerSpec spec, int slot) {
        EventSource source = null;
        try {
            checkNew(spec); // again: the wait was without the lock
            board.reset(slot);
            if (spec.events() != null) {
                source = events.openZmq(ofThisRouter(spec.events(), slot));
            }
            final Worker worker =
                    new Worker(
                            spec,
                            slot,
                            tenancies[slot],
                            board,
                            index,
                            routed == null ? IndexState.DEGRADED : IndexState.PREDICTED);
            worker.source(source);
            roster = roster.with(worker);
            named.put(new NamedRank(spec.name(), spec.dpRank()), worker);
            return worker;
        } catch (Throwable t) {
            board.open(slot, false);
            if (source == null) { // nothing can have been published or booked
                slots.giveBack(slot);
            } else {
                source.close();
                giveBack(slot);
            }
            throw t;
        }
    }

    /**
     * Opens a stream through which the embedder itself delivers the event messages of a worker that
     * was registered without an event endpoint. From then on nothing is predicted of it.
     *
     * @param worker a registered worker
     * @param source block size, removal rule and name of the stream; its slot is set here. A stream
     *     or source that the worker has already is closed
     * @return the stream; one thread at a time may push messages into it
     * @throws IllegalArgumentException if the source's block size is not the router's, or the
     *     worker is not registered (any more)
     * @throws ClosedException if the router is closed
     */
    public synchronized EngineStream openDirect(Worker worker, SourceConfig source) {
        checkOpen();
        checkBlockSize(source);
        if (roster.at(worker.slot()) != worker) {
            throw new IllegalArgumentException(
                    "worker " + worker + " is not registered; it may have been removed");
        }
        final EventSource before = worker.source();
        if (before != null) {
            before.close();
        }
        final EngineStream stream = events.openDirect(ofThisRouter(source, worker.slot()));
        worker.source(stream);
        return stream;
    }

    /** What the router decides of a source; its limits of staleness only where it has none. */
    private SourceConfig ofThisRouter(SourceConfig source, int slot) {
        final SourceConfig own = source.withSlot(slot).withHashSeed(hashSeed);
        return own.freshness().equals(FreshnessLimits.DEFAULT)
                ? own.withFreshness(RouterSettings.freshness(settings))
                : own;
    }

    private void checkBlockSize(SourceConfig source) {
        if (source.blockSize() != blockSize) {
            throw new IllegalArgumentException(
                    "events of "
                            + source.name()
                            + " have blockSize="
                            + source.blockSize()
                            + ", the router has blockSize="
                            + blockSize
                            + ": no prompt could match; set both to the engine's");
        }
    }

    /**
     * Takes a worker out: no new decision names it, its events stop, its blocks leave the index,
     * its bookings end, and with them their leases. Its slot is reused only after the writers of
     * index and bookings have swept it. A booking that was decided before and is made after it ends
     * at once, lease and all, and means nothing for the slot's next worker. Unknown workers are
     * ignored.
     *
     * @param worker the worker
     */
    public void removeWorker(Worker worker) {
        if (takeOut(worker)) {
            final EventSource source = worker.source();
            if (source != null) {
                source.close(); // may wait; what it still says is of an earlier slot generation
            }
        }
    }

    private synchronized boolean takeOut(Worker worker) {
        if (roster.at(worker.slot()) != worker) {
            return false;
        }
        roster = roster.without(worker);
        named.remove(new NamedRank(worker.name(), worker.dpRank()));
        worker.markRemoved();
        giveBack(worker.slot());
        return true;
    }

    /** Has both writers sweep a slot; the next worker gets it then. */
    private void giveBack(int slot) {
        tenancies[slot]++;
        final Runnable swept = slots.sweep(slot, 2);
        life.workerGone(slot, swept);
        events.retire(slot, swept);
    }

    /**
     * Forgets what a worker is predicted to hold, because its engine was gone and has an empty
     * cache when it comes back: every prompt that was booked on it before this call, by any thread.
     * A booking under way at this moment may count as one before or after it; so whoever watches a
     * worker's health calls this once it is down, to give its room to others, and again before it
     * becomes {@link Worker#available(boolean) available}, when nothing is under way to it any
     * more. The worker's bookings stay, and so does what an event source says.
     *
     * <p>Any thread; never waits and takes no lock. The thread that applies bookings does the work,
     * in time proportional to the prompts that are remembered of all workers; a selection may find
     * what is forgotten until then. Does nothing to a worker that was removed, or where nothing is
     * predicted.
     *
     * @param worker the worker
     * @return false if too many such calls are under way: nothing is forgotten then, and a later
     *     call makes up for it
     */
    public boolean forgetPredicted(Worker worker) {
        // removed at this moment: at worst what its successor was sent until then is forgotten
        return routed == null
                || worker.state() != IndexState.PREDICTED
                || life.forgetPredicted(worker.slot());
    }

    /**
     * The registered workers.
     *
     * @return a snapshot, in order of registration
     */
    public List<Worker> workers() {
        return List.of(roster.workers());
    }

    /**
     * Waits until every registered worker has been {@link Worker#ready}: what their engines had
     * announced before the call is in the index. Polls; holds no lock and delays no writer.
     *
     * @param limit how long to wait at most
     * @return false if the limit passed, a worker being not ready yet: {@link Worker#state} and
     *     {@link Worker#sourceStatus} say why
     * @throws InterruptedException if the waiting thread is interrupted
     * @throws ClosedException if the router is closed, or is closed meanwhile
     */
    public boolean awaitReady(Duration limit) throws InterruptedException {
        final long deadline = System.nanoTime() + limit.toNanos();
        for (Worker worker : roster.workers()) {
            while (!worker.ready()) {
                checkOpen();
                if (System.nanoTime() - deadline >= 0) {
                    return false;
                }
                Thread.sleep(READY_POLL_MS);
            }
        }
        checkOpen(); // a closed router has no workers that are not ready
        return true;
    }

    /**
     * Makes a request with scratch memory of the right size.
     *
     * @return an empty, reusable request for one thread at a time
     */
    public RouteRequest newRequest() {
        return new RouteRequest(
                this,
                blockSize,
                hashSeed,
                settings.get(RouterSettings.MAX_BLOCKS_PER_REQUEST),
                tenancies.length,
                routed != null);
    }

    /**
     * Decides which worker serves a prompt. Pure: books nothing, changes nothing.
     *
     * @param request the prompt and its overrides
     * @param out filled with the choice and its reasons; on an exception with what was looked at
     * @throws RouteException if no worker can be chosen
     * @throws ClosedException if the router is closed
     */
    public void select(RouteRequest request, Decision out) throws RouteException {
        begin(request, out);
        final int lane = gate.enterOrThrow();
        try {
            look(request, out);
        } finally {
            gate.exit(lane);
        }
        checkTakesRequests(); // the workers may have been taken out meanwhile
        chooser.choose(out);
    }

    /** Records what is known of every worker; the caller has entered the gate. */
    private void look(RouteRequest request, Decision out) {
        WorkerSet seen;
        do {
            // before the match: a slot's next tenant cannot be in it yet
            seen = roster;
            out.eventSequences(seen, index);
            index.matchInside(request.localHashes, request.blockCount, request.cached);
            if (events.hasEagleBlocks()) {
                matchEagle(request);
            }
            if (routed != null) {
                predict(request, seen);
            }
            slotTable.matchActiveInside(request.localHashes, request.blockCount, request.active);
            chooser.look(request, request.cached, request.active, out);
        } while (seen != roster); // a slot that is open now may be open for its next tenant
    }

    /**
     * Decides with overlaps that the caller has looked up, in an index of its own or elsewhere.
     * Pure, as {@link #select(RouteRequest, Decision)}; the decision knows no event numbers, and
     * nothing is predicted.
     *
     * @param request the prompt and its overrides
     * @param cached leading blocks that each worker slot holds
     * @param active leading blocks that running requests of each worker slot use
     * @param out filled with the choice and its reasons; on an exception with what was looked at
     * @throws RouteException if no worker can be chosen
     * @throws ClosedException if the router is closed
     */
    public void select(
            RouteRequest request, OverlapScores cached, OverlapScores active, Decision out)
            throws RouteException {
        begin(request, out);
        checkTakesRequests();
        WorkerSet seen;
        do {
            seen = roster;
            out.noEventSequences(seen);
            chooser.look(request, cached, active, out);
        } while (seen != roster);
        checkTakesRequests();
        chooser.choose(out);
    }

    /** Adds what the workers hold that draft with EAGLE: their blocks have other hashes. */
    private void matchEagle(RouteRequest request) {
        request.hashEagle();
        final OverlapScores found = request.eagle;
        index.matchInside(request.eagleHashes, request.eagleBlockCount, found);
        if (request.cached.matchedSlots() == 0) {
            request.takeEagle();
            return;
        }
        for (int i = 0; i < found.matchedSlots(); i++) {
            final int slot = found.slotAt(i);
            if (request.cached.depth(slot) == 0) {
                request.cached.add(slot, found.depth(slot));
            }
        }
    }

    /** Adds what the workers without events are taken to hold. */
    private void predict(RouteRequest request, WorkerSet seen) {
        final OverlapScores found = request.routed;
        routed.matchInside(request.localHashes, request.blockCount, found);
        for (int i = 0; i < found.matchedSlots(); i++) {
            final int slot = found.slotAt(i);
            // a stream that was opened just now may have stored something already
            if (isPredicted(seen.at(slot)) && request.cached.depth(slot) == 0) {
                request.cached.add(slot, found.depth(slot));
            }
        }
    }

    private static boolean isPredicted(Worker worker) {
        return worker != null && worker.state() == IndexState.PREDICTED;
    }

    private void begin(RouteRequest request, Decision out) {
        request.checkMadeFor(this);
        request.hash();
        out.begin(
                request,
                blockSize,
                request.mode() == null ? mode : request.mode(),
                Math.min(MAX_WEIGHT, request.overlapWeightOr(overlapWeight)),
                request.temperatureOr(temperature));
    }

    /**
     * Decides and books, with a lease of its own; see {@link #reserve(RouteRequest, Decision,
     * Lease)}. Allocates the lease.
     *
     * @param request the prompt and its overrides
     * @param out filled with the choice and its reasons
     * @return the booking; close it when the request has ended, whatever its outcome
     * @throws RouteException if no worker can be chosen, or {@code maxActiveRequests} are booked
     *     already
     * @throws ClosedException if the router is closed
     */
    public Lease reserve(RouteRequest request, Decision out) throws RouteException {
        final Lease lease = new Lease();
        reserve(request, out, lease);
        return lease;
    }

    /**
     * Decides and books: the load counts from now on, so that concurrent callers see each other.
     *
     * @param request the prompt and its overrides
     * @param out filled with the choice and its reasons
     * @param lease takes the booking; close it when the request has ended, whatever its outcome
     * @throws RouteException if no worker can be chosen, or {@code maxActiveRequests} are booked
     *     already; the lease is then as it was
     * @throws ClosedException if the router is closed; the lease is then as it was
     * @throws IllegalStateException if the lease still holds an open booking
     */
    public void reserve(RouteRequest request, Decision out, Lease lease) throws RouteException {
        if (lease.isOpen()) {
            throw new IllegalStateException(
                    "the lease is still open: requestId="
                            + lease.requestId()
                            + "; close it before it takes another booking");
        }
        if (life.isFull()) {
            checkTakesRequests();
            throw overloaded();
        }
        select(request, out);
        final long number = book(request, out);
        if (number == BookingPipeline.NONE) {
            checkTakesRequests();
            throw overloaded();
        }
        lease.hold(
                this,
                out.worker(),
                number,
                request.tokenCount(),
                blockSize,
                request.blockCount - out.overlapBlocks());
    }

    private long book(RouteRequest request, Decision decision) {
        final Worker worker = decision.worker();
        return life.book(
                worker.slot(),
                worker.tenancy(),
                request.localHashes,
                request.blockCount,
                request.tokenCount() - decision.predictedCachedTokens(),
                request.blockCount - decision.activePrefixOf(worker.slot()),
                request.hasUsualDeadline() ? usualDeadlineNs() : request.deadlineNs(),
                isPredicted(worker));
    }

    private long usualDeadlineNs() {
        if (bookingTimeoutNs == 0) {
            return ActiveRequests.NO_DEADLINE;
        }
        final long deadlineNs = clock.getAsLong() + bookingTimeoutNs;
        // a nanosecond is below the resolution, and this one means none
        return deadlineNs == ActiveRequests.NO_DEADLINE ? deadlineNs + 1 : deadlineNs;
    }

    /** Before {@link #checkOpen} fails: a close with time refuses requests first. */
    private void checkTakesRequests() {
        if (gate.isClosed()) {
            throw new ClosedException(NAME);
        }
    }

    private RouteException overloaded() {
        final int open = life.openBookings();
        return new RouteException(
                RouteException.Kind.OVERLOADED,
                open >= maxActiveRequests
                        ? "too many requests booked at once: open="
                                + open
                                + ", max-active-requests="
                                + maxActiveRequests
                                + "; raise it or close leases earlier"
                        : "the booking writer is behind: open="
                                + open
                                + " of max-active-requests="
                                + maxActiveRequests
                                + ", records waiting="
                                + life.backlog()
                                + "; give the process more CPU, set booking-wait to yielding, or"
                                + " raise max-active-requests");
    }

    int blockSize() {
        return blockSize;
    }

    LoadBoard board() {
        return board;
    }

    boolean isOpen(long number) {
        return life.isOpen(number);
    }

    /** Says that a prompt is computed; false if that was said before or the booking has ended. */
    boolean prefillCompleted(long number) {
        return life.prefillComplete(number);
    }

    void outputBlocks(long number, int blocks) {
        if (trackOutputBlocks) {
            life.outputBlocks(number, blocks);
        }
    }

    boolean release(long number) {
        return life.free(number);
    }

    /** The lease of a booking was collected; ends the booking if it is open. */
    void releaseForgotten(long number) {
        if (life.free(number)) {
            forgotten.add();
        }
    }

    /**
     * Lets time pass: bookings end that have lasted too long ({@link
     * RouterSettings#BOOKING_TIMEOUT}, {@link RouteRequest#deadline}), because their requests hang,
     * predictions end that are too old, and the load of the next 64 workers is compared with what
     * is booked on them. A thread of the router calls it five times a second; with {@link
     * Builder#tickedBy} the embedder does.
     *
     * <p>The thread that applies bookings does the work, in time proportional to what ends; a
     * booking ends at the first tick that is 1.1 ms or more behind its deadline. Never waits. Does
     * nothing once the router is closed.
     *
     * @param nowNs the time by the clock of the deadlines, which is {@link System#nanoTime} where
     *     {@link Builder#tickedBy} gave no other
     */
    public void tick(long nowNs) {
        if (life.tick(nowNs)) {
            fillWatch.look(nowNs);
            forgotten.look(nowNs);
        }
    }

    /**
     * What is used of every limit, and what was refused; reads some thirty counters.
     *
     * @return as of now
     */
    public RouterStatus status() {
        return new RouterStatus(
                List.of(
                        new RouterStatus.Usage(
                                "index-blocks",
                                RouterSettings.MAX_BLOCKS,
                                index.blocks(),
                                index.config().maxBlocks()),
                        new RouterStatus.Usage(
                                "index-held-blocks",
                                RouterSettings.MAX_HELD_BLOCKS,
                                index.heldBlocks(),
                                index.config().maxHeldBlocks()),
                        new RouterStatus.Usage(
                                "index-bytes",
                                RouterSettings.INDEX_BYTES,
                                index.usedBytes(),
                                index.config().budgetBytes()),
                        new RouterStatus.Usage(
                                "event-ring",
                                RouterSettings.EVENT_RING_SIZE,
                                events.backlog(),
                                events.ringSize()),
                        new RouterStatus.Usage(
                                "booking-ring",
                                RouterSettings.MAX_ACTIVE_REQUESTS,
                                life.backlog(),
                                life.ringSize()),
                        new RouterStatus.Usage(
                                "active-requests",
                                RouterSettings.MAX_ACTIVE_REQUESTS,
                                slotTable.activeRequests(),
                                maxActiveRequests)),
                new RouterStatus.Refusals(
                        index.capacityRefusals(),
                        index.missingParents(),
                        index.evictedBlocks(),
                        index.unknownParents(),
                        index.invalidStores(),
                        index.conflictingStores(),
                        index.unknownRemovals(),
                        events.refused(),
                        life.refused(),
                        slotTable.refusals()),
                slotTable.pathlessBookings(),
                slotTable.expiredLeases(),
                forgotten.count(),
                slotTable.corrections(),
                events.failures() + life.failures());
    }

    /**
     * Bookings that their deadline has ended.
     *
     * @return how many since the start
     */
    public long expiredLeases() {
        return slotTable.expiredLeases();
    }

    /**
     * Bookings that are not released yet.
     *
     * @return leases open now
     */
    public int activeLeases() {
        return life.openBookings();
    }

    /**
     * The block index, for inspection and metrics.
     *
     * @return the index; only its any-thread methods may be called
     */
    public PrefixIndex index() {
        return index;
    }

    /**
     * What workers without events are predicted to hold, for inspection and metrics.
     *
     * @return the prefixes; only their any-thread methods may be called. Null when nothing is
     *     predicted
     */
    public PredictedPrefixes routedPrefixes() {
        return routed;
    }

    /**
     * The table of bookings, for inspection and metrics.
     *
     * @return the table; only its any-thread methods may be called
     */
    public ActiveRequests slotTable() {
        return slotTable;
    }

    /**
     * The event pipeline, for inspection and metrics.
     *
     * @return the pipeline
     */
    public IndexPipeline eventPipeline() {
        return events;
    }

    /**
     * The pipeline of bookings, for inspection and metrics.
     *
     * @return the pipeline
     */
    public BookingPipeline lifePipeline() {
        return life;
    }

    private void checkOpen() {
        if (closed) {
            throw new ClosedException(NAME);
        }
    }

    /**
     * Closes the router when no booking is left, at the latest after some time: from now on no
     * request is taken, leases end as usual. Waits without a lock; another {@link #close} meanwhile
     * ends it.
     *
     * @param atMost how long to wait for leases that are open
     * @return leases that were still open at the end: 0 if all had been closed
     */
    public int close(Duration atMost) {
        gate.close();
        final long start = System.nanoTime();
        while (life.openBookings() > 0
                && !closed
                && System.nanoTime() - start < atMost.toNanos()
                && !Thread.currentThread().isInterrupted()) {
            LockSupport.parkNanos(DRAIN_PAUSE_NS);
        }
        final int open = life.openBookings();
        close();
        return open;
    }

    /**
     * Refuses requests from now on, stops the sources and the writers, and gives the off-heap
     * memory back when nobody is inside any more. Any thread, at any time; does not wait for
     * callers, and for a writer in the middle of an event a second at most. What has not been
     * applied yet is not applied any more. A second call does nothing.
     */
    @Override
    public synchronized void close() {
        if (closed) {
            return;
        }
        closed = true;
        gate.close();
        slots.close();
        if (tickerOrNull != null) {
            tickerOrNull.close();
        }
        for (Worker worker : roster.workers()) {
            worker.markRemoved();
            final EventSource source = worker.source();
            if (source != null) {
                source.close();
            }
        }
        roster = WorkerSet.EMPTY;
        named.clear();
        events.close();
        life.close();
    }

    static double checkNotNegative(String name, double value) {
        if (!(value >= 0 && value < Double.POSITIVE_INFINITY)) {
            throw new IllegalArgumentException(
                    name + "=" + value + " must be finite and not negative");
        }
        return value;
    }

    /**
     * Configuration of a router. Every knob is a row of {@link RouterSettings} and has a default;
     * {@code blockSize} must match the engines. A value out of range is refused when it is set.
     */
    public static final class Builder {
        private Settings.Builder settings = Settings.builder(RouterSettings.TABLE);
        private PredictedPrefixesConfig routedPrefixes; // null: by the settings
        private CostModel costModel = CostModel.LINEAR;
        private RandomSource random; // null: by the settings
        private LongSupplier clockOrNull; // null: the router ticks by nanoTime

        private Builder() {}

        /**
         * Sets a knob.
         *
         * @param setting a row of {@link RouterSettings}
         * @param value in its range
         * @return this
         * @throws IllegalArgumentException if it is out of range
         */
        public <T> Builder set(Setting<T> setting, T value) {
            settings.set(setting, value);
            return this;
        }

        /**
         * Sets a knob by name.
         *
         * @param name of a row of {@link RouterSettings}, as in flags and files
         * @param value as it is written there
         * @return this
         * @throws IllegalArgumentException if there is no such knob, or it has no such value
         */
        public Builder set(String name, String value) {
            settings.parse(RouterSettings.TABLE.named(name), value, Settings.Source.CODE, "code");
            return this;
        }

        /**
         * Takes over all values; those set before are dropped.
         *
         * @param values of these settings, and of any others, which are not looked at
         * @return this
         */
        public Builder settings(Settings values) {
            settings = values.toBuilder();
            return this;
        }

        /** Sets {@link RouterSettings#BLOCK_SIZE}. */
        public Builder blockSize(int tokens) {
            return set(RouterSettings.BLOCK_SIZE, tokens);
        }

        /** Sets {@link RouterSettings#MAX_WORKERS}. */
        public Builder maxWorkers(int count) {
            return set(RouterSettings.MAX_WORKERS, count);
        }

        /** Sets {@link RouterSettings#MAX_BLOCKS} and {@link RouterSettings#MAX_HELD_BLOCKS}. */
        public Builder maxBlocks(long distinct, long held) {
            return set(RouterSettings.MAX_BLOCKS, distinct)
                    .set(RouterSettings.MAX_HELD_BLOCKS, held);
        }

        /** Sets {@link RouterSettings#INDEX_BYTES}. */
        public Builder indexBytes(long bytes) {
            return set(RouterSettings.INDEX_BYTES, bytes);
        }

        /** Sets {@link RouterSettings#MAX_ACTIVE_REQUESTS}. */
        public Builder maxActiveRequests(int count) {
            return set(RouterSettings.MAX_ACTIVE_REQUESTS, count);
        }

        /** Sets {@link RouterSettings#MAX_BLOCKS_PER_REQUEST}. */
        public Builder maxBlocksPerRequest(int count) {
            return set(RouterSettings.MAX_BLOCKS_PER_REQUEST, count);
        }

        /** Sets {@link RouterSettings#MODE}. */
        public Builder mode(RoutingMode routingMode) {
            return set(RouterSettings.MODE, routingMode);
        }

        /** Sets {@link RouterSettings#OVERLAP_WEIGHT}. */
        public Builder overlapWeight(double weight) {
            return set(RouterSettings.OVERLAP_WEIGHT, weight);
        }

        /** Sets {@link RouterSettings#TEMPERATURE}. */
        public Builder temperature(double value) {
            return set(RouterSettings.TEMPERATURE, value);
        }

        /** Sets {@link RouterSettings#DEGRADED_CREDIT}. */
        public Builder degradedCredit(double credit) {
            return set(RouterSettings.DEGRADED_CREDIT, credit);
        }

        /** Sets {@link RouterSettings#TRACK_OUTPUT_BLOCKS}. */
        public Builder trackOutputBlocks(boolean track) {
            return set(RouterSettings.TRACK_OUTPUT_BLOCKS, track);
        }

        /** Sets {@link RouterSettings#BOOKING_WAIT}. */
        public Builder bookingWait(WaitMode mode) {
            return set(RouterSettings.BOOKING_WAIT, mode);
        }

        /**
         * Predicts what workers hold that have no event source: a worker is taken to hold the full
         * blocks of every prompt that was booked on it in the last {@code ttlNs}, as long as there
         * is room for them. A worker with an event source is judged by its events alone. Ages are
         * measured by {@link KvRouter#tick}, to its accuracy: without ticks nothing grows old.
         *
         * <p>A predicted block counts as a cached one; {@link Decision#state} says {@link
         * IndexState#PREDICTED}. {@link RouterSettings#APPROXIMATE} and the rows behind it do the
         * same with usual sizes.
         *
         * @param config limits and ages, instead of those of the settings; its worker slots are set
         *     to {@code maxWorkers}
         * @return this
         */
        public Builder routedPrefixes(PredictedPrefixesConfig config) {
            routedPrefixes = config;
            return this;
        }

        /**
         * The cost function.
         *
         * @param model default {@link CostModel#LINEAR}
         * @return this
         */
        public Builder costModel(CostModel model) {
            costModel = Objects.requireNonNull(model, "costModel");
            return this;
        }

        /**
         * The random source of ties, sampling and random mode.
         *
         * @param source default by {@link RouterSettings#SEED}
         * @return this
         */
        public Builder random(RandomSource source) {
            random = Objects.requireNonNull(source, "random");
            return this;
        }

        /**
         * Has the embedder call {@link KvRouter#tick}, a few times a second, instead of a thread of
         * the router. For a housekeeping thread that exists already, and for simulated time.
         *
         * @param nanoClock the clock of its ticks and of all deadlines; read by {@link
         *     KvRouter#reserve}, on its callers' threads
         * @return this
         */
        public Builder tickedBy(LongSupplier nanoClock) {
            clockOrNull = Objects.requireNonNull(nanoClock, "nanoClock");
            return this;
        }

        private RandomSource randomSource(Settings values) {
            if (random != null) {
                return random;
            }
            final Long seed = values.get(RouterSettings.SEED);
            return RandomSource.seeded(seed == null ? System.nanoTime() : seed);
        }

        private PredictedPrefixesConfig routedPrefixesConfig(Settings values) {
            return routedPrefixes == null
                    ? RouterSettings.routedPrefixes(values)
                    : routedPrefixes.withMaxWorkerSlots(values.get(RouterSettings.MAX_WORKERS));
        }

        /**
         * Allocates the off-heap memory and starts the two writer threads, and the one that ticks.
         *
         * @return a router without workers
         * @throws OutOfMemoryError if the operating system or the JVM refuses the memory
         */
        public KvRouter build() {
            final KvRouter router = new KvRouter(this);
            try {
                if (router.tickerOrNull != null) {
                    router.tickerOrNull.start();
                }
                return router;
            } catch (Throwable t) {
                router.close();
                throw t;
            }
        }
    }
}
