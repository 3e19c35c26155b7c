package io.kvasir.nats.replica;

import io.kvasir.router.replica.ReplicaMessage;
import io.kvasir.router.replica.ReplicaOrigin;
import io.kvasir.router.replica.ReplicaWorker;

import java.io.IOException;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/** Messages that only Kvasir has, as maps: digests, lists, questions, ends. */
final class FleetMessages {
    private static final int VERSION = 1;

    private FleetMessages() {}

    // -- writing -----------------------------------------------------------------------------

    static Map<String, Object> map(ReplicaMessage message) {
        final Map<String, Object> map = new LinkedHashMap<>();
        map.put("version", VERSION);
        map.put("router_id", message.origin().routerId());
        map.put("incarnation", message.origin().incarnation());
        map.put("sequence", message.sequence());
        switch (message) {
            case ReplicaMessage.Output output -> {
                map.put("kind", "output");
                map.put("bookings", Fields.pack(output.bookings()));
                map.put("own_blocks", Fields.pack(output.ownBlocks()));
            }
            case ReplicaMessage.Digest digest -> {
                map.put("kind", "digest");
                map.put("workers", digest.workers().stream().map(FleetMessages::sum).toList());
            }
            case ReplicaMessage.Bookings list -> {
                map.put("kind", "bookings");
                map.put("worker", worker(list.worker()));
                map.put("part", list.part());
                map.put("parts", list.parts());
                map.put("bookings", Fields.pack(list.bookings()));
                map.put("prefill_tokens", Fields.pack(list.prefillTokens()));
                map.put("own_blocks", Fields.pack(list.ownBlocks()));
            }
            case ReplicaMessage.Ask ask -> {
                map.put("kind", "ask");
                map.put("asked_router_id", ask.routerId());
                map.put("workers", ask.workers().stream().map(FleetMessages::worker).toList());
                map.put("bookings", Fields.pack(ask.bookings()));
            }
            case ReplicaMessage.Leaving _ -> map.put("kind", "leaving");
            case ReplicaMessage.OfBooking one ->
                    throw new IllegalArgumentException("has a form of its own: " + one);
        }
        return map;
    }

    private static Map<String, Object> sum(ReplicaMessage.WorkerSum sum) {
        final Map<String, Object> map = worker(sum.worker());
        map.put("bookings", sum.bookings());
        map.put("prefill_tokens", sum.prefillTokens());
        map.put("own_blocks", sum.ownBlocks());
        map.put("numbers", sum.numbers());
        return map;
    }

    private static Map<String, Object> worker(ReplicaWorker worker) {
        final Map<String, Object> map = new LinkedHashMap<>();
        map.put("worker_id", worker.id());
        map.put("dp_rank", worker.dpRank());
        map.put("worker", worker.name());
        return map;
    }

    // -- reading -----------------------------------------------------------------------------

    /**
     * Reads a message.
     *
     * @return null for a kind of a later version
     * @throws IOException saying what cannot be read
     */
    static ReplicaMessage message(Object tree) throws IOException {
        final Fields map = Fields.of(tree);
        final ReplicaOrigin origin =
                new ReplicaOrigin(map.number("router_id"), map.number("incarnation"));
        final long sequence = map.number("sequence");
        return switch (map.text("kind")) {
            case "output" -> {
                final long[] bookings = map.packed("bookings");
                yield new ReplicaMessage.Output(
                        origin,
                        sequence,
                        bookings,
                        map.packedCounts("own_blocks", bookings.length));
            }
            case "digest" -> new ReplicaMessage.Digest(origin, sequence, sums(map.list("workers")));
            case "bookings" -> bookings(map, origin, sequence);
            case "ask" -> {
                final List<ReplicaWorker> workers = new ArrayList<>();
                for (Object item : map.list("workers")) {
                    workers.add(worker(Fields.of(item)));
                }
                yield new ReplicaMessage.Ask(
                        origin, map.number("asked_router_id"), workers, map.packed("bookings"));
            }
            case "leaving" -> new ReplicaMessage.Leaving(origin);
            default -> null;
        };
    }

    private static ReplicaMessage bookings(Fields map, ReplicaOrigin origin, long sequence)
            throws IOException {
        final long[] bookings = map.packed("bookings");
        final int parts = map.count("parts", 1 << 16);
        final int part = map.count("part", Math.max(0, parts - 1));
        return new ReplicaMessage.Bookings(
                origin,
                sequence,
                worker(map.fields("worker")),
                part,
                parts,
                bookings,
                map.packed("prefill_tokens", bookings.length),
                map.packedCounts("own_blocks", bookings.length));
    }

    private static List<ReplicaMessage.WorkerSum> sums(List<?> items) throws IOException {
        final List<ReplicaMessage.WorkerSum> sums = new ArrayList<>();
        for (Object item : items) {
            final Fields sum = Fields.of(item);
            sums.add(
                    new ReplicaMessage.WorkerSum(
                            worker(sum),
                            sum.count("bookings", Integer.MAX_VALUE),
                            sum.number("prefill_tokens"),
                            sum.number("own_blocks"),
                            sum.number("numbers")));
        }
        return sums;
    }

    private static ReplicaWorker worker(Fields map) throws IOException {
        return new ReplicaWorker(
                map.number("worker_id"),
                map.text("worker"),
                map.count("dp_rank", Integer.MAX_VALUE));
    }
}
