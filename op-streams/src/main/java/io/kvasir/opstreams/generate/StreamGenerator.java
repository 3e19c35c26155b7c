package io.kvasir.opstreams.generate;

import io.kvasir.core.hash.BlockHasher;
import io.kvasir.opstreams.kvops.AnswerChecksum;
import io.kvasir.opstreams.kvops.KvopsHeader;
import io.kvasir.opstreams.kvops.KvopsWriter;

import java.io.IOException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Comparator;
import java.util.List;
import java.util.PriorityQueue;

/**
 * Plays a trace through simulated workers and writes the stream. A request goes to the worker with
 * the least {@code overlapWeight * (blocks to compute) + active blocks + blocks}, ties by chance. A
 * worker computes prompts one after the other in chunks; at the end of a chunk its blocks are
 * stored, after what had to be evicted for them was removed. Then output blocks come one by one,
 * and at the end the request's blocks are released, the last first. Equal input gives equal bytes.
 * One thread, one use.
 */
public final class StreamGenerator {
    private static final double COPY_SHIFT_US = 977_003;
    private static final double LARGEST_US = 1L << 53; // a double has all below
    private static final double US_PER_S = 1e6;
    private static final double US_PER_MS = 1e3;

    private final GeneratorOptions options;
    private final StreamHashes hashes;
    private final Holders holders;
    private final BlockPool[] pools;
    private final double[] busyUntilUs;
    private final int[] overlaps;
    private final int[] cheapest;
    private final PriorityQueue<Step> steps =
            new PriorityQueue<>(
                    Comparator.comparingLong(Step::timeUs).thenComparingLong(Step::order));
    private final Buffer run = new Buffer();
    private final Buffer evicted = new Buffer();
    private List<Arrival> arrivals = List.of();
    private Request[] requests = {};
    private long order;
    private long overlapBlocks;
    private long promptBlocks;
    private long overcommitted;

    private StreamGenerator(GeneratorOptions options) {
        this.options = options;
        this.hashes = new StreamHashes(options.seed());
        this.holders = new Holders(options.workers());
        this.pools = new BlockPool[options.workers()];
        Arrays.setAll(pools, worker -> new BlockPool(options.capacity()));
        this.busyUntilUs = new double[options.workers()];
        this.overlaps = new int[options.workers()];
        this.cheapest = new int[options.workers()];
    }

    /**
     * What was made.
     *
     * @param header what the file says about itself
     * @param hitRatio share of prompt blocks that the chosen worker held
     * @param livePairs (worker, block) pairs held at the end
     * @param liveBlocks distinct blocks held at the end
     * @param overcommitted chunks that found everything in use and were stored all the same
     */
    public record Summary(
            KvopsHeader header,
            double hitRatio,
            long livePairs,
            long liveBlocks,
            long overcommitted) {}

    /**
     * Writes a stream.
     *
     * @param trace requests in any order; those without a hash id are left out
     * @param out file to create or overwrite
     * @throws IllegalArgumentException if a time is beyond 2^53 microseconds
     * @throws IOException if it cannot be written
     */
    public static Summary generate(List<TraceRequest> trace, GeneratorOptions options, Path out)
            throws IOException {
        return new StreamGenerator(options).write(trace, out);
    }

    private Summary write(List<TraceRequest> trace, Path out) throws IOException {
        arrivals = arrivals(trace);
        requests = new Request[arrivals.size()];
        final long flags =
                KvopsHeader.CHECKSUMS
                        | (options.salted() ? KvopsHeader.SALTED_NAMES : KvopsHeader.CHAINED_NAMES)
                        | (options.decode() ? KvopsHeader.DECODE_STORES : 0);
        try (KvopsWriter writer =
                new KvopsWriter(
                        out,
                        options.block(),
                        options.workers(),
                        options.capacity(),
                        options.seed(),
                        flags)) {
            for (int i = 0; i < requests.length; i++) {
                schedule(arrivals.get(i).timeUs, Kind.ARRIVE, i, 0);
            }
            for (Step step = steps.poll(); step != null; step = steps.poll()) {
                perform(step, writer);
            }
            return new Summary(
                    writer.header(),
                    promptBlocks == 0 ? 0 : (double) overlapBlocks / promptBlocks,
                    Arrays.stream(pools).mapToLong(BlockPool::size).sum(),
                    holders.blocks(),
                    overcommitted);
        }
    }

