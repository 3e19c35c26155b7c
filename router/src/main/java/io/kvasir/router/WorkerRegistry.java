package io.kvasir.router;

import io.kvasir.core.closing.Uninterrupted;
import io.kvasir.core.memory.ClosedException;
import io.kvasir.pipeline.events.KeptSlot;
import io.kvasir.pipeline.source.EngineStream;
import io.kvasir.pipeline.source.EventPlane;
import io.kvasir.pipeline.source.EventSource;
import io.kvasir.pipeline.source.FreshnessLimits;
import io.kvasir.pipeline.source.IndexState;
import io.kvasir.pipeline.source.SourceConfig;
import io.kvasir.pipeline.source.StreamStart;
import io.kvasir.router.replica.ReplicaFleet;
import io.kvasir.router.replica.ReplicaWorker;
import io.kvasir.router.settings.RouterSettings;
import io.kvasir.router.settings.Settings;

import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

import java.time.Duration;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.function.LongSupplier;
import java.util.function.Supplier;

/**
 * The registered workers: gives each a slot and its event source, and takes both back.
 *
 * <p>Any thread. Changes take the lock of this object, under which nothing waits for a writer; the
 * set of workers is read without it.
 */
final class WorkerRegistry implements ReplicaFleet, AutoCloseable {
    private static final Logger LOG = LoggerFactory.getLogger(WorkerRegistry.class);
    private static final long READY_POLL_MS = 1;

    /** How long a new worker may wait for the slot of a removed one to be swept. */
    private static final long SLOT_WAIT_NS = 5_000_000_000L;

    private final Settings settings;
    private final boolean indexed;
    private final RouterParts parts;
    private final SavedPrefixes savedOrNull; // null where nothing is saved
    private final EventPlane planeOrNull; // null where the router is on none
    private final PlaneState planeStateOrNull; // null where nothing of it is saved
    private final LongSupplier clock;
    private final Supplier<RouterRules> rules;
    private final Map<EventPlaneWorker, Worker> onPlane = new ConcurrentHashMap<>();
    private final int blockSize;
    private final long hashSeed;
    private final FreshnessLimits freshness;
    private final WorkerSlots slots;
    private final KeptPrefixes kept;
    private final Map<NamedRank, Worker> named = new HashMap<>(); // guarded by this
    private final Map<Worker, PlaneJoin> joining = new HashMap<>(); // guarded by this
    private final int[] generations; // workers removed so far, per slot; guarded by this
    private volatile WorkerSet workers = WorkerSet.EMPTY;
    private volatile boolean closed;

    /** A worker that joins the plane: its slot is no other's, and is not swept, until it has. */
    private static final class PlaneJoin {
        Runnable sweptOrNull; // what waits for the index to sweep the slot; null: none was removed
    }

    /** By which a worker is registered once. */
    record NamedRank(String name, int dpRank) {
        static NamedRank of(WorkerSpec spec) {
            return new NamedRank(spec.name(), spec.dpRank());
        }

        @Override
        public String toString() {
            return name + "/" + dpRank;
        }
    }

    /**
     * @param rules those that hold now, once there are workers
     */
    WorkerRegistry(
            RouterConfig config,
            RouterParts parts,
            SavedPrefixes savedOrNull,
            EventPlane planeOrNull,
            Supplier<RouterRules> rules) {
        this.parts = parts;
        this.rules = rules;
        settings = config.settings();
        indexed = config.isIndexed();
        this.savedOrNull = savedOrNull;
        this.planeOrNull = planeOrNull;
        planeStateOrNull = config.planeStateOrNull();
        blockSize = config.get(RouterSettings.BLOCK_SIZE);
        clock = config.clock();
        hashSeed = config.hashSeed();
        freshness = RouterConfig.freshness(config.settings());
        slots = new WorkerSlots(parts.board.slots());
        generations = new int[parts.board.slots()];
        kept =
                new KeptPrefixes(
                        parts.indexPipeline,
                        parts.index,
                        planeStateOrNull == null ? planeOrNull : null);
        kept.slots().forEach(slots::keep);
        kept.takeUseless().forEach(this::sweep);
    }

