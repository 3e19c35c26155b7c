package io.kvasir.cli.commands;

import io.kvasir.cli.console.Shutdown;
import io.kvasir.services.slots.SlotsConfig;
import io.kvasir.services.slots.SlotsService;

import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Option;

import java.io.IOException;
import java.time.Duration;
import java.util.concurrent.Callable;

/** {@code kvasir slots}: the load of workers as a service of its own. */
@Command(
        name = "slots",
        description = {
            "Run the tracker of running requests as an HTTP service.",
            "",
            "Callers register workers, say which requests run where, and ask how loaded each worker"
                    + " is or would be. Speaks the HTTP interface of NVIDIA Dynamo's slot tracker."
                    + " There is no authentication.",
            ""
        },
        footer = {
            "",
            "Example:",
            "  kvasir slots --port 8091",
            "",
            "Exit codes: 130/143 ended by ctrl-C/kill; 2 wrong command line; 3 port in use or a"
                    + " value out of range."
        })
public final class SlotsCommand implements Callable<Integer> {
    @Mixin private CommonOptions common;

    @Option(
            names = "--host",
            defaultValue = "0.0.0.0",
            description = "Address to listen on. Default: ${DEFAULT-VALUE}.")
    private String host;

    @Option(
            names = "--port",
            defaultValue = "8091",
            description = "Port to listen on; 0 = any free one. Default: ${DEFAULT-VALUE}.")
    private int port;

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
            description = "Requests of all models that run at once. Default: ${DEFAULT-VALUE}.")
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
                    "How long a request counts at most; 0 = until it is freed. Default:"
                            + " ${DEFAULT-VALUE}.")
    private long requestTimeoutSeconds;

    @Override
    public Integer call() throws IOException, InterruptedException {
        final SlotsService service =
                new SlotsService(
                        SlotsConfig.of(host, port)
                                .withSizes(maxWorkers, maxRequests, maxActiveBlocks)
                                .withRequestTimeout(Duration.ofSeconds(requestTimeoutSeconds)));
        final Shutdown shutdown = Shutdown.of(service::close);
        service.start();
        common.out().println("slots listening on " + host + ":" + service.port());
        common.out().flush();
        return shutdown.await();
    }
}
