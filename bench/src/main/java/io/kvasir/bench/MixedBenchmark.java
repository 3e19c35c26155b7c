package io.kvasir.bench;

import io.kvasir.opstreams.kvops.BlockIndex;
import io.kvasir.opstreams.kvops.Indexes;
import io.kvasir.opstreams.kvops.LiveMaximum;

import org.openjdk.jmh.annotations.Benchmark;
import org.openjdk.jmh.annotations.BenchmarkMode;
import org.openjdk.jmh.annotations.Fork;
import org.openjdk.jmh.annotations.Group;
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
 * A reader matches prompts that stay while the writer stores and removes others, two threads on one
 * index of 262,144 resident and 65,536 passing blocks. Question answered: what do reads and writes
 * cost when they run at the same time? {@code mixed:match} is one match, to be read beside {@link
 * MatchBenchmark}; {@code mixed:apply} is 16 blocks stored and 16 removed, 32 times the figure of
 * {@link ApplyBenchmark}; {@code cpu} is of both threads per operation of either.
 */
@State(Scope.Group)
@BenchmarkMode(Mode.AverageTime)
@OutputTimeUnit(TimeUnit.NANOSECONDS)
@Fork(
        value = 2,
        jvmArgsAppend = {"-Xms1g", "-Xmx1g"})
@Warmup(iterations = 3, time = 500, timeUnit = TimeUnit.MILLISECONDS)
@Measurement(iterations = 5, time = 500, timeUnit = TimeUnit.MILLISECONDS)
public class MixedBenchmark {
    private static final int RUN = 16;
    private static final int PASSING_RUNS = 1 << 12;
    private static final int RUNS = 2 * PASSING_RUNS;

    /** Blocks of each prompt that is matched. */
    @Param({"256"})
    public int depthBlocks;

    /** Worker slots of the index. */
    @Param({"8", "64"})
    public int workers;

    private final long[][] hashes = new long[RUNS][RUN];
    private Prompts prompts;
    private BlockIndex index;
    private BlockIndex.Reader reader;
    private int next;

    /** Fills the index: the prompts, then passing runs up to one. */
    @Setup
    public void fill() {
        prompts = new Prompts(depthBlocks, workers);
        final long passing = (long) PASSING_RUNS * RUN;
        index =
                Indexes.make(
                        Indexes.KVASIR,
                        workers,
                        true,
                        new LiveMaximum(prompts.held() + passing, Prompts.BLOCKS + passing, 0),
                        false);
        reader = index.reader();
        prompts.announce((slot, names, local, count) -> stored(slot, names, local, count));
        final SplittableRandom random = new SplittableRandom(4711);
        for (long[] run : hashes) {
            for (int i = 0; i < RUN; i++) {
                run[i] = random.nextLong();
            }
        }
        for (next = 0; next < PASSING_RUNS - 1; next++) {
            stored(slot(next), hashes[next], hashes[next], RUN);
        }
    }

    private void stored(int slot, long[] names, long[] local, int count) {
        if (!index.store(slot, true, 0, names, local, count)) {
            throw new IllegalStateException("a store was refused: slot=" + slot);
        }
    }

    private int slot(int run) {
        return run % workers;
    }

    /** Frees the index. */
    @TearDown
    public void free() {
        index.close();
    }

    /** One match; one thread. */
    @Benchmark
    @Group("mixed")
    public int match() {
        return reader.match(prompts.next(), depthBlocks);
    }

    /** One run stored, the oldest removed; one thread. */
    @Benchmark
    @Group("mixed")
    public void apply() {
        final int run = next;
        next = (run + 1) % RUNS;
        stored(slot(run), hashes[run], hashes[run], RUN);
        final int old = (run + RUNS - PASSING_RUNS + 1) % RUNS;
        index.remove(slot(old), hashes[old], RUN);
    }
}