    /**
     * Gives up what an earlier process has left of workers that do not come, and what was concluded
     * of predictions that nothing confirms. Event sources have ticks of their own.
     */
    void tick(long nowNs) {
        final List<KeptSlot> overdue = kept.takeOverdue(nowNs);
        for (int i = 0; i < overdue.size(); i++) { // a tick allocates nothing
            giveUp(overdue.get(i));
        }
        final WorkerSet now = workers;
        for (int slot = 0; parts.predictedOrNull != null && slot < now.slotEnd(); slot++) {
            final Worker worker = now.at(slot);
            if (worker != null) {
                worker.expireHits();
            }
        }
    }

    /** In this order: what the plane leaves out of the worker must not be missing in its slot. */
    private void giveUp(KeptSlot overdue) {
        sweep(overdue.slot());
        kept.isSwept(overdue);
    }

    /** The workers that are registered now. */
    WorkerSet current() {
        return workers;
    }

    /** See {@link KvRouter#addWorker}. */
    Worker add(WorkerSpec given) {
        final WorkerSpec spec = indexed ? given : given.withoutEvents();
        checkNew(spec);
        if (spec.events() != null) {
            parts.indexPipeline.checkZmq(spec.events()); // before what was kept or saved is used up
        }
        final KeptTenant tenant = tenantOrNull(spec);
        final KeptSlot mine = tenant == null ? null : kept.take(tenant);
        final Worker worker = give(spec, mine);
        if (spec.planeOrNull() != null) {
            try {
                joinPlane(worker, spec.planeOrNull(), tenant, mine);
            } catch (Throwable t) {
                takeOutAndSweep(worker);
                throw t;
            } finally {
                joined(worker);
            }
        }
        return worker;
    }

    /** What a worker's slot is known by after a restart; null where it is not. */
    private KeptTenant tenantOrNull(WorkerSpec spec) {
        if (spec.events() != null) {
            return KeptTenant.of(NamedRank.of(spec));
        }
        return spec.planeOrNull() != null && planeStateOrNull == null && planeOrNull.isKeeping()
                ? KeptTenant.of(spec.planeOrNull())
                : null;
    }

    private Worker give(WorkerSpec spec, KeptSlot mine) {
        final int slot = mine == null ? takeSlot() : mine.slot();
        if (slot < 0) {
            throw new IllegalStateException(
                    "no slot left for worker "
                            + spec.name()
                            + ": max-workers="
                            + slots.count()
                            + "; raise max-workers");
        }
        try {
            return register(spec, slot, spec.events() == null ? null : start(spec, slot, mine));
        } catch (Throwable t) {
            parts.board.open(slot, false);
            sweep(slot);
            if (mine != null) {
                kept.isSwept(mine);
            }
            throw t;
        }
    }

    private StreamStart start(WorkerSpec spec, int slot, KeptSlot mine) {
        return mine == null ? restore(spec, slot) : goOn(spec, mine);
    }

    private void joinPlane(
            Worker worker, EventPlaneWorker named, KeptTenant tenantOrNull, KeptSlot mine) {
        joinPlane(
                worker,
                named,
                mine == null
                        ? restorePlane(worker, named)
                        : new PlaneState.Restored(kept.start(tenantOrNull, mine), kept.seen(mine)));
        if (mine == null && tenantOrNull != null) {
            label(worker, tenantOrNull);
        }
    }

    /** Without the lock: the plane's is held while the index's ring is full. */
    private void joinPlane(Worker worker, EventPlaneWorker named, PlaneState.Restored restored) {
        final EngineStream stream =
                openDirect(
                        worker,
                        SourceConfig.ofRouterEvents(worker.name(), worker.slot(), blockSize)
                                .withDpRank(named.dpRank()),
                        restored == null ? null : restored.start());
        try {
            planeOrNull.register(
                    named.workerId(),
                    named.dpRank(),
                    stream,
                    restored == null ? null : restored.seen());
        } catch (IllegalArgumentException e) {
            stream.close();
            throw e;
        }
        worker.joinedPlane();
        onPlane.put(named, worker);
    }

    /** See {@link KvRouter#rejoinPlane}. */
    void rejoinPlane(Worker worker) throws InterruptedException {
        final EventPlaneWorker named = worker.planeOrNull();
        if (named == null || planeStateOrNull == null || !beginJoin(worker)) {
            return;
        }
        try {
            planeOrNull.remove(
                    named.workerId(), named.dpRank()); // and remembers that it has spoken
            emptyAndJoin(worker, named);
        } finally {
            joined(worker);
        }
    }

    private void emptyAndJoin(Worker worker, EventPlaneWorker named) throws InterruptedException {
        try {
            empty(worker.slot());
        } finally {
            joinAgain(worker, named);
        }
    }

