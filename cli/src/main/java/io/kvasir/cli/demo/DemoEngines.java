package io.kvasir.cli.demo;

import io.kvasir.prompt.chat.SimModel;
import io.kvasir.sim.config.SimConfig;

/** The simulated engines of {@code kvasir demo}, all equally fast. */
public final class DemoEngines {
    /** How many there are. */
    public static final int COUNT = 4;

    private static final int BLOCK_SIZE = 16;
    private static final double PREFILL_RATE = 24_000;
    private static final double INTER_TOKEN_MS = 5;

    private DemoEngines() {}

    /**
     * Starts the configuration of one.
     *
     * @param blocks of its cache
     * @return a builder
     */
    public static SimConfig.Builder engine(int blocks) {
        return SimConfig.builder()
                .model(SimModel.NAME)
                .blockSize(BLOCK_SIZE)
                .blocks(blocks)
                .prefillTokensPerSecond(PREFILL_RATE)
                .interTokenMillis(INTER_TOKEN_MS);
    }
}
