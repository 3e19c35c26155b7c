package io.kvasir.cli;

import com.fasterxml.jackson.databind.JsonNode;

import io.kvasir.gateway.GatewayConfig;
import io.kvasir.gateway.GatewayServer;
import io.kvasir.gateway.WorkerConfig;
import io.kvasir.router.RouterSettings;
import io.kvasir.router.RoutingMode;

import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Option;

import java.io.IOException;
import java.io.PrintWriter;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.Callable;
import java.util.concurrent.atomic.AtomicReference;
import java.util.function.Consumer;

/** {@code kvasir serve}: the gateway in front of running engines. */
@Command(
        name = "serve",
        description = {
            "Run the OpenAI-compatible gateway in front of your engines.",
            "",
            "Each request goes to the worker where it costs least: overlap weight x blocks to"
                + " prefill + blocks to decode, known from the engines' KV events and the gateway's"
                + " own bookings. Flags override the --config file.",
            ""
        },
        footer = {
            "",
            "Examples:",
            "  kvasir serve --model m --tokenizer /models/m --block-size 16 \\",
            "    --worker"
                    + " http://10.0.0.1:8000,events=tcp://10.0.0.1:5557,replay=tcp://10.0.0.1:5558",
            "  kvasir serve --config gateway.yaml --port 8080",
            "",
            "Exit codes: 130/143 ended by ctrl-C/kill, running requests drained; 2 wrong command"
                    + " line; 3 could not start (port in use, bad file or value)."
        })
final class ServeCommand implements Callable<Integer> {
    private static final Duration FIRST_LOOK = Duration.ofSeconds(3);
    private static final long POLL_MS = 100;

    @Mixin private CommonOptions common;

    @Option(
            names = "--config",
            paramLabel = "FILE",
            description =
                    "YAML file; its keys are the flags below without dashes, workers a list."
                            + " Default: none.")
    private Path config;

    @Option(
            names = "--worker",
            paramLabel = "SPEC",
            converter = Converters.Worker.class,
            description =
                    "A worker, repeatable:"
                            + " http://host:port[,name=N][,events=tcp://h:p][,replay=tcp://h:p]"
                            + "[,dp=N][,removals=auto|physical|last-copy][,bind=true][,topic=T]."
                            + " Without events it is routed by load alone, or see --approximate."
                            + " Replaces the file's.")
    private List<WorkerConfig> workers = new ArrayList<>();

    @Option(
            names = "--model",
            paramLabel = "NAME",
            description = "Served model name. Required here or in the file.")
    private String model;

    @Option(
            names = "--lora",
            paramLabel = "NAME",
            description = "LoRA adapter that the workers serve as a model; repeatable.")
    private List<String> adapters = new ArrayList<>();

    @Option(
            names = "--tokenizer",
            paramLabel = "DIR",
            description =
                    "Folder with tokenizer.json and tokenizer_config.json, or the file; 'sim' ="
                        + " that of kvasir sim. Default: none, only prompts of token ids are routed"
                        + " by prefix.")
    private String tokenizer;

    @Option(
            names = "--block-size",
            paramLabel = "N",
            description = "Tokens per block, as in the engines. Default: 16.")
    private Integer blockSize;

    @Option(names = "--host", description = "Address to listen on. Default: 0.0.0.0.")
    private String host;

    @Option(names = "--port", description = "Port to listen on; 0 = any free one. Default: 8000.")
    private Integer port;

    @Option(
            names = "--mode",
            paramLabel = "M",
            converter = Converters.Mode.class,
            description = "kv, round-robin, random or direct. Default: kv.")
    private RoutingMode mode;

    @Option(
            names = "--overlap-weight",
            paramLabel = "W",
            description = "Weight of a block to prefill; 0 = load alone. Default: 1.")
    private Double overlapWeight;

    @Option(
            names = "--temperature",
            paramLabel = "T",
            description = "0 = the cheapest worker, above = sampled by cost. Default: 0.")
    private Double temperature;

    @Option(names = "--seed", paramLabel = "N", description = "Seed of ties. Default: random.")
    private Long seed;

    @Option(
            names = "--include-usage",
            negatable = true,
            description =
                    "Ask engines for usage in every stream and keep it from clients that did not"
                            + " ask: the only way to compare forecasts of streams. Default: on.")
    private Boolean includeUsage;

    @Option(
            names = "--max-workers",
            paramLabel = "N",
            description = "(Worker, rank) pairs that fit. Default: 64.")
    private Integer maxWorkers;

    @Option(
            names = "--max-blocks",
            paramLabel = "N",
            description =
                    "Distinct blocks in the index; sizes its memory. Default: 1048576; twice as"
                            + " many (worker, block) pairs.")
    private Long maxBlocks;

