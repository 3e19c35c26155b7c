package io.kvasir.cli.commands;

import com.fasterxml.jackson.databind.node.ObjectNode;

import io.kvasir.cli.console.CommandFailure;
import io.kvasir.cli.console.ExitCode;
import io.kvasir.cli.console.Json;
import io.kvasir.cli.console.NamedFile;
import io.kvasir.cli.demo.Cluster;
import io.kvasir.cli.demo.ClusterHolder;
import io.kvasir.cli.load.LoadClient;
import io.kvasir.cli.load.MooncakeTrace;
import io.kvasir.cli.load.Outcome;
import io.kvasir.cli.load.Progress;
import io.kvasir.cli.load.ResultPrinter;
import io.kvasir.cli.load.RunStats;
import io.kvasir.cli.load.TraceDriver;
import io.kvasir.cli.load.TracePrompts;
import io.kvasir.gateway.config.GatewayConfig;
import io.kvasir.gateway.config.GatewaySettings;
import io.kvasir.prompt.chat.SimModel;
import io.kvasir.router.policy.RoutingMode;
import io.kvasir.router.settings.RouterSettings;
import io.kvasir.sim.config.SimConfig;

import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Option;

import java.io.IOException;
import java.io.PrintWriter;
import java.net.URI;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.Callable;

/** {@code kvasir replay}: a recorded request trace through the gateway, mode by mode. */
@Command(
        name = "replay",
        description = {
            "Replay a request trace through the gateway and compare routing modes.",
            "",
            "The trace is in Mooncake's format: one JSON object a line with timestamp (ms),"
                + " input_length, output_length and hash_ids, one per 512 prompt tokens. Prompts"
                + " are token ids made from the hash ids: equal ids, equal tokens. Requests arrive"
                + " at the trace's times divided by --speed-up, whether or not earlier ones are"
                + " answered (open loop), and stream through real HTTP to a gateway with simulated"
                + " engines in this process, whose times are divided by the same number; or to"
                + " --url.",
            "",
            "Columns:",
            "  cache hits   prompt tokens that engines took from their caches / all prompt tokens",
            "  TTFT         time to first token in trace time (wall time x --speed-up), from the"
                    + " moment the request was due",
            "  load spread  prompt tokens computed by the busiest worker / mean over the workers; 1"
                    + " = even; with --url over those that served a request in some mode",
            "  wall s       real time of the run",
            "",
            "The second table compares the gateway's forecast of each request's cached tokens with"
                    + " what the engine reported: exact; explained by events, when the engine had"
                    + " published events that the gateway had not yet applied when it chose, or"
                    + " published more before it looked the prompt up; unexplained otherwise, and"
                    + " always with engines that do not say so, as real ones.",
            ""
        },
        footer = {
            "",
            "Examples:",
            "  kvasir replay --trace conversation_trace.jsonl",
            "  kvasir replay --trace conversation_trace.jsonl --requests 500 --modes kv,random"
                    + " --json",
            "  kvasir replay --trace trace.jsonl --url http://127.0.0.1:8000 --model my-model"
                    + " --speed-up 1",
            "  kvasir replay --journal /dev/shm/kvasir --config other.yaml",
            "",
            "Exit codes: 0 all requests were answered; 1 some failed; 2 wrong command line; 3 no"
                    + " such file, bad trace, could not start; 130/143 ended by ctrl-C/kill."
        })
public final class ReplayCommand implements Callable<Integer> {
    private static final String MODE = "x-kvasir-mode";
    private static final int WARM_UP_REQUESTS = 300;
    private static final double WARM_UP_SPEED = 2;
    private static final Duration TIMEOUT = Duration.ofMinutes(5);
    private static final int BODY_BYTES_PER_TOKEN = 6;
    private static final int BODY_BYTES_MORE = 4096;

    @Mixin private CommonOptions common;

    @Mixin private FleetOptions fleet;

    @Option(names = "--trace", paramLabel = "FILE", description = "Trace file, JSON lines.")
    private Path trace;

