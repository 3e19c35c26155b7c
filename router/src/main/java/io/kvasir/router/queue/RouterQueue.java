package io.kvasir.router.queue;

import io.kvasir.pipeline.log.LogLimit;
import io.kvasir.router.Decision;
import io.kvasir.router.KvRouter;
import io.kvasir.router.Lease;
import io.kvasir.router.RouteException;
import io.kvasir.router.RouteRequest;
import io.kvasir.router.queue.WaitingRoom.Left;
import io.kvasir.router.settings.RouterSettings;
import io.kvasir.router.settings.Settings;

import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

import java.util.ArrayList;
import java.util.List;
import java.util.Objects;
import java.util.concurrent.ArrayBlockingQueue;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.atomic.LongAdder;
import java.util.concurrent.locks.ReentrantLock;
import java.util.function.Consumer;
import java.util.function.LongSupplier;

/**
 * Books requests on a router's workers as {@link KvRouter#reserve} does, but lets those wait that
 * no worker has room for by {@link RouterSettings#QUEUE_THRESHOLD} and {@link
 * RouterSettings#QUEUE_PREFILL_TOKENS}, in the order of {@link QueueRank} and {@link
 * RouterSettings#QUEUE_POLICY}, and those whose uncached prefix another one is computing by {@link
 * RouterSettings#SINGLE_FLIGHT}. Bounded in requests, in tokens and in time.
 *
 * <p>All methods may be called by any thread, {@link #close} too, at any time; none waits. A
 * request is booked on the caller's thread where no request is before it and a worker has room,
 * else later on a thread of the queue, which checks whenever a worker's load has become less. While
 * a queue is limited, its bookings are made one after the other, so that as many do not find the
 * same room.
 *
 * <p>The settings of {@code queue-} and {@code single-flight} are live: limits hold for what comes
 * after a change, what waits stays, in the order that is set now. One try to book goes by one set
 * of them; what waits for a prompt goes on at once where that is switched off.
 *
 * <p>What a router books beside its queue ({@link KvRouter#reserve}) counts as load and does not
 * wait.
 */
public final class RouterQueue implements AutoCloseable {
    private static final Logger LOG = LoggerFactory.getLogger(RouterQueue.class);

    /** Something of which no signal comes is found after this time. */
    private static final long RECHECK_NS = 200_000_000;

    private static final int KEPT_SCRATCHES = 64;
    private static final int SPINS = 200;

    /** What one try to book needs. */
    private static final class Scratch {
        private final RouteRequest request;
        private final Decision decision = new Decision();
        private final PrefixFlights.Look look = new PrefixFlights.Look();
        private long beginNs; // of the last one
        private Lease lease; // of the last one that was booked
        private Exception failure; // of the last one that was not
        private RouteException noRoom; // the same where it may wait

        Scratch(RouteRequest request) {
            this.request = request;
        }
    }

    /** What came of one. */
    private enum Outcome {
        BOOKED,
        NO_ROOM,
        FOLLOWS,
        FAILED
    }

    private final KvRouter router;
    private final LongSupplier clock;
    private final LogLimit failureLines = new LogLimit();
    private final int blockSize;
    private final WaitingRoom room;
    private final PrefixFlights flights;
    private final ReentrantLock tries = new ReentrantLock();
    private final ReentrantLock steps = new ReentrantLock();
    private final RoomSignals signals;
    private final QueueThread threadOrNull; // null where the embedder steps
    private final ArrayBlockingQueue<Scratch> scratches = new ArrayBlockingQueue<>(KEPT_SCRATCHES);
    private final LongAdder admitted = new LongAdder();
    private final LongAdder waited = new LongAdder();
    private final LongAdder followed = new LongAdder();
    private final long recheckNs;
    private final long startNs;
    private volatile Settings known; // those of the rules; written under this
    private long recheckedNs; // by the thread that steps
    private volatile boolean closed;

