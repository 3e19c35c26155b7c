package io.kvasir.sim.batch;

import io.kvasir.sim.cache.BlockNamer;
import io.kvasir.sim.config.SimClock;
import io.kvasir.sim.config.SimConfig;
import io.kvasir.sim.config.SimRole;
import io.kvasir.sim.events.EventSockets;

import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

import java.util.ArrayList;
import java.util.List;
import java.util.UUID;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.locks.LockSupport;
import java.util.function.Supplier;

/**
 * The one thread that owns all ranks of an engine: it takes commands, lets simulated time catch up
 * with the clock, and wakes those whose requests made progress.
 *
 * <p>Simulated time runs {@code speedUp} times as fast as the clock and stands still during a
 * stall. The thread sleeps until the next step ends, but at least {@link #SHORTEST_SLEEP_NS}: steps
 * shorter than that are simulated several at a time, so their tokens reach the client together.
 */
public final class StepLoop implements AutoCloseable, SidePuller.Reports {
    private static final Logger LOG = LoggerFactory.getLogger(StepLoop.class);
    private static final long SHORTEST_SLEEP_NS = TimeUnit.MILLISECONDS.toNanos(1);

    private static final int ANSWER_SECONDS = 30;

    private final SimConfig config;
    private final SimClock clock;
    private final RankScheduler[] ranks;
    private final AtomicInteger[] loads;
    private final List<Gate> touched = new ArrayList<>();
    private final ConcurrentLinkedQueue<Runnable> commands = new ConcurrentLinkedQueue<>();
    private final Thread thread;
    private volatile boolean closed;

    private EventSockets sockets;
    private volatile EventSockets.Ports ports;
    private volatile BlockNamer namer;
    private volatile String engineId = UUID.randomUUID().toString();
    private final KvMemory memory;
    private final SidePuller puller;

    // simulated now = (clock - origin) * speedUp; during a stall the clock reads sinceNs
    private volatile Stall stall;

    /** Where simulated time begins and, while it stands still, since when and until when. */
    private record Stall(long originNs, long sinceNs, long untilNs) {
        boolean active() {
            return untilNs != 0;
        }
    }

    /** Makes the ranks of an engine and binds their event ports; {@link #start} must follow. */
    public StepLoop(SimConfig config, SimClock clock, InjectedFaults handoffs) {
        this.config = config;
        this.clock = clock;
        this.stall = new Stall(clock.nanoTime(), 0, 0);
        this.ranks = new RankScheduler[config.dataParallelSize()];
        this.loads = new AtomicInteger[ranks.length];
        this.sockets = new EventSockets(config, EventSockets.Ports.wanted(config));
        this.memory = memory();
        this.puller = new SidePuller(this, memory);
        this.ports = sockets.ports();
        this.namer = namer(0);
        for (int r = 0; r < ranks.length; r++) {
            loads[r] = new AtomicInteger();
            ranks[r] = new RankScheduler(r, config, clock, touched, puller, handoffs, memory);
            ranks[r].begin(0, sockets);
        }
        this.thread = Thread.ofPlatform().daemon().name("sim-steps").unstarted(this::run);
    }

    private KvMemory memory() {
        if (config.handoff().role() == SimRole.BOTH || !config.handoff().bytes().exist()) {
            return null;
        }
        try {
            return new KvMemory(config);
        } catch (RuntimeException e) {
            sockets.close();
            throw e;
        }
    }

    /** Starts the thread. */
    public void start() {
        thread.start();
    }

    /** How many ranks there are. */
    public int ranks() {
        return ranks.length;
    }

    /** Ports of the event sockets. */
    public EventSockets.Ports ports() {
        return ports;
    }

    /** Names blocks as the present life does. */
    public BlockNamer namer() {
        return namer;
    }

    /** The rank with the fewest requests, the lowest number among equals. */
    public int leastLoadedRank() {
        int best = 0;
        for (int r = 1; r < loads.length; r++) {
            if (loads[r].get() < loads[best].get()) {
                best = r;
            }
        }
        return best;
    }

    /** Brings a request in; it has arrived now. Ended by {@link #end}. */
    public void submit(int rank, SimRequest request) {
        loads[rank].incrementAndGet();
        final long arrivalNs = simulatedNow();
        request.rank = rank;
        command(
                () -> {
                    request.arrivalNs = arrivalNs;
                    ranks[rank].submit(request);
                });
    }

    /** Says that no client waits for a request any more; one that has not ended is aborted. */
    public void end(int rank, SimRequest request) {
        loads[rank].decrementAndGet();
        final SimRequest.Phase phase = request.phase;
        if (phase == SimRequest.Phase.WAITING || phase == SimRequest.Phase.ADMITTED) {
            command(() -> ranks[rank].abort(request, simulatedNow()));
        }
    }

    /** Name of a rank's present life, as prefills give it to decodes. */
    public String engineId(int rank) {
        return ranks.length == 1 ? engineId : engineId + "_dp" + rank;
    }

    /** Answers a decode engine's order, when it can be answered. */
    void offer(PullOrder order, CompletableFuture<PullOffer> answer) {
        command(
                () -> {
                    if (order.engineId() != null && !order.engineId().startsWith(engineId)) {
                        answer.complete(
                                PullOffer.stale(
                                        "engine " + order.engineId() + " does not live any more"));
                    } else {
                        holder(order).offer(order.key(), order.room() >= 0, answer);
                    }
                });
    }

