package io.kvasir.opstreams.kvops;

import java.util.function.Supplier;

/**
 * One thread does everything in the stream's order, with a clock for each event; queries are asked,
 * timed and checked too. Each pass has a fresh index whose memory was touched before. The first one
 * ends at the time limit, the others where the first one did.
 */
final class EventReplay {
    private static final int LOOK_AT_TIME = 64; // operations, or one long event

    private final KvopsStream stream;
    private final ReplayPlan plan;
    private final Supplier<BlockIndex> indexes;
    private final boolean checked;
    private final ThreadUsage usage = ThreadUsage.ofCurrentThread();
    private final EventClock clock = new EventClock(usage);
    private final EventCosts costs;
    private final Latencies latencies = new Latencies();
    private long refused;
    private long mismatches;
    private long touched;

    /**
     * Prepares a replay.
     *
     * @param indexes makes an empty index
     * @param checked whether the stream says what the answers must be
     */
    EventReplay(
            KvopsStream stream, ReplayPlan plan, Supplier<BlockIndex> indexes, boolean checked) {
        this.stream = stream;
        this.plan = plan;
        this.indexes = indexes;
        this.checked = checked;
        this.costs = new EventCosts(stream);
    }

    /** A pass that does not count. */
    PassCost warmUp(long limitNs) {
        try (BlockIndex index = indexes.get()) {
            final EventCosts unused = new EventCosts(stream);
            final Latencies queries = new Latencies();
            final int size = (int) Math.min(stream.size(), plan.warmUp());
            pass(index, size, limitNs, unused, queries);
            return new PassCost(unused.rawMeanNs(), queries.meanNs());
        } finally {
            mismatches = 0;
        }
    }

    /** Carries out all passes; to be called once. */
    ForkResult run() {
        final long startNs = System.nanoTime();
        final Measured measured = new Measured();
        int size = stream.size();
        for (int pass = 0; pass < plan.passes(); pass++) {
            final FreshMemory memory = FreshMemory.before();
            try (BlockIndex index = indexes.get()) {
                touched = memory.touch(index.bytes());
                refused = 0;
                final long limitNs = pass == 0 ? plan.limitNs() : Long.MAX_VALUE;
                size = pass(index, size, limitNs, costs, latencies);
                measured.memory(index);
            }
        }
        costs.into(measured, MachinePauses.ofThisJvm(usage));
        if (latencies.count() > 0) {
            measured.latencies(latencies, usage.seesPreemption());
        }
        if (checked) {
            measured.put(Figure.CHECKSUM_MISMATCHES, mismatches);
        }
        return measured.put(Figure.REFUSED_STORES, refused)
                .put(Figure.REPLAYED_SHARE, size == 0 ? 1 : (double) size / stream.size())
                .put(Figure.TOUCHED_BYTES, touched)
                .put(Figure.WALL_S, (System.nanoTime() - startNs) / 1e9)
                .put(Figure.CPU_CLOCK_COST_NS, usage.clockCostNs())
                .with(latencies);
    }

    /** Replays the first {@code size} operations; returns how many were done in the time. */
    private int pass(
            BlockIndex index, int size, long limitNs, EventCosts costsOf, Latencies queries) {
        final BlockIndex.Reader reader = index.reader();
        final long startNs = System.nanoTime();
        for (int i = 0; i < size; i++) {
            long ns = 0;
            if (stream.isQuery(i)) {
                query(reader, i, queries);
            } else {
                clock.start();
                refused += stream.apply(index, i, i + 1);
                ns = clock.stop();
                costsOf.record(i, ns);
            }
            if (((i + 1) % LOOK_AT_TIME == 0 || ns > EventClock.LONG_NS)
                    && System.nanoTime() - startNs > limitNs) {
                return i + 1;
            }
        }
        return size;
    }

    private void query(BlockIndex.Reader reader, int i, Latencies queries) {
        final long[] prompt = stream.localHashes(i);
        final long switchesBefore = usage.involuntarySwitches();
        final long startNs = System.nanoTime();
        reader.match(prompt, prompt.length);
        final long ns = System.nanoTime() - startNs;
        queries.record(ns, usage.involuntarySwitches() != switchesBefore);
        if (checked && reader.checksum() != stream.expectedChecksum(i)) {
            mismatches++;
        }
    }
}
