package io.kvasir.cli.commands;

import io.kvasir.core.load.ActiveRequestsConfig;
import io.kvasir.core.radix.RadixTree;
import io.kvasir.services.slots.SlotsConfig;

import picocli.CommandLine.Option;

import java.time.Duration;

/** How many workers and requests a service tracks, and for how long. */
final class TrackerOptions {
    @Option(
            names = "--max-workers",
            paramLabel = "N",
            defaultValue = "4096",
            description =
                    "(Worker, dp rank) pairs of all models at once. Default: ${DEFAULT-VALUE}.")
    private int maxWorkers;

    @Option(
            names = "--max-requests",
            paramLabel = "N",
            defaultValue = "65536",
            description =
                    "Requests of all models at once, reserved or running. Default:"
                            + " ${DEFAULT-VALUE}.")
    private int maxRequests;

    @Option(
            names = "--max-active-blocks",
            paramLabel = "N",
            defaultValue = "4194304",
            description =
                    "Prompt blocks in use, counted once a worker; prompts beyond them share"
                            + " nothing. Default: ${DEFAULT-VALUE}.")
    private long maxActiveBlocks;

    @Option(
            names = "--request-timeout-secs",
            paramLabel = "S",
            defaultValue = "300",
            description =
                    "How long a request or reservation counts at most; 0 = until it is freed."
                            + " Default: ${DEFAULT-VALUE}.")
    private long requestTimeoutSeconds;

    /** Complains of what no tracker can have. */
    void check(CommonOptions common) {
        common.within("--max-workers", maxWorkers, 1, RadixTree.MAX_WORKER_SLOTS);
        common.within("--max-requests", maxRequests, 1, ActiveRequestsConfig.MAX_ENTRIES);
        common.within("--max-active-blocks", maxActiveBlocks, 1, ActiveRequestsConfig.MAX_ENTRIES);
        common.within(
                "--request-timeout-secs", requestTimeoutSeconds, 0, CommonOptions.MOST_SECONDS);
    }

    /** The configuration of a tracker that listens there. */
    SlotsConfig config(ServiceOptions listen) {
        return SlotsConfig.of(listen.host(), listen.port())
                .withSizes(maxWorkers, maxRequests, maxActiveBlocks)
                .withRequestTimeout(Duration.ofSeconds(requestTimeoutSeconds));
    }
}
