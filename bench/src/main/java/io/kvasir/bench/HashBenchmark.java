package io.kvasir.bench;

import io.kvasir.core.hash.BlockHasher;
import io.kvasir.core.hash.TokenHasher;
import io.kvasir.opstreams.alternatives.CopyingHasher;

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
import org.openjdk.jmh.annotations.Warmup;

import java.util.SplittableRandom;
import java.util.concurrent.TimeUnit;

/**
 * Cost of hashing a prompt of 4,096 tokens. Questions answered: how long before the index can be
 * asked, and what do loops for the common block sizes gain over a general XXH3? Per 16 tokens.
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
    private static final int TOKENS = 4_096;
    private static final int UNIT = 16;
    private static final int UNITS = TOKENS / UNIT;
    private static final int PROMPTS = 64;

    /** Tokens of a block. */
    @Param({"16", "32", "64"})
    public int blockSize;

    private final int[][] prompts = new int[PROMPTS][];
    private final long[] out = new long[UNITS];
    private final TokenHasher hasher = new TokenHasher();
    private CopyingHasher copying;
    private int next;

    /** Draws the prompts. */
    @Setup
    public void draw() {
        copying = new CopyingHasher(blockSize, BlockHasher.BASE_SEED);
        final SplittableRandom random = new SplittableRandom(1337);
        for (int i = 0; i < PROMPTS; i++) {
            prompts[i] = random.ints(TOKENS, 0, 150_000).toArray();
        }
    }

    private int[] nextPrompt() {
        return prompts[next++ & (PROMPTS - 1)];
    }

    /** Local hashes as the router computes them: all that routing needs. */
    @Benchmark
    @OperationsPerInvocation(UNITS)
    public long[] local() {
        hasher.localHashes(nextPrompt(), 0, TOKENS, blockSize, BlockHasher.BASE_SEED, out);
        return out;
    }

    /** Local hashes without scratch memory. */
    @Benchmark
    @OperationsPerInvocation(UNITS)
    public long[] localStateless() {
        BlockHasher.localHashes(nextPrompt(), 0, TOKENS, blockSize, BlockHasher.BASE_SEED, out);
        return out;
    }

    /** Local hashes and the chain over them. */
    @Benchmark
    @OperationsPerInvocation(UNITS)
    public long[] localAndSequence() {
        local();
        BlockHasher.sequenceHashes(out, TOKENS / blockSize, out);
        return out;
    }

    /** Local hashes by the alternative. */
    @Benchmark
    @OperationsPerInvocation(UNITS)
    public long[] localByCopying() {
        copying.localHashes(nextPrompt(), out);
        return out;
    }
}
