package io.kvasir.cli.commands;

import picocli.CommandLine.Option;

/** The simulated engines that a trace meets. */
final class FleetOptions {
    @Option(
            names = "--workers",
            paramLabel = "N",
            defaultValue = "8",
            description = "Simulated engines. Default: ${DEFAULT-VALUE}.")
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
