package io.kvasir.nats.replica;

import io.kvasir.core.hash.BlockHasher;
import io.kvasir.router.replica.ReplicaMessage;
import io.kvasir.router.replica.ReplicaOrigin;
import io.kvasir.router.replica.ReplicaWorker;

import java.io.IOException;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.UUID;

/**
 * Messages about one booking as maps that routers of other makes read, with what Kvasir adds under
 * one key that they ignore; and their maps as messages.
 */
final class BookingEvents {
    /** What Kvasir adds. */
    static final String OWN = "kvasir";

    private static final int VERSION = 1;
    private static final int MAX_BLOCKS = 1 << 24;
    private static final long[] NO_HASHES = {};
    private static final long FNV_BASIS = 0xcbf29ce484222325L;
    private static final long FNV_PRIME = 0x100000001b3L;

    private final int blockSize;

    /**
     * @param blockSize tokens of a block here, by which old messages count what is cached
     */
    BookingEvents(int blockSize) {
        this.blockSize = blockSize;
    }

    // -- writing -----------------------------------------------------------------------------

    static Map<String, Object> event(ReplicaMessage.OfBooking message, WireForm form) {
        final boolean json = form == WireForm.JSON;
        final ReplicaOrigin origin = message.origin();
        final Map<String, Object> worker = new LinkedHashMap<>();
        worker.put("worker_id", message.worker().id());
        worker.put("dp_rank", message.worker().dpRank());
        final Map<String, Object> event = new LinkedHashMap<>();
        event.put("request_id", requestId(origin, message.booking()));
        event.put("worker", worker);
        event.put("data", data(message, json));
        event.put(
                "router_id",
                json ? new UUID(0, origin.routerId()).toString() : (Object) origin.routerId());
        if (!json) {
            event.put("lora_name", null);
        }
        event.put(OWN, own(message));
        return event;
    }

    private static String requestId(ReplicaOrigin origin, long booking) {
        return "kvasir-"
                + Long.toHexString(origin.routerId())
                + "-"
                + Long.toHexString(origin.incarnation())
                + "-"
                + Long.toHexString(booking);
    }

    private static Object data(ReplicaMessage.OfBooking message, boolean json) {
        return switch (message) {
            case ReplicaMessage.Added added -> Map.of("AddRequest", addRequest(added, json));
            case ReplicaMessage.Prefilled _ -> "MarkPrefillCompleted";
            case ReplicaMessage.Freed _ -> "Free";
        };
    }

    private static Map<String, Object> addRequest(ReplicaMessage.Added added, boolean json) {
        final long[] sequence = new long[added.localHashes().length];
        BlockHasher.sequenceHashes(added.localHashes(), sequence.length, sequence);
        final Map<String, Object> request = new LinkedHashMap<>();
        request.put("token_sequence", sequence);
        if (json) {
            request.put("isl", added.prefillTokens());
            request.put("overlap", 0);
        } else {
            final Map<String, Object> hint = new LinkedHashMap<>();
            hint.put("initial_effective_prefill_tokens", added.prefillTokens());
            hint.put("expected_prefill_duration", null);
            request.put("track_prefill_tokens", true);
            request.put(
                    "expected_output_tokens",
                    added.expectedOutputTokens() < 0 ? null : added.expectedOutputTokens());
            request.put("prefill_load_hint", hint);
        }
        return request;
    }

    private static Map<String, Object> own(ReplicaMessage.OfBooking message) {
        final Map<String, Object> own = new LinkedHashMap<>();
        own.put("version", VERSION);
        own.put("incarnation", message.origin().incarnation());
        own.put("sequence", message.sequence());
        own.put("booking", message.booking());
        own.put("worker", message.worker().name());
        if (message instanceof ReplicaMessage.Added added) {
            own.put("path_blocks", added.pathBlocks());
            own.put("local_hashes", Fields.pack(added.localHashes()));
            own.put("hash_check", added.hashCheck());
            own.put("own_blocks", added.ownBlocks());
            own.put("prefill_tokens", added.prefillTokens());
        }
        return own;
    }

    // -- reading -----------------------------------------------------------------------------

    /**
     * Reads an event of Kvasir or of another make.
     *
     * @throws IOException saying what cannot be read
     */
    ReplicaMessage message(Fields event) throws IOException {
        final Fields worker = event.fields("worker");
        final long workerId = worker.number("worker_id");
        final int dpRank = worker.count("dp_rank", Integer.MAX_VALUE);
        final long routerId = routerId(event.value("router_id"));
        if (!event.has(OWN)) {
            return message(
                    event,
                    null,
                    new ReplicaOrigin(routerId, ReplicaOrigin.FOREIGN),
                    ReplicaMessage.NO_SEQUENCE,
                    hash(event.text("request_id")),
                    new ReplicaWorker(workerId, "", dpRank));
        }
        final Fields own = event.fields(OWN);
        return message(
                event,
                own,
                new ReplicaOrigin(routerId, own.number("incarnation")),
                own.number("sequence"),
                own.number("booking"),
                new ReplicaWorker(workerId, own.text("worker"), dpRank));
    }

