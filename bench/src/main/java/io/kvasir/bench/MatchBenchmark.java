package io.kvasir.bench;

import io.kvasir.core.index.PrefixIndex;
import io.kvasir.core.index.PrefixIndexConfig;
import io.kvasir.core.radix.OverlapScores;
import io.kvasir.opstreams.alternatives.HashMapIndex;

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

import java.util.concurrent.TimeUnit;

/**
 * Cost of one match against a full index of 262,144 blocks, each prompt held by four workers to
 * different depths. Question answered: how does latency grow with prompt depth and workers, and
 * against java.util?
 */
@State(Scope.Thread)
@BenchmarkMode(Mode.AverageTime)
@OutputTimeUnit(TimeUnit.NANOSECONDS)
@Fork(
        value = 2,
        jvmArgsAppend = {"-Xms1g", "-Xmx1g"})
@Warmup(iterations = 3, time = 500, timeUnit = TimeUnit.MILLISECONDS)
@Measurement(iterations = 5, time = 500, timeUnit = TimeUnit.MILLISECONDS)
public class MatchBenchmark {
    /** Blocks of each prompt. */
    @Param({"16", "256", "1024"})
    public int depthBlocks;

    /** Worker slots of the index. */
    @Param({"8", "64"})
    public int workers;

    private Prompts prompts;

    /** The index and the reader's scratch memory. */
    @State(Scope.Thread)
    public static class OffHeap {
        private PrefixIndex index;
        private OverlapScores scores;

        /** Fills the index. */
        @Setup
        public void fill(MatchBenchmark benchmark) {
            index =
                    new PrefixIndex(
                            new PrefixIndexConfig(
                                    benchmark.workers, Prompts.BLOCKS, benchmark.prompts.held()));
            scores = new OverlapScores(benchmark.workers);
            benchmark.prompts.announce(
                    (slot, names, local, count) ->
                            index.store(slot, true, 0, names, local, count, false));
        }

        /** Frees the index. */
        @TearDown
        public void free() {
            index.close();
        }
    }

    /** The alternative and the reader's scratch memory. */
    @State(Scope.Thread)
    public static class OnHeap {
        private HashMapIndex index;
        private int[] depths;

        /** Fills the index. */
        @Setup
        public void fill(MatchBenchmark benchmark) {
            index = new HashMapIndex(benchmark.workers);
            depths = new int[benchmark.workers];
            benchmark.prompts.announce(index::storeRoot);
        }
    }

    /** Draws the prompts. */
    @Setup
    public void draw() {
        prompts = new Prompts(depthBlocks, workers);
    }

    /** One match. */
    @Benchmark
    public int match(OffHeap state) {
        return state.index.match(prompts.next(), depthBlocks, state.scores);
    }

    /** One match by the alternative. */
    @Benchmark
    public int matchHashMap(OnHeap state) {
        return state.index.match(prompts.next(), depthBlocks, state.depths);
    }
}
