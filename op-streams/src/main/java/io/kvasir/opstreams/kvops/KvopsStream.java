package io.kvasir.opstreams.kvops;

import java.io.IOException;
import java.nio.file.Path;
import java.util.Arrays;

/**
 * The index operations of a stream (QUERY, STORED, REMOVED, CLEARED), decoded into arrays before
 * any clock starts. Immutable after reading; any thread. Takes about as much heap as the file is
 * long.
 */
public final class KvopsStream {
    private static final long[] NONE = {};

    private final KvopsHeader header;
    private byte[] ops;
    private boolean[] roots;
    private int[] workers;
    private long[] as;
    private long[] timesUs;
    private long[][] names;
    private long[][] localHashes;
    private int size;
    private int queries;
    private long eventBlocks;

    private KvopsStream(KvopsHeader header, int capacity) {
        this.header = header;
        ops = new byte[capacity];
        roots = new boolean[capacity];
        workers = new int[capacity];
        as = new long[capacity];
        timesUs = new long[capacity];
        names = new long[capacity][];
        localHashes = new long[capacity][];
    }

    /**
     * Reads a whole stream.
     *
     * @throws KvopsFormatException if it is not well-formed
     * @throws IOException if it cannot be read
     */
    public static KvopsStream read(Path path) throws IOException {
        return read(path, Long.MAX_VALUE);
    }

    /**
     * Reads the start of a stream.
     *
     * @param maxRecords records of all kinds to read at most
     * @throws KvopsFormatException if what is read is not well-formed
     * @throws IOException if it cannot be read
     */
    public static KvopsStream read(Path path, long maxRecords) throws IOException {
        try (KvopsFile file = KvopsFile.open(path)) {
            final KvopsHeader h = file.header();
            final long operations =
                    Math.min(maxRecords, h.queries() + h.stored() + h.removed() + h.workers());
            // a header may claim anything; the arrays grow when it is true
            final KvopsStream stream =
                    new KvopsStream(
                            h,
                            Math.toIntExact(
                                    Math.clamp(
                                            operations,
                                            16,
                                            16 + file.length() / KvopsDescriptor.HEAD_LENGTH)));
            final KvopsCursor cursor = file.cursor();
            for (long i = 0; i < maxRecords && cursor.next(); i++) {
                if (cursor.op() <= KvopsDescriptor.CLEARED) {
                    stream.add(cursor);
                }
            }
            return stream;
        }
    }

    private void add(KvopsCursor cursor) {
        if (size == ops.length) {
            grow(2 * size);
        }
        final byte op = cursor.op();
        ops[size] = op;
        roots[size] = !cursor.hasParent();
        workers[size] = cursor.worker();
        as[size] = cursor.a();
        timesUs[size] = cursor.timeUs();
        final boolean named = op == KvopsDescriptor.STORED || op == KvopsDescriptor.REMOVED;
        final boolean hashed = op == KvopsDescriptor.STORED || op == KvopsDescriptor.QUERY;
        names[size] = named ? cursor.names() : NONE;
        localHashes[size] = hashed ? cursor.localHashes() : NONE;
        queries += op == KvopsDescriptor.QUERY ? 1 : 0;
        eventBlocks += names[size].length;
        size++;
    }

    private void grow(int capacity) {
        ops = Arrays.copyOf(ops, capacity);
        roots = Arrays.copyOf(roots, capacity);
        workers = Arrays.copyOf(workers, capacity);
        as = Arrays.copyOf(as, capacity);
        timesUs = Arrays.copyOf(timesUs, capacity);
        names = Arrays.copyOf(names, capacity);
        localHashes = Arrays.copyOf(localHashes, capacity);
    }

    /** What the file says about itself; its sums are those of the whole file. */
    public KvopsHeader header() {
        return header;
    }

    /** Operations read. */
    public int size() {
        return size;
    }

    /** Queries among them. */
    public int queries() {
        return queries;
    }

    /** Queries among the first operations. */
    int queries(int operations) {
        int found = 0;
        for (int i = 0; i < operations; i++) {
            found += isQuery(i) ? 1 : 0;
        }
        return found;
    }

    /** Stores, removals and clears among them. */
    public long events() {
        return (long) size - queries;
    }

    /** Blocks of all stores and removals among them. */
    public long eventBlocks() {
        return eventBlocks;
    }

    /** Whether operation {@code i} is a query; all others are events. */
    public boolean isQuery(int i) {
        return ops[i] == KvopsDescriptor.QUERY;
    }

    /** Whether operation {@code i} says that a worker holds nothing any more. */
    boolean isClear(int i) {
        return ops[i] == KvopsDescriptor.CLEARED;
    }

    /** Checksum of the answer that query {@code i} must get; see {@link AnswerChecksum}. */
    public long expectedChecksum(int i) {
        return as[i];
    }

    /** When operation {@code i} happened, in microseconds of stream time. */
    public long timeUs(int i) {
        return timesUs[i];
    }

    /** Local hashes of a query or store; not copied. */
    public long[] localHashes(int i) {
        return localHashes[i];
    }

    /** Blocks of event {@code i}: 0 for a clear. */
    public int eventBlocks(int i) {
        return names[i].length;
    }

    /**
     * Applies operations {@code from} (inclusive) to {@code to} (exclusive), which hold no query.
     *
     * @return stores that were refused
     */
    long apply(BlockIndex index, int from, int to) {
        long refused = 0;
        for (int i = from; i < to; i++) {
            final int worker = workers[i];
            final long[] blocks = names[i];
            switch (ops[i]) {
                case KvopsDescriptor.STORED ->
                        refused +=
                                index.store(
                                                worker,
                                                roots[i],
                                                as[i],
                                                blocks,
                                                localHashes[i],
                                                blocks.length)
                                        ? 0
                                        : 1;
                case KvopsDescriptor.REMOVED -> index.remove(worker, blocks, blocks.length);
                case KvopsDescriptor.CLEARED -> index.clear(worker);
                default -> throw new IllegalArgumentException("operation " + i + " is no event");
            }
        }
        return refused;
    }
}
