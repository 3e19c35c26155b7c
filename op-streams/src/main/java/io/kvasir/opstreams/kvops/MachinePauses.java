package io.kvasir.opstreams.kvops;

import java.util.Arrays;
import java.util.concurrent.TimeUnit;

/**
 * How often and how long the machine takes a thread that only reads the clock off its work without
 * taking its core: interrupts and, in a virtual machine, the host. The floor of every latency
 * percentile: no query can be better than one that takes no time.
 */
public final class MachinePauses {
    private static final long SHORTEST_NS = TimeUnit.MICROSECONDS.toNanos(1);
    private static final int MOST = 1 << 20;
    private static final double ROUNDING = 1e-6; // a tenth of a per cent is no binary fraction

    private static final long DURATION_NS = TimeUnit.SECONDS.toNanos(1);

    private static MachinePauses measured; // guarded by the class

    private final long lastedNs;
    private final long[] pauses; // ascending

    private MachinePauses(long lastedNs, long[] pauses) {
        this.lastedNs = lastedNs;
        this.pauses = pauses;
    }

    /** Pauses of some length each, in nanoseconds, that were seen in so much time. */
    static MachinePauses of(long lastedNs, long... pauses) {
        final long[] sorted = pauses.clone();
        Arrays.sort(sorted);
        return new MachinePauses(lastedNs, sorted);
    }

    /**
     * Those that were measured in this JVM, for a second, by its first caller: they are the
     * machine's, and every fork of a run is a JVM of its own.
     *
     * @param usage of the calling thread
     */
    static synchronized MachinePauses ofThisJvm(ThreadUsage usage) {
        if (measured == null) {
            measured = measure(usage, DURATION_NS);
        }
        return measured;
    }

    /**
     * Reads the clock for so long.
     *
     * @param usage of the calling thread; pauses in which it lost its core are left out, as queries
     *     are
     */
    public static MachinePauses measure(ThreadUsage usage, long durationNs) {
        final long[] seen = new long[MOST];
        int count = 0;
        long switches = usage.involuntarySwitches();
        final long startNs = System.nanoTime();
        long beforeNs = startNs;
        while (beforeNs - startNs < durationNs) {
            final long nowNs = System.nanoTime();
            if (nowNs - beforeNs < SHORTEST_NS) {
                beforeNs = nowNs;
                continue;
            }
            final long switchesNow = usage.involuntarySwitches();
            if (switchesNow == switches && count < MOST) {
                seen[count++] = nowNs - beforeNs;
            }
            switches = switchesNow;
            beforeNs = System.nanoTime();
        }
        return of(beforeNs - startNs, Arrays.copyOf(seen, count));
    }

    /**
     * Percentile of queries that take no time themselves, at the rate of others that do.
     *
     * @param percentile 0..100
     * @param queryNs mean time of those others in nanoseconds, above 0
     * @return nanoseconds; 0 when it is below what is taken for a pause
     */
    public long floorNs(double percentile, double queryNs) {
        final double queries = lastedNs / queryNs;
        final long longer = (long) (queries * (100 - percentile) / 100 + ROUNDING);
        return longer < pauses.length ? pauses[pauses.length - 1 - (int) longer] : 0;
    }
}
