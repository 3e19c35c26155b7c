package io.kvasir.registry;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.core.StreamReadFeature;
import com.fasterxml.jackson.databind.DeserializationFeature;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.json.JsonMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;

import io.kvasir.registry.RegistryException.Kind;

import java.io.IOException;
import java.util.Map;
import java.util.Set;

/** The document of a registration, version 1: {@code docs/spec/registration.md}. */
final class RegistrationCodec {
    private static final int VERSION = 1;

    private static final JsonMapper JSON =
            JsonMapper.builder()
                    .enable(StreamReadFeature.STRICT_DUPLICATE_DETECTION)
                    .enable(DeserializationFeature.FAIL_ON_TRAILING_TOKENS)
                    .build();

    private RegistrationCodec() {}

    static byte[] encode(Registration r) {
        final ObjectNode out = JSON.createObjectNode();
        out.put("version", VERSION);
        out.put("namespace", r.id().namespace());
        out.put("component", r.id().component());
        out.put("endpoint", r.id().endpoint());
        out.put("instance", r.id().instance());
        out.put("generation", r.generation());
        out.put("state", Fields.spelling(r.state()));
        putIfSet(out, "model_name", r.modelName());
        putIfSet(out, "model_path", r.modelPath());
        out.put("input", Fields.spelling(r.input()));
        final ArrayNode types = out.putArray("types");
        r.types().forEach(type -> types.add(Fields.spelling(type)));
        out.put("role", Fields.spelling(r.role()));
        out.put("url", r.url().toString());
        out.put("dp_ranks", r.dpRanks());
        putIfSet(out, "block_size", r.blockSize());
        if (r.events() != null) {
            final ObjectNode events = out.putObject("events");
            events.put("endpoint", r.events().endpoint());
            putIfSet(events, "replay", r.events().replay());
            events.put("bind", r.events().bind());
            events.put("topic", r.events().topic());
            events.put("removals", r.events().removals());
            putIfSet(events, "rank", r.events().rank());
        }
        if (r.plane() != null) {
            final ObjectNode plane = out.putObject("event_plane");
            plane.put("worker_id", r.plane().workerId());
            plane.put("rank", r.plane().rank());
        }
        if (r.handoff() != null) {
            final ObjectNode handoff = out.putObject("handoff");
            handoff.put("protocol", r.handoff().protocol());
            putIfSet(handoff, "bootstrap", r.handoff().bootstrap());
        }
        if (!r.labels().isEmpty()) {
            r.labels().forEach(out.putObject("labels")::put);
        }
        if (!r.limits().equals(Registration.Limits.UNKNOWN)) {
            final ObjectNode limits = out.putObject("limits");
            putIfSet(limits, "kv_blocks", r.limits().kvBlocks());
            putIfSet(limits, "max_batched_tokens", r.limits().maxBatchedTokens());
        }
        if (!r.adapters().names().isEmpty()) {
            r.adapters().names().forEach(out.putArray("lora")::add);
        }
        if (!r.adapters().numbers().isEmpty()) {
            r.adapters().numbers().forEach(out.putObject("lora_ids")::put);
        }
        if (!r.taints().isEmpty()) {
            r.taints().forEach(out.putArray("taints")::add);
        }
        return bytes(out, Fields.spelling(r.state()));
    }

    /** What readers refuse is not written, nor what could not be marked as draining. */
    private static byte[] bytes(ObjectNode out, String state) {
        final byte[] document;
        try {
            document = JSON.writeValueAsBytes(out);
        } catch (JsonProcessingException e) {
            throw new AssertionError("a tree of texts and numbers can be written", e);
        }
        final int draining =
                document.length + Fields.spelling(InstanceState.DRAINING).length() - state.length();
        if (draining > Registration.MAX_BYTES) {
            throw new RegistryException(
                    Kind.MALFORMED,
                    "a registration of "
                            + draining
                            + " bytes, at most "
                            + Registration.MAX_BYTES
                            + " are read; name fewer or shorter adapters (lora, lora_ids) or"
                            + " labels");
        }
        return document;
    }

