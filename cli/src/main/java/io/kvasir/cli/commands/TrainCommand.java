package io.kvasir.cli.commands;

import io.kvasir.cli.console.ExitCode;
import io.kvasir.cli.demo.ChatDriver;
import io.kvasir.cli.demo.ChatWorkload;
import io.kvasir.cli.demo.Cluster;
import io.kvasir.cli.load.LoadClient;
import io.kvasir.cli.load.RunStats;
import io.kvasir.gateway.config.GatewayConfig;
import io.kvasir.gateway.config.GatewaySettings;
import io.kvasir.prompt.chat.SimModel;
import io.kvasir.router.policy.RoutingMode;
import io.kvasir.sim.config.SimConfig;

import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;

import java.nio.file.Path;
import java.time.Duration;
import java.util.Map;
import java.util.concurrent.Callable;

/** {@code kvasir train}: a gateway under load, for the AOT cache that the build makes. */
@Command(
        name = "train",
        description = {
            "Run a gateway under load for a JVM that makes an AOT cache.",
            "",
            "The build does so; do it again for another build of Java 25. The load is simulated and"
                    + " takes some ten seconds.",
            ""
        },
        footer = {
            "",
            "Example:",
            "  KVASIR_OPTS=-XX:AOTCacheOutput=my.aot kvasir train",
            "  KVASIR_OPTS=-XX:AOTCache=my.aot kvasir serve --config gateway.yaml",
            "",
            "Exit codes: 0 done; 1 requests failed; 2 wrong command line."
        })
public final class TrainCommand implements Callable<Integer> {
    private static final Duration LOAD = Duration.ofSeconds(6);
    private static final Duration TIMEOUT = Duration.ofMinutes(1);
    private static final int ENGINES = 2;
    private static final int BLOCKS = 2_000;
    private static final int BLOCK_SIZE = 16;
    private static final double SPEED_UP = 100;
    private static final ChatWorkload.Shape SHAPE =
            new ChatWorkload.Shape(4, 2_000, 100, 4, 160, 16, 1_000, 10);

    @Mixin private CommonOptions common;

    @Override
    public Integer call() throws InterruptedException {
        final Path tokenizer = SimModel.files();
        final RunStats stats = new RunStats(1);
        final Cluster.Plan plan =
                new Cluster.Plan(
                        "127.0.0.1",
                        0,
                        Cluster.Plan.same(
                                ENGINES,
                                () ->
                                        SimConfig.builder()
                                                .model(SimModel.NAME)
                                                .blockSize(BLOCK_SIZE)
                                                .blocks(BLOCKS)
                                                .speedUp(SPEED_UP)
                                                .build()),
                        () ->
                                GatewayConfig.builder()
                                        .set(GatewaySettings.TOKENIZER, tokenizer)
                                        .set(GatewaySettings.WARM_UP, LOAD));
        try (Cluster cluster = Cluster.start(plan, RoutingMode.KV);
                LoadClient client = new LoadClient(cluster.url(), TIMEOUT, Map.of())) {
            final long wallNs =
                    new ChatDriver(client, SimModel.NAME, stats::record)
                            .play(new ChatWorkload(SHAPE, 1));
            final RunStats.Result result = stats.result("train", ENGINES, wallNs);
            common.out().println(result);
            return result.errors() > 0 ? ExitCode.NEGATIVE : ExitCode.OK;
        }
    }
}