    private List<Arrival> arrivals(List<TraceRequest> trace) {
        final List<TraceRequest> usable =
                trace.stream().filter(request -> request.hashIds().length > 0).toList();
        final double first = usable.stream().mapToDouble(TraceRequest::timestamp).min().orElse(0);
        final List<Arrival> all = new ArrayList<>();
        for (int copy = 0; copy < options.copies(); copy++) {
            for (TraceRequest request : usable) {
                final double timeUs =
                        (request.timestamp() - first) * options.timestampUs() / options.speedUp()
                                + copy * COPY_SHIFT_US / options.speedUp();
                all.add(new Arrival(timeUs, copy, request));
            }
        }
        all.sort(Comparator.comparingDouble(Arrival::timeUs)); // stable
        return all;
    }

    private void schedule(double timeUs, Kind kind, int request, int end) {
        if (!(timeUs <= LARGEST_US)) { // neither is NaN
            throw new IllegalArgumentException(
                    "a time of the stream would be beyond 2^53 us; an option of times or rates is"
                            + " too far out");
        }
        steps.add(new Step((long) timeUs, order++, kind, request, end));
    }

    private void perform(Step step, KvopsWriter writer) throws IOException {
        final long timeUs = step.timeUs;
        if (step.kind == Kind.ARRIVE) {
            arrive(step.request, timeUs, writer);
            return;
        }
        final Request request = requests[step.request];
        switch (step.kind) {
            case CHUNK -> store(request, step.end, timeUs, writer);
            case PREFILL_DONE -> writer.prefillDone(request.worker, request.id, timeUs);
            case DECODE -> {
                store(request, request.stored + 1, timeUs, writer);
                writer.decodeBlock(request.worker, request.id, timeUs);
            }
            case FREE -> {
                for (int i = request.stored - 1; i >= 0; i--) {
                    pools[request.worker].unpin(request.path[i]);
                }
                requests[step.request] = null;
                writer.freed(request.worker, request.id, timeUs, request.promptBlocks);
            }
            case ARRIVE -> throw new IllegalStateException("an arrival has no request yet");
        }
    }

    private void arrive(int id, long timeUs, KvopsWriter writer) throws IOException {
        final Arrival arrival = arrivals.get(id);
        final int outputBlocks =
                options.decode() ? arrival.request.outputLength() / options.block() : 0;
        final int count = promptBlocks(arrival.request);
        final long[] locals = localHashes(arrival, id, count, outputBlocks);
        final long[] path = new long[locals.length];
        BlockHasher.sequenceHashes(locals, locals.length, path);
        holders.overlaps(path, count, overlaps);
        writer.query(id, timeUs, checksum(), locals, count);
        final int worker = choose(count);
        final int overlap = overlaps[worker];
        writer.routed(worker, id, timeUs, overlap, count);
        overlapBlocks += overlap;
        promptBlocks += count;
        for (int i = 0; i < overlap; i++) {
            pools[worker].pin(path[i]);
        }
        requests[id] = new Request(id, worker, path, locals, count, overlap);
        scheduleWork(requests[id], timeUs, outputBlocks, arrival.request.outputLength());
    }

    private int promptBlocks(TraceRequest request) {
        final long covered =
                (long) request.hashIds().length * (options.traceBlock() / options.block());
        return (int) Math.min(covered, Math.max(1, request.inputLength() / options.block()));
    }

    private long[] localHashes(Arrival arrival, int id, int count, int outputBlocks) {
        final int parts = options.traceBlock() / options.block();
        final long[] hashIds = arrival.request.hashIds();
        final long[] locals = new long[count + outputBlocks];
        for (int i = 0; i < count; i++) {
            locals[i] = hashes.local(hashIds[i / parts], arrival.copy, i % parts);
        }
        final long[] outputIds = arrival.request.outputIds();
        for (int i = 0; i < outputBlocks; i++) {
            locals[count + i] =
                    outputIds == null
                            ? hashes.output(id, i)
                            : hashes.local(outputIds[i], arrival.copy, 0);
        }
        return locals;
    }

    private long checksum() {
        long sum = 0;
        for (int worker = 0; worker < overlaps.length; worker++) {
            sum += AnswerChecksum.of(worker, overlaps[worker]);
        }
        return sum;
    }

