package io.kvasir.pipeline.wire;

import io.kvasir.core.index.StorageTier;

import java.nio.charset.StandardCharsets;
import java.util.List;

/**
 * Writes the operations of a {@link KvBatch} as router events, byte for byte as other publishers of
 * them do, but for a word in stores that are hashed for EAGLE: a list in msgpack with its envelope,
 * or single ones in compact JSON. The batch's local hashes must be public ones. Each operation is
 * an event; they are numbered from a first number on.
 *
 * <p>Of a batch only {@link KvBatch.Kind#STORED}, {@link KvBatch.Kind#REMOVED} and {@link
 * KvBatch.Kind#CLEARED} have a form as router events.
 */
public final class RouterEventWriter {
    private static final int BYTES_PER_EVENT = 192;

    private RouterEventWriter() {}

    /**
     * The payload of an envelope: the list of a batch's operations.
     *
     * @param workerId the worker, 64 unsigned bits
     * @param dpRank its data-parallel rank
     * @param firstEventId number of the first operation
     * @param batch what happened
     * @throws IllegalArgumentException if an operation has no form as a router event
     */
    public static byte[] payload(long workerId, int dpRank, long firstEventId, KvBatch batch) {
        final MsgpackWriter out = new MsgpackWriter(BYTES_PER_EVENT * (1 + batch.operations()));
        out.array(batch.operations());
        long eventId = firstEventId;
        for (int at = batch.first(); at >= 0; at = batch.next(at)) {
            event(out, workerId, dpRank, eventId++, batch, at);
        }
        return out.toArray();
    }

    /**
     * One operation as an element of such a list.
     *
     * @param workerId the worker, 64 unsigned bits
     * @param dpRank its data-parallel rank
     * @param eventId number of the operation
     * @param batch holds the operation
     * @param at its cursor
     * @throws IllegalArgumentException if the operation has no form as a router event
     */
    public static byte[] event(long workerId, int dpRank, long eventId, KvBatch batch, int at) {
        final MsgpackWriter out = new MsgpackWriter(BYTES_PER_EVENT);
        event(out, workerId, dpRank, eventId, batch, at);
        return out.toArray();
    }

    /**
     * The payload of an envelope: a list of events.
     *
     * @param events each from {@link #event}
     */
    public static byte[] payload(List<byte[]> events) {
        int bytes = BYTES_PER_EVENT;
        for (byte[] event : events) {
            bytes += event.length;
        }
        final MsgpackWriter out = new MsgpackWriter(bytes).array(events.size());
        events.forEach(out::raw);
        return out.toArray();
    }

    private static void event(
            MsgpackWriter out, long workerId, int dpRank, long eventId, KvBatch batch, int at) {
        out.map(4).text(RouterEventNames.WORKER_ID).unsigned(workerId);
        out.text(RouterEventNames.STORAGE_TIER).text(RouterEventNames.of(batch.tier(at)));
        out.text(RouterEventNames.RESIDENCY_DOMAIN).text(RouterEventNames.WORKER);
        out.text(RouterEventNames.EVENT).map(3);
        out.text(RouterEventNames.EVENT_ID).unsigned(eventId);
        out.text(RouterEventNames.DATA);
        data(out, batch, at);
        out.text(RouterEventNames.DP_RANK).unsigned(dpRank);
    }

    private static void data(MsgpackWriter out, KvBatch batch, int at) {
        switch (batch.kind(at)) {
            case STORED -> stored(out.map(1).text(RouterEventNames.STORED), batch, at);
            case REMOVED -> {
                out.map(1).text(RouterEventNames.REMOVED);
                out.map(1).text(RouterEventNames.BLOCK_HASHES);
                final long[] hashes = engineHashes(batch, at);
                out.array(hashes.length);
                for (long hash : hashes) {
                    out.unsigned(hash);
                }
            }
            case CLEARED -> out.text(RouterEventNames.CLEARED);
            case REMOVED_TO, REFILL, NAMED, TIER_CLEARED -> throw noForm(batch, at);
        }
    }

    private static void stored(MsgpackWriter out, KvBatch batch, int at) {
        out.map(batch.eagle() ? 4 : 3).text(RouterEventNames.PARENT_HASH);
        if (batch.isRoot(at)) {
            out.nil();
        } else {
            out.unsigned(batch.parent(at));
        }
        out.text(RouterEventNames.START_POSITION).nil();
        final long[] names = engineHashes(batch, at);
        final long[] locals = localHashes(batch, at);
        out.text(RouterEventNames.BLOCKS).array(names.length);
        for (int i = 0; i < names.length; i++) {
            out.map(3).text(RouterEventNames.BLOCK_HASH).unsigned(names[i]);
            out.text(RouterEventNames.TOKENS_HASH).unsigned(locals[i]);
            out.text(RouterEventNames.MM_EXTRA_INFO).nil();
        }
        if (batch.eagle()) {
            out.text(RouterEventNames.EAGLE).unsigned(1);
        }
    }

