package io.kvasir.sim.http;

import com.fasterxml.jackson.databind.JsonNode;

import io.kvasir.sim.batch.InjectedFaults;
import io.kvasir.sim.batch.KvHold;
import io.kvasir.sim.batch.KvPull;
import io.kvasir.sim.batch.PullOrder;
import io.kvasir.sim.batch.SimRequest;
import io.kvasir.sim.batch.StepLoop;
import io.kvasir.sim.config.HandoffFault;
import io.kvasir.sim.config.SimConfig;
import io.kvasir.sim.config.SimRole;

import java.util.ArrayList;
import java.util.HexFormat;
import java.util.List;
import java.util.concurrent.ThreadLocalRandom;
import java.util.function.IntSupplier;

/** Hand-offs as vLLM's NixlConnector writes them: {@code kv_transfer_params} of version 0.32. */
final class VllmShape extends Handoff {
    private final SimConfig config;
    private final StepLoop loop;
    private final InjectedFaults faults;
    private final IntSupplier sidePort;

    VllmShape(SimConfig config, StepLoop loop, InjectedFaults faults, IntSupplier sidePort) {
        this.config = config;
        this.loop = loop;
        this.faults = faults;
        this.sidePort = sidePort;
    }

    @Override
    void attach(SimRequest request, Part part) {
        final JsonNode params = part.api().kvTransfer;
        if (params == null) {
            return;
        }
        if (config.handoff().role() == SimRole.PREFILL
                && params.path("do_remote_decode").asBoolean()) {
            request.hold(
                    new KvHold(
                            part.name()
                                    + "-"
                                    + HexFormat.of()
                                            .toHexDigits(ThreadLocalRandom.current().nextInt()),
                            false,
                            true));
        }
        if (config.handoff().role() == SimRole.DECODE
                && (params.path("do_remote_prefill").asBoolean()
                        || params.path("do_remote_prefill").isTextual())) {
            request.pull(pull(params, part));
        }
    }

    private KvPull pull(JsonNode params, Part part) {
        final JsonNode host = params.path("remote_host");
        final JsonNode port = params.path("remote_port");
        final JsonNode id = params.path("remote_request_id");
        final JsonNode engine = params.path("remote_engine_id");
        if (!host.isTextual()
                || !port.isInt()
                || !id.isTextual()
                || !engine.isTextual()
                || !params.path("remote_block_ids").isArray()) {
            throw ApiException.of(500, "Internal server error");
        }
        return new KvPull(
                host.textValue(),
                port.intValue(),
                new PullOrder(
                        id.textValue(), engine.textValue(), -1, config.model(), config.blockSize()),
                blocks(params),
                part.otherText(),
                null);
    }

    /** Ids of the one group of blocks, which old versions write without its list. */
    private static List<Integer> blocks(JsonNode params) {
        final JsonNode ids = params.get("remote_block_ids");
        final List<Integer> blocks = new ArrayList<>();
        (ids.path(0).isArray() ? ids.get(0) : ids).forEach(id -> blocks.add(id.asInt()));
        return blocks;
    }

    @Override
    String parameters(SimRequest request) {
        final KvHold hold = request.hold();
        if (hold == null
                || hold.blocks() == null
                || faults.next(HandoffFault.ANSWERS_WITHOUT_PARAMETERS)) {
            return "null";
        }
        if (faults.next(HandoffFault.ANSWERS_WITH_MALFORMED_PARAMETERS)) {
            return "{\"do_remote_prefill\":\"yes\",\"remote_block_ids\":\"none\"}";
        }
        final StringBuilder out = new StringBuilder(512);
        out.append("{\"do_remote_prefill\":true,\"do_remote_decode\":false");
        out.append(",\"remote_block_ids\":[");
        out.append(hold.blocks().toString().replace(" ", "")).append("],\"remote_engine_id\":");
        Json.string(out, loop.engineId(request.rank())).append(",\"remote_request_id\":");
        Json.string(out, hold.key()).append(",\"remote_host\":");
        Json.string(out, config.reachableHost()).append(",\"remote_port\":");
        out.append(sidePort.getAsInt());
        out.append(",\"tp_size\":1,\"dcp_size\":1,\"pp_size\":1,\"remote_num_tokens\":");
        out.append(request.script().promptTokens());
        out.append(",\"remote_blocks_expiry_time\":null,\"transfer_mode\":\"pull\"");
        out.append(",\"remote_prefill_cached_tokens\":").append(request.cachedTokens());
        return out.append('}').toString();
    }
}