    private int choose(int count) {
        double best = Double.MAX_VALUE;
        int ties = 0;
        for (int worker = 0; worker < pools.length; worker++) {
            final double toCompute = (double) count - overlaps[worker];
            final double cost =
                    options.overlapWeight() * toCompute + pools[worker].active() + count;
            if (cost < best) {
                best = cost;
                ties = 0;
            }
            if (cost == best) {
                cheapest[ties++] = worker;
            }
        }
        return cheapest[hashes.below(ties)];
    }

    private void scheduleWork(Request request, long timeUs, int outputBlocks, int outputLength) {
        final int chunk = Math.max(1, options.chunkTokens() / options.block());
        double endUs = Math.max(busyUntilUs[request.worker], (double) timeUs);
        int to;
        for (int from = request.stored; from < request.promptBlocks; from = to) {
            to = from + Math.min(chunk, request.promptBlocks - from); // no sum beyond an int
            endUs += (double) (to - from) * options.block() / options.prefillRate() * US_PER_S;
            schedule(endUs, Kind.CHUNK, request.id, to);
        }
        busyUntilUs[request.worker] = endUs;
        schedule(endUs, Kind.PREFILL_DONE, request.id, 0);
        for (int i = 1; i <= outputBlocks; i++) {
            schedule(endUs + decodeUs((double) i * options.block()), Kind.DECODE, request.id, 0);
        }
        schedule(endUs + decodeUs(outputLength) + 1, Kind.FREE, request.id, 0);
    }

    private double decodeUs(double tokens) {
        return tokens * options.interTokenMs() * US_PER_MS;
    }

    /** Stores a request's blocks up to {@code end}; what others stored meanwhile is only pinned. */
    private void store(Request request, int end, long timeUs, KvopsWriter writer)
            throws IOException {
        final BlockPool pool = pools[request.worker];
        int from = request.stored;
        while (from < end && pool.holds(request.path[from])) {
            pool.pin(request.path[from++]);
        }
        request.stored = end;
        if (from == end) {
            return;
        }
        evicted.clear();
        if (!pool.makeRoom(end - from, evicted::add)) {
            overcommitted++;
        }
        removeEvicted(request.worker, timeUs, writer);
        run.clear();
        for (int i = from; i < end; i++) {
            pool.addPinned(request.path[i]);
            holders.add(request.path[i], request.worker);
            run.add(name(request.worker, request.path[i]));
        }
        final long[] locals = Arrays.copyOfRange(request.locals, from, end);
        if (from == 0) {
            writer.storedRoot(
                    request.worker, request.id, timeUs, run.values, locals, locals.length);
        } else {
            final long parent = name(request.worker, request.path[from - 1]);
            writer.stored(
                    request.worker, request.id, timeUs, parent, run.values, locals, locals.length);
        }
    }

    private void removeEvicted(int worker, long timeUs, KvopsWriter writer) throws IOException {
        if (evicted.size == 0) {
            return;
        }
        for (int i = 0; i < evicted.size; i++) {
            final long block = evicted.values[i];
            holders.remove(block, worker);
            evicted.values[i] = name(worker, block);
        }
        writer.removed(worker, timeUs, evicted.values, evicted.size);
    }

    private long name(int worker, long sequenceHash) {
        return options.salted() ? StreamHashes.salted(worker, sequenceHash) : sequenceHash;
    }

    private enum Kind {
        ARRIVE,
        CHUNK,
        PREFILL_DONE,
        DECODE,
        FREE
    }

    /** Something that happens; equal times happen in the order in which they were scheduled. */
    private record Step(long timeUs, long order, Kind kind, int request, int end) {}

    private record Arrival(double timeUs, int copy, TraceRequest request) {}

    /** A routed request: its blocks, prompt first, and how many of them it has pinned. */
    private static final class Request {
        final int id;
        final int worker;
        final long[] path;
        final long[] locals;
        final int promptBlocks;
        int stored;

        Request(int id, int worker, long[] path, long[] locals, int promptBlocks, int stored) {
            this.id = id;
            this.worker = worker;
            this.path = path;
            this.locals = locals;
            this.promptBlocks = promptBlocks;
            this.stored = stored;
        }
    }

    /** Growing array of numbers. */
    private static final class Buffer {
        long[] values = new long[64];
        int size;

        void clear() {
            size = 0;
        }

        void add(long value) {
            if (size == values.length) {
                values = Arrays.copyOf(values, 2 * size);
            }
            values[size++] = value;
        }
    }
}
