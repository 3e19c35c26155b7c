package io.kvasir.cli.commands;

import com.fasterxml.jackson.databind.node.ObjectNode;

import io.kvasir.cli.console.ExitCode;
import io.kvasir.cli.console.Json;
import io.kvasir.cli.demo.ChatDriver;
import io.kvasir.cli.demo.ChatWorkload;
import io.kvasir.cli.demo.Cluster;
import io.kvasir.cli.demo.ClusterHolder;
import io.kvasir.cli.demo.DemoEngines;
import io.kvasir.cli.demo.DisaggFleet;
import io.kvasir.cli.demo.DisaggReport;
import io.kvasir.cli.demo.Division;
import io.kvasir.cli.demo.MixedTraffic;
import io.kvasir.cli.load.LoadClient;
import io.kvasir.cli.load.Progress;
import io.kvasir.cli.load.ResultPrinter;
import io.kvasir.cli.load.RunStats;
import io.kvasir.gateway.config.GatewayConfig;
import io.kvasir.gateway.config.GatewaySettings;
import io.kvasir.prompt.chat.SimModel;
import io.kvasir.router.policy.RoutingMode;
import io.kvasir.router.settings.RouterSettings;

import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Option;

import java.io.PrintWriter;
import java.net.URI;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.concurrent.Callable;

/** {@code kvasir demo}: what prefix-aware routing, or splitting, is worth, in one table. */
@Command(
        name = "demo",
        description = {
            "Show what KV-aware routing is worth: a gateway, four simulated engines, one chat"
                    + " workload, three routing modes.",
            "",
            "Everything runs in this process but talks over real HTTP and ZMQ. Conversations arrive"
                + " at random, share their group's long system prompt and grow turn by turn. Each"
                + " mode (kv, round-robin, random) gets the same conversations and empty caches."
                + " All engines together can cache the whole traffic, a single one cannot.",
            "",
            "Columns:",
            "  cache hits   prompt tokens that engines took from their caches / all prompt tokens",
            "  TTFT         time from the moment a message was due to the first token of its"
                    + " answer",
            "  load spread  prompt tokens computed by the busiest engine / mean over the engines; 1"
                    + " = even",
            "",
            "With --disagg: what it is worth to compute prompts apart from answers. Short chats and"
                + " questions about long texts together, on four engines that do both (aggregated),"
                + " on two that prefill and two that decode (always split), and on these with"
                + " split-mode cost (conditional). Keys and values are real bytes that move between"
                + " the engines and are checked there.",
            ""
        },
        footer = {
            "",
            "Examples:",
            "  kvasir demo",
            "  kvasir demo --small --json",
            "  kvasir demo --keep --port 8080      stays up in kv mode for your own requests",
            "  kvasir demo --disagg                prefill and decode apart; some five minutes",
            "",
            "Exit codes: 0 all requests were answered; 1 some failed; 2 wrong command line; 3 could"
                    + " not start (port in use); 130/143 ended by ctrl-C/kill."
        })
public final class DemoCommand implements Callable<Integer> {
    private static final Size DEFAULT_SIZE =
            new Size(new ChatWorkload.Shape(16, 4_000, 72, 5, 160, 48, 7_500, 700), 2_200);
    private static final Size SMALL_SIZE =
            new Size(new ChatWorkload.Shape(8, 3_000, 26, 3, 160, 16, 1_500, 200), 850);
    private static final Size WARM_UP_SIZE =
            new Size(new ChatWorkload.Shape(4, 2_000, 16, 3, 160, 16, 300, 40), 1_300);

    private static final MixedTraffic TRAFFIC =
            new MixedTraffic(
                    new ChatWorkload.Shape(8, 600, 60, 5, 160, 48, 10_000, 700),
                    new ChatWorkload.Shape(1, 64, 30, 1, 10_000, 64, 12_000, 0));
    private static final MixedTraffic SMALL_TRAFFIC =
            new MixedTraffic(
                    new ChatWorkload.Shape(4, 600, 24, 3, 160, 32, 4_000, 300),
                    new ChatWorkload.Shape(1, 64, 10, 1, 10_000, 32, 4_000, 0));
    private static final MixedTraffic WARM_UP_TRAFFIC =
            new MixedTraffic(
                    new ChatWorkload.Shape(4, 600, 24, 3, 160, 16, 1_500, 40),
                    new ChatWorkload.Shape(1, 64, 4, 1, 8_000, 16, 1_500, 0));

    private static final Duration TIMEOUT = Duration.ofMinutes(1);
    private static final double PERCENT = 100;
    private static final int MOST_HARM = 1000; // as split-harm-weight