    private RouterQueue(KvRouter router, LongSupplier clock, boolean stepsItself, long recheckNs) {
        this.recheckNs = recheckNs;
        this.router = Objects.requireNonNull(router, "router");
        this.clock = Objects.requireNonNull(clock, "clock");
        final Settings settings = router.settings();
        blockSize = settings.get(RouterSettings.BLOCK_SIZE);
        startNs = clock.getAsLong();
        recheckedNs = startNs;
        known = settings;
        room = new WaitingRoom(QueueRules.of(settings, startNs));
        flights = new PrefixFlights(router, room.rules().flights());
        threadOrNull = stepsItself ? new QueueThread(this::stepOnce) : null;
        signals =
                new RoomSignals(
                        settings.get(RouterSettings.MAX_WORKERS),
                        () -> room.count() > 0,
                        this::wake);
    }

    /**
     * Whether a queue would do anything that {@link KvRouter#reserve} does not.
     *
     * @param settings of the router
     * @return true where requests may wait, or follow another one
     */
    public static boolean isNeeded(Settings settings) {
        return hasThreshold(settings) || FlightRules.of(settings).isOn();
    }

    /**
     * Whether requests wait while no worker has room.
     *
     * @param settings of the router
     * @return false where they wait for the prompts of others at most
     */
    public static boolean hasThreshold(Settings settings) {
        return QueueRules.isLimited(settings);
    }

    /**
     * Starts a queue with a thread of its own, and {@link System#nanoTime} as its clock.
     *
     * @param router whose workers are booked, by whose settings; close it after the queue
     * @return the queue
     */
    public static RouterQueue start(KvRouter router) {
        return start(router, RECHECK_NS);
    }

    /**
     * @param recheckNs after which it checks although there was no signal
     */
    static RouterQueue start(KvRouter router, long recheckNs) {
        final RouterQueue queue = new RouterQueue(router, System::nanoTime, true, recheckNs);
        router.addRoomListener(queue.signals);
        queue.threadOrNull.start();
        return queue;
    }

    /**
     * Makes a queue that the embedder {@link #step steps}, as a router with {@code tickedBy}.
     *
     * @param router whose workers are booked, by whose settings; close it after the queue
     * @param nanoClock the time of arrivals and deadlines
     * @return the queue
     */
    public static RouterQueue steppedBy(KvRouter router, LongSupplier nanoClock) {
        final RouterQueue queue = new RouterQueue(router, nanoClock, false, RECHECK_NS);
        router.addRoomListener(queue.signals);
        return queue;
    }

    /**
     * Books a request, at once or later, or refuses it.
     *
     * @param request what is to be booked, and takes the outcome
     * @param rank how it stands among those that wait
     * @return the caller's hold on it, by which it is given up
     */
    public QueueTicket admit(QueuedRequest request, QueueRank rank) {
        Objects.requireNonNull(request, "request");
        Objects.requireNonNull(rank, "rank");
        final Scratch scratch = takeScratch();
        try {
            return admit(request, rank, scratch);
        } finally {
            giveBack(scratch);
        }
    }

    /**
     * Books a request, at once or later. A future that is cancelled, or completed from outside,
     * gives the request up; a lease that it cannot take any more is closed.
     *
     * @param fill sets the prompt and its overrides; called for each try
     * @param rank how it stands among those that wait
     * @return completed with the booking, or with a {@link QueueException}, a {@link
     *     RouteException} or what {@code fill} threw, as {@link QueuedRequest#refused} says; on the
     *     thread that books
     */
    @SuppressWarnings("FutureReturnValueIgnored") // the caller cancels the one it is given
    public CompletableFuture<Lease> admit(Consumer<RouteRequest> fill, QueueRank rank) {
        Objects.requireNonNull(fill, "fill");
        final CompletableFuture<Lease> lease = new CompletableFuture<>();
        final QueueTicket ticket = admit(new FutureLease(fill, lease), rank);
        lease.whenComplete((_, _) -> ticket.cancel());
        return lease;
    }

    private record FutureLease(Consumer<RouteRequest> fill, CompletableFuture<Lease> outcome)
            implements QueuedRequest {
        @Override
        public void fill(RouteRequest request) {
            fill.accept(request);
        }

        @Override
        public void admitted(Lease lease, Decision decision, long waitedNs) {
            if (!outcome.complete(lease)) {
                lease.close();
            }
        }

        @Override
        public void refused(Exception why) {
            outcome.completeExceptionally(why);
        }
    }

