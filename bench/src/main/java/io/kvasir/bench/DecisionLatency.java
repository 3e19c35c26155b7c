package io.kvasir.bench;

import io.kvasir.opstreams.kvops.Latencies;
import io.kvasir.opstreams.kvops.MachinePauses;
import io.kvasir.opstreams.kvops.ThreadUsage;
import io.kvasir.router.RouteException;

import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.concurrent.TimeUnit;

/**
 * Latency of whole decisions of an embedded router, token ids to booked worker, as op streams are
 * measured: decisions during which the thread lost its core are left out and counted, and the same
 * percentiles of decisions that take no time tell what of them is the machine's. JMH's samples
 * contain both.
 */
public final class DecisionLatency {
    private static final int DECISIONS = 1_000_000;
    private static final int JOURNAL = 1_024;
    private static final int WARM_UP_SHARE = 5;
    private static final long PAUSES_NS = TimeUnit.SECONDS.toNanos(2);
    private static final double NS_PER_SECOND = TimeUnit.SECONDS.toNanos(1);
    private static final double NS_PER_US = TimeUnit.MICROSECONDS.toNanos(1);

    /** What is measured. */
    private interface Decide {
        Object once() throws RouteException;
    }

    private DecisionLatency() {}

    /**
     * Measures and prints a line for deciding alone and one for deciding and booking.
     *
     * @param args full blocks of each prompt (512), workers (64), messages of {@value
     *     EventLoad#BLOCKS} blocks that they send a second meanwhile (0) and decisions (1,000,000),
     *     as far as given
     */
    public static void main(String[] args) throws RouteException {
        final int blocks = args.length > 0 ? Integer.parseInt(args[0]) : 512;
        final int workers = args.length > 1 ? Integer.parseInt(args[1]) : 64;
        final int events = args.length > 2 ? Integer.parseInt(args[2]) : 0;
        final int decisions = args.length > 3 ? Integer.parseInt(args[3]) : DECISIONS;
        measure(blocks, workers, events, decisions, PAUSES_NS).forEach(System.out::println);
    }

    /** A line for deciding alone, and one for deciding and booking. */
    static List<String> measure(int blocks, int workers, int events, int decisions, long pausesNs)
            throws RouteException {
        final DecisionBenchmark router = new DecisionBenchmark();
        router.depthBlocks = blocks;
        router.workers = workers;
        router.journal = JOURNAL;
        router.fill();
        try {
            final ThreadUsage usage = ThreadUsage.ofCurrentThread();
            final MachinePauses pauses = MachinePauses.measure(usage, pausesNs);
            if (events == 0) {
                return both(router, usage, decisions, pauses);
            }
            final List<String> lines = new ArrayList<>();
            try (EventLoad load = router.announce(events)) {
                final long startNs = System.nanoTime();
                lines.addAll(both(router, usage, decisions, pauses));
                final double seconds = (System.nanoTime() - startNs) / NS_PER_SECOND;
                lines.add(
                        String.format(
                                Locale.ROOT,
                                "events   %,.0f messages of %d blocks a second meanwhile",
                                load.sent() / seconds,
                                EventLoad.BLOCKS));
            }
            return lines;
        } finally {
            router.close();
        }
    }

    private static List<String> both(
            DecisionBenchmark router, ThreadUsage usage, int decisions, MachinePauses pauses)
            throws RouteException {
        return List.of(
                line("select", latencies(router, router::select, usage, decisions), pauses),
                line("reserve", latencies(router, router::reserve, usage, decisions), pauses));
    }

    private static Latencies latencies(
            DecisionBenchmark router, Decide decide, ThreadUsage usage, int decisions)
            throws RouteException {
        run(router, decide, usage, decisions / WARM_UP_SHARE, new Latencies());
        final Latencies latencies = new Latencies();
        run(router, decide, usage, decisions, latencies);
        return latencies;
    }

    private static void run(
            DecisionBenchmark router,
            Decide decide,
            ThreadUsage usage,
            int decisions,
            Latencies latencies)
            throws RouteException {
        for (int i = 0; i < decisions; i++) {
            router.catchUp();
            final long switches = usage.involuntarySwitches();
            final long startNs = System.nanoTime();
            final Object decided = decide.once();
            final long ns = System.nanoTime() - startNs;
            if (decided == null) {
                throw new IllegalStateException("no worker was chosen");
            }
            latencies.record(ns, usage.involuntarySwitches() != switches);
        }
    }

    private static String line(String name, Latencies latencies, MachinePauses pauses) {
        final StringBuilder line = new StringBuilder(String.format(Locale.ROOT, "%-8s", name));
        line.append(String.format(Locale.ROOT, "µs: mean %.2f", latencies.meanNs() / NS_PER_US));
        for (double percentile : List.of(50.0, 99.0, 99.9, 99.99)) {
            line.append(
                    String.format(
                            Locale.ROOT,
                            ", p%s %.2f (machine %.2f)",
                            percentile,
                            latencies.kept().getValueAtPercentile(percentile) / NS_PER_US,
                            pauses.floorNs(percentile, latencies.meanNs()) / NS_PER_US));
        }
        return line.append(
                        String.format(
                                Locale.ROOT,
                                ", raw p99.99 %.2f; core lost in %.1e of %d",
                                latencies.raw().getValueAtPercentile(99.99) / NS_PER_US,
                                latencies.preemptedShare(),
                                latencies.count()))
                .toString();
    }
}
