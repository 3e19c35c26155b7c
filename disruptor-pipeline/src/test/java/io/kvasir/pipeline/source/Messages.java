package io.kvasir.pipeline.source;

import org.msgpack.core.MessageBufferPacker;
import org.msgpack.core.MessagePack;
import org.msgpack.core.MessagePacker;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.math.BigInteger;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.stream.IntStream;

/** Makes engine messages out of plain Java values, with msgpack-core. */
public final class Messages {
    private Messages() {}

    /** A batch of three elements, as engines write it now. */
    public static byte[] batch(Object... events) {
        return pack(Arrays.asList(1.5, Arrays.asList(events), 0));
    }

    /** A store as a map; {@code more} are further keys and values in turn. */
    public static Map<String, Object> stored(
            List<?> hashes, Object parent, List<?> tokens, int blockSize, Object... more) {
        final Map<String, Object> event = new LinkedHashMap<>();
        event.put("type", "BlockStored");
        event.put("block_hashes", hashes);
        event.put("parent_block_hash", parent);
        event.put("token_ids", tokens);
        event.put("block_size", blockSize);
        return with(event, more);
    }

    /** A removal as a map; {@code more} are further keys and values in turn. */
    public static Map<String, Object> removed(List<?> hashes, Object... more) {
        final Map<String, Object> event = new LinkedHashMap<>();
        event.put("type", "BlockRemoved");
        event.put("block_hashes", hashes);
        return with(event, more);
    }

    /** The removal of everything, as a map. */
    public static Map<String, Object> cleared() {
        return Map.of("type", "AllBlocksCleared");
    }

    private static Map<String, Object> with(Map<String, Object> event, Object... more) {
        for (int i = 0; i < more.length; i += 2) {
            event.put((String) more[i], more[i + 1]);
        }
        return event;
    }

    /** The numbers {@code from} to {@code to}, both included. */
    public static List<Integer> range(int from, int to) {
        return IntStream.rangeClosed(from, to).boxed().toList();
    }

    /** A list that may contain null. */
    public static List<Object> list(Object... values) {
        return new ArrayList<>(Arrays.asList(values));
    }

    /** Packs nil, numbers, text, byte arrays, lists and maps. */
    public static byte[] pack(Object value) {
        try (MessageBufferPacker packer = MessagePack.newDefaultBufferPacker()) {
            pack(packer, value);
            return packer.toByteArray();
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    private static void pack(MessagePacker packer, Object value) throws IOException {
        switch (value) {
            case null -> packer.packNil();
            case Boolean b -> packer.packBoolean(b);
            case Integer i -> packer.packInt(i);
            case Long l -> packer.packLong(l);
            case BigInteger b -> packer.packBigInteger(b);
            case Double d -> packer.packDouble(d);
            case String s -> packer.packString(s);
            case byte[] b -> packer.packBinaryHeader(b.length).addPayload(b);
            case List<?> items -> {
                packer.packArrayHeader(items.size());
                for (Object item : items) {
                    pack(packer, item);
                }
            }
            case Map<?, ?> map -> {
                packer.packMapHeader(map.size());
                for (Map.Entry<?, ?> entry : map.entrySet()) {
                    pack(packer, entry.getKey());
                    pack(packer, entry.getValue());
                }
            }
            default -> throw new IllegalArgumentException("cannot pack " + value.getClass());
        }
    }
}