    @Mixin private CommonOptions common;

    @Option(
            names = "--port",
            defaultValue = "8000",
            description = "Port of the gateway; 0 = any free one. Default: ${DEFAULT-VALUE}.")
    private int port;

    @Option(
            names = "--keep",
            description = "Stay up in kv mode after the table and print a request to try.")
    private boolean keep;

    @Option(
            names = "--small",
            description = "A run of some ten seconds in all; with --disagg of half a minute.")
    private boolean small;

    @Option(
            names = "--disagg",
            description = "Compare engines that do both with prefill and decode engines.")
    private boolean disagg;

    @Option(
            names = "--runs",
            paramLabel = "N",
            description =
                    "With --disagg: runs of each kind, with seeds from --seed on. Default: 5, or 1"
                            + " with --small.")
    private Integer runs;

    @Option(
            names = "--harm-weight",
            paramLabel = "X",
            description =
                    "With --disagg: split-harm-weight of conditional: 0 has prompts computed where"
                            + " that is fastest for them, a large one where no answer waits for"
                            + " them. Default: that of serve.")
    private double harmWeight = GatewaySettings.SPLIT_HARM_WEIGHT.usual();

    @Option(names = "--json", description = "Print one JSON object instead of the table.")
    private boolean json;

    @Option(
            names = "--seed",
            paramLabel = "N",
            defaultValue = "1",
            description = "Seed of conversations and arrivals. Default: ${DEFAULT-VALUE}.")
    private long seed;

    private ClusterHolder clusters;
    private Path tokenizer;

    /** How much traffic meets how much cache: blocks of one engine. */
    private record Size(ChatWorkload.Shape shape, int blocks) {}

    @Override
    public Integer call() throws InterruptedException {
        check();
        clusters = new ClusterHolder();
        return disagg ? callDisagg() : callModes();
    }

    private void check() {
        common.port(port);
        for (String option : List.of("--runs", "--harm-weight")) {
            if (!disagg && common.isGiven(option)) {
                throw common.wrong(option + " is for --disagg, which is not given");
            }
        }
        if (runs != null) {
            common.atLeast("--runs", runs, 1);
        }
        common.within("--harm-weight", harmWeight, 0, MOST_HARM);
    }

    private int callModes() throws InterruptedException {
        tokenizer = SimModel.files();
        final Size size = small ? SMALL_SIZE : DEFAULT_SIZE;
        final ChatWorkload.Shape shape = size.shape();
        common.err()
                .println(
                        "demo: "
                                + DemoEngines.COUNT
                                + " engines, "
                                + shape.conversations()
                                + " conversations in "
                                + shape.groups()
                                + " groups, "
                                + shape.requests()
                                + " requests per mode");
        common.err().flush();
        play(RoutingMode.KV, WARM_UP_SIZE, "warm-up");
        final List<RunStats.Result> results = new ArrayList<>();
        for (RoutingMode mode :
                List.of(RoutingMode.KV, RoutingMode.ROUND_ROBIN, RoutingMode.RANDOM)) {
            results.add(play(mode, size, mode.spelling()));
        }
        report(results, shape);
        if (keep) {
            return clusters.during(plan(size.blocks()), RoutingMode.KV, this::stay);
        }
        return exitCode(results.stream().mapToLong(RunStats.Result::errors).sum());
    }

    private static int exitCode(long errors) {
        return errors > 0 ? ExitCode.NEGATIVE : ExitCode.OK;
    }

    private int stay(Cluster cluster) throws InterruptedException {
        printTry(cluster.url(), cluster.adminUrl());
        return clusters.await();
    }

    private int callDisagg() throws InterruptedException {
        final MixedTraffic traffic = small ? SMALL_TRAFFIC : TRAFFIC;
        final int count = runs != null ? runs : small ? 1 : 5;
        common.err()
                .println(
                        "demo: "
                                + DemoEngines.COUNT
                                + " engines, "
                                + traffic.chats().requests()
                                + " requests of chats and "
                                + traffic.contexts().requests()
                                + " with long contexts per run, "
                                + count
                                + " runs of each kind");
        common.err().flush();
        for (Division division : Division.values()) {
            play(WARM_UP_TRAFFIC, division, ~seed, "warm-up");
        }
        final List<MixedTraffic.Result> results = new ArrayList<>();
        for (int i = 0; i < count; i++) {
            for (Division division : Division.values()) {
                results.add(play(traffic, division, seed + i, division.title()));
            }
        }
        report(new DisaggReport(results), traffic, count);
        if (keep) {
            return clusters.during(
                    DisaggFleet.plan(Division.CONDITIONAL, port, seed, harmWeight),
                    RoutingMode.KV,
                    this::stay);
        }
        return exitCode(results.stream().mapToLong(result -> result.all().errors()).sum());
    }

