package io.kvasir.sim.http;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;

import io.kvasir.registry.FailureText;
import io.kvasir.sim.batch.InjectedFaults;
import io.kvasir.sim.batch.KvHold;
import io.kvasir.sim.batch.KvPull;
import io.kvasir.sim.batch.PullOrder;
import io.kvasir.sim.batch.SimRequest;
import io.kvasir.sim.batch.StepLoop;
import io.kvasir.sim.config.HandoffFault;
import io.kvasir.sim.config.SimConfig;
import io.kvasir.sim.config.SimRole;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.util.Base64;
import java.util.concurrent.ThreadLocalRandom;
import java.util.function.IntSupplier;

/**
 * Hand-offs as TensorRT-LLM's: {@code disaggregated_params} of the request, and of the first choice
 * of a {@code context_only} answer, with a state that only engines read.
 */
final class TrtllmShape extends Handoff {
    private static final ObjectMapper JSON = new ObjectMapper();
    private static final String STATE = "encoded_opaque_state";

    private final SimConfig config;
    private final StepLoop loop;
    private final InjectedFaults faults;
    private final IntSupplier sidePort;

    TrtllmShape(SimConfig config, StepLoop loop, InjectedFaults faults, IntSupplier sidePort) {
        this.config = config;
        this.loop = loop;
        this.faults = faults;
        this.sidePort = sidePort;
    }

    @Override
    boolean oneToken(ApiRequest api) {
        return isPrefill(api);
    }

    private boolean isPrefill(ApiRequest api) {
        return config.handoff().role() == SimRole.PREFILL && type(api).equals("context_only");
    }

    private static String type(ApiRequest api) {
        return api.disaggregated == null ? "" : api.disaggregated.path("request_type").asText();
    }

    @Override
    void attach(SimRequest request, Part part) {
        if (isPrefill(part.api())) {
            request.hold(
                    new KvHold(
                            Long.toString(ThreadLocalRandom.current().nextLong(1, Long.MAX_VALUE)),
                            false,
                            true));
        }
        if (config.handoff().role() == SimRole.DECODE
                && type(part.api()).equals("generation_only")) {
            request.pull(pull(part.api().disaggregated, request, part));
        }
    }

    private KvPull pull(JsonNode params, SimRequest request, Part part) {
        final JsonNode state = state(params);
        final JsonNode first = params.path("first_gen_tokens");
        if (!first.isArray() || first.size() != 1 || !first.get(0).isInt()) {
            throw ApiException.badRequest(
                    "first_gen_tokens must have one token.", "disaggregated_params");
        }
        final boolean follows = first.get(0).intValue() == request.script().output(0, 1)[0];
        return new KvPull(
                state.path("host").asText(),
                state.path("port").asInt(),
                new PullOrder(
                        params.path("ctx_request_id").asText(),
                        state.path("engine").asText(),
                        -1,
                        config.model(),
                        config.blockSize()),
                null,
                part.otherText(),
                follows ? null : "first_gen_tokens are not those of the prompt");
    }

    private static JsonNode state(JsonNode params) {
        try {
            final JsonNode state =
                    JSON.readTree(Base64.getDecoder().decode(params.path(STATE).asText()));
            if (state != null && state.isObject()) {
                return state;
            }
        } catch (IOException | IllegalArgumentException e) {
            throw ApiException.badRequest(
                    STATE + " cannot be read: " + FailureText.of(e), "disaggregated_params");
        }
        throw ApiException.badRequest(STATE + " is missing.", "disaggregated_params");
    }

    @Override
    String choiceParameters(SimRequest request) {
        final KvHold hold = request.hold();
        if (hold == null
                || hold.blocks() == null
                || faults.next(HandoffFault.ANSWERS_WITHOUT_PARAMETERS)) {
            return null;
        }
        if (faults.next(HandoffFault.ANSWERS_WITH_MALFORMED_PARAMETERS)) {
            return "{\"request_type\":7,\"" + STATE + "\":\"*\"}";
        }
        final StringBuilder state = new StringBuilder("{\"engine\":");
        Json.string(state, loop.engineId(request.rank())).append(",\"host\":");
        Json.string(state, config.reachableHost());
        state.append(",\"port\":").append(sidePort.getAsInt()).append('}');
        final StringBuilder out = new StringBuilder("{\"request_type\":\"context_only\"");
        out.append(",\"first_gen_tokens\":");
        Json.array(out, request.script().output(0, 1));
        out.append(",\"ctx_request_id\":").append(hold.key());
        out.append(",\"").append(STATE).append("\":\"");
        out.append(
                Base64.getEncoder()
                        .encodeToString(state.toString().getBytes(StandardCharsets.UTF_8)));
        return out.append("\",\"draft_tokens\":null}").toString();
    }
}