    @Option(
            names = "--index-bytes",
            paramLabel = "N",
            description =
                    "Memory of the index, whatever --max-blocks, which stays a limit. Default: 0,"
                            + " by --max-blocks.")
    private Long indexBytes;

    @Option(
            names = "--approximate",
            negatable = true,
            description =
                    "Take workers without events to hold what was routed to them of late. Default:"
                            + " off.")
    private Boolean approximate;

    @Option(
            names = "--ttl-secs",
            paramLabel = "S",
            description = "Approximate: how long a routed prompt counts. Default: 120.")
    private Integer ttlSecs;

    @Option(
            names = "--max-tree-size",
            paramLabel = "N",
            description =
                    "Approximate: (worker, block) pairs above which the oldest prompts go. Default:"
                            + " 1048576.")
    private Long maxTreeSize;

    @Option(
            names = "--prune-target-ratio",
            paramLabel = "R",
            description = "Approximate: part of these that is left then. Default: 0.8.")
    private Double pruneTargetRatio;

    @Option(
            names = "--max-active-requests",
            paramLabel = "N",
            description = "Requests in flight; more get 429. Default: 8192.")
    private Integer maxActiveRequests;

    @Option(
            names = "--max-body-bytes",
            paramLabel = "N",
            description = "Longest request body; longer get 413. Default: 33554432.")
    private Integer maxBodyBytes;

    @Option(
            names = "--retries",
            paramLabel = "N",
            description = "Further workers tried when one fails before an answer. Default: 2.")
    private Integer retries;

    @Option(
            names = "--upstream-idle-timeout-ms",
            paramLabel = "MS",
            description =
                    "Longest silence of a worker, until the first token too. Default: 300000.")
    private Integer upstreamIdleTimeoutMs;

    @Option(
            names = "--booking-timeout-ms",
            paramLabel = "MS",
            description =
                    "How long a request counts as load of its worker at most; its answer goes on."
                            + " Default: 0, as long as it runs.")
    private Integer bookingTimeoutMs;

    @Option(
            names = "--drain-timeout-ms",
            paramLabel = "MS",
            description = "How long ctrl-C waits for running requests. Default: 10000.")
    private Integer drainTimeoutMs;

    private final AtomicReference<GatewayServer> running = new AtomicReference<>();

    @Override
    public Integer call() throws IOException, InterruptedException {
        final GatewayConfig effective = effectiveConfig();
        final Shutdown shutdown = Shutdown.of(this::closeRunning);
        final GatewayServer gateway = GatewayServer.start(effective);
        running.set(gateway);
        print(effective, gateway.port());
        printReached(
                firstLook(effective, gateway.port()),
                effective.approximate()
                        ? "predicted from what is routed there"
                        : "routed by load alone");
        return shutdown.await();
    }

    private GatewayConfig effectiveConfig() throws IOException {
        final GatewayConfig.Builder b =
                config == null
                        ? GatewayConfig.builder()
                        : GatewayConfig.fromYaml(config).toBuilder();
        if (!workers.isEmpty()) {
            b.workers(workers);
        }
        if (!adapters.isEmpty()) {
            b.loraAdapters(adapters);
        }
        if (tokenizer != null) {
            b.tokenizer(tokenizer.equals(SimModel.KEYWORD) ? SimModel.files() : Path.of(tokenizer));
        }
        if (maxBlocks != null) {
            b.maxBlocks(maxBlocks, 2 * maxBlocks);
        }
        setIfGiven(model, b::model);
        setIfGiven(blockSize, b::blockSize);
        setIfGiven(host, b::host);
        setIfGiven(port, b::port);
        setIfGiven(mode, b::mode);
        setIfGiven(overlapWeight, b::overlapWeight);
        setIfGiven(temperature, b::temperature);
        setIfGiven(seed, b::seed);
        setIfGiven(includeUsage, b::injectIncludeUsage);
        setIfGiven(maxWorkers, b::maxWorkers);
        setIfGiven(indexBytes, b::indexBytes);
        setIfGiven(approximate, b::approximate);
        setIfGiven(ttlSecs == null ? null : Duration.ofSeconds(ttlSecs), b::ttl);
        setIfGiven(maxTreeSize, b::maxTreeSize);
        setIfGiven(pruneTargetRatio, b::pruneTargetRatio);
        setIfGiven(maxActiveRequests, b::maxActiveRequests);
        setIfGiven(maxBodyBytes, b::maxBodyBytes);
        setIfGiven(retries, b::retries);
        setIfGiven(millis(upstreamIdleTimeoutMs), b::upstreamIdleTimeout);
        setIfGiven(millis(bookingTimeoutMs), b::bookingTimeout);
        setIfGiven(millis(drainTimeoutMs), b::drainTimeout);
        final GatewayConfig effective = b.build();
        if (effective.workers().isEmpty()) {
            throw common.wrong("no workers; give --worker http://host:port,... or a file");
        }
        return effective;
    }

