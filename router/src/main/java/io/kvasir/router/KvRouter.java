package io.kvasir.router;

import io.kvasir.core.closing.Closing;
import io.kvasir.core.closing.Uninterrupted;
import io.kvasir.core.index.IndexMemory;
import io.kvasir.core.index.LowerTiers;
import io.kvasir.core.index.PrefixIndex;
import io.kvasir.core.load.ActiveRequests;
import io.kvasir.core.load.LoadBoard;
import io.kvasir.core.load.PredictedPrefixes;
import io.kvasir.core.load.RoomListener;
import io.kvasir.core.memory.ClosedException;
import io.kvasir.core.radix.OverlapScores;
import io.kvasir.pipeline.booking.BookingPipeline;
import io.kvasir.pipeline.events.IndexPipeline;
import io.kvasir.pipeline.source.EngineStream;
import io.kvasir.pipeline.source.EventPlane;
import io.kvasir.pipeline.source.LoadPlane;
import io.kvasir.pipeline.source.PlanePosition;
import io.kvasir.pipeline.source.SourceConfig;
import io.kvasir.pipeline.source.StreamStart;
import io.kvasir.router.journal.DecisionJournal;
import io.kvasir.router.load.BusyMarks;
import io.kvasir.router.load.BusyProbe;
import io.kvasir.router.load.LoadCounts;
import io.kvasir.router.policy.RoutingMode;
import io.kvasir.router.replica.ReplicaSync;
import io.kvasir.router.session.SessionAffinity;
import io.kvasir.router.settings.RouterSettings;
import io.kvasir.router.settings.Settings;

