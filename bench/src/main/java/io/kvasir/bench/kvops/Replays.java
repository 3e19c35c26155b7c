package io.kvasir.bench.kvops;

import java.io.IOException;

/** Carries out a plan in this JVM. */
final class Replays {
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
}
