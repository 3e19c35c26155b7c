package io.kvasir.cli.commands;

import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;

import io.kvasir.cli.admin.AdminPort;
import io.kvasir.cli.admin.GatewayView;
import io.kvasir.cli.console.CommandFailure;
import io.kvasir.cli.console.ExitCode;
import io.kvasir.cli.console.Json;
import io.kvasir.cli.console.NamedFile;
import io.kvasir.cli.console.Terminal;
import io.kvasir.cli.console.TextTable.Mark;
import io.kvasir.cli.doctor.Check;
import io.kvasir.cli.doctor.Doctor;
import io.kvasir.cli.doctor.Doctor.Findings;
import io.kvasir.cli.doctor.GatewayChecks;
import io.kvasir.cli.doctor.StoreChecks;
import io.kvasir.cli.doctor.TestedEngine;
import io.kvasir.gateway.WorkerStores;
import io.kvasir.gateway.config.GatewayConfig;
import io.kvasir.gateway.config.GatewaySettings;
import io.kvasir.gateway.config.Secret;
import io.kvasir.gateway.config.SecretFile;
import io.kvasir.gateway.config.UnknownVariables;
import io.kvasir.gateway.config.WorkerConfig;
import io.kvasir.prompt.chat.ChatModel;
import io.kvasir.prompt.chat.SimModel;
import io.kvasir.prompt.tokenizer.TokenizerException;
import io.kvasir.router.settings.RouterSettings;

import picocli.CommandLine.ArgGroup;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Option;
import picocli.CommandLine.Parameters;

import java.io.IOException;
import java.io.PrintWriter;
import java.net.URI;
import java.nio.file.Path;
import java.time.Clock;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.Callable;
import java.util.stream.Stream;

/**
 * {@code kvasir doctor}: whether engines are as routing by their KV events needs them, whether the
 * stores of workers are, and whether a gateway's queues are.
 */
@Command(
        name = "doctor",
        description = {
            "Test what routing by KV events needs of an engine, or of all workers of a gateway's"
                    + " configuration and of the stores in which it finds workers; or what a"
                    + " running gateway says of its queues.",
            "",
            "Each line says PASS, FAIL or SKIP, the value seen, the value expected and what to do:"
                + " server, clock, model, token ids and chat template, then for each data-parallel"
                + " rank events, their numbers, block size, hash chain, replay and cached tokens. A"
                + " rank is sent up to four prompts of random token ids, at least 64 and two blocks"
                + " long, and generates a token for each. Of a store: whether it answers, what it"
                + " holds, and which registrations cannot be used, by their keys. Of a gateway:"
                + " readiness, and of each queue its room and its longest wait.",
            ""
        },
        footer = {
            "",
            "Examples:",
            "  kvasir doctor"
                + " http://10.0.0.1:8000,events=tcp://10.0.0.1:5557,replay=tcp://10.0.0.1:5558 \\",
            "    --model m --tokenizer /models/m --block-size 16",
            "  kvasir doctor gateway.yaml --json",
            "  kvasir doctor http://127.0.0.1:9000 --token-file admin.token",
            "",
            "Exit codes: 0 nothing failed; 1 something did; 2 wrong command line; 3 no such file,"
                    + " or a bad one."
        })
public final class DoctorCommand implements Callable<Integer> {
    private static final int MOST_SECONDS = 600;
    private static final int MOST_WORDS = 400;

    @Mixin private CommonOptions common;

    @Parameters(
            paramLabel = "URL|CONFIG",
            description =
                    "An engine as serve takes it by --worker; a file as serve takes it by --config,"
                        + " whose workers, those of its workers-file and of its discovery too, are"
                        + " tested by their model's tokenizer and block-size and by worker-key;"
                        + " KVASIR_… variables count, too; or the admin port of a gateway.")
    private String target;

    @Option(
            names = "--model",
            paramLabel = "NAME",
            description = "Model of the engine. Default: the first that it serves.")
    private String model;

    @Option(
            names = "--tokenizer",
            paramLabel = "DIR",
            description = "Folder of the model's tokenizer; sim = that of kvasir sim.")
    private Path tokenizer;

    @Option(
            names = "--block-size",
            paramLabel = "N",
            description = "The gateway's tokens per block. Default: what the engine says, or 16.")
    private int blockSize;

    @Option(
            names = "--key-file",
            paramLabel = "FILE",
            description = "File whose first line is the engine's API key.")
    private Path keyFile;

