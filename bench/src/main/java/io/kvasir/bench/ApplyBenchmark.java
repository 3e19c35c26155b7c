package io.kvasir.bench;

import io.kvasir.core.index.CopyRule;
import io.kvasir.core.index.PrefixIndex;
import io.kvasir.core.index.PrefixIndexConfig;
import io.kvasir.core.index.StoreResult;
import io.kvasir.opstreams.alternatives.HashMapIndex;

import org.openjdk.jmh.annotations.Benchmark;
import org.openjdk.jmh.annotations.BenchmarkMode;
import org.openjdk.jmh.annotations.Fork;
import org.openjdk.jmh.annotations.Measurement;
import org.openjdk.jmh.annotations.Mode;
import org.openjdk.jmh.annotations.OperationsPerInvocation;
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
 * Cost per block of applying events to a full index: each step stores a run of 16 new blocks and
 * removes the oldest run of that worker, as a warm engine does. Question answered: how many block
 * events a second does the one writer keep up with, and against java.util?
 */
@State(Scope.Thread)
@BenchmarkMode(Mode.AverageTime)
@OutputTimeUnit(TimeUnit.NANOSECONDS)
@Fork(
        value = 2,
        jvmArgsAppend = {"-Xms1g", "-Xmx1g"})
@Warmup(iterations = 3, time = 500, timeUnit = TimeUnit.MILLISECONDS)
@Measurement(iterations = 5, time = 500, timeUnit = TimeUnit.MILLISECONDS)
public class ApplyBenchmark {
    private static final int RUN = 16;

    /** Runs of this length that share nothing need more memory than the rule for prompts gives. */
    private static final long BYTES_PER_BLOCK = 48;

    private static final int RESIDENT_RUNS = Prompts.BLOCKS / RUN;
    private static final int RUNS = 2 * RESIDENT_RUNS;

    /** Worker slots; runs go to them in turn. */
    @Param({"8", "64"})
    public int workers;

    private final long[][] names = new long[RUNS][RUN];
    private final long[][] localHashes = new long[RUNS][RUN];

    /** Draws twice as many runs as the index holds at a time. */
    @Setup
    public void draw() {
        final SplittableRandom random = new SplittableRandom(1337);
        for (int r = 0; r < RUNS; r++) {
            for (int i = 0; i < RUN; i++) {
                names[r][i] = random.nextLong();
                localHashes[r][i] = random.nextLong();
            }
        }
    }

    private int slot(int run) {
        return run & (workers - 1);
    }

    /** The index, full. */
    @State(Scope.Thread)
    public static class OffHeap {
        private PrefixIndex index;
        private int next;

        /** Fills the index up to one run. */
        @Setup
        public void fill(ApplyBenchmark b) {
            index =
                    new PrefixIndex(
                            new PrefixIndexConfig(b.workers, Prompts.BLOCKS, Prompts.BLOCKS)
                                    .withBudgetBytes(BYTES_PER_BLOCK * Prompts.BLOCKS));
            for (next = 0; next < RESIDENT_RUNS - 1; next++) {
                store(b, next);
            }
        }

        void store(ApplyBenchmark b, int run) {
            final StoreResult result =
                    index.store(b.slot(run), true, 0, b.names[run], b.localHashes[run], RUN, false);
            if (result != StoreResult.STORED) {
                throw new IllegalStateException("run " + run + ": " + result);
            }
        }

        /** Frees the index. */
        @TearDown
        public void free() {
            index.close();
        }
    }

    /** The alternative, full. */
    @State(Scope.Thread)
    public static class OnHeap {
        private HashMapIndex index;
        private int next;

        /** Fills the index up to one run. */
        @Setup
        public void fill(ApplyBenchmark b) {
            index = new HashMapIndex(b.workers);
            for (next = 0; next < RESIDENT_RUNS - 1; next++) {
                index.storeRoot(b.slot(next), b.names[next], b.localHashes[next], RUN);
            }
        }
    }

    private static int oldest(int newest) {
        return (newest + RUNS - RESIDENT_RUNS + 1) % RUNS;
    }

    /** One run stored, one removed. */
    @Benchmark
    @OperationsPerInvocation(2 * RUN)
    public int apply(OffHeap state) {
        final int run = state.next;
        state.next = (run + 1) % RUNS;
        state.store(this, run);
        final int old = oldest(run);
        return state.index.remove(slot(old), names[old], RUN, CopyRule.PHYSICAL);
    }

    /** One run stored, one removed, by the alternative. */
    @Benchmark
    @OperationsPerInvocation(2 * RUN)
    public int applyHashMap(OnHeap state) {
        final int run = state.next;
        state.next = (run + 1) % RUNS;
        state.index.storeRoot(slot(run), names[run], localHashes[run], RUN);
        final int old = oldest(run);
        return state.index.remove(slot(old), names[old], RUN);
    }
}
