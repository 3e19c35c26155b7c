package io.kvasir.opstreams.cliffs;

import io.kvasir.core.hash.BlockHasher;
import io.kvasir.opstreams.generate.Holders;
import io.kvasir.opstreams.kvops.AnswerChecksum;
import io.kvasir.opstreams.kvops.KvopsHeader;
import io.kvasir.opstreams.kvops.KvopsWriter;

import java.io.IOException;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.SplittableRandom;

/**
 * Writes what engines announce and a router asks, and follows what each worker holds, so that each
 * query carries the exact answer. A prompt is an array of local hashes; a block of it is named
 * after the prompt's sequence hashes and a name space: 0 = the sequence hash itself, any other =
 * names of its own. One thread.
 */
final class CliffStream implements AutoCloseable {
    private static final int BLOCK_TOKENS = 16;
    private static final int NO_REQUEST = -1;
    private static final long US_BETWEEN = 10;

    private final KvopsWriter writer;
    private final SplittableRandom random;
    private final Holders holders;
    private final int[] depths;
    private long timeUs;

    CliffStream(Path out, int workers, long capacity, long seed, boolean plainNames)
            throws IOException {
        this.writer =
                new KvopsWriter(
                        out,
                        BLOCK_TOKENS,
                        workers,
                        capacity,
                        seed,
                        KvopsHeader.CHECKSUMS | (plainNames ? KvopsHeader.CHAINED_NAMES : 0));
        this.random = new SplittableRandom(seed);
        this.holders = new Holders(workers);
        this.depths = new int[workers];
    }

    /** Chance, from the stream's seed. */
    SplittableRandom random() {
        return random;
    }

    /** Local hashes that no other prompt has. */
    long[] fresh(int blocks) {
        return random.longs(blocks).toArray();
    }

    /** A prompt that continues after another. */
    static long[] append(long[] prompt, long[] more) {
        final long[] both = Arrays.copyOf(prompt, prompt.length + more.length);
        System.arraycopy(more, 0, both, prompt.length, more.length);
        return both;
    }

    private static long[] path(long[] prompt) {
        final long[] path = new long[prompt.length];
        BlockHasher.sequenceHashes(prompt, prompt.length, path);
        return path;
    }

    /** Names of a prompt's blocks in a name space, [prompt's blocks]. */
    static long[] names(long[] prompt, long space) {
        final long[] names = path(prompt);
        for (int i = 0; space != 0 && i < names.length; i++) {
            names[i] = AnswerChecksum.mix(names[i] ^ AnswerChecksum.mix(space));
        }
        return names;
    }

    /**
     * A worker stores the blocks of a prompt from {@code from} (inclusive) to {@code to}
     * (exclusive), which it does not hold under that name, in one event; it holds those before.
     */
    void store(int worker, long[] prompt, long space, int from, int to) throws IOException {
        write(worker, prompt, space, from, to);
        final long[] path = path(prompt);
        for (int i = from; i < to; i++) {
            holders.add(path[i], worker);
        }
    }

    /** The same where the index never saw the block before: it must refuse. */
    void storeBehindUnknown(int worker, long[] prompt, long space, int from, int to)
            throws IOException {
        write(worker, prompt, space, from, to);
    }

    private void write(int worker, long[] prompt, long space, int from, int to) throws IOException {
        final long[] names = names(prompt, space);
        final long[] run = Arrays.copyOfRange(names, from, to);
        final long[] locals = Arrays.copyOfRange(prompt, from, to);
        if (from == 0) {
            writer.storedRoot(worker, NO_REQUEST, tick(), run, locals, run.length);
        } else {
            writer.stored(worker, NO_REQUEST, tick(), names[from - 1], run, locals, run.length);
        }
    }

    /** The same, one event a block, as an engine does that generates. */
    void storeOneByOne(int worker, long[] prompt, long space, int from, int to) throws IOException {
        for (int i = from; i < to; i++) {
            store(worker, prompt, space, i, i + 1);
        }
    }

    /**
     * A worker evicts the blocks of a prompt from {@code from} (inclusive) to {@code to}
     * (exclusive), the deepest first, in one event; no other name of it stands for them.
     */
    void remove(int worker, long[] prompt, long space, int from, int to) throws IOException {
        removeNames(worker, names(prompt, space), from, to);
        final long[] path = path(prompt);
        for (int i = from; i < to; i++) {
            holders.remove(path[i], worker);
        }
    }

    /** The same, one event a block. */
    void removeOneByOne(int worker, long[] prompt, long space, int from, int to)
            throws IOException {
        for (int i = to - 1; i >= from; i--) {
            remove(worker, prompt, space, i, i + 1);
        }
    }

    /** A worker evicts blocks which stay held under other names, or which no worker ever stored. */
    void removeNames(int worker, long[] names, int from, int to) throws IOException {
        final long[] deepestFirst = new long[to - from];
        for (int i = 0; i < deepestFirst.length; i++) {
            deepestFirst[i] = names[to - 1 - i];
        }
        writer.removed(worker, tick(), deepestFirst, deepestFirst.length);
    }

    /** A router asks for a prompt. */
    void query(long[] prompt) throws IOException {
        holders.overlaps(path(prompt), prompt.length, depths);
        long sum = 0;
        for (int worker = 0; worker < depths.length; worker++) {
            sum += AnswerChecksum.of(worker, depths[worker]);
        }
        writer.query(NO_REQUEST, tick(), sum, prompt, prompt.length);
    }

    private long tick() {
        timeUs += US_BETWEEN;
        return timeUs;
    }

    /** What the file says about itself so far. */
    KvopsHeader header() {
        return writer.header();
    }

    @Override
    public void close() throws IOException {
        writer.close();
    }
}
