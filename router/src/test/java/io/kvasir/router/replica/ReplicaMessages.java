package io.kvasir.router.replica;

import java.util.Arrays;
import java.util.List;

/** Messages for tests, and what they say as text. */
public final class ReplicaMessages {
    private static final ReplicaWorker WORKER = new ReplicaWorker(-3L, "w1", 2);

    private ReplicaMessages() {}

    /** One of each kind, and the largest, from a router. */
    public static List<ReplicaMessage> all(ReplicaOrigin from) {
        final long[] many = new long[4_096];
        Arrays.setAll(many, i -> (long) i << 32 | i);
        final int[] blocks = new int[many.length];
        Arrays.setAll(blocks, i -> i);
        return List.of(
                new ReplicaMessage.Added(
                        from, 1, 1L << 32, WORKER, 3, new long[] {11, -12}, -9, 3, 77, -1),
                new ReplicaMessage.Added(
                        from, 2, 2L << 32 | 5, WORKER, 0, new long[0], -9, 0, 0, 250),
                new ReplicaMessage.Added(from, 3, 3L << 32, WORKER, 4_096, many, -9, 0, 65_536, -1),
                new ReplicaMessage.Prefilled(from, 4, 1L << 32, WORKER),
                new ReplicaMessage.Freed(from, 5, 1L << 32, WORKER),
                new ReplicaMessage.Output(from, 6, new long[] {1L << 32, 7}, new int[] {4, 5}),
                new ReplicaMessage.Digest(from, 7, List.of()),
                new ReplicaMessage.Digest(
                        from,
                        8,
                        List.of(
                                new ReplicaMessage.WorkerSum(WORKER, 2, 100, 9, -1),
                                new ReplicaMessage.WorkerSum(
                                        new ReplicaWorker(1, "w2", 0), 0, 0, 0, 0))),
                new ReplicaMessage.Bookings(from, 9, WORKER, 1, 2, many, many, blocks),
                new ReplicaMessage.Ask(from, ReplicaMessage.Ask.ALL, List.of(), new long[0]),
                new ReplicaMessage.Ask(from, 99, List.of(WORKER), new long[] {5, -6}),
                new ReplicaMessage.Leaving(from));
    }

    /** All that a message says. */
    public static String text(ReplicaMessage message) {
        return switch (message) {
            case ReplicaMessage.Added m ->
                    "added %s %s %s %s %s %s %s %s %s %s"
                            .formatted(
                                    m.origin(),
                                    m.sequence(),
                                    m.booking(),
                                    m.worker(),
                                    m.pathBlocks(),
                                    Arrays.toString(m.localHashes()),
                                    m.hashCheck(),
                                    m.ownBlocks(),
                                    m.prefillTokens(),
                                    m.expectedOutputTokens());
            case ReplicaMessage.Output m ->
                    "output %s %s %s %s"
                            .formatted(
                                    m.origin(),
                                    m.sequence(),
                                    Arrays.toString(m.bookings()),
                                    Arrays.toString(m.ownBlocks()));
            case ReplicaMessage.Bookings m ->
                    "bookings %s %s %s %s %s %s %s %s"
                            .formatted(
                                    m.origin(),
                                    m.sequence(),
                                    m.worker(),
                                    m.part(),
                                    m.parts(),
                                    Arrays.toString(m.bookings()),
                                    Arrays.toString(m.prefillTokens()),
                                    Arrays.toString(m.ownBlocks()));
            case ReplicaMessage.Ask m ->
                    "ask %s %s %s %s"
                            .formatted(
                                    m.origin(),
                                    m.routerId(),
                                    m.workers(),
                                    Arrays.toString(m.bookings()));
            default -> message.toString(); // records without arrays
        };
    }
}