import java.io.IOException;
import java.time.Clock;
import java.time.Duration;
import java.util.List;
import java.util.Objects;
import java.util.Set;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;

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
    private static final long DRAIN_PAUSE_NS = 1_000_000;

    private final RouterConfig config;
    private final RouterParts parts;
    private final CurrentRules rules;
    private final WorkerRegistry registry;
    private final Bookings bookings;
    private final WorkerSelector selector;
    private final PromptMatcher matcher;
    private final NamedLeases named;
    private final EventDump dump;
    private final JournalWriter journalOrNull; // null where no decisions are kept
    private volatile RouterCounters countersOrNull; // null where none are kept
    private final FillWatch fillWatch = new FillWatch(this::status);
    private final int blockSize;
    private final boolean tracksBlocks;
    private volatile boolean closed;
    private volatile AutoCloseable tickerOrNull; // null where the embedder ticks
    private volatile AutoCloseable watchOrNull; // likewise
    private final SavedPrefixes savedOrNull; // null where nothing is saved
    private volatile StateKeeper keeperOrNull; // likewise
    private volatile ReplicaSync replicaOrNull; // null where there are no replicas
    private final EventPlane planeOrNull; // null where the router is on none
    private volatile AutoCloseable planeSourceOrNull; // likewise
    private volatile AutoCloseable loadSourceOrNull; // null where no plane has load reports

    private KvRouter(
            RouterConfig config,
            PartMaker maker,
            SavedPrefixes savedOrNull,
            IndexMemory memoryOrNull) {
        this.config = config;
        this.savedOrNull = savedOrNull;
        blockSize = config.get(RouterSettings.BLOCK_SIZE);
        tracksBlocks = config.get(RouterSettings.TRACK_ACTIVE_BLOCKS);
        parts = new RouterParts(config, maker, memoryOrNull);
        planeOrNull = config.eventPlaneOrNull() == null ? null : plane();
        registry = new WorkerRegistry(config, parts, savedOrNull, planeOrNull, this::rulesNow);
        // never before a snapshot that was found, also where the clock was set back: the file that
        // is used now is not older
        parts.indexPipeline.followed(Math.max(Clock.systemUTC().millis(), newestMs(savedOrNull)));
        rules = new CurrentRules(config, parts, registry::current);
        bookings = new Bookings(config, parts, rules);
        selector = new WorkerSelector(parts.random, config.clock());
        matcher = new PromptMatcher(parts, config.clock(), registry::current);
        named = new NamedLeases(bookings::open);
        dump = new EventDump(parts.indexPipeline, registry::current);
        journalOrNull =
                parts.journalOrNull == null
                        ? null
                        : new JournalWriter(parts.journalOrNull, Clock.systemUTC()::millis);
    }

    private RouterRules rulesNow() {
        return rules.get();
    }

    /**
     * The event plane; where what its workers hold is in no store that routers share, it is kept,
     * or saved, with the index.
     */
    private EventPlane plane() {
        if (config.planeStateOrNull() != null) {
            return new EventPlane(EventPlane.KNOWN_ONLY);
        }
        final PlanePosition kept = parts.indexPipeline.keptPositionOrNull();
        return new EventPlane(
                EventPlane.KNOWN_ONLY,
                parts.indexPipeline::keepPosition,
                kept != null || savedOrNull == null ? kept : savedOrNull.planePositionOrNull());
    }

    /**
     * Makes a router; what was taken, or given to be closed with it, is closed when a step fails.
     */
    static KvRouter start(RouterConfig config, PartMaker maker) {
        SavedPrefixes saved = null;
        final KvRouter router;
        try {
            saved = maker.savedPrefixes(config);
            final RouterConfig ofSaved =
                    saved == null ? config : config.withHashSeed(saved.hashSeed());
            final IndexMemory memory =
                    maker.indexMemory(ofSaved, neededSeed(config, saved), newestMs(saved));
            if (memory != null && saved != null) {
                saved.hashSeed(memory.hashSeed());
            }
            router =
                    new KvRouter(
                            memory == null ? ofSaved : ofSaved.withHashSeed(memory.hashSeed()),
                            maker,
                            saved,
                            memory);
        } catch (Throwable t) {
            Closing.after(t, saved, config.planeStateOrNull(), config.replicaLinkOrNull());
            throw t;
        }
        try {
            if (saved != null) {
                router.keeperOrNull =
                        maker.stateKeeper(
                                config,
                                saved,
                                router.registry::current,
                                router.parts.indexPipeline,
                                config.planeStateOrNull() == null ? router.planeOrNull : null,
                                router.parts.errors);
            }
            if (config.replicaLinkOrNull() != null) {
                router.replicaOrNull =
                        maker.replicaSync(
                                config,
                                () -> router.rulesNow().bookingTimeoutNs(),
                                router.parts.bookingPipeline.replicaPortOrNull(),
                                router.registry);
            }
            router.countersOrNull =
                    router.parts.countersOrNull == null
                            ? null
                            : maker.routerCounters(
                                    router.parts.countersOrNull, router::status, router::workers);
            if (router.planeOrNull != null) {
                router.planeSourceOrNull = config.eventPlaneOrNull().apply(router.planeOrNull);
            }
            if (config.loadPlaneOrNull() != null) {
                router.loadSourceOrNull =
                        config.loadPlaneOrNull()
                                .apply(
                                        new LoadPlane(
                                                new PlaneLoads(
                                                        router.registry, router.loadReports())));
            }
            if (config.planeStateOrNull() != null) {
                config.planeStateOrNull().start(router);
            }
            if (config.ticksItself()) {
                router.tickerOrNull = maker.ticker(router, config, router.parts.errors);
                router.watchOrNull =
                        maker.promptWatch(router.bookings.watch(), router.parts.errors);
                if (router.replicaOrNull != null) {
                    router.replicaOrNull.start(config.clock(), router.parts.errors);
                }
            }
            return router;
        } catch (Throwable t) {
            Closing.after(t, router);
            throw t;
        }
    }

    /** Until when snapshots follow workers; 0 where there are none. */
    private static long newestMs(SavedPrefixes savedOrNull) {
        return savedOrNull == null ? 0 : savedOrNull.newestMs();
    }

    /** Seed that the hashes in a file must have; null where that of the file will do. */
    private static Long neededSeed(RouterConfig config, SavedPrefixes saved) {
        final Long needed = config.neededHashSeed();
        return needed == null && saved != null && !saved.isEmpty()
                ? (Long) saved.hashSeed()
                : needed;
    }

    /**
     * Starts a configuration with the defaults.
     *
     * @return a builder
     */
    public static RouterConfig.Builder builder() {
        return new RouterConfig.Builder();
    }

    /**
     * The sizes and defaults of this router; see {@link RouterSettings}.
     *
     * @return as of now
     */
    public Settings settings() {
        return rules.get().settings();
    }

    /**
     * How often the settings have changed; {@link Decision#settingsVersion} says by which of them a
     * decision was made.
     *
     * @return 1 as long as they are those of the start
     */
    public long settingsVersion() {
        return rules.get().version();
    }

    /**
     * The settings as one number, as it is in the records of the {@link #journal}: the same for
     * equal ones in any process, hardly for others.
     */
    public long settingsDigest() {
        return rules.get().digest();
    }

    /**
     * Changes settings for all decisions that begin from now on, those of the rows that say {@link
     * io.kvasir.router.settings.Setting#isLive}; all of them or none. Decisions under way end by
     * those that they began with. Any thread; decisions do not wait for it.
     *
     * <pre>{@code
     * router.change(router.settings().with(RouterSettings.TEMPERATURE, 0.5));
     * }</pre>
     *
     * <p>An index stays until the router ends, also where nothing of it counts any more. Sessions
     * are forgotten when their time is set to 0.
     *
     * @param wanted all values
     * @return the version from now on; the one before where no value is another one
     * @throws IllegalArgumentException if a value that is another one cannot be changed while the
     *     router runs, or needs what it was started without: then nothing is changed
     */
    public long change(Settings wanted) {
        Objects.requireNonNull(wanted, "wanted");
        return rules.change(wanted);
    }

    /**
     * The same with a number of the caller's own, by which the decisions of several routers name
     * what they have in common; also where no value is another one.
     *
     * @param wanted all values
     * @param version {@link #settingsVersion} from now on
     * @throws IllegalArgumentException as of {@link #change(Settings)}
     */
    public void change(Settings wanted, long version) {
        Objects.requireNonNull(wanted, "wanted");
        rules.change(wanted, version);
    }

    /**
     * Checks that {@link #change} would take these values.
     *
     * @param wanted all values
     * @throws IllegalArgumentException if not
     */
    public void checkChange(Settings wanted) {
        Objects.requireNonNull(wanted, "wanted");
        rules.check(wanted);
    }

    /**
     * A number for the values of all settings, which the decision journal has as well.
     *
     * @return the same for equal values, hardly for others
     */
    public long settingsNumber() {
        return rules.get().digest();
    }

    /**
     * The mode of requests that do not override it.
     *
     * @return the current mode
     */
    public RoutingMode mode() {
        return rules.get().mode();
    }

    /**
     * Changes the mode of requests that do not override it.
     *
     * @param changed the mode from now on
     */
    public void mode(RoutingMode changed) {
        Objects.requireNonNull(changed, "mode");
        synchronized (rules) { // no change of another setting comes between
            change(settings().with(RouterSettings.MODE, changed));
        }
    }

    /**
     * Registers a worker (one data-parallel rank) and opens its event source, where the router
     * keeps an index ({@link RouterSettings#PREFIX_INDEX}). Where all slots are taken and some of
     * them are those of removed workers, waits without a lock until one has been swept, at most
     * five seconds. What was saved of it is restored, also by an interrupted thread.
     *
     * @param spec what is known of it
     * @return the registered worker
     * @throws IllegalStateException if {@code maxWorkers} are registered already
     * @throws ClosedException if the router is closed
     * @throws IllegalArgumentException if a worker of that name and rank is registered already, or
     *     its events are of another block size than the router's
     */
    public Worker addWorker(WorkerSpec spec) {
        Objects.requireNonNull(spec, "spec");
        final Worker worker = registry.add(spec);
        final PrefillPaces paces = rules.get().pacesOrNull();
        if (paces != null) {
            paces.of(worker); // so that no decision makes it
        }
        return worker;
    }

    /**
     * Checks what can be known of a worker before it is registered: its adapters, the addresses of
     * its events, and that no worker of another name has its number and rank on the event plane.
     * One of its own name may be there, which it is to replace. An address to bind is bound for a
     * moment, unless a worker has it.
     *
     * @param spec what is known of it
     * @param adapters as of {@link Worker#adapters(Set)}
     * @throws IllegalArgumentException if it cannot be registered
     * @throws ClosedException if the router is closed
     */
    public void checkWorker(WorkerSpec spec, Set<String> adapters) {
        Objects.requireNonNull(spec, "spec");
        Objects.requireNonNull(adapters, "adapters");
        registry.check(spec, adapters);
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
     * @throws IllegalStateException if the router keeps no index ({@link
     *     RouterSettings#PREFIX_INDEX})
     * @throws ClosedException if the router is closed
     */
    public EngineStream openDirect(Worker worker, SourceConfig source) {
        return openDirect(worker, source, null);
    }

    /**
     * The same for a worker whose slot was loaded from a snapshot through {@link #indexPipeline}.
     *
     * @param worker a registered worker
     * @param source block size, removal rule and name of the stream; its slot is set here
     * @param startOrNull how far the snapshot was; null where none was loaded
     * @return the stream; one thread at a time may push messages into it
     * @throws IllegalArgumentException if the source's block size is not the router's, or the
     *     worker is not registered (any more)
     * @throws IllegalStateException if the router keeps no index ({@link
     *     RouterSettings#PREFIX_INDEX})
     * @throws ClosedException if the router is closed
     */
    public EngineStream openDirect(Worker worker, SourceConfig source, StreamStart startOrNull) {
        Objects.requireNonNull(worker, "worker");
        Objects.requireNonNull(source, "source");
        return registry.openDirect(worker, source, startOrNull);
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
        Objects.requireNonNull(worker, "worker");
        registry.remove(worker);
    }

    /**
     * Has a worker of the event plane begin there anew, as one that registers now: its blocks leave
     * the index, what {@link PlaneState} has saved of it is restored, and the messages after that
     * come again. Where restoring throws, that is logged, and the worker joins as one of which
     * nothing is saved. Its bookings and leases stay. Waits for the index writer, and for another
     * call for the worker. One that is removed meanwhile keeps its slot from others until this
     * returns. Does nothing for a worker that is not registered (any more), or on no event plane,
     * and where there is no such state.
     *
     * @param worker the worker
     * @throws ClosedException if the router is closed
     * @throws InterruptedException if the waiting thread is interrupted; where the index was to be
     *     swept already, when that is done and the worker has joined
     */
    public void rejoinPlane(Worker worker) throws InterruptedException {
        Objects.requireNonNull(worker, "worker");
        registry.rejoinPlane(worker);
    }

    /**
     * Forgets what a worker is predicted to hold, because its engine was away and has an empty
     * cache when it comes back: every prompt that was booked on it before this call, by any thread.
     * A booking under way at this moment may count as one before or after it; so a caller that
     * watches a worker's health calls this once it is down, to give its room to others, and again
     * before it becomes {@link Worker#available(boolean) available}, when nothing is under way to
     * it any more. The worker's bookings stay, and so does what an event source says.
     *
     * <p>Any thread; never waits and takes no lock. The thread that applies bookings does the work,
     * in time proportional to the prompts that are remembered of all workers; a selection may find
     * what is forgotten until then. Does nothing to a worker that was removed or is another
     * router's, or where nothing is predicted.
     *
     * @param worker the worker
     * @return false if too many such calls are under way: nothing is forgotten then, and a later
     *     call makes up for it
     */
    public boolean forgetPredicted(Worker worker) {
        Objects.requireNonNull(worker, "worker");
        return registry.current().at(worker.slot()) != worker || bookings.forgetPredicted(worker);
    }

    /**
     * The registered workers.
     *
     * @return a snapshot, in order of registration
     */
    public List<Worker> workers() {
        return List.of(registry.current().workers());
    }

    /**
     * How many of the registered workers have an adapter: {@link Worker#adapters}. Any thread; one
     * look into a table.
     *
     * @param adapter its name
     * @return whether they may be chosen or not
     */
    public int workersWith(String adapter) {
        Objects.requireNonNull(adapter, "adapter");
        final SlotBits serving = parts.workerMarks.serving(adapter);
        return serving == null ? 0 : serving.count();
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
        Objects.requireNonNull(limit, "limit");
        return registry.awaitReady(limit);
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
                config.hashSeed(),
                config.get(RouterSettings.MAX_BLOCKS_PER_REQUEST),
                parts.board.slots(),
                parts.predictedOrNull != null,
                newTierScores());
    }

    private TierScores newTierScores() {
        return parts.lowerOrNull == null
                ? null
                : new TierScores(
                        parts.lowerOrNull, TierWeights.of(config.settings()), parts.board.slots());
    }

    /**
     * Decides which worker serves a prompt. Books nothing, and changes nothing but whose turn is
     * next by {@link io.kvasir.router.policy.RoutingMode#ROUND_ROBIN}: for requests that are sent
     * to the worker, without a booking.
     *
     * @param request the prompt and its overrides
     * @param out filled with the choice and its reasons; on an exception with what was looked at
     * @throws RouteException if no worker can be chosen
     * @throws ClosedException if the router is closed
     */
    public void select(RouteRequest request, Decision out) throws RouteException {
        select(request, out, null);
    }

    /**
     * Answers which worker a prompt would be sent to. Pure: as {@link #select(RouteRequest,
     * Decision)}, and takes no turn, so that a caller that asks before the booking skips no worker.
     *
     * @param request the prompt and its overrides
     * @param out filled with the choice and its reasons; on an exception with what was looked at
     * @throws RouteException if no worker can be chosen
     * @throws ClosedException if the router is closed
     */
    public void peek(RouteRequest request, Decision out) throws RouteException {
        begin(request, out);
        out.selection().onlyAsked();
        matcher.match(request, out.selection());
        selector.choose(out.selection());
    }

    private void select(RouteRequest request, Decision out, JournalWriter refusalsOrNull)
            throws RouteException {
        begin(request, out);
        matcher.match(request, out.selection());
        try {
            selector.choose(out.selection());
        } catch (RouteException e) {
            if (refusalsOrNull != null && !request.isOnlyWithRoom()) { // else it may wait
                refusalsOrNull.refused(request, out, e.kind());
            }
            throw e;
        }
    }

    /**
     * Decides with overlaps that the caller has looked up, in an index of its own or elsewhere. As
     * {@link #select(RouteRequest, Decision)}; the decision knows no event numbers, and nothing is
     * predicted.
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
        Objects.requireNonNull(cached, "cached");
        Objects.requireNonNull(active, "active");
        begin(request, out);
        matcher.take(request, cached, active, out.selection());
        selector.choose(out.selection());
    }

    private void begin(RouteRequest request, Decision out) {
        Objects.requireNonNull(request, "request");
        Objects.requireNonNull(out, "out");
        request.checkMadeFor(this);
        request.hash();
        final RouterRules now = rules.get();
        out.selection().begin(request, blockSize, tracksBlocks, now);
        if (now.sessionsOrNull() != null
                && request.hasSession()
                && out.selection().mode() != RoutingMode.CONSISTENT_HASH) { // hashed instead
            out.selection().session(now.sessionsOrNull().find(request.session()));
        }
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
        Objects.requireNonNull(lease, "lease");
        if (lease.isOpen()) {
            throw new IllegalStateException(
                    "the lease is still open: requestId="
                            + lease.requestId()
                            + "; close it before it takes another booking");
        }
        bookings.checkRoom();
        final BusyProbe probe = choose(request, out);
        book(request, out, lease, probe);
        boolean recorded = false;
        try {
            recordBooked(request, out, lease);
            recorded = true;
        } finally {
            if (!recorded) {
                lease.close(); // the caller that gets an exception has no booking
            }
        }
    }

    /** Records a booking beside its load: for its session, and in the journal. */
    private void recordBooked(RouteRequest request, Decision out, Lease lease) {
        if (out.selection().hasSession()) {
            out.selection()
                    .rules()
                    .sessionsOrNull()
                    .booked(
                            request.session(),
                            out.selection().binding(),
                            Selection.binding(out.worker()));
        }
        if (journalOrNull != null) {
            lease.journaled(
                    journalOrNull.journal(), journalOrNull.chosen(request, out), bookings.nowNs());
        }
    }

    /**
     * Chooses a worker for a booking: of several callers at once one has a full worker that is to
     * be tried again, and the others choose anew without it.
     *
     * @return null where the worker is not full
     */
    private BusyProbe choose(RouteRequest request, Decision out) throws RouteException {
        while (true) {
            select(request, out, journalOrNull);
            if (!parts.marks.any()) {
                return null;
            }
            final int slot = out.selection().chosen();
            final long nowNs = bookings.nowNs();
            final long mark = parts.marks.claim(slot, nowNs);
            if (mark == BusyMarks.NONE) {
                return null;
            }
            if (mark != BusyMarks.LOST) {
                return new BusyProbe(parts.marks, slot, mark, nowNs);
            }
        }
    }

    private void book(RouteRequest request, Decision out, Lease lease, BusyProbe probeOrNull)
            throws RouteException {
        boolean booked = false;
        try {
            bookings.book(request, out, lease);
            booked = true;
        } finally {
            if (probeOrNull != null && !booked) {
                probeOrNull.giveBack();
            }
        }
        if (probeOrNull != null) {
            lease.probes(probeOrNull);
        }
    }

    /**
     * Decides and books under an id of the caller's own, by which the booking can be carried on and
     * ended: {@link #markPrefillComplete}, {@link #free}; it becomes the request's {@link
     * RouteRequest#id}. Any thread. Allocates the lease.
     *
     * @param requestId 1 to 1,024 characters; free again when its booking has ended, however
     * @param request the prompt and its overrides
     * @param out filled with the choice and its reasons
     * @return the booking, which also may be closed without the id
     * @throws RouteException if no worker can be chosen, or {@code maxActiveRequests} are booked
     *     already
     * @throws IllegalArgumentException if the id is empty or too long
     * @throws IllegalStateException if a booking of that id is open
     * @throws ClosedException if the router is closed
     */
    public Lease reserve(String requestId, RouteRequest request, Decision out)
            throws RouteException {
        Objects.requireNonNull(request, "request");
        return named.reserve(requestId, lease -> reserve(request.id(requestId), out, lease));
    }

    /**
     * The best worker for a prompt: {@link #select(RouteRequest, Decision)}, which says more and
     * allocates nothing.
     *
     * @param request the prompt and its overrides
     * @return the worker and what it holds
     * @throws RouteException if no worker can be chosen
     * @throws ClosedException if the router is closed
     */
    public BestWorker bestWorker(RouteRequest request) throws RouteException {
        final Decision decision = new Decision();
        select(request, decision);
        return BestWorker.of(decision);
    }

    /**
     * The best worker for a prompt, booked; see {@link #reserve(String, RouteRequest, Decision)}.
     *
     * @param request the prompt and its overrides
     * @param requestId the caller's own id, for {@link #markPrefillComplete} and {@link #free}
     * @return the worker and what it holds
     * @throws RouteException if no worker can be chosen or booked
     * @throws IllegalArgumentException if the id is empty or too long
     * @throws IllegalStateException if a booking of that id is open
     * @throws ClosedException if the router is closed
     */
    public BestWorker bestWorker(RouteRequest request, String requestId) throws RouteException {
        final Decision decision = new Decision();
        reserve(requestId, request, decision);
        return BestWorker.of(decision);
    }

    /**
     * The booking of an id.
     *
     * @param requestId as it was booked
     * @return null where none of that id is open
     */
    public Lease leaseOrNull(String requestId) {
        return named.openOrNull(requestId);
    }

    /**
     * The first output token of a request is there; see {@link Lease#prefillComplete}.
     *
     * @param requestId as it was booked
     * @return false where no booking of that id is open
     */
    public boolean markPrefillComplete(String requestId) {
        final Lease lease = named.openOrNull(requestId);
        if (lease != null) {
            lease.prefillComplete();
        }
        return lease != null;
    }

    /**
     * Releases a booking; see {@link Lease#close}.
     *
     * @param requestId as it was booked
     * @return false where no booking of that id is open
     */
    public boolean free(String requestId) {
        return named.free(requestId);
    }

    /**
     * What the load of each worker would be if a prompt was sent there, for choices of the caller's
     * own: pin the worker then ({@link RouteRequest#pin}). Pure; allocates.
     *
     * @param request the prompt and its overrides
     * @return those of all workers that {@link #select(RouteRequest, Decision)} might choose, in
     *     order of registration; empty where there is none
     * @throws ClosedException if the router is closed
     */
    public List<PotentialLoad> potentialLoads(RouteRequest request) {
        final Decision matched = matched(request);
        selector.narrow(matched.selection());
        return PotentialLoad.of(matched);
    }

    /**
     * Which workers hold how much of a prompt, by their events or by prediction. Pure; allocates.
     *
     * @param request the prompt
     * @return all that hold something, available or not
     * @throws ClosedException if the router is closed
     */
    public PrefixMatches findMatches(RouteRequest request) {
        return PrefixMatches.of(matched(request));
    }

    private Decision matched(RouteRequest request) {
        final Decision out = new Decision();
        begin(request, out);
        matcher.match(request, out.selection());
        return out;
    }

    /**
     * Writes what the workers hold as router events that would build it: a JSON array, one event a
     * line, per worker parents before children. Events are applied meanwhile; what is not reached
     * through its parents any more is left out. One worker's hashes are in memory at a time. The
     * hashes of tokens are public ones where the router is on an event plane, else made with a seed
     * of this router's own.
     *
     * @param out takes it
     * @throws IOException as of {@code out}
     * @throws InterruptedException if the thread is interrupted
     * @throws ClosedException if the router is closed, or is closed meanwhile
     */
    public void dumpEvents(Appendable out) throws IOException, InterruptedException {
        Objects.requireNonNull(out, "out");
        parts.checkOpen();
        dump.write(out);
    }

    /**
     * Whether a booking counts and its prompt is still work to prefill.
     *
     * @param requestId the booking's number: {@link Lease#requestId}
     * @return false once the prompt is computed, as far as is known, or the booking has ended, and
     *     for a number that no booking has
     */
    public boolean isPrefilling(long requestId) {
        return bookings.isPrefilling(requestId);
    }

    /**
     * Notifies a listener of workers that may have room for more requests: whose load has become
     * less, that were registered, removed, or marked (un)available, or whose capacity was set.
     *
     * @param listener called by the thread that makes the change, after it; quick, takes no lock.
     *     What it throws counts in {@link RouterStatus#failures} and changes nothing else
     */
    public void addRoomListener(RoomListener listener) {
        parts.board.addListener(Objects.requireNonNull(listener, "listener"));
    }

    /**
     * Ends its notification.
     *
     * @param listener as it was added; unknown ones are ignored
     */
    public void removeRoomListener(RoomListener listener) {
        parts.board.removeListener(listener);
    }

    int blockSize() {
        return blockSize;
    }

    LoadBoard board() {
        return parts.board;
    }

    /**
     * The journal of the decisions that {@link #reserve} has made, and of requests for which there
     * was no worker: why each went where it did, and what came of it. {@link #select} is not in it,
     * nor is what was refused because too much was booked.
     *
     * @return null where {@link RouterSettings#DECISION_JOURNAL} is 0
     */
    public DecisionJournal journal() {
        return parts.journalOrNull;
    }

    /**
     * Lets time pass: bookings end that have lasted too long ({@link
     * RouterSettings#BOOKING_TIMEOUT}, {@link RouteRequest#deadline}), because their requests hang,
     * predictions end that are too old, and the load of the next 64 workers is compared with what
     * is booked on them. A thread of the router calls it five times a second; with {@link
     * RouterConfig.Builder#tickedBy} the embedder does.
     *
     * <p>The thread that applies bookings does the work, in time proportional to what ends; a
     * booking ends at the first tick that is 1.1 ms or more after its deadline. It is the highest
     * time that was ever ticked that counts: a clock that jumps back ends nothing until it has
     * caught up, whatever the deadlines of the bookings made meanwhile. Never waits. Does nothing
     * once the router is closed.
     *
     * @param nowNs the time by the clock of the deadlines, which is {@link System#nanoTime} where
     *     {@link RouterConfig.Builder#tickedBy} gave no other
     */
    public void tick(long nowNs) {
        if (bookings.tick(nowNs)) {
            registry.tick(nowNs);
            parts.engineLoads.expire(nowNs);
            fillWatch.look(nowNs);
            if (!config.ticksItself()) {
                bookings.watch().look(nowNs);
                stepReplica(nowNs);
            }
        }
        final RouterCounters counters = countersOrNull;
        if (counters != null) {
            counters.write();
        }
    }

    private void stepReplica(long nowNs) {
        final ReplicaSync replica = replicaOrNull;
        if (replica != null) {
            replica.step(nowNs);
        }
    }

    /**
     * What is used of every limit, and what was refused; reads some thirty counters.
     *
     * @return as of now
     */
    public RouterStatus status() {
        final ReplicaSync replica = replicaOrNull;
        return parts.status(
                bookings.forgottenLeases(),
                replica == null ? null : replica.status(),
                planeOrNull == null ? null : planeOrNull.status(),
                rules.get().policy().failures(),
                new RouterStatus.Snapshots(
                        savedOrNull == null ? null : savedOrNull.status(),
                        config.planeStateOrNull() == null
                                ? null
                                : config.planeStateOrNull().status()));
    }

    /**
     * The event plane that workers' events come from, for inspection and metrics.
     *
     * @return the plane; null where the router is on none
     */
    public EventPlane eventPlane() {
        return planeOrNull;
    }

    /**
     * Bookings that their deadline has ended.
     *
     * @return how many since the start
     */
    public long expiredLeases() {
        return parts.active.expiredLeases();
    }

    /**
     * Bookings that are not released yet.
     *
     * @return leases open now
     */
    public int activeLeases() {
        return bookings.open();
    }

    /**
     * Sessions that stay with a worker now; reads every entry of their table.
     *
     * @return 0 where the router does not follow sessions ({@link RouterSettings#SESSION_TTL})
     */
    public int sessions() {
        final SessionAffinity sessions = rules.get().sessionsOrNull();
        return sessions == null ? 0 : sessions.count();
    }

    /**
     * What engines report of their load, for inspection and metrics.
     *
     * @return how many reports there were, by source and outcome
     */
    public LoadCounts loadReports() {
        return parts.engineLoads.counts();
    }

    /**
     * The block index, for inspection and metrics.
     *
     * @return the index; only its any-thread methods may be called
     */
    public PrefixIndex index() {
        return parts.index;
    }

    /**
     * What workers hold below their devices, for inspection and metrics.
     *
     * @return the tiers; only their any-thread methods may be called. Null where none is followed
     */
    public LowerTiers lowerTiersOrNull() {
        return parts.lowerOrNull;
    }

    /**
     * What workers without events are predicted to hold, for inspection and metrics.
     *
     * @return the prefixes; only their any-thread methods may be called. Null when nothing is
     *     predicted
     */
    public PredictedPrefixes routedPrefixes() {
        return parts.predictedOrNull;
    }

    /**
     * The table of bookings, for inspection and metrics.
     *
     * @return the table; only its any-thread methods may be called
     */
    public ActiveRequests activeRequests() {
        return parts.active;
    }

    /**
     * The event pipeline, for inspection and metrics.
     *
     * @return the pipeline
     */
    public IndexPipeline indexPipeline() {
        return parts.indexPipeline;
    }

    /**
     * The pipeline of bookings, for inspection and metrics.
     *
     * @return the pipeline
     */
    public BookingPipeline bookingPipeline() {
        return parts.bookingPipeline;
    }

    /**
     * Closes the router when no booking is left, at the latest after some time: from now on no
     * request is taken, leases end as usual. Waits without a lock; another {@link #close} meanwhile
     * ends the wait, and so does an interrupt: in an interrupted thread it closes at once, whatever
     * is open.
     *
     * @param atMost how long to wait for leases that are open
     * @return leases that were still open at the end: 0 if all had been closed
     */
    public int close(Duration atMost) {
        final long atMostNs = TimeUnit.NANOSECONDS.convert(atMost); // the longest for longer ones
        parts.gate.close();
        final long start = System.nanoTime();
        while (bookings.open() > 0
                && !closed
                && System.nanoTime() - start < atMostNs
                && !Thread.currentThread().isInterrupted()) {
            LockSupport.parkNanos(DRAIN_PAUSE_NS);
        }
        final int open = bookings.open();
        close();
        return open;
    }

    /**
     * Refuses requests from now on, stops the sources and the writers, and gives the off-heap
     * memory back when no caller is inside any more. Any thread, at any time; does not wait for
     * callers, and for a writer in the middle of an event a second at most; where a {@code
     * state-dir} is set, it waits for a last snapshot. What has not been applied yet is not applied
     * any more. All of that in an interrupted thread, too, which is interrupted again afterwards. A
     * second call does nothing.
     *
     * <p>Called by code of a {@link io.kvasir.router.spi.StateStore} on the thread that saves, it
     * refuses requests from now on, and has another thread do the rest: what is being saved is
     * waited for there.
     */
    @Override
    public void close() {
        final StateKeeper keeper = keeperOrNull;
        if (keeper == null || !keeper.isCurrent()) {
            Uninterrupted.run(this::closeParts);
        } else if (!closed) {
            parts.gate.close();
            Thread.ofPlatform().name("kvasir-router-close").start(this::close);
        }
    }

    private synchronized void closeParts() {
        if (closed) {
            return;
        }
        closed = true;
        parts.gate.close();
        // each of them, also when one before it fails: then its error is thrown at the end
        Closing.all(
                keeperOrNull == null ? savedOrNull : keeperOrNull, // saves while all else runs
                config.planeStateOrNull(),
                planeSourceOrNull,
                loadSourceOrNull,
                replicaOrNull == null ? config.replicaLinkOrNull() : replicaOrNull, // has the link
                tickerOrNull,
                watchOrNull,
                countersOrNull == null ? parts.countersOrNull : countersOrNull, // has the file
                registry,
                parts);
    }
}