    @Option(
            names = "--journal",
            paramLabel = "FILE",
            description =
                    "Instead of a trace: a router's decision journal, or the folder that has it"
                            + " (decision-journal-dir), also of one that runs. Says what other"
                            + " settings would have chosen; no other option but --config and"
                            + " --json has an effect.")
    private Path journal;

    @Option(
            names = "--config",
            paramLabel = "FILE",
            description =
                    "With --journal: the gateway's configuration whose mode and overlap-weight are"
                            + " judged. Default: several weights, and least-connections.")
    private Path config;

    @Option(
            names = "--requests",
            paramLabel = "N",
            defaultValue = "2000",
            description = "Requests to take from its start. Default: ${DEFAULT-VALUE}.")
    private int requestCount;

    @Option(
            names = "--speed-up",
            paramLabel = "X",
            defaultValue = "10",
            description =
                    "Trace time / wall time. The gateway's own time, and that of a busy machine, is"
                            + " magnified by it. Default: ${DEFAULT-VALUE}.")
    private double speedUp;

    @Option(
            names = "--modes",
            paramLabel = "M",
            split = ",",
            converter = Converters.Mode.class,
            defaultValue = "kv,round-robin,random",
            description = "Routing modes, run in this order. Default: ${DEFAULT-VALUE}.")
    private List<RoutingMode> modes = new ArrayList<>();

    @Option(
            names = "--prefill-rate",
            paramLabel = "T/S",
            defaultValue = "10000",
            description =
                    "Prompt tokens an engine computes per second of trace time. Default:"
                            + " ${DEFAULT-VALUE}.")
    private double prefillRate;

    @Option(
            names = "--inter-token-ms",
            paramLabel = "MS",
            defaultValue = "10",
            description =
                    "Time between two tokens of an answer, trace time. Default: ${DEFAULT-VALUE}.")
    private double interTokenMillis;

    @Option(
            names = "--slots",
            paramLabel = "N",
            defaultValue = "64",
            description = "Requests an engine runs at once. Default: ${DEFAULT-VALUE}.")
    private int slots;

    @Option(
            names = "--max-output",
            paramLabel = "N",
            description = "Cap on each request's output_length. Default: none.")
    private int maxOutput = Integer.MAX_VALUE;

    @Option(
            names = "--vocabulary",
            paramLabel = "N",
            defaultValue = "256",
            description = "Token ids of the prompts lie in 0..N-1. Default: ${DEFAULT-VALUE}.")
    private int vocabulary;

    @Option(
            names = "--overlap-weight",
            paramLabel = "W",
            defaultValue = "1",
            description = "The gateway's weight of a block to prefill. Default: ${DEFAULT-VALUE}.")
    private double overlapWeight;

    @Option(
            names = "--temperature",
            paramLabel = "T",
            defaultValue = "0",
            description = "The gateway's sampling temperature. Default: ${DEFAULT-VALUE}.")
    private double temperature;

    @Option(
            names = "--seed",
            paramLabel = "N",
            defaultValue = "1",
            description = "Seed of ties and of random mode. Default: ${DEFAULT-VALUE}.")
    private long seed;

    @Option(
            names = "--url",
            paramLabel = "URL",
            converter = Converters.Url.class,
            description =
                    "Use a running gateway instead; each mode is asked for with the header"
                            + " x-kvasir-mode, which it must trust this machine for"
                            + " (--trusted-network), caches are not emptied between modes, and"
                            + " engine and gateway options above have no effect.")
    private URI url;

    @Option(
            names = "--model",
            paramLabel = "NAME",
            defaultValue = SimModel.NAME,
            description = "Model name to ask for. Default: ${DEFAULT-VALUE}.")
    private String model;

    @Option(names = "--json", description = "Print one JSON object instead of the tables.")
    private boolean json;

    private ClusterHolder clusters;

    /** One mode's run. */
    private record Played(String mode, RunStats stats, long wallNs) {
        RunStats.Result result(int workers) {
            return stats.result(mode, workers, wallNs);
        }
    }

