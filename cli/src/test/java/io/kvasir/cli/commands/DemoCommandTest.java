package io.kvasir.cli.commands;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.kvasir.cli.CommandRun;
import io.kvasir.cli.demo.ChatDriver;
import io.kvasir.cli.demo.ChatWorkload;
import io.kvasir.cli.demo.Cluster;
import io.kvasir.cli.demo.DisaggFleet;
import io.kvasir.cli.demo.Division;
import io.kvasir.cli.demo.MixedTraffic;
import io.kvasir.cli.load.LoadClient;
import io.kvasir.cli.load.RunStats;
import io.kvasir.gateway.config.GatewayConfig;
import io.kvasir.gateway.config.GatewaySettings;
import io.kvasir.prompt.chat.SimModel;
import io.kvasir.router.policy.RoutingMode;
import io.kvasir.sim.config.SimConfig;

import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import org.junit.jupiter.params.provider.ValueSource;

import java.net.InetAddress;
import java.net.ServerSocket;
import java.time.Duration;
import java.util.Map;

/** The demo's parts at a fraction of its size; the whole is what the smoke run plays. */
class DemoCommandTest {
    private static final ChatWorkload.Shape SHAPE =
            new ChatWorkload.Shape(8, 1_500, 24, 3, 100, 16, 700, 60);

    /** That kv routing hits more is said in virtual time: TraceInVirtualTimeTest. */
    @ParameterizedTest
    @EnumSource(names = {"KV", "RANDOM"})
    void chatsThroughTheGatewayAreAnsweredAsForecast(RoutingMode mode) throws Exception {
        final RunStats.Result result = play(mode);
        assertEquals(SHAPE.requests(), result.requests());
        assertEquals(0, result.errors(), result.firstErrors().toString());
        assertEquals(SHAPE.requests(), result.prediction().compared());
        assertEquals(0, result.prediction().unexplained(), result.toString());
    }

    @Test
    void everyPromptThatIsSplitMovesItsBytes() throws Exception {
        final MixedTraffic traffic =
                new MixedTraffic(
                        new ChatWorkload.Shape(2, 300, 6, 2, 60, 4, 100, 10),
                        new ChatWorkload.Shape(1, 64, 2, 1, 3_000, 4, 100, 0));
        final RunStats all = new RunStats(1);
        try (Cluster cluster =
                Cluster.start(DisaggFleet.plan(Division.ALWAYS, 0, 1, 1), RoutingMode.KV)) {
            final MixedTraffic.Result result = traffic.play(cluster, Division.ALWAYS, 1, all);
            assertEquals(0, result.all().errors(), result.all().firstErrors().toString());
            assertEquals(traffic.requests(), result.all().requests());
            assertEquals(12, result.chats().requests());
            assertEquals(traffic.requests(), result.pulls());
            assertTrue(result.movedBytes() > 512 * result.contexts().promptTokens());
            assertTrue(result.all().interToken().meanMs() > 0);
        }
    }

    @ParameterizedTest
    @ValueSource(strings = {"-1", "1001", "NaN"})
    void aHarmWeightThatTheGatewayDoesNotTakeIsRefused(String weight) {
        final CommandRun run = CommandRun.of("demo", "--disagg", "--harm-weight=" + weight);
        assertTrue(run.err().contains("is not within 0..1000"), run.err());
    }

    @Test
    void aPortInUseIsOneLineWithThePortAndTheOption() throws Exception {
        try (ServerSocket taken = new ServerSocket(0, 1, InetAddress.getLoopbackAddress())) {
            final CommandRun run =
                    CommandRun.of("demo", "--small", "--port=" + taken.getLocalPort());
            assertEquals(3, run.exitCode());
            assertTrue(run.err().contains(":" + taken.getLocalPort()), run.err());
            assertTrue(run.err().contains("--port"), run.err());
        }
    }

    private static RunStats.Result play(RoutingMode mode) throws InterruptedException {
        final Cluster.Plan plan =
                new Cluster.Plan(
                        "127.0.0.1",
                        0,
                        Cluster.Plan.same(
                                3,
                                () ->
                                        SimConfig.builder()
                                                .blocks(600)
                                                .prefillTokensPerSecond(50_000)
                                                .interTokenMillis(2)
                                                .build()),
                        () ->
                                GatewayConfig.builder()
                                        .set(GatewaySettings.TOKENIZER, SimModel.files()));
        final RunStats stats = new RunStats(1);
        try (Cluster cluster = Cluster.start(plan, mode);
                LoadClient client =
                        new LoadClient(cluster.url(), Duration.ofMinutes(1), Map.of())) {
            final ChatDriver driver = new ChatDriver(client, SimModel.NAME, stats::record);
            final long wallNs = driver.play(new ChatWorkload(SHAPE, 1));
            return stats.result(mode.spelling(), 3, wallNs);
        }
    }
}