    private ReplicaMessage message(
            Fields event,
            Fields ownOrNull,
            ReplicaOrigin origin,
            long sequence,
            long booking,
            ReplicaWorker worker)
            throws IOException {
        return switch (event.value("data")) {
            case String s when s.equals("MarkPrefillCompleted") ->
                    new ReplicaMessage.Prefilled(origin, sequence, booking, worker);
            case String s when s.equals("Free") ->
                    new ReplicaMessage.Freed(origin, sequence, booking, worker);
            case Map<?, ?> data when data.get("AddRequest") instanceof Map<?, ?> request ->
                    ownOrNull == null
                            ? foreign(new Fields(request), origin, booking, worker)
                            : added(
                                    ownOrNull,
                                    origin,
                                    sequence,
                                    booking,
                                    worker,
                                    expectedOutput(new Fields(request)));
            case null, default -> throw new IOException("unknown data: " + event.value("data"));
        };
    }

    private static ReplicaMessage added(
            Fields own,
            ReplicaOrigin origin,
            long sequence,
            long booking,
            ReplicaWorker worker,
            int expectedOutput)
            throws IOException {
        final long[] hashes = own.packed("local_hashes");
        final int pathBlocks = own.count("path_blocks", MAX_BLOCKS);
        if (hashes.length > pathBlocks) {
            throw new IOException(hashes.length + " hashes of path_blocks=" + pathBlocks);
        }
        return new ReplicaMessage.Added(
                origin,
                sequence,
                booking,
                worker,
                pathBlocks,
                hashes,
                own.number("hash_check"),
                own.count("own_blocks", MAX_BLOCKS),
                own.count("prefill_tokens", Integer.MAX_VALUE),
                expectedOutput);
    }

    /** A booking of another make: its sequence hashes say how many blocks, not which. */
    private ReplicaMessage foreign(
            Fields request, ReplicaOrigin origin, long booking, ReplicaWorker worker)
            throws IOException {
        final int blocks =
                request.value("token_sequence") instanceof long[] hashes
                        ? Math.min(MAX_BLOCKS, hashes.length)
                        : 0;
        return new ReplicaMessage.Added(
                origin,
                ReplicaMessage.NO_SEQUENCE,
                booking,
                worker,
                blocks,
                NO_HASHES,
                0,
                0,
                Math.clamp(foreignPrefillTokens(request), 0, Integer.MAX_VALUE),
                expectedOutput(request));
    }

    private long foreignPrefillTokens(Fields request) throws IOException {
        if (Boolean.FALSE.equals(request.value("track_prefill_tokens"))) {
            return 0;
        }
        if (request.has("prefill_load_hint")) {
            return request.fields("prefill_load_hint")
                    .number("initial_effective_prefill_tokens", 0);
        }
        return request.number("isl", 0) - request.number("overlap", 0) * blockSize;
    }

    private static int expectedOutput(Fields request) {
        return (int)
                Math.clamp(request.number("expected_output_tokens", -1), -1L, Integer.MAX_VALUE);
    }

    /** A router's number; of one that has a UUID or another name, a hash. */
    private static long routerId(Object value) throws IOException {
        return switch (value) {
            case Long number -> number;
            case String name -> {
                final UUID uuid = uuid(name);
                yield uuid != null && uuid.getMostSignificantBits() == 0
                        ? uuid.getLeastSignificantBits()
                        : hash(name);
            }
            case null, default -> throw new IOException("router_id=" + value);
        };
    }

    /** Null where it is none. */
    private static UUID uuid(String name) {
        try {
            return UUID.fromString(name);
        } catch (IllegalArgumentException e) {
            return null;
        }
    }

    /** FNV-1a of a name, 64 bits, by its UTF-16 units. */
    private static long hash(String name) {
        long hash = FNV_BASIS;
        for (int i = 0; i < name.length(); i++) {
            hash = (hash ^ name.charAt(i)) * FNV_PRIME;
        }
        return hash;
    }

    /** Reads one event, or a batch of them. */
    void readAll(Object tree, List<ReplicaMessage> out) throws IOException {
        final Fields fields = Fields.of(tree);
        if (fields.has("events")) {
            for (Object event : fields.list("events")) {
                out.add(message(Fields.of(event)));
            }
        } else {
            out.add(message(fields));
        }
    }
}