    /** Interrupted or not: what is restored before would be swept with the rest. */
    private void empty(int slot) throws InterruptedException {
        final CountDownLatch swept = new CountDownLatch(1);
        parts.indexPipeline.retire(slot, swept::countDown);
        Uninterrupted.call(
                () -> {
                    while (!swept.await(READY_POLL_MS, TimeUnit.MILLISECONDS)) {
                        checkOpen(); // a closed router sweeps nothing
                    }
                    return swept;
                });
        if (Thread.interrupted()) {
            throw new InterruptedException();
        }
    }

    /** Whatever becomes of what is saved: a worker that is off the plane would not come back. */
    private void joinAgain(Worker worker, EventPlaneWorker named) throws InterruptedException {
        PlaneState.Restored restored = null;
        try {
            restored = restoreOrEmpty(worker, named);
        } finally {
            try {
                joinPlane(worker, named, restored);
            } catch (IllegalArgumentException | ClosedException e) {
                takeOutAndSweep(worker); // it was removed meanwhile, or all were
            }
        }
    }

    /** Null where nothing is saved, or restoring it failed: then the slot is empty again. */
    private PlaneState.Restored restoreOrEmpty(Worker worker, EventPlaneWorker named)
            throws InterruptedException {
        try {
            return restorePlane(worker, named);
        } catch (RuntimeException | Error e) { // of an embedder's state, or of the memory it needs
            if (parts.gate.isClosed()) {
                return null; // which may be why, and nothing joins any more
            }
            LOG.error(
                    "worker {} joins the event plane without what was saved of it, which cannot be"
                            + " restored",
                    worker,
                    e);
            empty(worker.slot());
            return null;
        }
    }

    /** Waits until the worker joins no more; false if it is not registered (any more). */
    private synchronized boolean beginJoin(Worker worker) throws InterruptedException {
        while (joining.containsKey(worker)) {
            wait();
        }
        if (workers.at(worker.slot()) != worker) {
            return false;
        }
        joining.put(worker, new PlaneJoin());
        return true;
    }

    /** From here on the slot of one that was removed meanwhile may be swept, and be another's. */
    private void joined(Worker worker) {
        final PlaneJoin join;
        synchronized (this) {
            join = joining.remove(worker);
            notifyAll();
        }
        if (join.sweptOrNull != null) {
            retire(worker.slot(), join.sweptOrNull);
        }
        if (worker.isRemoved()) {
            end(worker);
        }
    }

    /** Null where nothing was restored. */
    private PlaneState.Restored restorePlane(Worker worker, EventPlaneWorker named) {
        if (planeStateOrNull != null) {
            return planeStateOrNull.restore(named, worker.slot(), parts.indexPipeline, parts.index);
        }
        return savedOrNull == null || planeOrNull.keptBeforeOrNull() == null
                ? null
                : savedOrNull.restore(
                        named,
                        planeOrNull.keptBeforeOrNull().store(),
                        worker.slot(),
                        parts.indexPipeline,
                        parts.index);
    }

    /**
     * After the registration at the plane: it has taken back by then what it could not say of this
     * worker. Nothing if the worker was removed meanwhile.
     */
    private synchronized void label(Worker worker, KeptTenant tenant) {
        if (workers.at(worker.slot()) == worker) {
            kept.tenant(worker.slot(), tenant);
        }
    }

    private void leavePlane(Worker worker) {
        final EventPlaneWorker named = worker.planeOrNull();
        if (named != null && onPlane.remove(named, worker)) {
            planeOrNull.remove(named.workerId(), named.dpRank());
        }
    }

    /**
     * The worker that is called so on the event plane. Takes no lock.
     *
     * @return null where there is none
     */
    Worker onPlaneOrNull(long workerId, int dpRank) {
        return onPlane.get(new EventPlaneWorker(workerId, dpRank));
    }

    private int takeSlot() {
        if (!slots.hasNext()) {
            final KeptSlot givenUp = kept.giveUp();
            if (givenUp != null) {
                giveUp(givenUp);
            }
        }
        return slots.take(SLOT_WAIT_NS);
    }

    /** The blocks are there; those of a snapshot are older, or the file would not be used. */
    private StreamStart goOn(WorkerSpec spec, KeptSlot mine) {
        if (savedOrNull != null) {
            savedOrNull.forget(NamedRank.of(spec));
        }
        return kept.start(KeptTenant.of(NamedRank.of(spec)), mine);
    }

