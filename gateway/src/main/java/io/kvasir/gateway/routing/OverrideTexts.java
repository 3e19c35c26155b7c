package io.kvasir.gateway.routing;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;

import io.kvasir.gateway.openai.ApiException;
import io.kvasir.gateway.openai.InferenceRequest;

import org.eclipse.jetty.http.HttpFields;

import java.util.ArrayList;
import java.util.EnumMap;
import java.util.List;
import java.util.Map;

/**
 * What a trusted caller says of how one request is routed, as it is written: by headers, and by
 * members of the body, of which headers win.
 */
final class OverrideTexts {
    /** What can be said, and where. */
    @SuppressWarnings("ImmutableEnumChecker") // of List.of: they cannot change
    enum Kind {
        MODE(List.of("x-kvasir-mode"), List.of("mode", "router_mode"), List.of()),
        OVERLAP_WEIGHT(
                List.of("x-kvasir-overlap-weight"),
                List.of("overlap_weight", "overlap_score_weight", "prefill_load_scale"),
                List.of()),
        OVERLAP_CREDIT(
                List.of("x-kvasir-overlap-credit"),
                List.of("overlap_credit", "overlap_score_credit"),
                List.of()),
        SHARED_CACHE_MULTIPLIER(
                List.of("x-kvasir-shared-cache-multiplier"),
                List.of("shared_cache_multiplier"),
                List.of()),
        TEMPERATURE(
                List.of("x-kvasir-temperature"),
                List.of("temperature", "router_temperature"),
                List.of()),
        ASSUME_KV_REUSE(List.of("x-kvasir-assume-kv-reuse"), List.of("assume_kv_reuse"), List.of()),
        TRACK_PREFILL_TOKENS(
                List.of("x-kvasir-track-prefill-tokens"),
                List.of("track_prefill_tokens"),
                List.of()),
        TRACK_OUTPUT_BLOCKS(
                List.of("x-kvasir-track-output-blocks"), List.of("track_output_blocks"), List.of()),
        WORKER(
                List.of("x-kvasir-worker", "x-dynamo-worker-instance-id", "x-worker-instance-id"),
                List.of("worker"),
                List.of("decode_worker_id", "backend_instance_id")),
        DP_RANK(
                List.of("x-kvasir-dp-rank", "x-dynamo-dp-rank", "x-dp-rank"),
                List.of("dp_rank"),
                List.of("dp_rank")),
        PREFILL_WORKER(
                List.of(
                        RoutingHeaders.PREFILL_WORKER,
                        "x-dynamo-prefill-instance-id",
                        "x-prefill-instance-id"),
                List.of("prefill_worker"),
                List.of("prefill_worker_id")),
        PREFILL_DP_RANK(
                List.of(
                        "x-kvasir-prefill-dp-rank",
                        "x-dynamo-prefill-dp-rank",
                        "x-prefill-dp-rank"),
                List.of("prefill_dp_rank"),
                List.of("prefill_dp_rank"));

        private final List<String> headers;
        private final List<String> members; // of InferenceRequest.ROUTER_OVERRIDE
        private final List<String> hints; // of InferenceRequest.NVEXT

        Kind(List<String> headers, List<String> members, List<String> hints) {
            this.headers = headers;
            this.members = members;
            this.hints = hints;
        }
    }

    /**
     * One that was said.
     *
     * @param param the header or member, for errors
     * @param where the same in words
     */
    record Text(String param, String where, String value) {
        ApiException refused(String why) {
            return ApiException.invalid(param, where + ": " + why);
        }
    }

    private static final String BY_PRIORITY =
            "say it by nvext.agent_hints, x-kvasir-priority or x-kvasir-head-start-ms";
    private static final String BY_CONSTRAINTS =
            "say it by nvext.routing_constraints, x-kvasir-require or x-kvasir-prefer";

    /** Members that other routers have here, and why they are refused. */
    private static final Map<String, String> NOT_OF_A_REQUEST =
            Map.ofEntries(
                    Map.entry("priority", BY_PRIORITY),
                    Map.entry("strict_priority", BY_PRIORITY),
                    Map.entry("priority_jump", BY_PRIORITY),
                    Map.entry("routing_constraints", BY_CONSTRAINTS),
                    Map.entry("required_taints", BY_CONSTRAINTS),
                    Map.entry("preferred_taints", BY_CONSTRAINTS));

    private final Map<Kind, Text> texts = new EnumMap<>(Kind.class);

    /**
     * Takes all that a request says.
     *
     * @throws ApiException 400 if a member of the body is no such object, or not known
     */
    OverrideTexts(HttpFields headers, InferenceRequest request) throws ApiException {
        for (Kind kind : Kind.values()) {
            for (String header : kind.headers) {
                final String value = headers.get(header);
                if (value != null) {
                    texts.putIfAbsent(kind, new Text(header, "header " + header, value));
                }
            }
        }
        final ObjectNode own = object(InferenceRequest.ROUTER_OVERRIDE, request.routerOverride);
        if (own != null) {
            checkKnown(own);
            for (Kind kind : Kind.values()) {
                take(kind, InferenceRequest.ROUTER_OVERRIDE, own, kind.members);
            }
        }
        if (request.nvext instanceof ObjectNode hints) { // whatever else is in it is not ours
            for (Kind kind : Kind.values()) {
                take(kind, InferenceRequest.NVEXT, hints, kind.hints);
            }
        }
    }

    /** Null where it was not said. */
    Text of(Kind kind) {
        return texts.get(kind);
    }

    private static ObjectNode object(String name, JsonNode given) throws ApiException {
        if (given == null || given.isNull()) {
            return null;
        }
        if (given instanceof ObjectNode object) {
            return object;
        }
        throw ApiException.invalid(name, "'" + name + "' must be an object");
    }

    private static void checkKnown(ObjectNode own) throws ApiException {
        final List<String> known = new ArrayList<>();
        for (Kind kind : Kind.values()) {
            known.addAll(kind.members);
        }
        for (Map.Entry<String, JsonNode> member : own.properties()) {
            if (!known.contains(member.getKey())) {
                final String name = InferenceRequest.ROUTER_OVERRIDE + "." + member.getKey();
                final String why = NOT_OF_A_REQUEST.get(member.getKey());
                if (why != null) {
                    throw ApiException.invalid(name, "'" + name + "' is not taken: " + why);
                }
                throw ApiException.invalid(name, "'" + name + "' is not known; there are " + known);
            }
        }
    }

    private void take(Kind kind, String parent, ObjectNode members, List<String> names)
            throws ApiException {
        for (String name : names) {
            final JsonNode value = members.path(name);
            if (value.isMissingNode() || value.isNull() || texts.containsKey(kind)) {
                continue;
            }
            final String path = parent + "." + name;
            if (!value.isValueNode()) {
                throw ApiException.invalid(path, "'" + path + "' must be a single value");
            }
            texts.put(kind, new Text(path, "'" + path + "'", value.asText()));
        }
    }
}
