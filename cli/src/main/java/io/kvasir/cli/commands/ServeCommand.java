package io.kvasir.cli.commands;

import static io.kvasir.cli.console.Terminal.printable;

import com.fasterxml.jackson.databind.JsonNode;

import io.kvasir.cli.console.CommandFailure;
import io.kvasir.cli.console.ExitCode;
import io.kvasir.cli.console.Json;
import io.kvasir.cli.console.NamedFile;
import io.kvasir.cli.console.Shutdown;
import io.kvasir.core.index.PrefixIndexConfig;
import io.kvasir.gateway.GatewayServer;
import io.kvasir.gateway.StartFiles;
import io.kvasir.gateway.config.ConfigDump;
import io.kvasir.gateway.config.GatewayConfig;
import io.kvasir.gateway.config.GatewaySettings;
import io.kvasir.gateway.config.HeapLimits;
import io.kvasir.gateway.config.UnknownVariables;
import io.kvasir.router.RouterConfig;
import io.kvasir.router.settings.RouterSettings;
import io.kvasir.router.settings.Settings;
import io.kvasir.router.settings.WrongSettingsException;

import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

import picocli.CommandLine;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Option;

import java.io.IOException;
import java.io.PrintWriter;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.Callable;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicReference;

/** {@code kvasir serve}: the gateway in front of running engines. */
@Command(
        name = "serve",
        modelTransformer = SettingOptions.class,
        description = {
            "Run the OpenAI-compatible gateway in front of your engines.",
            "",
            "Each request goes to the worker where it costs least: overlap weight x blocks to"
                + " prefill + blocks to decode, known from the engines' KV events and the gateway's"
                + " own bookings. Flags override environment variables (--max-workers is"
                + " KVASIR_MAX_WORKERS), these override the --config file.",
            ""
        },
        footer = {
            "",
            "Examples:",
            "  kvasir serve --model m --tokenizer /models/m --block-size 16 \\",
            "    --worker"
                    + " http://10.0.0.1:8000,events=tcp://10.0.0.1:5557,replay=tcp://10.0.0.1:5558",
            "  kvasir serve --model m --serve-model name=n,tokenizer=/models/n,block-size=32 \\",
            "    --worker http://10.0.0.1:8000 --worker http://10.0.0.2:8000,model=n",
            "  kvasir serve --config gateway.yaml --port 8080",
            "  kvasir serve --config gateway.yaml --check-config",
            "",
            "Exit codes: 0 ended by ctrl-C/kill, running requests drained; 1 by a second signal; 2"
                    + " wrong command line; 3 could not start (port in use, bad file or value)."
        })
public final class ServeCommand implements Callable<Integer> {
    /** Longer than a probe of a slow worker takes, and the load of a usual index. */
    private static final Duration FIRST_LOOK = Duration.ofSeconds(30);

    private static final long POLL_MS = 100;

    @Mixin private CommonOptions common;

    @Option(
            names = "--config",
            paramLabel = "FILE",
            description =
                    "YAML file; its keys are the flags below without dashes; see"
                            + " docs/operations/kvasir.yaml.")
    private Path config;

    @Option(
            names = "--check-config",
            description =
                    "Check flags, variables and files, also those of tokens, keys, authorities,"
                            + " tokenizers, workers and logs, folders and their room on the disk,"
                            + " say what of these a start would refuse, warn of what has no"
                            + " effect, and end. Connects to nothing and keeps no port.")
    private boolean checkConfig;

    @Option(
            names = "--dump-config",
            description =
                    "Print all settings in effect as a file for --config, with where each is from,"
                            + " and end. Tokens and passwords are left out.")
    private boolean dumpConfig;

    private final AtomicReference<GatewayServer> running = new AtomicReference<>();

    @Override
    public Integer call() throws IOException, InterruptedException {
        final CompletableFuture<GatewayServer> started = new CompletableFuture<>();
        if (!dumpConfig && !checkConfig) {
            // first of all, for the start would be ended by it; where refused, it ends the process
            var _ =
                    ProcessSignals.on(
                            "HUP",
                            () -> {
                                var _ = started.thenAccept(it -> it.reload(this::effectiveConfig));
                            });
        }
        final GatewayConfig effective = effectiveConfig();
        if (dumpConfig || checkConfig) {
            if (!dumpConfig) {
                UnknownVariables.warnings(System.getenv()).forEach(this::warn);
                effective.warnings().forEach(this::warn);
            }
            final List<String> problems = dumpConfig ? List.of() : StartFiles.problems(effective);
            if (!problems.isEmpty()) {
                throw new CommandFailure(String.join("\n", problems));
            }
            common.out().print(dumpConfig ? ConfigDump.yaml(effective) : "ok\n");
            common.out().flush();
            return ExitCode.OK;
        }
        final boolean debug = CommonOptions.isDebug(parsed());
        LogSetup.apply(effective, debug);
        logUnknownVariables();
        final Shutdown shutdown = Shutdown.of(this::closeRunning);
        final GatewayServer gateway = start(effective);
        running.set(gateway);
        final CountDownLatch endOrNull = endSignal();
        gateway.onSettings(now -> LogSetup.level(now, debug));
        started.complete(gateway);
        print(effective, gateway);
        printReached(firstLook(gateway, endOrNull), effective);
        if (endOrNull == null) {
            return shutdown.await();
        }
        endOrNull.await();
        common.out().println("draining; a second signal ends at once");
        common.out().flush();
        gateway.drain();
        return ExitCode.OK;
    }

