package io.kvasir.cli.demo;

import io.kvasir.gateway.config.GatewayConfig;
import io.kvasir.gateway.config.GatewaySettings;
import io.kvasir.prompt.chat.SimModel;
import io.kvasir.router.settings.RouterSettings;
import io.kvasir.sim.config.HandoffConfig;
import io.kvasir.sim.config.KvBytes;
import io.kvasir.sim.config.SimConfig;
import io.kvasir.sim.config.SimHandoff;
import io.kvasir.sim.config.SimRole;

import java.nio.file.Path;

/**
 * Four equal engines whose blocks have real bytes. Keys and values are smaller than real ones by
 * the same factor as the link between engines is slower, so that a transfer takes as long as one of
 * 128 KiB a token at 25 GB/s.
 */
public final class DisaggFleet {
    private static final int BLOCKS = 8_192;
    private static final KvBytes BYTES = new KvBytes(4, 128, false);
    private static final long BYTES_PER_TOKEN = (long) BYTES.layers() * BYTES.rowBytes();
    private static final double BYTES_PER_SECOND =
            HandoffConfig.NONE.bytesPerSecond()
                    * BYTES_PER_TOKEN
                    / HandoffConfig.NONE.bytesPerToken();

    private DisaggFleet() {}

    /**
     * Engines and gateway of a division.
     *
     * @param port of the gateway; 0 = any free one
     * @param seed of the gateway's choices
     * @param harmWeight the gateway's {@code split-harm-weight}
     */
    public static Cluster.Plan plan(Division division, int port, long seed, double harmWeight) {
        final Path tokenizer = SimModel.files();
        return new Cluster.Plan(
                "127.0.0.1",
                port,
                division.roles().stream().map(DisaggFleet::engine).toList(),
                () ->
                        GatewayConfig.builder()
                                .set(GatewaySettings.TOKENIZER, tokenizer)
                                .set(GatewaySettings.SPLIT_MODE, division.splitMode())
                                .set(GatewaySettings.SPLIT_HARM_WEIGHT, harmWeight)
                                .set(GatewaySettings.NIXL_LIBRARY, "off")
                                .set(RouterSettings.SEED, seed));
    }

    private static SimConfig engine(SimRole role) {
        return DemoEngines.engine(BLOCKS)
                .handoff(
                        HandoffConfig.of(role, SimHandoff.VLLM)
                                .withBytesPerToken(BYTES_PER_TOKEN)
                                .withBytesPerSecond(BYTES_PER_SECOND)
                                .withStrict(true)
                                .withBytes(BYTES))
                .build();
    }
}