    @Override
    public Integer call() throws IOException, InterruptedException {
        if (journal != null) {
            checkAlone();
            return new JournalReplay(journal, config).run(common.out(), json);
        }
        check();
        clusters = new ClusterHolder();
        final List<MooncakeTrace.Request> requests =
                NamedFile.read("--trace", trace, () -> MooncakeTrace.read(trace, requestCount));
        if (url == null) {
            final int count = Math.min(WARM_UP_REQUESTS, requests.size());
            playInside(modes.getFirst(), requests.subList(0, count), "warm-up", WARM_UP_SPEED);
        }
        if (url != null) {
            checkTrust();
        }
        final List<Played> played = new ArrayList<>();
        for (RoutingMode mode : modes) {
            final String name = mode.spelling();
            played.add(
                    url == null
                            ? playInside(mode, requests, name, 1)
                            : playOutside(requests, name));
        }
        final int workers = url == null ? fleet.workers() : workersOf(played);
        final List<RunStats.Result> results =
                played.stream().map(each -> each.result(workers)).toList();
        report(results, requests);
        return results.stream().anyMatch(r -> r.errors() > 0) ? ExitCode.NEGATIVE : ExitCode.OK;
    }

    /** Of a running gateway only those workers are known that served a request in some mode. */
    private static int workersOf(List<Played> all) {
        final Set<String> names = new HashSet<>();
        all.forEach(each -> names.addAll(each.stats.workers()));
        return names.size();
    }

    private void checkAlone() {
        if (trace != null) {
            throw common.wrong("--trace " + trace + " and --journal " + journal + ": one of them");
        }
    }

    private void check() {
        if (trace == null) {
            throw common.wrong("--trace or --journal is missing");
        }
        if (config != null) {
            throw common.wrong("--config " + config + " needs --journal");
        }
        common.atLeast("--requests", requestCount, 1);
        common.atLeast("--max-output", maxOutput, 1);
        common.positive("--speed-up", speedUp);
        common.within("--vocabulary", vocabulary, 2, TracePrompts.MOST_VOCABULARY);
        fleet.check(common);
        common.atLeast("--slots", slots, 1);
        common.positive("--prefill-rate", prefillRate);
        common.notNegative("--inter-token-ms", interTokenMillis);
        common.notNegative("--overlap-weight", overlapWeight);
        common.notNegative("--temperature", temperature);
        if (url != null) {
            common.http("--url", url);
        }
    }

    private Played playInside(
            RoutingMode mode, List<MooncakeTrace.Request> requests, String name, double faster)
            throws InterruptedException {
        final double speed = speedUp * faster;
        return clusters.during(
                plan(requests, speed),
                mode,
                cluster -> play(cluster.url(), Map.of(), requests, name, speed));
    }

    /**
     * Asks once, as a gateway that does not trust this client routes all modes alike and answers.
     *
     * @throws CommandFailure if the answer does not say which worker was chosen
     */
    private void checkTrust() {
        final byte[] body =
                ("{\"model\":"
                                + Json.MAPPER.valueToTree(model)
                                + ",\"prompt\":[1],\"max_tokens\":1,\"stream\":true,"
                                + "\"stream_options\":{\"include_usage\":true}}")
                        .getBytes(StandardCharsets.UTF_8);
        final Map<String, String> headers = Map.of(MODE, modes.getFirst().spelling());
        try (LoadClient client = new LoadClient(url, TIMEOUT, headers)) {
            final Outcome outcome =
                    client.send("/v1/completions", body, System.nanoTime(), false).join();
            if (!outcome.failed() && outcome.worker().isEmpty()) {
                throw new CommandFailure(
                        url
                                + " does not say which worker it chose, so it would not follow "
                                + MODE
                                + " either: start the gateway with --trusted-network and the"
                                + " address of this machine");
            }
        }
    }

    private Played playOutside(List<MooncakeTrace.Request> requests, String name)
            throws InterruptedException {
        return play(url, Map.of(MODE, name), requests, name, speedUp);
    }

