package io.kvasir.pipeline.source;

import io.kvasir.core.hash.BlockHasher;
import io.kvasir.testsupport.NaivePrefixIndex;

import org.msgpack.core.MessagePack;
import org.msgpack.core.MessageUnpacker;
import org.msgpack.value.ArrayValue;
import org.msgpack.value.Value;
import org.msgpack.value.ValueFactory;

import java.io.IOException;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;

/**
 * Applies event batches to a naive index by way of msgpack-core's object model: slow, and written
 * without a look at the decoder under test. Understands what the recordings contain.
 */
final class OracleDecoder {
    private static final List<String> STORED =
            List.of(
                    "block_hashes",
                    "parent_block_hash",
                    "token_ids",
                    "block_size",
                    "lora_id",
                    "medium",
                    "lora_name",
                    "extra_keys");

    private final NaivePrefixIndex index;
    private final int slot;
    private final int blockSize;
    private final Map<Long, String> saltOf = new HashMap<>();
    private final Map<String, Integer> counts = new TreeMap<>();

    OracleDecoder(NaivePrefixIndex index, int slot, int blockSize) {
        this.index = index;
        this.slot = slot;
        this.blockSize = blockSize;
    }

    /** Number of events by type and outcome. */
    Map<String, Integer> counts() {
        return counts;
    }

    void apply(byte[] payload) throws IOException {
        try (MessageUnpacker unpacker = MessagePack.newDefaultUnpacker(payload)) {
            final Value batch = unpacker.unpackValue();
            for (Value event : batch.asArrayValue().get(1).asArrayValue()) {
                apply(fields(event));
            }
        }
    }

    private static Map<String, Value> fields(Value event) {
        final Map<String, Value> fields = new HashMap<>();
        if (event.isMapValue()) {
            event.asMapValue()
                    .entrySet()
                    .forEach(e -> fields.put(e.getKey().asStringValue().asString(), e.getValue()));
            return fields;
        }
        final ArrayValue array = event.asArrayValue();
        fields.put("type", array.get(0));
        final boolean stored = array.get(0).asStringValue().asString().equals("BlockStored");
        for (int i = 1; i < array.size(); i++) {
            fields.put(
                    stored ? STORED.get(i - 1) : List.of("block_hashes", "medium").get(i - 1),
                    array.get(i));
        }
        if (stored && array.get(2).equals(ValueFactory.newInteger(0))) {
            fields.put("parent_block_hash", ValueFactory.newNil());
        }
        return fields;
    }

    private void apply(Map<String, Value> event) {
        final String type = event.get("type").asStringValue().asString();
        final String outcome =
                switch (type) {
                    case "BlockStored" -> store(event).name();
                    case "BlockRemoved" ->
                            index.remove(slot, hashes(event.get("block_hashes")), false) == 0
                                    ? "KNOWN"
                                    : "UNKNOWN";
                    case "AllBlocksCleared" -> {
                        index.clear(slot);
                        yield "DONE";
                    }
                    default -> "IGNORED";
                };
        counts.merge(type + " " + outcome, 1, Integer::sum);
    }

    private NaivePrefixIndex.Outcome store(Map<String, Value> event) {
        final long[] hashes = hashes(event.get("block_hashes"));
        final boolean root = event.get("parent_block_hash").isNilValue();
        final long parent = root ? 0 : hash(event.get("parent_block_hash"));
        final List<Integer> tokens = new ArrayList<>();
        event.get("token_ids")
                .asArrayValue()
                .forEach(t -> tokens.add((int) t.asIntegerValue().toLong()));
        final String lora = text(event.get("lora_name"));
        String salt = root ? text(event.get("cache_salt")) : saltOf.get(parent);
        final Value extra = event.get("extra_keys");
        if (root && extra != null && extra.isArrayValue()) {
            final Value first = extra.asArrayValue().get(0);
            if (first.isArrayValue()) {
                for (Value key : first.asArrayValue()) {
                    if (!key.asStringValue().asString().equals(lora)) {
                        salt = key.asStringValue().asString();
                    }
                }
            }
        }
        if (salt != null) {
            for (long hash : hashes) {
                saltOf.put(hash, salt);
            }
        }
        final int[] ids = tokens.stream().mapToInt(Integer::intValue).toArray();
        final long[] locals = new long[hashes.length];
        BlockHasher.localHashes(
                ids, 0, ids.length, blockSize, BlockHasher.seed(lora, salt), locals);
        return index.store(slot, root, parent, hashes, locals, false);
    }

    private static String text(Value value) {
        return value == null || value.isNilValue() ? null : value.asStringValue().asString();
    }

    private static long[] hashes(Value list) {
        return list.asArrayValue().list().stream().mapToLong(OracleDecoder::hash).toArray();
    }

    private static long hash(Value value) {
        if (value.isBinaryValue()) {
            final byte[] bytes = value.asBinaryValue().asByteArray();
            return new java.math.BigInteger(1, bytes).longValue();
        }
        return value.asIntegerValue().toBigInteger().longValue();
    }
}
