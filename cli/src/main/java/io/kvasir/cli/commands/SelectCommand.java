package io.kvasir.cli.commands;

import io.kvasir.services.select.SelectConfig;
import io.kvasir.services.select.SelectService;
import io.kvasir.services.slots.SlotsConfig;

import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Option;

import java.io.IOException;
import java.time.Duration;
import java.util.concurrent.Callable;

/** {@code kvasir select}: the choice of workers as a service of its own. */
@Command(
        name = "select",
        description = {
            "Run the choice of workers as an HTTP service.",
            "",
            "Callers name workers, ask where a prompt should go, and reserve; engines' KV events"
                + " come over ZMQ. Speaks the HTTP interface of NVIDIA Dynamo's selection service."
                + " There is no authentication.",
            ""
        },
        footer = {
            "",
            "Examples:",
            "  kvasir select --port 8092",
            "",
            "Exit codes: 130/143 ended by ctrl-C/kill; 2 wrong command line; 3 port in use or a"
                    + " value out of range."
        })
public final class SelectCommand implements Callable<Integer> {
    private static final int USUAL_PORT = 8092;

    @Mixin private CommonOptions common;

    @Mixin private final ServiceOptions listen = new ServiceOptions(USUAL_PORT);

    @Option(
            names = "--max-workers",
            paramLabel = "N",
            defaultValue = "4096",
            description =
                    "(Worker, dp rank) pairs of all models at once. Default: ${DEFAULT-VALUE}.")
    private int maxWorkers;

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

    @Option(
            names = "--max-requests",
            paramLabel = "N",
            defaultValue = "65536",
            description = "Reservations of all models at once. Default: ${DEFAULT-VALUE}.")
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
                    "How long a reservation counts at most; 0 = until it is deleted. Default:"
                            + " ${DEFAULT-VALUE}.")
    private long requestTimeoutSeconds;

    @Option(
            names = "--selection-cache-ttl-secs",
            paramLabel = "S",
            defaultValue = "60",
            description =
                    "How long a selection with an id waits for its reservation. Default:"
                            + " ${DEFAULT-VALUE}.")
    private long selectionTtlSeconds;

    @Option(
            names = "--selection-cache-max-entries",
            paramLabel = "N",
            defaultValue = "65536",
            description =
                    "Selections that wait for a reservation at once; the oldest gives way. Default:"
                            + " ${DEFAULT-VALUE}.")
    private int maxSelections;

    @Override
    public Integer call() throws IOException, InterruptedException {
        final SelectService service =
                new SelectService(
                        SelectConfig.of(listen.host(), listen.port())
                                .withSlots(
                                        SlotsConfig.of(listen.host(), listen.port())
                                                .withSizes(maxWorkers, maxRequests, maxActiveBlocks)
                                                .withRequestTimeout(
                                                        Duration.ofSeconds(requestTimeoutSeconds)))
                                .withIndexes(maxModels, indexBytes)
                                .withSelections(
                                        Duration.ofSeconds(selectionTtlSeconds), maxSelections));
        return listen.run(common, "select", service::start, service::close, service::port);
    }
}