    @ArgGroup private AdminOptions.Token token;

    @Option(
            names = "--timeout-s",
            paramLabel = "S",
            defaultValue = "10",
            description =
                    "How long each answer, events and a store are waited for. Default:"
                            + " ${DEFAULT-VALUE}.")
    private int seconds;

    @Option(names = "--json", description = "Print one JSON object instead of lines.")
    private boolean json;

    private final List<ChatModel> encoders = new ArrayList<>();

    @Override
    public Integer call() throws IOException, InterruptedException {
        if (seconds < 1 || seconds > MOST_SECONDS) {
            throw common.wrong("--timeout-s " + seconds + " is not within 1.." + MOST_SECONDS);
        }
        if (blockSize < 0) {
            throw common.wrong("--block-size " + blockSize + " is negative");
        }
        try {
            if (!target.matches("(?i)https?://.*")) {
                return ofConfiguration();
            }
            final WorkerConfig worker = worker();
            return isGateway(worker) ? gateway(worker.url()) : engine(worker);
        } finally {
            encoders.forEach(ChatModel::close);
        }
    }

    private WorkerConfig worker() {
        try {
            return WorkerConfig.parse(target);
        } catch (IllegalArgumentException e) {
            throw common.wrong(String.valueOf(e.getMessage()));
        }
    }

    private boolean saysOfEngine() {
        return model != null || tokenizer != null || blockSize != 0 || keyFile != null;
    }

    private Duration limit() {
        return Duration.ofSeconds(seconds);
    }

    /** A token is for a gateway; what is said of an engine is for one; else the server tells. */
    private boolean isGateway(WorkerConfig worker) throws InterruptedException {
        final boolean isEngine = saysOfEngine() || target.indexOf(',') >= 0;
        if (token != null && isEngine) {
            throw common.wrong(
                    "--token and --token-file are for the admin port of a gateway, by its URL"
                            + " alone");
        }
        return token != null || (!isEngine && GatewayChecks.isGateway(worker.url(), limit()));
    }

    private int gateway(URI url) throws InterruptedException {
        try (AdminPort port = new AdminPort(url, AdminOptions.Token.orNull(token), limit())) {
            final GatewayView view = GatewayView.of(port);
            final Findings findings =
                    new Findings("kvasir " + view.version(), view.url(), GatewayChecks.of(view));
            final Outcome outcome = new Outcome();
            outcome.take(outcome.gateways, findings);
            return outcome.end();
        }
    }

    private int engine(WorkerConfig worker) throws InterruptedException {
        final Outcome outcome = new Outcome();
        test(
                List.of(
                        new TestedEngine(
                                worker,
                                model,
                                blockSize,
                                encoderOrNull(tokenizer),
                                keyFile == null
                                        ? null
                                        : bearer(
                                                SecretFile.token("--key-file", keyFile)
                                                        .secret()
                                                        .value()))),
                outcome);
        return outcome.end();
    }

    private void warn(String text) {
        common.err().println("warning: " + printable(text));
    }

    private int ofConfiguration() throws IOException, InterruptedException {
        if (saysOfEngine() || token != null) {
            throw common.wrong(
                    "--model, --tokenizer, --block-size, --key-file, --token and --token-file are"
                            + " for a URL; of a configuration its own hold");
        }
        final Path file = Path.of(target);
        final GatewayConfig.Builder variables =
                GatewayConfig.builder().environment(System.getenv());
        final GatewayConfig config =
                NamedFile.read("CONFIG", file, () -> variables.file(file)).build();
        UnknownVariables.warnings(System.getenv()).forEach(this::warn);
        config.warnings().forEach(this::warn);
        common.err().flush();
        final Outcome outcome = new Outcome();
        final List<WorkerStores.View> stores = WorkerStores.read(config, limit());
        final List<WorkerConfig> workers = new ArrayList<>(config.get(GatewaySettings.WORKERS));
        for (WorkerStores.View store : stores) {
            outcome.take(outcome.stores, StoreChecks.of(store, config, limit()));
            store.workers().forEach(each -> workers.add(each.worker()));
        }
        if (workers.isEmpty() && stores.isEmpty()) {
            throw new CommandFailure(
                    target + " names no workers, and neither a workers-file nor a store of them");
        }
        test(engines(config, workers), outcome);
        return outcome.end();
    }