    /** Without the lock: waits for the index writer. Null where nothing was restored. */
    private StreamStart restore(WorkerSpec spec, int slot) {
        return savedOrNull == null
                ? null
                : savedOrNull.restore(NamedRank.of(spec), slot, parts.indexPipeline, parts.index);
    }

    /** See {@link KvRouter#checkWorker}. */
    void check(WorkerSpec given, Set<String> adapters) {
        final WorkerSpec spec = indexed ? given : given.withoutEvents();
        checkUsable(spec);
        WorkerMarks.checkNames(NamedRank.of(spec), adapters);
        final Worker other = spec.planeOrNull() == null ? null : onPlane.get(spec.planeOrNull());
        if (other != null && !other.name().equals(spec.name())) {
            throw isOnPlane(other);
        }
        if (spec.events() != null) {
            parts.indexPipeline.checkZmq(spec.events());
        }
    }

    private void checkUsable(WorkerSpec spec) {
        checkOpen();
        if (spec.events() != null) {
            checkBlockSize(spec.events());
        }
        if (spec.planeOrNull() != null && planeOrNull == null) {
            throw new IllegalArgumentException(
                    "worker "
                            + spec.name()
                            + " is "
                            + spec.planeOrNull()
                            + " on an event plane, and the router is on none; set event-plane");
        }
    }

    private synchronized void checkNew(WorkerSpec spec) {
        checkUsable(spec);
        final Worker other = named.get(NamedRank.of(spec));
        if (other != null) {
            throw new IllegalArgumentException("worker " + other + " is registered already");
        }
        final Worker same = spec.planeOrNull() == null ? null : onPlane.get(spec.planeOrNull());
        if (same != null && !same.isRemoved()) {
            throw isOnPlane(same);
        }
    }

    private static IllegalArgumentException isOnPlane(Worker worker) {
        return new IllegalArgumentException(
                "worker " + worker + " is " + worker.planeOrNull() + " on the event plane");
    }

    private synchronized Worker register(WorkerSpec spec, int slot, StreamStart startOrNull) {
        checkNew(spec); // again: the wait was without the lock
        parts.board.clearReport(slot); // loads under way take themselves back
        if (spec.events() != null) {
            kept.tenant(slot, KeptTenant.of(NamedRank.of(spec)));
        }
        final EventSource source =
                spec.events() == null
                        ? null
                        : parts.indexPipeline.openZmq(
                                ofThisRouter(spec.events(), slot), startOrNull);
        Worker worker = null;
        try {
            worker =
                    new Worker(
                            spec,
                            slot,
                            generations[slot],
                            parts,
                            clock,
                            parts.predictedOrNull == null
                                    ? IndexState.DEGRADED
                                    : IndexState.PREDICTED,
                            new EngineHits(rules, blockSize, clock));
            worker.source(source);
            parts.workerMarks.join(worker);
            workers = workers.with(worker);
            named.put(NamedRank.of(spec), worker);
            if (spec.planeOrNull() != null) {
                joining.put(worker, new PlaneJoin());
            }
            parts.board.roomMayBe(slot); // again: when it was opened, no set had it
            return worker;
        } catch (Throwable t) {
            if (worker != null) {
                parts.workerMarks.leave(worker);
            }
            if (source != null) {
                source.close();
            }
            throw t;
        }
    }

    /** See {@link KvRouter#openDirect}. */
    synchronized EngineStream openDirect(
            Worker worker, SourceConfig source, StreamStart startOrNull) {
        checkOpen();
        if (!indexed) {
            throw new IllegalStateException(
                    "the router takes no events, as it keeps no index: "
                            + RouterConfig.whyNoIndex(settings)
                            + "; set prefix-index=on");
        }
        checkBlockSize(source);
        if (workers.at(worker.slot()) != worker) {
            throw new IllegalArgumentException(
                    "worker " + worker + " is not registered; it may have been removed");
        }
        final EventSource before = worker.source();
        if (before != null) {
            before.close();
        }
        final EngineStream stream =
                parts.indexPipeline.openDirect(ofThisRouter(source, worker.slot()), startOrNull);
        worker.source(stream);
        return stream;
    }