    /** Forgets an order whose answer was cancelled. */
    void withdraw(PullOrder order) {
        command(() -> holder(order).withdraw(order.key()));
    }

    private RankScheduler holder(PullOrder order) {
        return order.room() >= 0 ? ranks[(int) (order.room() % ranks.length)] : holder(order.key());
    }

    /** The rank that holds a prefill, or the first. */
    private RankScheduler holder(String key) {
        for (RankScheduler rank : ranks) {
            if (rank.holds(key)) {
                return rank;
            }
        }
        return ranks[0];
    }

    /** Frees a held prefill; false, and counted, when it is not held. Inside {@link #ask} only. */
    public boolean free(String key, KvHold.End end) {
        final RankScheduler rank = holder(key);
        final boolean freed = rank.free(key, end, simulatedNow());
        if (!freed) {
            rank.countLateNotification();
        }
        return freed;
    }

    @Override
    public void offered(SimRequest request, PullOffer offer) {
        command(() -> ranks[request.rank].pulls().offered(request, offer, simulatedNow()));
    }

    @Override
    public void undeliverable(SimRequest request, String why) {
        command(() -> ranks[request.rank].pulls().undeliverable(request, why, simulatedNow()));
    }

    @Override
    public void spoiled(SimRequest request) {
        command(() -> ranks[request.rank].spoiled(request, simulatedNow()));
    }

    @Override
    public void confirmed(SimRequest request, boolean freed) {
        command(() -> ranks[request.rank].pulls().confirmed(request, freed, simulatedNow()));
    }

    /** Runs something on the loop's thread between two steps and waits for its result. */
    public <T> T ask(Supplier<T> question) {
        final CompletableFuture<T> answer = new CompletableFuture<>();
        command(
                () -> {
                    try {
                        answer.complete(question.get());
                    } catch (RuntimeException e) {
                        answer.completeExceptionally(e);
                    }
                });
        return answer.orTimeout(ANSWER_SECONDS, TimeUnit.SECONDS).join();
    }

    /** False when the loop has ended, so that no thread waits for it. */
    public boolean alive() {
        return thread.isAlive();
    }

    /** A rank, for use inside {@link #ask} only. */
    public RankScheduler rank(int rank) {
        return ranks[rank];
    }

    /** Ends this life and begins the next one on the same ports. Inside {@link #ask} only. */
    public void restart() {
        final long life = namer.life() + 1;
        sockets.close();
        sockets = new EventSockets(config, ports);
        namer = namer(life);
        engineId = UUID.randomUUID().toString();
        for (RankScheduler rank : ranks) {
            rank.begin(life, sockets);
        }
        LOG.info("simulated engine {} restarted, life {}", config.model(), life);
    }

    /** Lets simulated time stand still from now on. Inside {@link #ask} only. */
    public void stall(long durationNs) {
        final long now = clock.nanoTime();
        final Stall before = stall;
        final long since = before.active() ? before.sinceNs() : now;
        stall = new Stall(before.originNs(), since, Math.max(before.untilNs(), now + durationNs));
    }

    @Override
    public void close() {
        if (closed) {
            return;
        }
        ask(
                () -> {
                    closed = true;
                    return true;
                });
        try {
            thread.join();
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
    }

    private BlockNamer namer(long life) {
        final long seed = config.seed() + life * 0x9E3779B97F4A7C15L;
        return new BlockNamer(life, seed, config.blockSize());
    }

    private void command(Runnable command) {
        commands.add(command);
        LockSupport.unpark(thread);
    }

    private void run() {
        try {
            loop();
        } catch (RuntimeException | Error e) {
            LOG.error("simulated engine {} is dead", config.model(), e);
            throw e;
        } finally {
            clock.leave();
            puller.close();
            if (memory != null) {
                memory.close();
            }
            sockets.close();
        }
    }

    private void loop() {
        long sleepFrom = clock.nanoTime();
        while (!closed) {
            for (Runnable command = commands.poll(); command != null; command = commands.poll()) {
                command.run();
            }
            endStall();
            final Stall now = stall;
            long wakeNs = SimClock.NEVER;
            if (now.active()) {
                wakeNs = now.untilNs();
            } else {
                final long next = advance(simulatedNow());
                if (next != RankScheduler.NOTHING_TO_DO) {
                    wakeNs = now.originNs() + (long) (next / config.speedUp());
                    wakeNs = Math.max(wakeNs, sleepFrom + SHORTEST_SLEEP_NS);
                }
            }
            signalTouched();
            if (closed || !commands.isEmpty()) {
                continue;
            }
            clock.parkUntil(this, wakeNs);
            sleepFrom = clock.nanoTime();
        }
    }

    private long advance(long nowNs) {
        long next = RankScheduler.NOTHING_TO_DO;
        for (RankScheduler rank : ranks) {
            next = Math.min(next, rank.advance(nowNs));
        }
        return next;
    }

    private void signalTouched() {
        for (Gate gate : touched) {
            gate.unmark();
            gate.signal();
        }
        touched.clear();
    }

    private void endStall() {
        final Stall now = stall;
        if (now.active() && clock.nanoTime() >= now.untilNs()) {
            stall = new Stall(now.originNs() + now.untilNs() - now.sinceNs(), 0, 0);
        }
    }

    private long simulatedNow() {
        final Stall now = stall;
        final long clockNs = now.active() ? now.sinceNs() : clock.nanoTime();
        return (long) ((clockNs - now.originNs()) * config.speedUp());
    }
}
