package io.kvasir.opstreams.kvops;

import java.io.IOException;
import java.util.EnumMap;
import java.util.Map;

/** Carries out a plan in this JVM. One thread, one use. */
final class Replays {
    private static final double NS_PER_US = 1_000;
    private static final double NS_PER_S = 1e9;

    private final ReplayPlan plan;
    private final KvopsStream stream;
    private final LiveMaximum room;
    private final boolean checked;
    private final ThreadUsage usage = ThreadUsage.ofCurrentThread();
    private final long clockCostNs = usage.clockCostNs();
    private final WarmUp warmUp = new WarmUp();

    private Replays(ReplayPlan plan, KvopsStream stream, LiveMaximum live) {
        this.plan = plan;
        this.stream = stream;
        this.room = live.times(plan.room());
        this.checked = plan.room() >= 1 && stream.header().has(KvopsHeader.CHECKSUMS);
    }

    /**
     * Decodes the stream, warms up, measures.
     *
     * @param live the stream's live maximum
     * @throws KvopsFormatException if the stream is not well-formed
     * @throws IOException if it cannot be read
     */
    static ForkResult run(ReplayPlan plan, LiveMaximum live) throws IOException {
        return new Replays(plan, KvopsStream.read(plan.file()), live).run();
    }

    private ForkResult run() {
        final ForkResult result =
                switch (plan.mode()) {
                    case INORDER -> {
                        warmUp(this::inOrder);
                        try (BlockIndex index = newIndex()) {
                            yield inOrder(index, stream.size()).run();
                        }
                    }
                    case EVENTS -> {
                        final EventReplay replay =
                                new EventReplay(stream, plan, this::newIndex, checked);
                        warmUp(replay::warmUp);
                        yield replay.run();
                    }
                    case BESIDE -> {
                        warmUp(this::inOrder);
                        yield new ConcurrentReplay(plan, stream, room).run();
                    }
                    case OPENLOOP -> {
                        warmUp(this::inOrder);
                        try (BlockIndex index = newIndex()) {
                            yield new OpenLoopReplay(plan, stream, index).run();
                        }
                    }
                };
        return withMore(result);
    }

    private BlockIndex newIndex() {
        return Indexes.make(plan, stream.header(), room);
    }

    private InOrderReplay inOrder(BlockIndex index, int size) {
        return new InOrderReplay(stream, size, index, checked, usage, clockCostNs);
    }

    private int warmUpSize() {
        return (int) Math.min(stream.size(), plan.warmUp());
    }

    private void warmUp(WarmUp.Pass pass) {
        if (warmUpSize() > 0) {
            warmUp.run(pass, (long) (plan.warmUpSeconds() * NS_PER_S));
        }
    }

    /** A pass of the warm-up; always carried to its end. */
    private PassCost inOrder(long limitNs) {
        try (BlockIndex index = newIndex()) {
            final InOrderReplay replay = inOrder(index, warmUpSize());
            replay.run();
            return replay.cost();
        }
    }

    /** Adds how it was warmed up, and what this machine's pauses make of the percentiles. */
    private ForkResult withMore(ForkResult result) {
        final Map<Figure, Double> figures = new EnumMap<>(Figure.class);
        figures.putAll(result.figures());
        final long queries = stream.queries(warmUpSize());
        figures.put(Figure.WARM_UP_PASSES, (double) warmUp.passes());
        figures.put(Figure.WARM_UP_QUERIES, (double) warmUp.passes() * queries);
        figures.put(Figure.WARM_UP_EVENTS, (double) warmUp.passes() * (warmUpSize() - queries));
        figures.put(Figure.WARM_UP_SETTLED, warmUp.settled() ? 1.0 : 0.0);
        final Double meanUs = figures.get(Figure.QUERY_MEAN_US);
        if (meanUs != null && meanUs > 0) {
            final MachinePauses pauses = MachinePauses.ofThisJvm(usage);
            figures.put(
                    Figure.MACHINE_P999_US, pauses.floorNs(99.9, meanUs * NS_PER_US) / NS_PER_US);
            figures.put(
                    Figure.MACHINE_P9999_US, pauses.floorNs(99.99, meanUs * NS_PER_US) / NS_PER_US);
        }
        return new ForkResult(figures, result.latencies());
    }
}