    /** What the router decides of a source; its limits of staleness only where it has none. */
    private SourceConfig ofThisRouter(SourceConfig source, int slot) {
        final SourceConfig own = source.withSlot(slot).withHashSeed(hashSeed);
        return own.freshness().equals(FreshnessLimits.DEFAULT) ? own.withFreshness(freshness) : own;
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

    /** See {@link KvRouter#removeWorker}. */
    void remove(Worker worker) {
        if (takeOutAndSweep(worker)) {
            end(worker);
        }
    }

    /** Ends its events; called once more for one that joined the plane meanwhile. */
    private void end(Worker worker) {
        leavePlane(worker);
        final EventSource source = worker.source();
        if (source != null) {
            source.close(); // may wait; what it still sends is of an earlier slot generation
        }
    }

    /** The index sweeps the slot of one that joins the plane only then: something is put there. */
    private boolean takeOutAndSweep(Worker worker) {
        if (!takeOut(worker)) {
            return false;
        }
        final Runnable swept = sweepBookings(worker.slot());
        synchronized (this) {
            final PlaneJoin join = joining.get(worker);
            if (join != null) {
                join.sweptOrNull = swept;
                return true;
            }
        }
        retire(worker.slot(), swept);
        return true;
    }

    private synchronized boolean takeOut(Worker worker) {
        if (workers.at(worker.slot()) != worker) {
            return false;
        }
        workers = workers.without(worker);
        named.remove(new NamedRank(worker.name(), worker.dpRank()));
        worker.leaveSlot();
        parts.workerMarks.leave(worker);
        return true;
    }

    /**
     * Has both writers sweep a slot; the next worker gets it then. Without the lock: the booking
     * ring is waited for when it is full, and until the slot is swept it has no other worker.
     */
    private void sweep(int slot) {
        retire(slot, sweepBookings(slot));
    }

    private Runnable sweepBookings(int slot) {
        synchronized (this) {
            generations[slot]++;
        }
        final Runnable swept = slots.sweep(slot, indexed ? 2 : 1);
        parts.bookingPipeline.workerGone(slot, swept);
        return swept;
    }

    private void retire(int slot, Runnable swept) {
        if (!indexed) {
            return;
        }
        try {
            parts.indexPipeline.retire(slot, swept);
        } catch (ClosedException e) {
            // the router was closed meanwhile, and no slot is given out any more
        }
    }

    @Override
    public ReplicaFleet.Slot find(ReplicaWorker named) {
        for (Worker worker : workers.workers()) {
            final boolean same =
                    named.isNamed()
                            ? worker.name().equals(named.name())
                            : worker.id() == named.id();
            if (same && worker.dpRank() == named.dpRank()) {
                return new ReplicaFleet.Slot(
                        worker.slot(),
                        worker.slotGeneration(),
                        worker.state() == IndexState.PREDICTED);
            }
        }
        return null;
    }

    @Override
    public boolean isPredicted(ReplicaFleet.Slot slot) {
        final Worker worker = tenantOrNull(slot.slot(), slot.slotGeneration());
        return worker != null && worker.state() == IndexState.PREDICTED;
    }

    @Override
    public ReplicaWorker at(int slot, int slotGeneration) {
        final Worker worker = tenantOrNull(slot, slotGeneration);
        return worker == null
                ? null
                : new ReplicaWorker(worker.id(), worker.name(), worker.dpRank());
    }

    private Worker tenantOrNull(int slot, int slotGeneration) {
        final Worker worker = workers.at(slot);
        return worker != null && worker.slotGeneration() == slotGeneration ? worker : null;
    }

    @Override
    public Object version() {
        return workers;
    }

    /** See {@link KvRouter#awaitReady}. */
    boolean awaitReady(Duration limit) throws InterruptedException {
        final long limitNs = TimeUnit.NANOSECONDS.convert(limit); // the longest for longer ones
        final long start = System.nanoTime();
        for (Worker worker : workers.workers()) {
            while (!worker.ready()) {
                checkOpen();
                if (System.nanoTime() - start >= limitNs) {
                    return false;
                }
                Thread.sleep(READY_POLL_MS);
            }
        }
        checkOpen(); // a closed router has no workers that are not ready
        return true;
    }

    private void checkOpen() {
        if (closed) {
            throw new ClosedException(RouterParts.NAME);
        }
    }

    /** Takes all workers out, and closes their sources. */
    @Override
    public synchronized void close() {
        closed = true;
        slots.close();
        for (Worker worker : workers.workers()) {
            worker.markRemoved();
            final EventSource source = worker.source();
            if (source != null) {
                source.close();
            }
        }
        workers = WorkerSet.EMPTY;
        named.clear();
    }
}