    private MixedTraffic.Result play(
            MixedTraffic traffic, Division division, long runSeed, String name)
            throws InterruptedException {
        final RunStats all = new RunStats(1);
        return clusters.during(
                DisaggFleet.plan(division, port, runSeed, harmWeight),
                RoutingMode.KV,
                cluster ->
                        Progress.during(
                                common.err(),
                                () -> Progress.line(name, all, traffic.requests()),
                                () -> traffic.play(cluster, division, runSeed, all)));
    }

    private void report(DisaggReport report, MixedTraffic traffic, int count) {
        if (json) {
            final ObjectNode root = Json.object();
            root.put("command", "demo --disagg")
                    .put("engines", DemoEngines.COUNT)
                    .put("chat_requests", traffic.chats().requests())
                    .put("long_requests", traffic.contexts().requests())
                    .put("runs_of_each", count);
            report.json(root);
            Json.print(root, common.out());
        } else {
            common.out().println();
            report.print(common.out());
        }
    }

    private RunStats.Result play(RoutingMode mode, Size size, String name)
            throws InterruptedException {
        final RunStats stats = new RunStats(1);
        final ChatWorkload workload = new ChatWorkload(size.shape(), seed);
        return clusters.during(
                plan(size.blocks()),
                mode,
                cluster -> {
                    try (LoadClient client = new LoadClient(cluster.url(), TIMEOUT, Map.of())) {
                        final ChatDriver driver =
                                new ChatDriver(client, SimModel.NAME, stats::record);
                        final long wallNs =
                                Progress.during(
                                        common.err(),
                                        () -> Progress.line(name, stats, size.shape().requests()),
                                        () -> driver.play(workload));
                        return stats.result(name, DemoEngines.COUNT, wallNs);
                    }
                });
    }

    private Cluster.Plan plan(int blocks) {
        return new Cluster.Plan(
                "127.0.0.1",
                port,
                Cluster.Plan.same(DemoEngines.COUNT, () -> DemoEngines.engine(blocks).build()),
                () ->
                        GatewayConfig.builder()
                                .set(GatewaySettings.TOKENIZER, tokenizer)
                                .set(RouterSettings.SEED, seed));
    }

    private void report(List<RunStats.Result> results, ChatWorkload.Shape shape) {
        if (json) {
            final ObjectNode root = Json.object();
            root.put("command", "demo")
                    .put("engines", DemoEngines.COUNT)
                    .put("conversations", shape.conversations())
                    .put("turns", shape.turns())
                    .put("seed", seed);
            ResultPrinter.json(results, root);
            root.put("meaning", meaning(results));
            Json.print(root, common.out());
        } else {
            final PrintWriter out = common.out();
            out.println();
            ResultPrinter.table(results, out);
            out.println();
            out.println(meaning(results));
            out.flush();
        }
    }

    /** One sentence about kv against round-robin, made from the numbers whatever they are. */
    private static String meaning(List<RunStats.Result> results) {
        final RunStats.Result kv = results.get(0);
        final RunStats.Result other = results.get(1);
        for (RunStats.Result each : List.of(kv, other)) {
            if (each.requests() == each.errors()) {
                return "No request of " + each.mode() + " was answered: nothing to compare.";
            }
        }
        return String.format(
                Locale.ROOT,
                "With %s, engines took %.0f %% of all prompt tokens from their caches, with %s %.0f"
                        + " %%; half of the answers began within %.0f ms instead of %.0f ms, 95 %%"
                        + " within %.0f ms instead of %.0f ms.",
                kv.mode(),
                kv.hitRate() * PERCENT,
                other.mode(),
                other.hitRate() * PERCENT,
                kv.ttftP50Ms(),
                other.ttftP50Ms(),
                kv.ttftP95Ms(),
                other.ttftP95Ms());
    }

    private void printTry(URI url, URI admin) {
        final PrintWriter out = json ? common.err() : common.out();
        out.println();
        out.println("running in kv mode; ctrl-C ends. Try:");
        out.println(
                "  curl -iN "
                        + url
                        + "/v1/chat/completions -H 'content-type: application/json' -d"
                        + " '{\"model\":\""
                        + SimModel.NAME
                        + "\",\"stream\":true,\"max_tokens\":32,\"messages\":[{\"role\":\"user\","
                        + "\"content\":\"hello\"}]}'");
        out.println("  curl " + admin + "/debug/decisions?limit=1");
        out.flush();
    }
}