    /**
     * The message around a payload.
     *
     * @param publisherId the publisher's own random number
     * @param sequence how many messages it has sent before
     * @param publishedAtMs time in milliseconds since 1970
     * @param topic what the payload is about
     * @param payload from {@link #payload}
     */
    public static byte[] envelope(
            long publisherId, long sequence, long publishedAtMs, String topic, byte[] payload) {
        return new MsgpackWriter(BYTES_PER_EVENT + payload.length)
                .map(5)
                .text(RouterEventNames.PUBLISHER_ID)
                .unsigned(publisherId)
                .text(RouterEventNames.SEQUENCE)
                .unsigned(sequence)
                .text(RouterEventNames.PUBLISHED_AT)
                .unsigned(publishedAtMs)
                .text(RouterEventNames.TOPIC)
                .text(topic.getBytes(StandardCharsets.UTF_8))
                .text(RouterEventNames.PAYLOAD)
                .binary(payload)
                .toArray();
    }

    /**
     * One operation as a JSON message.
     *
     * @param workerId the worker, 64 unsigned bits
     * @param dpRank its data-parallel rank
     * @param eventId number of the operation
     * @param batch holds the operation
     * @param at its cursor
     * @throws IllegalArgumentException if the operation has no form as a router event
     */
    public static byte[] json(long workerId, int dpRank, long eventId, KvBatch batch, int at) {
        final StringBuilder out = new StringBuilder(BYTES_PER_EVENT);
        out.append("{\"worker_id\":").append(Long.toUnsignedString(workerId));
        if (batch.tier(at) != StorageTier.DEVICE) {
            final byte[] tier = RouterEventNames.of(batch.tier(at));
            out.append(",\"storage_tier\":\"");
            out.append(new String(tier, StandardCharsets.US_ASCII)).append('"');
        }
        out.append(",\"event\":{\"event_id\":").append(eventId).append(",\"data\":");
        switch (batch.kind(at)) {
            case STORED -> stored(out, batch, at);
            case REMOVED -> {
                out.append("{\"removed\":{\"block_hashes\":[");
                char separator = 0;
                for (long hash : engineHashes(batch, at)) {
                    separator = separate(out, separator);
                    out.append(Long.toUnsignedString(hash));
                }
                out.append("]}}");
            }
            case CLEARED -> out.append("\"cleared\"");
            case REMOVED_TO, REFILL, NAMED, TIER_CLEARED -> throw noForm(batch, at);
        }
        out.append(",\"dp_rank\":").append(dpRank).append("}}");
        return out.toString().getBytes(StandardCharsets.US_ASCII);
    }

    private static void stored(StringBuilder out, KvBatch batch, int at) {
        out.append("{\"stored\":{\"parent_hash\":");
        out.append(batch.isRoot(at) ? "null" : Long.toUnsignedString(batch.parent(at)));
        out.append(",\"blocks\":[");
        final long[] names = engineHashes(batch, at);
        final long[] locals = localHashes(batch, at);
        char separator = 0;
        for (int i = 0; i < names.length; i++) {
            separator = separate(out, separator);
            out.append("{\"block_hash\":").append(Long.toUnsignedString(names[i]));
            out.append(",\"tokens_hash\":").append(Long.toUnsignedString(locals[i])).append('}');
        }
        out.append(batch.eagle() ? "],\"eagle\":1}}" : "]}}");
    }

    private static char separate(StringBuilder out, char separator) {
        if (separator != 0) {
            out.append(separator);
        }
        return ',';
    }

    private static long[] engineHashes(KvBatch batch, int at) {
        final long[] hashes = new long[batch.count(at)];
        batch.engineHashes(at, hashes);
        return hashes;
    }

    private static long[] localHashes(KvBatch batch, int at) {
        final long[] hashes = new long[batch.count(at)];
        batch.localHashes(at, hashes);
        return hashes;
    }

    private static IllegalArgumentException noForm(KvBatch batch, int at) {
        return new IllegalArgumentException(
                batch.kind(at) + " has no form as a router event; write removals of last copies");
    }
}
