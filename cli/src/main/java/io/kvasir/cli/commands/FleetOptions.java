package io.kvasir.cli.commands;

import io.kvasir.cli.simulate.FleetPlan;

import picocli.CommandLine.Option;

/** The simulated engines that a trace meets. */
final class FleetOptions {
    private static final int LEAST_TOKENS = 2; // one of a prompt, one of its answer

    @Option(
            names = "--workers",
            paramLabel = "N",
            defaultValue = "8",
            description = "Simulated engines, 1..1024. Default: ${DEFAULT-VALUE}.")
    private int workers;

    @Option(
            names = "--blocks",
            paramLabel = "N",
            defaultValue = "65536",
            description = "Blocks in each engine's pool. Default: ${DEFAULT-VALUE}.")
    private int blocks;

    @Option(
            names = "--block-size",
            paramLabel = "N",
            defaultValue = "16",
            description = "Tokens per block. Default: ${DEFAULT-VALUE}.")
    private int blockSize;

    /** Complains of what no fleet can have. */
    void check(CommonOptions common) {
        common.within("--workers", workers, 1, FleetPlan.MAX_WORKERS);
        checkPool(common, blocks, blockSize);
    }

    /** Complains of a pool of blocks in which no request has room. */
    static void checkPool(CommonOptions common, int blocks, int blockSize) {
        common.atLeast("--blocks", blocks, 1);
        common.atLeast("--block-size", blockSize, 1);
        if ((long) blocks * blockSize < LEAST_TOKENS) {
            throw common.wrong(
                    "--blocks "
                            + blocks
                            + " of --block-size "
                            + blockSize
                            + " must have at least "
                            + LEAST_TOKENS
                            + " tokens");
        }
    }

    int workers() {
        return workers;
    }

    int blocks() {
        return blocks;
    }

    int blockSize() {
        return blockSize;
    }
}
