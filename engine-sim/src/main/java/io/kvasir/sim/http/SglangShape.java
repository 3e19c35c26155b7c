package io.kvasir.sim.http;

import com.fasterxml.jackson.databind.JsonNode;

import io.kvasir.sim.batch.KvHold;
import io.kvasir.sim.batch.KvPull;
import io.kvasir.sim.batch.PullOrder;
import io.kvasir.sim.batch.SimRequest;
import io.kvasir.sim.config.SimConfig;
import io.kvasir.sim.config.SimRole;

/**
 * Hand-offs as SGLang's: both requests name the prefill's bootstrap port and a room; a batched body
 * has arrays. The prefill is answered, with one token, when its blocks were pulled.
 */
final class SglangShape extends Handoff {
    private final SimConfig config;

    SglangShape(SimConfig config) {
        this.config = config;
    }

    @Override
    void check(ApiRequest api, int prompts) {
        if (api.bootstrapRoom == null || api.bootstrapRoom.isNull()) {
            throw ApiException.badRequest(
                    "Disaggregated request received without bootstrap room id.", null);
        }
        for (JsonNode field :
                new JsonNode[] {api.bootstrapRoom, api.bootstrapHost, api.bootstrapPort}) {
            if (field != null && field.isArray() && field.size() != prompts) {
                throw ApiException.badRequest(
                        "bootstrap fields have "
                                + field.size()
                                + " values for "
                                + prompts
                                + " prompts.",
                        "bootstrap_room");
            }
        }
        for (int i = 0; i < prompts; i++) {
            room(api, i);
            if (config.handoff().role() == SimRole.DECODE) {
                host(api, i);
                port(api, i);
            }
        }
        if (api.n != 1) {
            throw ApiException.badRequest("A disaggregated request has n=1.", "n");
        }
    }

    @Override
    int rank(ApiRequest api) {
        return config.handoff().role() == SimRole.PREFILL
                ? (int) (room(api, 0) % config.dataParallelSize())
                : -1;
    }

    @Override
    boolean oneToken(ApiRequest api) {
        return config.handoff().role() == SimRole.PREFILL;
    }

    @Override
    void attach(SimRequest request, Part part) {
        final long room = room(part.api(), part.prompt());
        if (config.handoff().role() == SimRole.PREFILL) {
            request.hold(new KvHold(PullOrder.roomKey(room), true, false));
            return;
        }
        request.pull(
                new KvPull(
                        host(part.api(), part.prompt()),
                        port(part.api(), part.prompt()),
                        new PullOrder(
                                PullOrder.roomKey(room),
                                null,
                                room,
                                config.model(),
                                config.blockSize()),
                        null,
                        part.otherText(),
                        null));
    }

    /** Rooms of a batch that names one only are numbered up from it. */
    private static long room(ApiRequest api, int prompt) {
        final JsonNode room = at(api.bootstrapRoom, prompt);
        if (room == null || !room.canConvertToLong() || !room.isIntegralNumber()) {
            throw ApiException.badRequest(
                    "Disaggregated request received without bootstrap room id.", "bootstrap_room");
        }
        final long number = room.longValue() + (api.bootstrapRoom.isArray() ? 0 : prompt);
        if (number < 0) {
            throw ApiException.badRequest(
                    "bootstrap_room " + number + " is negative.", "bootstrap_room");
        }
        return number;
    }

    private static String host(ApiRequest api, int prompt) {
        final JsonNode host = at(api.bootstrapHost, prompt);
        if (host == null || !host.isTextual()) {
            throw ApiException.badRequest("bootstrap_host is missing.", "bootstrap_host");
        }
        return host.textValue();
    }

    private static int port(ApiRequest api, int prompt) {
        final JsonNode port = at(api.bootstrapPort, prompt);
        if (port == null || !port.isInt() || port.intValue() < 1 || port.intValue() > 65_535) {
            throw ApiException.badRequest("bootstrap_port is missing.", "bootstrap_port");
        }
        return port.intValue();
    }

    private static JsonNode at(JsonNode field, int prompt) {
        return field != null && field.isArray() ? field.get(prompt) : field;
    }
}
