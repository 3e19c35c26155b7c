package io.kvasir.nixl.vllm;

import java.nio.ByteBuffer;
import java.nio.charset.CharacterCodingException;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

/** Bytes of {@link VllmNotification}. */
final class NotificationCodec {
    static final String HEARTBEAT = "HB:";
    static final String PUSH_REGISTRATION = "PUSH_REG:";

    private static final byte[] PUSH_PREFIX = PUSH_REGISTRATION.getBytes(StandardCharsets.US_ASCII);
    private static final int PUSH_FIELDS = 11;
    private static final int MAX_COUNT_DIGITS = 9;

    private NotificationCodec() {}

    static VllmNotification parse(byte[] message) {
        if (startsWith(message, PUSH_PREFIX)) {
            try {
                return parsePush(message);
            } catch (VllmPeerException e) {
                return unknown(message); // the sender speaks another version
            }
        }
        final String text;
        try {
            text = StandardCharsets.UTF_8.newDecoder().decode(ByteBuffer.wrap(message)).toString();
        } catch (CharacterCodingException e) {
            return unknown(message);
        }
        if (text.startsWith(HEARTBEAT)) {
            return new VllmNotification.Heartbeat(
                    Arrays.stream(text.substring(HEARTBEAT.length()).split(",", -1))
                            .filter(id -> !id.isEmpty())
                            .toList());
        }
        return parseCompletion(text, message);
    }

    private static boolean startsWith(byte[] message, byte[] prefix) {
        return message.length >= prefix.length
                && Arrays.equals(message, 0, prefix.length, prefix, 0, prefix.length);
    }

    private static VllmNotification unknown(byte[] message) {
        return new VllmNotification.Unknown(OpaqueBytes.of(message));
    }

    /** The last colon separates: identifiers may have colons. */
    private static VllmNotification parseCompletion(String text, byte[] message) {
        final int colon = text.lastIndexOf(':');
        final String count = text.substring(colon + 1);
        if (colon < 0
                || count.isEmpty()
                || count.length() > MAX_COUNT_DIGITS
                || !count.chars().allMatch(c -> c >= '0' && c <= '9')
                || Integer.parseInt(count) < 1) {
            return unknown(message);
        }
        return new VllmNotification.Completion(text.substring(0, colon), Integer.parseInt(count));
    }

    private static VllmNotification parsePush(byte[] message) {
        final WireReader reader =
                new WireReader(
                        Arrays.copyOfRange(message, PUSH_PREFIX.length, message.length),
                        "push registration");
        final Map<String, String> strings = new HashMap<>();
        final Map<String, Integer> numbers = new HashMap<>();
        final Map<String, OpaqueBytes> others = new HashMap<>();
        List<List<Integer>> blocks = null;
        final int fields = reader.mapHeader("the map");
        for (int i = 0; i < fields; i++) {
            final String key = reader.string("a key");
            switch (key) {
                case "request_id",
                        "decode_engine_id",
                        "decode_host",
                        "remote_engine_id",
                        "remote_host" ->
                        strings.put(key, reader.string(key));
                case "decode_port",
                        "decode_tp_size",
                        "remote_port",
                        "remote_tp_size",
                        "remote_pp_size" ->
                        numbers.put(key, reader.integer(key));
                case "local_block_ids" -> blocks = blocks(reader, key);
                default -> others.put(key, reader.raw(key));
            }
        }
        reader.end();
        return new VllmNotification.PushRegistration(
                required(reader, strings, "request_id"),
                new VllmNotification.Endpoint(
                        required(reader, strings, "decode_engine_id"),
                        required(reader, strings, "decode_host"),
                        required(reader, numbers, "decode_port"),
                        required(reader, numbers, "decode_tp_size")),
                required(reader, blocks, "local_block_ids"),
                new VllmNotification.Endpoint(
                        required(reader, strings, "remote_engine_id"),
                        required(reader, strings, "remote_host"),
                        required(reader, numbers, "remote_port"),
                        required(reader, numbers, "remote_tp_size")),
                numbers.getOrDefault("remote_pp_size", 1),
                others);
    }

    /** Reads groups of blocks; a flat list is one group. */
    private static List<List<Integer>> blocks(WireReader reader, String key) {
        final int count = reader.arrayHeader(key);
        if (count == 0) {
            return List.of();
        }
        if (!reader.isArrayNext(key)) {
            final Integer[] flat = new Integer[count];
            for (int i = 0; i < count; i++) {
                flat[i] = reader.integer(key);
            }
            return List.of(List.of(flat));
        }
        final List<List<Integer>> groups = new ArrayList<>(count);
        for (int g = 0; g < count; g++) {
            groups.add(reader.list(key, () -> reader.integer(key)));
        }
        return groups;
    }

    private static <T> T required(WireReader reader, Map<String, T> values, String key) {
        return required(reader, values.get(key), key);
    }

    private static <T> T required(WireReader reader, T value, String key) {
        if (value == null) {
            throw reader.malformed("key " + key + " is missing", null);
        }
        return value;
    }

    static byte[] encode(VllmNotification.PushRegistration registration) {
        final WireWriter out = new WireWriter().raw(PUSH_PREFIX);
        out.map(PUSH_FIELDS + registration.others().size());
        out.string("request_id").string(registration.requestId());
        write(out, "decode", registration.decode());
        out.string("local_block_ids").array(registration.blocks().size());
        for (List<Integer> group : registration.blocks()) {
            out.array(group.size());
            group.forEach(out::integer);
        }
        write(out, "remote", registration.prefill());
        out.string("remote_pp_size").integer(registration.prefillPipelineRanks());
        registration.others().forEach((key, value) -> out.string(key).raw(value.toArray()));
        return out.toByteArray();
    }

    private static void write(WireWriter out, String side, VllmNotification.Endpoint endpoint) {
        out.string(side + "_engine_id").string(endpoint.engineId());
        out.string(side + "_host").string(endpoint.host());
        out.string(side + "_port").integer(endpoint.port());
        out.string(side + "_tp_size").integer(endpoint.tensorRanks());
    }
}