    /** Takes what the router's settings say of the queue by now. */
    private void lookAtSettings() {
        if (router.settings() != known) {
            settingsChanged();
        }
    }

    private synchronized void settingsChanged() {
        final Settings now = router.settings(); // under the lock: the last ones are taken last
        if (now != known) {
            final QueueRules rules = QueueRules.of(now, startNs);
            flights.change(rules.flights()); // first: what is tried by the new ones is led
            room.change(rules);
            known = now;
            wake(); // what waits may have room by them
        }
    }

    private QueueTicket admit(QueuedRequest request, QueueRank rank, Scratch scratch) {
        lookAtSettings();
        final QueueRules rules = room.rules();
        final long nowNs = clock.getAsLong();
        final RouteRequest route = scratch.request.reset();
        Exception failure = null;
        try {
            request.fill(route);
        } catch (Throwable e) { // also checked ones that are not declared
            failure = asException(e);
        }
        final Entry entry =
                new Entry(
                        room,
                        request,
                        rank,
                        route.reach(),
                        route.tokenCount(),
                        nowNs,
                        room.nextNumber());
        if (failure != null) {
            refuse(entry, failure);
        } else if (rank.isOver(nowNs)) {
            refuse(entry, room.expiry(entry, nowNs));
        } else if (!closed && room.isFree(entry.reach) && mayTry(rules)) {
            conclude(entry, scratch, tried(entry, scratch, rules));
        } else {
            measure(entry, scratch, rules);
            enter(entry);
        }
        return entry;
    }

    /** Whether this thread may try to book by itself; then it has the lock, or none is needed. */
    private boolean mayTry(QueueRules rules) {
        if (rules.limited() || rules.flights().isWaiting()) {
            return tries.tryLock(); // else the queue's thread does it, so that no caller waits
        }
        for (int i = 0; i < SPINS && !tries.tryLock(); i++) {
            Thread.onSpinWait(); // two prompts at once are at worst computed twice
        }
        return true;
    }

    private Outcome tried(Entry entry, Scratch scratch, QueueRules rules) {
        try {
            final Outcome outcome = tryToBook(entry, scratch, rules);
            if (outcome == Outcome.NO_ROOM) {
                if (scratch.noRoom.kind() == RouteException.Kind.OVERLOADED) {
                    measure(entry, scratch, rules); // it was not matched
                } else {
                    entry.measured(uncached(scratch.request));
                }
            }
            return outcome;
        } finally {
            if (tries.isHeldByCurrentThread()) {
                tries.unlock();
            }
        }
    }

    /** Finds out how much there is to compute, where that decides which request is next. */
    private void measure(Entry entry, Scratch scratch, QueueRules rules) {
        if (rules.sizes()) {
            try {
                router.peek(scratch.request, scratch.decision);
            } catch (Throwable e) {
                // it was matched, or will be refused when it is tried
            }
            entry.measured(uncached(scratch.request));
        }
    }

    private int uncached(RouteRequest route) {
        return uncached(route, route.deepestOverlap());
    }

    private int uncached(RouteRequest route, int cachedBlocks) {
        return Math.max(0, route.tokenCount() - cachedBlocks * blockSize);
    }

    /** What is left to compute of one that was matched, once what it follows is. */
    private int leftBy(PrefixFlights.Look look, RouteRequest route) {
        return uncached(route, Math.max(route.deepestOverlap(), look.depth));
    }

