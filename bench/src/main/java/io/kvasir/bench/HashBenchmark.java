package io.kvasir.bench;

import io.kvasir.bench.alternatives.CopyingHasher;
import io.kvasir.core.hash.BlockHasher;

import org.openjdk.jmh.annotations.Benchmark;
import org.openjdk.jmh.annotations.BenchmarkMode;
import org.openjdk.jmh.annotations.Fork;
import org.openjdk.jmh.annotations.Measurement;
import org.openjdk.jmh.annotations.Mode;
import org.openjdk.jmh.annotations.OperationsPerInvocation;
import org.openjdk.jmh.annotations.OutputTimeUnit;
import org.openjdk.jmh.annotations.Scope;
import org.openjdk.jmh.annotations.Setup;
import org.openjdk.jmh.annotations.State;
import org.openjdk.jmh.annotations.Warmup;

import java.util.SplittableRandom;
import java.util.concurrent.TimeUnit;

/**
 * Cost of hashing a prompt's tokens, per block of 16. Questions answered: how long before the index
 * can be asked, and what does reading tokens in place gain over copying them for a general XXH3?
 */
@State(Scope.Thread)
@BenchmarkMode(Mode.AverageTime)
@OutputTimeUnit(TimeUnit.NANOSECONDS)
@Fork(
        value = 2,
        jvmArgsAppend = {"-Xms1g", "-Xmx1g"})
@Warmup(iterations = 3, time = 500, timeUnit = TimeUnit.MILLISECONDS)
@Measurement(iterations = 5, time = 500, timeUnit = TimeUnit.MILLISECONDS)
public class HashBenchmark {
    private static final int BLOCK_SIZE = 16;
    private static final int BLOCKS = 256;
    private static final int PROMPTS = 64;

    private final int[][] prompts = new int[PROMPTS][];
    private final long[] out = new long[BLOCKS];
    private final CopyingHasher copying = new CopyingHasher(BLOCK_SIZE, BlockHasher.BASE_SEED);
    private int next;

    /** Draws the prompts. */
    @Setup
    public void draw() {
        final SplittableRandom random = new SplittableRandom(1337);
        for (int i = 0; i < PROMPTS; i++) {
            prompts[i] = random.ints((long) BLOCKS * BLOCK_SIZE, 0, 150_000).toArray();
        }
    }

    /** Local hashes, tokens read where they are. */
    @Benchmark
    @OperationsPerInvocation(BLOCKS)
    public long[] local() {
        final int[] tokens = prompts[next++ & (PROMPTS - 1)];
        BlockHasher.localHashes(tokens, 0, tokens.length, BLOCK_SIZE, BlockHasher.BASE_SEED, out);
        return out;
    }

    /** Local hashes and the chain over them: all that routing needs. */
    @Benchmark
    @OperationsPerInvocation(BLOCKS)
    public long[] localAndSequence() {
        local();
        BlockHasher.sequenceHashes(out, BLOCKS, out);
        return out;
    }

    /** Local hashes by the alternative. */
    @Benchmark
    @OperationsPerInvocation(BLOCKS)
    public long[] localByCopying() {
        copying.localHashes(prompts[next++ & (PROMPTS - 1)], out);
        return out;
    }
}