    private Played play(
            URI base,
            Map<String, String> headers,
            List<MooncakeTrace.Request> requests,
            String name,
            double speed)
            throws InterruptedException {
        final RunStats stats = new RunStats(speed);
        try (LoadClient client = new LoadClient(base, TIMEOUT, headers)) {
            final TracePrompts prompts = new TracePrompts(model, vocabulary);
            final TraceDriver driver = new TraceDriver(client, prompts, stats, speed, maxOutput);
            final long wallNs =
                    Progress.during(
                            common.err(),
                            () -> Progress.line(name, stats, requests.size()),
                            () -> driver.play(requests));
            return new Played(name, stats, wallNs);
        }
    }

    private Cluster.Plan plan(List<MooncakeTrace.Request> requests, double speed) {
        int longestPrompt = 0;
        int longest = 0;
        for (MooncakeTrace.Request r : requests) {
            longestPrompt = Math.max(longestPrompt, r.inputLength());
            longest = Math.max(longest, r.inputLength() + Math.min(r.outputLength(), maxOutput));
        }
        final long pool = (long) fleet.blocks() * fleet.blockSize();
        if (longest > pool) {
            throw new CommandFailure(
                    "the longest request has "
                            + longest
                            + " tokens, an engine holds --blocks "
                            + fleet.blocks()
                            + " x --block-size "
                            + fleet.blockSize()
                            + " = "
                            + pool
                            + "; raise --blocks");
        }
        final int modelLength = longest;
        final int bodyBytes = longestPrompt * BODY_BYTES_PER_TOKEN + BODY_BYTES_MORE;
        return new Cluster.Plan(
                "127.0.0.1",
                0,
                Cluster.Plan.same(
                        fleet.workers(),
                        () ->
                                SimConfig.builder()
                                        .model(model)
                                        .blockSize(fleet.blockSize())
                                        .blocks(fleet.blocks())
                                        .maxModelLength(modelLength)
                                        .prefillTokensPerSecond(prefillRate)
                                        .interTokenMillis(interTokenMillis)
                                        .slots(slots)
                                        .speedUp(speed)
                                        .build()),
                () ->
                        GatewayConfig.builder()
                                .set(RouterSettings.OVERLAP_WEIGHT, overlapWeight)
                                .set(RouterSettings.TEMPERATURE, temperature)
                                .set(RouterSettings.SEED, seed)
                                .set(RouterSettings.MAX_WORKERS, fleet.workers())
                                .set(
                                        RouterSettings.MAX_BLOCKS,
                                        (long) fleet.workers() * fleet.blocks())
                                .set(
                                        RouterSettings.MAX_HELD_BLOCKS,
                                        (long) fleet.workers() * fleet.blocks())
                                .set(GatewaySettings.MAX_BODY_BYTES, Math.max(bodyBytes, 1 << 20)));
    }

    private void report(List<RunStats.Result> results, List<MooncakeTrace.Request> requests) {
        if (json) {
            final ObjectNode root = Json.object();
            root.put("command", "replay")
                    .put("trace", trace.toString())
                    .put("requests", requests.size())
                    .put("target", url == null ? "simulated engines" : url.toString())
                    .put("speed_up", speedUp)
                    .put("ttft_unit", "ms of trace time: wall time x speed_up, from the due time");
            if (url == null) {
                root.put("workers", fleet.workers())
                        .put("blocks", fleet.blocks())
                        .put("block_size", fleet.blockSize())
                        .put("prefill_rate", prefillRate)
                        .put("inter_token_ms", interTokenMillis);
            }
            ResultPrinter.json(results, root);
            Json.print(root, common.out());
        } else {
            final PrintWriter out = common.out();
            out.println();
            ResultPrinter.table(results, out);
            out.println();
            ResultPrinter.predictions(results, out);
            out.println();
            out.println(
                    "TTFT in ms of trace time (wall time x "
                            + speedUp
                            + "), from the moment a request was due.");
            out.flush();
        }
    }
}