    /** Tries to book an entry, by the one thread that may. */
    private Outcome tryToBook(Entry entry, Scratch scratch, QueueRules rules) {
        final long nowNs = clock.getAsLong();
        final boolean limited = rules.limited();
        final RouteRequest route = scratch.request.reset();
        scratch.beginNs = nowNs;
        scratch.failure = null;
        scratch.lease = null;
        scratch.look.clear();
        try {
            entry.request.fill(route);
            if (rules.flights().isOn() && follows(entry, scratch, rules.flights(), nowNs)) {
                return Outcome.FOLLOWS;
            }
            scratch.lease = new Lease();
            router.reserve(route.onlyWithRoom(limited), scratch.decision, scratch.lease);
            if (scratch.look.ahead != null) {
                scratch.look.ahead.followedBy(scratch.lease);
            }
            if (scratch.look.isLong()) {
                flights.lead(route, scratch.lease, scratch.look, nowNs);
                wake(); // that the flight is forgotten in time
            }
            return Outcome.BOOKED;
        } catch (RouteException e) {
            scratch.failure = e;
            scratch.noRoom = e;
            return limited && mayPass(e.kind()) ? Outcome.NO_ROOM : Outcome.FAILED;
        } catch (Throwable e) { // else it would be tried again and again, before all others
            scratch.failure = asException(e);
            if (scratch.lease != null) {
                scratch.lease.close(); // where it was booked, and what came after that failed
            }
            return Outcome.FAILED;
        }
    }

    private static Exception asException(Throwable thrown) {
        return thrown instanceof Exception exception
                ? exception
                : new IllegalStateException(
                        "an error was thrown when the request was tried", thrown);
    }

    /** Whether an entry has to wait for another one's prompt; if not, it may be drawn to it. */
    private boolean follows(Entry entry, Scratch scratch, FlightRules rules, long nowNs) {
        final PrefixFlights.Look look = scratch.look;
        flights.look(scratch.request, scratch.decision, rules.stride(), nowNs, look);
        if (look.ahead == null) {
            return false;
        }
        final boolean computing = look.ahead.phase(nowNs) == Flight.Phase.COMPUTING;
        if (rules.isWaiting()
                && computing
                && !look.isCached
                && (entry.followsUntilNs == 0 || nowNs - entry.followsUntilNs < 0)) {
            return true;
        }
        if (computing || look.ahead.countsAsPrefill()) {
            scratch.request.assumeComputing(look.ahead.worker, look.depth);
        } else if (look.ahead.isInUse()) {
            scratch.request.assumeInUse(look.ahead.worker, look.depth);
        } else {
            scratch.request.assumeHeld(look.ahead.worker, look.depth);
        }
        if (entry.followsUntilNs == 0 && !look.isCached) {
            followed.increment();
        }
        return false;
    }

    private static boolean mayPass(RouteException.Kind kind) {
        return switch (kind) {
            case NO_ROOM, ALL_WORKERS_BUSY, OVERLOADED -> true;
            case NO_WORKERS,
                    ALL_EXCLUDED,
                    NONE_ELIGIBLE,
                    NO_ADAPTER,
                    NONE_SUITABLE,
                    PINNED_UNAVAILABLE,
                    INVALID ->
                    false;
        };
    }

    private void conclude(Entry entry, Scratch scratch, Outcome outcome) {
        switch (outcome) {
            case BOOKED -> book(entry, scratch);
            case FAILED -> refuse(entry, scratch.failure);
            case FOLLOWS ->
                    follow(entry, scratch.look.ahead, leftBy(scratch.look, scratch.request));
            case NO_ROOM -> {
                if (!entry.entered) {
                    enter(entry);
                } else {
                    room.noRoom(entry, scratch.noRoom.isOwn());
                }
            }
        }
    }

    private void book(Entry entry, Scratch scratch) {
        final Lease lease = scratch.lease;
        scratch.lease = null;
        if (!entry.settle()) {
            lease.close(); // given up in this moment
            return;
        }
        long waitedNs = 0;
        admitted.increment();
        if (entry.entered) {
            waited.increment();
            room.departed(entry, clock.getAsLong());
            waitedNs = scratch.beginNs - entry.arrivedNs;
        }
        try {
            entry.request.admitted(lease, scratch.decision, waitedNs);
        } catch (Throwable e) { // also a checked one that is not declared
            failed("admitted", e);
            lease.close();
        }
    }

    private void refuse(Entry entry, Exception why) {
        if (entry.settle()) {
            room.failed(entry);
            refused(entry, why);
        }
    }

    private void refused(Entry entry, Exception why) {
        try {
            entry.request.refused(why);
        } catch (Throwable e) {
            failed("refused", e);
        }
    }

