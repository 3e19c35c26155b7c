package io.kvasir.bench;

import io.kvasir.pipeline.source.EngineStream;
import io.kvasir.pipeline.source.SourceConfig;
import io.kvasir.router.Decision;
import io.kvasir.router.KvRouter;
import io.kvasir.router.Lease;
import io.kvasir.router.RouteException;
import io.kvasir.router.RouteRequest;
import io.kvasir.router.Worker;
import io.kvasir.router.WorkerSpec;
import io.kvasir.router.policy.RandomSource;
import io.kvasir.router.policy.RoutingMode;
import io.kvasir.router.policy.WorkerCost;
import io.kvasir.router.settings.RouterSettings;

import org.openjdk.jmh.annotations.Benchmark;
import org.openjdk.jmh.annotations.BenchmarkMode;
import org.openjdk.jmh.annotations.Fork;
import org.openjdk.jmh.annotations.Level;
import org.openjdk.jmh.annotations.Measurement;
import org.openjdk.jmh.annotations.Mode;
import org.openjdk.jmh.annotations.OutputTimeUnit;
import org.openjdk.jmh.annotations.Param;
import org.openjdk.jmh.annotations.Scope;
import org.openjdk.jmh.annotations.Setup;
import org.openjdk.jmh.annotations.State;
import org.openjdk.jmh.annotations.TearDown;
import org.openjdk.jmh.annotations.Warmup;

import java.util.ArrayList;
import java.util.List;
import java.util.SplittableRandom;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;

/**
 * Cost of one whole decision of an embedded router, from token ids to a chosen worker with its
 * reasons, without and with its booking. Each prompt is held by one worker in full; the index was
 * filled by events through the real pipeline. Questions answered: what does routing add to a
 * request, and how is its latency distributed?
 */
@State(Scope.Thread)
@BenchmarkMode(Mode.AverageTime)
@OutputTimeUnit(TimeUnit.NANOSECONDS)
@Fork(
        value = 2,
        jvmArgsAppend = {"-Xms1g", "-Xmx1g"})
@Warmup(iterations = 3, time = 500, timeUnit = TimeUnit.MILLISECONDS)
@Measurement(iterations = 5, time = 500, timeUnit = TimeUnit.MILLISECONDS)
public class DecisionBenchmark {
    private static final int BLOCK_SIZE = 16;
    private static final int BLOCKS = 1 << 16;
    private static final int BOOKINGS = 64; // a small ring, so that its records are warm
    private static final long PATIENCE_NS = TimeUnit.SECONDS.toNanos(60);

    /** Full blocks of each prompt. */
    @Param({"16", "256", "512", "1024"})
    public int depthBlocks;

    /** Registered workers. */
    @Param({"8", "64", "1000"})
    public int workers;

    /** Decisions that are kept in the journal; 0 for none. */
    @Param("1024")
    public int journal;

    /** What split-mode cost asks of every worker that could do all of a request. */
    private static final WorkerCost DELAY =
            worker ->
                    1.5
                                    * worker.activeRequests()
                                    * (worker.requestBlocks() - worker.overlapBlocks())
                            - 0.7 * worker.decodeBlocks();

    private final Decision decision = new Decision();
    private final Lease lease = new Lease();
    private KvRouter router;
    private RouteRequest request;
    private final List<EngineStream> streams = new ArrayList<>();
    private int[][] prompts;
    private int next;

    /** Registers workers and announces what they hold, then waits until it is indexed. */
    @Setup
    public void fill() {
        router =
                KvRouter.builder()
                        .blockSize(BLOCK_SIZE)
                        .maxWorkers(workers)
                        .maxBlocks(BLOCKS, BLOCKS)
                        .maxActiveRequests(BOOKINGS)
                        .set(RouterSettings.DECISION_JOURNAL, journal)
                        .mode(RoutingMode.KV)
                        .random(RandomSource.seeded(1337))
                        .build();
        request = router.newRequest();
        prompts = new int[BLOCKS / depthBlocks][];
        final SplittableRandom random = new SplittableRandom(1337);
        final List<Worker> registered = new ArrayList<>();
        streams.clear();
        for (int w = 0; w < workers; w++) {
            final Worker worker = router.addWorker(WorkerSpec.of(w, "w" + w, "http://w" + w));
            registered.add(worker);
            streams.add(
                    router.openDirect(worker, SourceConfig.of(worker.name(), 0, BLOCK_SIZE, "")));
        }
        for (int p = 0; p < prompts.length; p++) {
            prompts[p] = random.ints((long) depthBlocks * BLOCK_SIZE, 0, 150_000).toArray();
            final int worker = p % workers;
            final long sequence = p / workers;
            streams.get(worker)
                    .onMessage(
                            sequence,
                            StoredEvents.message(
                                    prompts[p], BLOCK_SIZE, 1 + (long) p * depthBlocks));
            await(registered.get(worker), sequence);
        }
    }

    /**
     * Has the workers announce and remove other blocks until it is closed.
     *
     * @param perSecond messages of {@value EventLoad#BLOCKS} blocks
     */
    EventLoad announce(int perSecond) {
        final long[] sequences = new long[workers];
        for (int w = 0; w < workers; w++) {
            sequences[w] = (prompts.length - w + workers - 1L) / workers; // the first of them is 0
        }
        return new EventLoad(streams, sequences, BLOCK_SIZE, perSecond);
    }

    private static void await(Worker worker, long sequence) {
        final long deadline = System.nanoTime() + PATIENCE_NS;
        while (worker.eventSequence() < sequence) {
            if (System.nanoTime() - deadline > 0) {
                throw new IllegalStateException(
                        worker + " applied " + worker.eventSequence() + " of " + sequence);
            }
            LockSupport.parkNanos(20_000);
        }
    }

    /** Ends the router's threads. */
    @TearDown
    public void close() {
        router.close();
    }

    /** Waits, unmeasured, until earlier bookings are in the table: no real load is so dense. */
    @Setup(Level.Invocation)
    public void catchUp() {
        while (router.bookingPipeline().backlog() > 0) {
            Thread.onSpinWait();
        }
    }

    private RouteRequest nextPrompt() {
        next = (next + 7_919) & (prompts.length - 1);
        return request.reset().tokens(prompts[next], prompts[next].length);
    }

    /** One decision; the holder of the prompt wins. */
    @Benchmark
    @BenchmarkMode({Mode.AverageTime, Mode.SampleTime})
    public Worker select() throws RouteException {
        router.select(nextPrompt(), decision);
        return decision.worker();
    }

    /** One decision with its booking, and the release of the one before. */
    @Benchmark
    @BenchmarkMode({Mode.AverageTime, Mode.SampleTime})
    public Lease reserve() throws RouteException {
        lease.close();
        router.reserve(nextPrompt(), decision, lease);
        return lease;
    }

    /** One decision with a cost of the request's own, which every worker is asked for. */
    @Benchmark
    public Worker selectWithCost() throws RouteException {
        router.select(nextPrompt().addCost(DELAY), decision);
        return decision.worker();
    }

    /** The same as {@link #reserve} for an answer that is not streamed: its prompt is watched. */
    @Benchmark
    public Lease reserveUnseen() throws RouteException {
        lease.close();
        router.reserve(nextPrompt().firstTokenUnseen(true), decision, lease);
        return lease;
    }
}