    /** The logger is made here: one of the class would be, for every command, before its level. */
    private static void logUnknownVariables() {
        final Logger log = LoggerFactory.getLogger(ServeCommand.class);
        UnknownVariables.warnings(System.getenv()).forEach(text -> log.warn("{}", printable(text)));
    }

    private void warn(String text) {
        common.out().println("warning: " + printable(text));
    }

    private static GatewayServer start(GatewayConfig effective) {
        try {
            return GatewayServer.start(effective);
        } finally {
            LogSetup.flush(); // what follows is printed past the log
        }
    }

    /**
     * Has the first signal to end counted, and a second one end at once.
     *
     * @return null where this JVM leaves signals to the system
     */
    private static CountDownLatch endSignal() {
        final CountDownLatch end = new CountDownLatch(1);
        final Runnable signalled =
                () -> {
                    if (end.getCount() == 0) {
                        Runtime.getRuntime().halt(ExitCode.NEGATIVE);
                    }
                    end.countDown();
                };
        return ProcessSignals.on("TERM", signalled) && ProcessSignals.on("INT", signalled)
                ? end
                : null;
    }

    private CommandLine.ParseResult parsed() {
        return common.command.root().commandLine().getParseResult();
    }

    private GatewayConfig effectiveConfig() throws IOException {
        final GatewayConfig.Builder builder = GatewayConfig.builder();
        final List<String> problems = new ArrayList<>();
        try {
            SettingOptions.apply(common.command.commandLine().getParseResult(), builder);
        } catch (WrongSettingsException e) {
            problems.add(e.getMessage());
        }
        final boolean isWrongCommand = !problems.isEmpty();
        collect(problems, () -> builder.environment(System.getenv()));
        if (config != null) {
            collect(problems, () -> NamedFile.read("--config", config, () -> builder.file(config)));
        }
        if (isWrongCommand) {
            throw common.wrong(String.join("\n", problems));
        }
        if (problems.isEmpty() && builder.lacks(GatewaySettings.MODEL)) {
            throw common.wrong(
                    "no model; give --model NAME, or model in a file, as the workers call it");
        }
        GatewayConfig effective = null;
        if (problems.isEmpty()) { // else what follows from wrong values would be said, too
            try {
                effective = builder.build();
            } catch (WrongSettingsException e) {
                if (e.getMessage().equals(refusalOfFlagsAlone())) {
                    throw common.wrong(e.getMessage());
                }
                problems.add(e.getMessage());
            }
        }
        if (!problems.isEmpty()) {
            throw new CommandFailure(String.join("\n", problems));
        }
        if (effective.settings().source(GatewaySettings.WARM_UP) == Settings.Source.DEFAULT) {
            builder.set(GatewaySettings.WARM_UP, GatewaySettings.SERVE_WARM_UP);
            effective = builder.build();
        }
        if (effective.get(GatewaySettings.WORKERS).isEmpty() && !effective.discovers()) {
            throw common.wrong(
                    "no workers; give --worker http://host:port,..., a file, --workers-file (its"
                            + " list may be empty), or a source of --discovery-…");
        }
        return effective;
    }

    /** Why the options of the command line contradict each other, without files and variables. */
    private String refusalOfFlagsAlone() {
        final GatewayConfig.Builder flags = GatewayConfig.builder();
        SettingOptions.apply(common.command.commandLine().getParseResult(), flags);
        if (flags.lacks(GatewaySettings.MODEL)) {
            flags.set(GatewaySettings.MODEL, "of a file or a variable");
        }
        try {
            flags.build();
            return null;
        } catch (WrongSettingsException e) {
            return e.getMessage();
        }
    }

    /** A step of reading settings. */
    private interface Step {
        void run() throws IOException;
    }

    /** Goes on where settings are wrong, so that all of them are named at once. */
    private static void collect(List<String> problems, Step step) throws IOException {
        try {
            step.run();
        } catch (WrongSettingsException e) {
            problems.add(e.getMessage());
        }
    }

    private void closeRunning() {
        final GatewayServer gateway = running.getAndSet(null);
        if (gateway != null) {
            gateway.close();
        }
        LogSetup.flush();
    }

