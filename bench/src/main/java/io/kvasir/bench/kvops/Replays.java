package io.kvasir.bench.kvops;

import java.io.IOException;
import java.util.EnumMap;
import java.util.Map;

/** Carries out a plan in this JVM. */
final class Replays {
    private static final long PAUSES_NS = 1_000_000_000;
    private static final double NS_PER_US = 1_000;

    private Replays() {}

    /**
     * Decodes the stream, warms up, measures.
     *
     * @param live what the index must have room for
     * @throws KvopsFormatException if the stream is not well-formed
     * @throws IOException if it cannot be read
     */
    static ForkResult run(ReplayPlan plan, LiveMaximum live) throws IOException {
        final KvopsStream stream = KvopsStream.read(plan.file());
        for (int round = 0; plan.warmUp() > 0 && round < ReplayPlan.WARM_UP_ROUNDS; round++) {
            try (BlockIndex index = Indexes.make(plan.index(), stream.header(), live)) {
                final int operations = (int) Math.min(stream.size(), plan.warmUp());
                new InOrderReplay(stream, operations, index, ThreadUsage.ofCurrentThread()).run();
            }
        }
        return withFloor(measured(plan, stream, live));
    }

    private static ForkResult measured(ReplayPlan plan, KvopsStream stream, LiveMaximum live) {
        return switch (plan.mode()) {
            case INORDER -> {
                try (BlockIndex index = Indexes.make(plan.index(), stream.header(), live)) {
                    yield new InOrderReplay(
                                    stream, stream.size(), index, ThreadUsage.ofCurrentThread())
                            .run();
                }
            }
            case BESIDE -> new BesideReplay(plan, stream, live).run();
            case OPENLOOP -> {
                try (BlockIndex index = Indexes.make(plan.index(), stream.header(), live)) {
                    yield new OpenLoopReplay(plan, stream, index).run();
                }
            }
        };
    }

    /** Adds what this machine's pauses alone would make of the percentiles. */
    private static ForkResult withFloor(ForkResult result) {
        final Map<Figure, Double> figures = new EnumMap<>(result.figures());
        final Double meanUs = figures.get(Figure.QUERY_MEAN_US);
        if (meanUs != null && meanUs > 0) {
            final MachinePauses pauses =
                    MachinePauses.measure(ThreadUsage.ofCurrentThread(), PAUSES_NS);
            figures.put(
                    Figure.MACHINE_P999_US, pauses.floorNs(99.9, meanUs * NS_PER_US) / NS_PER_US);
            figures.put(
                    Figure.MACHINE_P9999_US, pauses.floorNs(99.99, meanUs * NS_PER_US) / NS_PER_US);
        }
        return new ForkResult(figures, result.latencies());
    }
}
