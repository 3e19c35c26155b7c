package io.kvasir.cli.commands;

import picocli.CommandLine.Option;

/** How many indexes a service keeps, and how large each may be. */
final class IndexOptions {
    @Option(
            names = "--max-models",
            paramLabel = "N",
            defaultValue = "64",
            description =
                    "Models and routing groups at once; each has an index and a thread of its own."
                            + " Default: ${DEFAULT-VALUE}.")
    private int maxModels;

    @Option(
            names = "--index-bytes",
            paramLabel = "N",
            defaultValue = "0",
            description =
                    "Memory that one index may grow to; 0 = a tenth of the machine's or the"
                            + " container's. Default: ${DEFAULT-VALUE}.")
    private long indexBytes;

    /** Complains of what no service can have. */
    void check(CommonOptions common) {
        common.atLeast("--max-models", maxModels, 1);
        common.atLeast("--index-bytes", indexBytes, 0);
    }

    int maxModels() {
        return maxModels;
    }

    long indexBytes() {
        return indexBytes;
    }
}
