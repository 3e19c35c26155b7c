package io.kvasir.bench;

import io.kvasir.core.load.LoadBoard;
import io.kvasir.core.load.LoadSnapshot;
import io.kvasir.core.radix.OverlapScores;
import io.kvasir.pipeline.source.SourceConfig;
import io.kvasir.router.Decision;
import io.kvasir.router.KvRouter;
import io.kvasir.router.RouteException;
import io.kvasir.router.RouteRequest;
import io.kvasir.router.Worker;
import io.kvasir.router.WorkerSpec;
import io.kvasir.router.policy.RandomSource;

import org.openjdk.jmh.annotations.Benchmark;
import org.openjdk.jmh.annotations.BenchmarkMode;
import org.openjdk.jmh.annotations.Fork;
import org.openjdk.jmh.annotations.Measurement;
import org.openjdk.jmh.annotations.Mode;
import org.openjdk.jmh.annotations.OutputTimeUnit;
import org.openjdk.jmh.annotations.Param;
import org.openjdk.jmh.annotations.Scope;
import org.openjdk.jmh.annotations.Setup;
import org.openjdk.jmh.annotations.State;
import org.openjdk.jmh.annotations.TearDown;
import org.openjdk.jmh.annotations.Warmup;

import java.util.SplittableRandom;
import java.util.concurrent.TimeUnit;

/**
 * Cost of choosing a worker when overlaps and loads are known. Every worker has running requests.
 * Questions answered: how does choosing grow with the workers and with those that hold some of the
 * prompt, and what does a change of load between two choices add?
 */
@State(Scope.Thread)
@BenchmarkMode(Mode.AverageTime)
@OutputTimeUnit(TimeUnit.NANOSECONDS)
@Fork(
        value = 2,
        jvmArgsAppend = {"-Xms1g", "-Xmx1g"})
@Warmup(iterations = 3, time = 500, timeUnit = TimeUnit.MILLISECONDS)
@Measurement(iterations = 5, time = 500, timeUnit = TimeUnit.MILLISECONDS)
public class ChooseBenchmark {
    private static final int BLOCK_SIZE = 16;
    private static final int PROMPT_BLOCKS = 512;
    private static final int SYSTEM_PROMPT_BLOCKS = 100;
    private static final int FEW = 4;
    private static final int MATCHES = 16; // as many as stay in the private cache
    private static final int REQUESTS_PER_WORKER = 2;

    /** How the holders of the prompt are distributed. */
    public enum Matching {
        /** Four workers. */
        FEW,
        /** All hold the system prompt, half of them use it, and four hold and use more. */
        SHARED,
        /** All workers, each another part: the worst case. */
        ALL
    }

    /** Registered workers. */
    @Param({"64", "256", "1000", "10000"})
    public int workers;

    /** How the holders of the prompt are distributed. */
    @Param({"FEW", "SHARED", "ALL"})
    public Matching matching;

    private final Decision decision = new Decision();
    private final OverlapScores[] cached = new OverlapScores[MATCHES];
    private final OverlapScores[] active = new OverlapScores[MATCHES];
    private KvRouter router;
    private RouteRequest request;
    private LoadBoard board;
    private LoadSnapshot mirror;
    private int next;

    /** Registers workers, books requests of random length on each and draws overlaps. */
    @Setup
    public void fill() throws RouteException {
        final SplittableRandom random = new SplittableRandom(1337);
        router =
                KvRouter.builder()
                        .blockSize(BLOCK_SIZE)
                        .maxWorkers(workers)
                        .maxBlocks(1 << 20, 1 << 10)
                        .maxActiveRequests(workers * REQUESTS_PER_WORKER)
                        .random(RandomSource.seeded(1337))
                        .build();
        request = router.newRequest();
        for (int w = 0; w < workers; w++) {
            final Worker worker = router.addWorker(WorkerSpec.of(w, "w" + w, "http://w" + w));
            router.openDirect(worker, SourceConfig.of(worker.name(), 0, BLOCK_SIZE, ""));
            for (int r = 0; r < REQUESTS_PER_WORKER; r++) {
                final int[] tokens = random.ints(1 + random.nextInt(512)).toArray();
                router.reserve(request.reset().tokens(tokens, tokens.length).pin(worker), decision);
            }
        }
        final int[] prompt = random.ints((long) PROMPT_BLOCKS * BLOCK_SIZE).toArray();
        request.reset().tokens(prompt, prompt.length);
        for (int i = 0; i < MATCHES; i++) {
            cached[i] = draw(random, 1);
            active[i] = draw(random, 2);
        }
        board = new LoadBoard(workers);
        mirror = new LoadSnapshot(workers);
        while (router.bookingPipeline().backlog() > 0) {
            Thread.onSpinWait();
        }
    }

    private OverlapScores draw(SplittableRandom random, int sharing) {
        final OverlapScores scores = new OverlapScores(workers);
        final int matched = matching == Matching.ALL ? workers : FEW;
        final int first = random.nextInt(workers);
        for (int i = 0; i < matched; i++) {
            scores.add((first + i) % workers, 1 + random.nextInt(PROMPT_BLOCKS));
        }
        if (matching == Matching.SHARED) {
            final long[] slots = new long[(workers + Long.SIZE - 1) / Long.SIZE];
            for (int w = 0; w < workers; w += sharing) {
                if (scores.depth(w) == 0) {
                    slots[w / Long.SIZE] |= 1L << w;
                }
            }
            scores.addSet(slots, SYSTEM_PROMPT_BLOCKS);
        }
        return scores;
    }

    /** Ends the router's threads. */
    @TearDown
    public void close() {
        router.close();
        board.close();
    }

    /** Another prompt's overlaps at each call, loads as they were. */
    @Benchmark
    public Worker choose() throws RouteException {
        final int match = next++ & (MATCHES - 1);
        router.select(request, cached[match], active[match], decision);
        return decision.worker();
    }

    /** As {@link #choose}, after a change in the chosen worker's group of 64. */
    @Benchmark
    public Worker chooseAfterChange() throws RouteException {
        if (decision.worker() != null) {
            decision.worker().available(true);
        }
        return choose();
    }

    /** What one booking costs the load board. */
    @Benchmark
    public void add() {
        board.add(next++ % workers, 1, 1, 1);
    }

    /** One booking, and bringing a mirror up to date with it. */
    @Benchmark
    public LoadSnapshot addAndRefresh() {
        add();
        mirror.refresh(board, 1.0 / BLOCK_SIZE);
        return mirror;
    }

    /** The alternative to a mirror: a look at every slot of the board for the least loaded one. */
    @Benchmark
    public int scanBoard() {
        int least = 0;
        double lowest = Double.POSITIVE_INFINITY;
        for (int slot = 0; slot < workers; slot++) {
            final double load =
                    board.prefillTokens(slot) * (1.0 / BLOCK_SIZE) + board.activeBlocks(slot);
            if (load < lowest) {
                lowest = load;
                least = slot;
            }
        }
        return least;
    }
}