    private List<TestedEngine> engines(GatewayConfig config, List<WorkerConfig> workers) {
        final List<TestedEngine> engines = new ArrayList<>();
        for (GatewayConfig each : config.models()) {
            final String name = each.get(GatewaySettings.MODEL);
            final ChatModel encoder = encoderOrNull(each.get(GatewaySettings.TOKENIZER));
            for (WorkerConfig worker : workers) {
                final String served =
                        worker.model() == null ? config.get(GatewaySettings.MODEL) : worker.model();
                if (served.equals(name)) {
                    engines.add(
                            new TestedEngine(
                                    worker,
                                    name,
                                    each.get(RouterSettings.BLOCK_SIZE),
                                    encoder,
                                    keyOrNull(config)));
                }
            }
        }
        return engines;
    }

    private static String keyOrNull(GatewayConfig config) {
        final Path file = config.get(GatewaySettings.WORKER_KEY_FILE);
        if (file != null) {
            return bearer(
                    SecretFile.token(GatewaySettings.WORKER_KEY_FILE.name(), file)
                            .secret()
                            .value());
        }
        final Secret key = config.get(GatewaySettings.WORKER_KEY);
        return key == null ? null : bearer(key.value());
    }

    private static String bearer(String key) {
        return "Bearer " + key;
    }

    private ChatModel encoderOrNull(Path folderOrNull) {
        if (folderOrNull == null) {
            return null;
        }
        try {
            final ChatModel encoder =
                    folderOrNull.toString().equals(SimModel.KEYWORD)
                            ? ChatModel.simulated()
                            : ChatModel.load(folderOrNull);
            encoders.add(encoder);
            return encoder;
        } catch (TokenizerException e) {
            throw new CommandFailure("cannot load the tokenizer: " + e.getMessage(), e);
        }
    }

    private void test(List<TestedEngine> engines, Outcome outcome) throws InterruptedException {
        new Doctor(limit(), Clock.systemUTC())
                .test(engines, findings -> outcome.take(outcome.engines, findings));
    }

    /** What was found, printed as it comes. */
    private final class Outcome {
        private final List<Findings> gateways = new ArrayList<>();
        private final List<Findings> stores = new ArrayList<>();
        private final List<Findings> engines = new ArrayList<>();

        void take(List<Findings> kind, Findings findings) {
            kind.add(findings);
            if (!json) {
                print(findings);
            }
        }

        private long count(Check.Result result) {
            return Stream.of(gateways, stores, engines)
                    .flatMap(List::stream)
                    .mapToLong(findings -> findings.count(result))
                    .sum();
        }

        /** Prints the rest. */
        int end() {
            final long failed = count(Check.Result.FAIL);
            if (json) {
                final ObjectNode root = Json.object();
                root.put("failed", failed);
                put(root, "gateways", "gateway", gateways);
                put(root, "stores", "store", stores);
                put(root, "engines", "engine", engines);
                Json.print(root, common.out());
            } else {
                common.out()
                        .println(
                                failed
                                        + " failed, "
                                        + count(Check.Result.PASS)
                                        + " passed, "
                                        + count(Check.Result.SKIP)
                                        + " skipped");
                common.out().flush();
            }
            return failed == 0 ? ExitCode.OK : ExitCode.NEGATIVE;
        }

        private static void put(
                ObjectNode root, String list, String name, List<Findings> findings) {
            final ArrayNode all = root.putArray(list);
            for (Findings each : findings) {
                final ObjectNode item = all.addObject();
                item.put(name, each.name()).put("url", each.url());
                final ArrayNode checks = item.putArray("checks");
                each.checks().forEach(check -> check.put(checks.addObject()));
            }
        }
    }

    private void print(Findings findings) {
        final PrintWriter out = common.out();
        final boolean colour = Terminal.hasColour();
        out.println(printable(findings.name()) + " " + printable(findings.url()));
        for (Check check : findings.checks()) {
            final Mark mark = check.result() == Check.Result.FAIL ? Mark.WRONG : Mark.NONE;
            out.println(
                    mark.on(check.result().name(), colour)
                            + "  "
                            + printable(check.name())
                            + ": "
                            + printable(check.seen())
                            + (check.expected().isEmpty()
                                    ? ""
                                    : "; expected: " + printable(check.expected())));
            if (!check.remedy().isEmpty()) {
                out.println("      " + printable(check.remedy()));
            }
        }
        out.println();
        out.flush();
    }

    private static String printable(String text) {
        return Terminal.printable(text, MOST_WORDS);
    }
}