    private static <T> void setIfGiven(T value, Consumer<T> setter) {
        if (value != null) {
            setter.accept(value);
        }
    }

    private static Duration millis(Integer value) {
        return value == null ? null : Duration.ofMillis(value);
    }

    private void closeRunning() {
        final GatewayServer gateway = running.getAndSet(null);
        if (gateway != null) {
            gateway.close();
        }
    }

    private void print(GatewayConfig c, int boundPort) {
        final PrintWriter out = common.out();
        out.println("listening on http://" + c.host() + ":" + boundPort);
        out.println("  model " + c.model() + ", adapters " + c.loraAdapters());
        out.println(
                "  tokenizer "
                        + (c.tokenizer() == null
                                ? "none: only prompts of token ids are routed by prefix"
                                : c.tokenizer())
                        + ", block size "
                        + c.blockSize());
        out.println(
                "  mode "
                        + c.mode().spelling()
                        + ", overlap weight "
                        + c.overlapWeight()
                        + ", temperature "
                        + c.temperature()
                        + ", usage in streams "
                        + (c.injectIncludeUsage() ? "asked for" : "as the client asks"));
        if (c.approximate()) {
            out.println(
                    "  workers without events hold what was routed to them in the last "
                            + c.ttl().toSeconds()
                            + " s, at most "
                            + c.maxTreeSize()
                            + " blocks");
        }
        out.println(
                "  limits: "
                        + c.maxWorkers()
                        + " workers, "
                        + c.maxBlocks()
                        + " blocks, "
                        + c.maxHeldBlocks()
                        + " held blocks, "
                        + (c.indexBytes() == RouterSettings.BY_LIMITS
                                ? ""
                                : c.indexBytes() + " index bytes, ")
                        + c.maxActiveRequests()
                        + " active requests, "
                        + c.maxBodyBytes()
                        + " body bytes");
        out.flush();
    }

    /** What the gateway says of its workers, once it has tried all of them or a moment later. */
    private static JsonNode firstLook(GatewayConfig config, int boundPort)
            throws IOException, InterruptedException {
        final String host = config.host().equals("0.0.0.0") ? "127.0.0.1" : config.host();
        final HttpRequest request =
                HttpRequest.newBuilder(
                                URI.create("http://" + host + ":" + boundPort + "/debug/workers"))
                        .timeout(FIRST_LOOK)
                        .build();
        final long endNs = System.nanoTime() + FIRST_LOOK.toNanos();
        try (HttpClient http = HttpClient.newHttpClient()) {
            while (true) {
                final byte[] page =
                        http.send(request, HttpResponse.BodyHandlers.ofByteArray()).body();
                final JsonNode workers = Json.MAPPER.readTree(page).path("workers");
                if (allTried(workers) || System.nanoTime() > endNs) {
                    return workers;
                }
                Thread.sleep(POLL_MS);
            }
        }
    }

    private static boolean allTried(JsonNode workers) {
        for (JsonNode worker : workers) {
            if (worker.path("health").asText().equals("unknown")
                    || worker.path("tokenizer_detail").asText().equals("not asked yet")
                    || worker.path("index_state").asText().equals("loading")) {
                return false;
            }
        }
        return true;
    }

    private void printReached(JsonNode workers, String withoutEvents) {
        final PrintWriter out = common.out();
        for (JsonNode worker : workers) {
            final JsonNode events = worker.path("events");
            out.println(
                    "worker "
                            + worker.path("worker").asText()
                            + "/"
                            + worker.path("dp_rank").asText()
                            + " "
                            + worker.path("url").asText()
                            + ": health "
                            + worker.path("health").asText()
                            + because(worker.path("last_error"))
                            + ", tokens "
                            + worker.path("tokenizer").asText()
                            + ", events "
                            + (events.isObject()
                                    ? worker.path("index_state").asText()
                                            + " at message "
                                            + events.path("last_sequence").asText()
                                            + because(events.path("problem"))
                                    : "none: " + withoutEvents));
        }
        out.println("running; ctrl-C drains and ends");
        out.flush();
    }

    private static String because(JsonNode reason) {
        return reason.isTextual() && !reason.asText().isEmpty() ? " (" + reason.asText() + ")" : "";
    }
}