    private void failed(String how, Throwable error) {
        final String more = failureLines.take(System.nanoTime());
        if (more != null) {
            LOG.error("a request that was {} failed{}", how, more, error);
        }
    }

    private void refuseAll(List<Left> left) {
        left.forEach(one -> refused(one.entry(), one.why()));
    }

    private void enter(Entry entry) {
        final List<Left> gaveWay = new ArrayList<>(0);
        final QueueException full = room.enter(entry, gaveWay);
        entered(entry, full, gaveWay);
    }

    private void follow(Entry entry, Flight flight, int uncachedTokens) {
        if (entry.followsUntilNs == 0) {
            followed.increment();
        }
        final List<Left> gaveWay = new ArrayList<>(0);
        final QueueException full =
                room.follow(entry, flight, uncachedTokens, clock.getAsLong(), gaveWay);
        signals.set(flight.worker.slot()); // it may have ended before this one followed
        entered(entry, full, gaveWay);
    }

    private void entered(Entry entry, QueueException full, List<Left> gaveWay) {
        refuseAll(gaveWay);
        if (full == null) {
            wake(); // room that came before it waited is found then
        } else {
            refuse(entry, full);
        }
    }

    private void wake() {
        if (threadOrNull != null) {
            threadOrNull.wake();
        }
    }

    /**
     * Books those that have room now and refuses those that have waited too long; for embedders
     * that step the queue: after load has become less, and some times a second. Does nothing while
     * another thread does it, or once it is closed.
     */
    public void step() {
        stepOnce();
    }

    /** Answers how long nothing is to be done, if no signal comes. */
    private long stepOnce() {
        if (closed || !steps.tryLock()) {
            return recheckNs;
        }
        try {
            return stepAlone();
        } finally {
            steps.unlock();
        }
    }

    private long stepAlone() {
        lookAtSettings();
        final long beginNs = clock.getAsLong();
        signals.take(
                slot -> {
                    room.roomAt(slot);
                    room.landAt(slot, beginNs); // after the load: they are not to see the old one
                });
        if (beginNs - recheckedNs >= recheckNs) {
            recheckedNs = beginNs;
            room.roomAnywhere(beginNs);
            flights.tidy(beginNs);
        }
        room.land(beginNs);
        refuseAll(room.expired(beginNs));
        for (Entry next = room.nextOrNull(); next != null && !closed; next = room.nextOrNull()) {
            tryNext(next);
            refuseAll(room.expired(clock.getAsLong()));
        }
        if (room.count() == 0) {
            return flights.count() > 0 ? recheckNs : Long.MAX_VALUE;
        }
        return Math.min(recheckNs, room.nextDueNs() - clock.getAsLong());
    }

    private void tryNext(Entry next) {
        final Scratch scratch = takeScratch();
        try {
            final Outcome outcome;
            tries.lock();
            try {
                if (!next.isWaiting()) {
                    room.failed(next); // given up in this moment, by a thread that may be slow
                    return;
                }
                outcome = tryToBook(next, scratch, room.rules());
            } finally {
                tries.unlock();
            }
            conclude(next, scratch, outcome);
        } finally {
            giveBack(scratch);
        }
    }

    private Scratch takeScratch() {
        final Scratch kept = scratches.poll();
        return kept == null ? new Scratch(router.newRequest()) : kept;
    }

    private void giveBack(Scratch scratch) {
        scratch.request.reset();
        scratch.look.clear();
        scratches.offer(scratch);
    }

    /**
     * What waits and what became of what did.
     *
     * @return as of now
     */
    public QueueStatus status() {
        return room.status(
                clock.getAsLong(),
                admitted.sum(),
                waited.sum(),
                flights.led(),
                followed.sum(),
                flights.notLed());
    }

    /**
     * Refuses what waits and what comes from now on with {@link QueueException.Kind#CLOSED}. The
     * router stays open. A second call does nothing.
     */
    @Override
    public void close() {
        closed = true;
        router.removeRoomListener(signals);
        if (threadOrNull != null) {
            threadOrNull.close();
        }
        refuseAll(room.close());
    }
}