    private void print(GatewayConfig c, GatewayServer gateway) {
        final PrintWriter out = common.out();
        out.println("listening on " + gateway.url());
        out.println("  admin on " + gateway.adminUrl());
        c.models().forEach(model -> print(model, out));
        out.flush();
    }

    private static void print(GatewayConfig c, PrintWriter out) {
        out.println(
                "  model "
                        + c.get(GatewaySettings.MODEL)
                        + ", adapters "
                        + c.get(GatewaySettings.LORA));
        out.println(
                "  tokenizer "
                        + (c.get(GatewaySettings.TOKENIZER) == null
                                ? "none: only prompts of token ids are routed by prefix"
                                : c.get(GatewaySettings.TOKENIZER))
                        + ", block size "
                        + c.get(RouterSettings.BLOCK_SIZE));
        out.println(
                "  mode "
                        + c.get(RouterSettings.MODE).spelling()
                        + ", overlap weight "
                        + c.get(RouterSettings.OVERLAP_WEIGHT)
                        + ", temperature "
                        + c.get(RouterSettings.TEMPERATURE)
                        + ", usage in streams "
                        + (c.get(GatewaySettings.INCLUDE_USAGE)
                                ? "asked for"
                                : "as the client asks"));
        if (c.get(RouterSettings.APPROXIMATE)) {
            out.println(
                    "  workers without events hold what was routed to them in the last "
                            + c.get(RouterSettings.TTL).toSeconds()
                            + " s, at most "
                            + c.get(RouterSettings.MAX_TREE_SIZE)
                            + " blocks");
        }
        final PrefixIndexConfig index = RouterConfig.index(c.settings());
        out.println(
                "  limits: "
                        + c.get(RouterSettings.MAX_WORKERS)
                        + " workers, "
                        + index.maxBlocks()
                        + " blocks, "
                        + index.maxHeldBlocks()
                        + " held blocks, "
                        + index.budgetBytes()
                        + " index bytes, "
                        + c.get(RouterSettings.MAX_ACTIVE_REQUESTS)
                        + " active requests, "
                        + HeapLimits.bodyBytes(c)
                        + " body bytes");
    }

    /**
     * What the gateway says of its workers, once it has tried all of them, some time has passed, or
     * it is to end.
     */
    private static JsonNode firstLook(GatewayServer gateway, CountDownLatch endOrNull)
            throws IOException, InterruptedException {
        final long startNs = System.nanoTime();
        while (true) {
            final JsonNode workers = Json.MAPPER.readTree(gateway.workersPage()).path("workers");
            if (allTried(workers)
                    || System.nanoTime() - startNs > FIRST_LOOK.toNanos()
                    || (endOrNull != null && endOrNull.getCount() == 0)) {
                return workers;
            }
            Thread.sleep(POLL_MS);
        }
    }

    private static boolean allTried(JsonNode workers) {
        for (JsonNode worker : workers) {
            final String health = worker.path("health").asText();
            final boolean answers = health.equals("up"); // of another one nothing more is learned
            if (health.equals("unknown")
                    || (answers
                            && (worker.path("tokenizer_detail").asText().equals("not asked yet")
                                    || worker.path("index_state").asText().equals("loading")))) {
                return false;
            }
        }
        return true;
    }

    private void printReached(JsonNode workers, GatewayConfig c) {
        final PrintWriter out = common.out();
        final Map<String, String> withoutEvents = new HashMap<>(); // by model
        for (GatewayConfig model : c.models()) {
            withoutEvents.put(
                    model.get(GatewaySettings.MODEL),
                    model.get(RouterSettings.APPROXIMATE)
                            ? "predicted from what is routed there"
                            : "routed by load alone");
        }
        for (JsonNode worker : workers) {
            final JsonNode events = worker.path("events");
            final JsonNode model = worker.path("model"); // absent where there is one
            out.println(
                    "worker "
                            + worker.path("worker").asText()
                            + "/"
                            + worker.path("dp_rank").asText()
                            + " "
                            + worker.path("url").asText()
                            + (model.isMissingNode()
                                    ? ": health "
                                    : ": model " + model.asText() + ", health ")
                            + worker.path("health").asText()
                            + because(worker.path("last_error"))
                            + ", tokens "
                            + worker.path("tokenizer").asText()
                            + ", events "
                            + (events.isObject()
                                    ? worker.path("index_state").asText()
                                            + atMessage(events.path("last_sequence").asLong())
                                            + because(events.path("problem"))
                                    : "none: "
                                            + withoutEvents.get(
                                                    model.asText(c.get(GatewaySettings.MODEL)))));
        }
        out.println("running; ctrl-C drains and ends");
        out.flush();
    }

    private static String atMessage(long lastOrMinusOne) {
        return lastOrMinusOne < 0 ? ", no message yet" : " at message " + lastOrMinusOne;
    }

    private static String because(JsonNode reason) {
        return reason.isTextual() && !reason.asText().isEmpty() ? " (" + reason.asText() + ")" : "";
    }
}
