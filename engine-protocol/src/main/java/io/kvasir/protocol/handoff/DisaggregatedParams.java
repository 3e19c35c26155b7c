package io.kvasir.protocol.handoff;

import com.fasterxml.jackson.databind.JsonNode;

import java.util.Base64;
import java.util.List;
import java.util.Optional;

/**
 * TensorRT-LLM's {@code disaggregated_params}: the same object goes from the context phase to the
 * generation phase with another {@code request_type}; everything else is kept byte for byte.
 * Immutable.
 *
 * @param json the object as the engine wrote it
 */
public record DisaggregatedParams(VerbatimJson json) {
    /** The member of request bodies and of each choice of a response that holds the object. */
    public static final String FIELD = "disaggregated_params";

    private static final String REQUEST_TYPE = "request_type";
    // the HTTP server's name, then the name of the engine's own field as Dynamo carries it
    private static final List<String> STATES = List.of("encoded_opaque_state", "opaque_state");
    private static final DisaggregatedParams CONTEXT_ONLY =
            new DisaggregatedParams(VerbatimJson.parse("{\"request_type\":\"context_only\"}"));

    /**
     * Returns what a request of the context phase carries.
     *
     * @return the same object every time
     */
    public static DisaggregatedParams contextOnly() {
        return CONTEXT_ONLY;
    }

    /**
     * Takes the object out of a request body, or out of the first choice of a response body.
     *
     * @param body the body; unchanged
     * @return the object, or empty where there is none
     * @throws MalformedJsonException if a member looked at is there twice
     */
    public static Optional<DisaggregatedParams> in(VerbatimJson body) {
        return body.object(FIELD)
                .or(() -> body.firstObject("choices").flatMap(choice -> choice.object(FIELD)))
                .map(DisaggregatedParams::new);
    }

    /**
     * Puts the object into a request body, in place of one that is there.
     *
     * @param body the body; unchanged
     * @return the body with this object, all other bytes as they were
     * @throws MalformedJsonException if the body has the member twice
     */
    public VerbatimJson spliceInto(VerbatimJson body) {
        return body.edit().set(FIELD, json).apply();
    }

    /**
     * Returns the object for the generation phase.
     *
     * @return the same with {@code request_type} generation_only
     */
    public DisaggregatedParams generationOnly() {
        return new DisaggregatedParams(json.edit().set(REQUEST_TYPE, "generation_only").apply());
    }

    /**
     * Returns the phase.
     *
     * @return {@code context_only}, {@code generation_only} or what else an engine writes
     */
    public Optional<String> requestType() {
        return text(REQUEST_TYPE);
    }

    /**
     * Returns the state that the transfer needs, decoded from base64.
     *
     * @return a new array, or empty where the state is absent or null
     * @throws IllegalArgumentException if it is no base64
     */
    public Optional<byte[]> opaqueState() {
        for (String name : STATES) {
            final Optional<String> state = text(name);
            if (state.isPresent()) {
                return state.map(encoded -> decode(name, encoded));
            }
        }
        return Optional.empty();
    }

    private static byte[] decode(String name, String encoded) {
        try {
            return Base64.getDecoder().decode(encoded);
        } catch (IllegalArgumentException e) {
            throw new IllegalArgumentException(name + " is no base64: " + e.getMessage(), e);
        }
    }

    private Optional<String> text(String name) {
        return json.tree(name).filter(JsonNode::isTextual).map(JsonNode::textValue);
    }

    /** Returns the object's text. */
    @Override
    public String toString() {
        return json.toString();
    }
}