    private static void putIfSet(ObjectNode out, String key, String value) {
        if (value != null) {
            out.put(key, value);
        }
    }

    private static void putIfSet(ObjectNode out, String key, long value) {
        if (value != 0) {
            out.put(key, value);
        }
    }

    static Registration decode(byte[] document) {
        try {
            return read(Fields.of(tree(document)));
        } catch (IllegalArgumentException e) {
            throw new RegistryException(
                    Kind.MALFORMED, "a registration cannot be read: " + e.getMessage(), e);
        }
    }

    private static JsonNode tree(byte[] document) {
        if (document.length > Registration.MAX_BYTES) {
            throw new IllegalArgumentException(
                    document.length + " bytes, at most " + Registration.MAX_BYTES + " are read");
        }
        try {
            return JSON.readTree(document);
        } catch (IOException e) { // a CharConversionException: it begins as UTF-32, and is none
            throw new IllegalArgumentException(FailureText.of(e), e);
        }
    }

    private static Registration read(Fields in) {
        final long version = in.number("version", 1, Integer.MAX_VALUE);
        if (version != VERSION) {
            throw new IllegalArgumentException(
                    "version=" + version + ", only version " + VERSION + " is known here");
        }
        final Set<ModelType> types = in.choices("types", ModelType.class);
        return new Registration(
                new InstanceId(
                        in.text("namespace"),
                        in.text("component"),
                        in.text("endpoint"),
                        in.text("instance")),
                in.number("generation", 1, Long.MAX_VALUE),
                in.choice("state", InstanceState.class),
                in.textOrNull("model_name"),
                in.textOrNull("model_path"),
                in.choice("input", ModelInput.class),
                types,
                in.has("role") ? in.choice("role", InstanceRole.class) : InstanceRole.of(types),
                in.url("url"),
                (int) in.number("dp_ranks", 1, 1 << 16),
                in.has("block_size") ? (int) in.number("block_size", 1, 1 << 20) : 0,
                in.has("events") ? events(in.object("events")) : null,
                in.has("handoff") ? handoff(in.object("handoff")) : null,
                in.has("labels") ? in.object("labels").texts() : Map.of(),
                in.has("limits") ? limits(in.object("limits")) : Registration.Limits.UNKNOWN,
                in.has("event_plane") ? plane(in.object("event_plane")) : null,
                new Registration.Adapters(
                        in.has("lora") ? in.names("lora", Registration.Adapters.MOST) : Set.of(),
                        in.has("lora_ids")
                                ? in.object("lora_ids").numbers(Registration.Adapters.MOST)
                                : Map.of()),
                in.has("taints") ? in.names("taints", Registration.MOST_TAINTS) : Set.of());
    }

    private static Registration.OnPlane plane(Fields in) {
        return new Registration.OnPlane(in.number("worker_id", 0, Long.MAX_VALUE), rank(in));
    }

    private static Registration.Events events(Fields in) {
        return new Registration.Events(
                in.text("endpoint"),
                in.textOrNull("replay"),
                in.has("bind") && in.bool("bind"),
                in.has("topic") ? in.anyText("topic") : "",
                in.has("removals") ? in.text("removals") : "auto",
                rank(in));
    }

    private static int rank(Fields in) {
        return in.has("rank") ? (int) in.number("rank", 0, Registration.MOST_RANK) : 0;
    }

    private static Registration.Handoff handoff(Fields in) {
        return new Registration.Handoff(in.text("protocol"), in.textOrNull("bootstrap"));
    }

    private static Registration.Limits limits(Fields in) {
        return new Registration.Limits(
                in.has("kv_blocks") ? in.number("kv_blocks", 1, Long.MAX_VALUE) : 0,
                in.has("max_batched_tokens")
                        ? in.number("max_batched_tokens", 1, Long.MAX_VALUE)
                        : 0);
    }
}
