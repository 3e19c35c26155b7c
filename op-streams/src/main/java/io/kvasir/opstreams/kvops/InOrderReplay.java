package io.kvasir.opstreams.kvops;

/**
 * One thread does everything in the stream's order, so every answer can be checked. The CPU clock
 * is read only where a burst of events starts or ends; checking and reading clocks lie outside of
 * what is measured.
 */
final class InOrderReplay {
    private final KvopsStream stream;
    private final int size;
    private final BlockIndex index;
    private final BlockIndex.Reader reader;
    private final ThreadUsage usage;
    private final Latencies latencies = new Latencies();
    private final boolean checked;
    private final long clockCostNs;
    private long applyCpuNs;
    private long events;
    private long eventBlocks;
    private long refused;
    private long mismatches;

    /**
     * Prepares a replay.
     *
     * @param size operations to replay, from the stream's start
     * @param index empty; not closed
     * @param checked whether the stream says what the answers must be
     * @param usage of the thread that will replay
     * @param clockCostNs of that clock, see {@link ThreadUsage#clockCostNs()}
     */
    InOrderReplay(
            KvopsStream stream,
            int size,
            BlockIndex index,
            boolean checked,
            ThreadUsage usage,
            long clockCostNs) {
        this.stream = stream;
        this.size = size;
        this.index = index;
        this.reader = index.reader();
        this.usage = usage;
        this.checked = checked;
        this.clockCostNs = clockCostNs;
    }

    /** Replays; to be called once. */
    ForkResult run() {
        final long startNs = System.nanoTime();
        int from = 0;
        for (int i = 0; i < size; i++) {
            if (stream.isQuery(i)) {
                burst(from, i);
                query(i);
                from = i + 1;
            }
        }
        burst(from, size);
        return result(System.nanoTime() - startNs);
    }

    /** What it took on average, after {@link #run()}. */
    PassCost cost() {
        return new PassCost(
                events == 0 ? 0 : Math.max(0, (double) applyCpuNs / events), latencies.meanNs());
    }

    private void burst(int from, int to) {
        if (from == to) {
            return;
        }
        final long before = usage.cpuNs();
        refused += stream.apply(index, from, to);
        applyCpuNs += usage.cpuNs() - before - clockCostNs; // a short burst may come out below 0
        events += to - from;
        for (int i = from; i < to; i++) {
            eventBlocks += stream.eventBlocks(i);
        }
    }

    private void query(int i) {
        final long[] prompt = stream.localHashes(i);
        final long switchesBefore = usage.involuntarySwitches();
        final long startNs = System.nanoTime();
        reader.match(prompt, prompt.length);
        final long ns = System.nanoTime() - startNs;
        latencies.record(ns, usage.involuntarySwitches() != switchesBefore);
        if (checked && reader.checksum() != stream.expectedChecksum(i)) {
            mismatches++;
        }
    }

    private ForkResult result(long wallNs) {
        final Measured measured = new Measured();
        if (checked) {
            measured.put(Figure.CHECKSUM_MISMATCHES, mismatches);
        }
        return measured.latencies(latencies, usage.seesPreemption())
                .memory(index)
                .apply(applyCpuNs, events, eventBlocks)
                .put(Figure.REFUSED_STORES, refused)
                .put(Figure.WALL_S, wallNs / 1e9)
                .put(Figure.CPU_CLOCK_COST_NS, clockCostNs)
                .with(latencies);
    }
}
