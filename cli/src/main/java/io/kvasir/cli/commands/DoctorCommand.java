package io.kvasir.cli.commands;

import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;

import io.kvasir.cli.console.CommandFailure;
import io.kvasir.cli.console.ExitCode;
import io.kvasir.cli.console.Json;
import io.kvasir.cli.console.Terminal;
import io.kvasir.cli.console.TextTable.Mark;
import io.kvasir.cli.doctor.Check;
import io.kvasir.cli.doctor.Doctor;
import io.kvasir.cli.doctor.Doctor.Findings;
import io.kvasir.cli.doctor.TestedEngine;
import io.kvasir.gateway.config.BearerTokens;
import io.kvasir.gateway.config.ConfigFile;
import io.kvasir.gateway.config.GatewayConfig;
import io.kvasir.gateway.config.GatewaySettings;
import io.kvasir.gateway.config.Secret;
import io.kvasir.gateway.config.WorkerConfig;
import io.kvasir.prompt.chat.ChatModel;
import io.kvasir.prompt.chat.SimModel;
import io.kvasir.prompt.tokenizer.TokenizerException;
import io.kvasir.router.settings.RouterSettings;

import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Option;
import picocli.CommandLine.Parameters;

import java.io.IOException;
import java.io.PrintWriter;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Clock;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.Callable;

/** {@code kvasir doctor}: whether engines are as routing by their KV events needs them. */
@Command(
        name = "doctor",
        description = {
            "Test what routing by KV events needs of an engine, or of all workers of a gateway's"
                    + " configuration.",
            "",
            "Each line says PASS, FAIL or SKIP, the value seen, the value expected and what to do:"
                + " server, clock, model, token ids and chat template, then for each data-parallel"
                + " rank events, their numbers, block size, hash chain, replay and cached tokens. A"
                + " rank is sent up to four prompts of random token ids, at least 64 and two blocks"
                + " long, and generates a token for each.",
            ""
        },
        footer = {
            "",
            "Examples:",
            "  kvasir doctor"
                + " http://10.0.0.1:8000,events=tcp://10.0.0.1:5557,replay=tcp://10.0.0.1:5558 \\",
            "    --model m --tokenizer /models/m --block-size 16",
            "  kvasir doctor gateway.yaml --json",
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
                    "An engine as serve takes it by --worker, or a file as serve takes it by"
                        + " --config, whose workers, those of its workers-file too, are tested by"
                        + " their model's tokenizer and block-size and by worker-key; KVASIR_…"
                        + " variables count, too.")
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

    @Option(
            names = "--timeout-s",
            paramLabel = "S",
            defaultValue = "10",
            description =
                    "How long each answer, and events, are waited for. Default: ${DEFAULT-VALUE}.")
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
            final List<TestedEngine> engines =
                    target.matches("(?i)https?://.*") ? List.of(engine()) : ofConfiguration();
            return test(engines);
        } finally {
            encoders.forEach(ChatModel::close);
        }
    }

    private TestedEngine engine() {
        final WorkerConfig worker;
        try {
            worker = WorkerConfig.parse(target);
        } catch (IllegalArgumentException e) {
            throw common.wrong(String.valueOf(e.getMessage()));
        }
        return new TestedEngine(
                worker,
                model,
                blockSize,
                encoderOrNull(tokenizer),
                keyFile == null ? null : bearer(BearerTokens.lines(keyFile).getFirst()));
    }

    private List<TestedEngine> ofConfiguration() throws IOException {
        if (model != null || tokenizer != null || blockSize != 0 || keyFile != null) {
            throw common.wrong(
                    "--model, --tokenizer, --block-size and --key-file are for a URL; of a"
                            + " configuration its own hold");
        }
        final GatewayConfig config =
                GatewayConfig.builder().environment(System.getenv()).file(Path.of(target)).build();
        config.warnings().forEach(text -> common.err().println("warning: " + printable(text)));
        common.err().flush();
        final List<WorkerConfig> workers = workers(config);
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
        if (engines.isEmpty()) {
            throw new CommandFailure(
                    target
                            + " names no workers, nor does a workers-file; those that discovery"
                            + " finds while a gateway runs are tested by their URLs");
        }
        return engines;
    }

    /** Those of the configuration, and those of its file of workers. */
    private static List<WorkerConfig> workers(GatewayConfig config) throws IOException {
        final List<WorkerConfig> workers = new ArrayList<>(config.get(GatewaySettings.WORKERS));
        final Path file = config.get(GatewaySettings.WORKERS_FILE);
        if (file != null) {
            ConfigFile.workers(file, Files.readAllBytes(file), config.get(GatewaySettings.MODEL))
                    .forEach(found -> workers.add(found.worker()));
        }
        return workers;
    }

    private static String keyOrNull(GatewayConfig config) {
        final Path file = config.get(GatewaySettings.WORKER_KEY_FILE);
        if (file != null) {
            return bearer(BearerTokens.lines(file).getFirst());
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

    private int test(List<TestedEngine> engines) throws InterruptedException {
        final Doctor doctor = new Doctor(Duration.ofSeconds(seconds), Clock.systemUTC());
        final List<Findings> all = new ArrayList<>();
        doctor.test(
                engines,
                findings -> {
                    all.add(findings);
                    if (!json) {
                        print(findings);
                    }
                });
        final long failed = all.stream().mapToLong(f -> f.count(Check.Result.FAIL)).sum();
        if (json) {
            printJson(all, failed);
        } else {
            common.out()
                    .println(
                            failed
                                    + " failed, "
                                    + all.stream().mapToLong(f -> f.count(Check.Result.PASS)).sum()
                                    + " passed, "
                                    + all.stream().mapToLong(f -> f.count(Check.Result.SKIP)).sum()
                                    + " skipped");
            common.out().flush();
        }
        return failed == 0 ? ExitCode.OK : ExitCode.NEGATIVE;
    }

    private void print(Findings findings) {
        final PrintWriter out = common.out();
        final boolean colour = Terminal.hasColour();
        out.println(printable(findings.engine()) + " " + findings.url());
        for (Check check : findings.checks()) {
            final Mark mark = check.result() == Check.Result.FAIL ? Mark.WRONG : Mark.NONE;
            out.println(
                    mark.on(check.result().name(), colour)
                            + "  "
                            + check.name()
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

    private void printJson(List<Findings> all, long failed) {
        final ObjectNode root = Json.object();
        root.put("failed", failed);
        final ArrayNode engines = root.putArray("engines");
        for (Findings findings : all) {
            final ObjectNode engine = engines.addObject();
            engine.put("engine", findings.engine()).put("url", findings.url());
            final ArrayNode checks = engine.putArray("checks");
            findings.checks().forEach(check -> check.put(checks.addObject()));
        }
        Json.print(root, common.out());
    }
}
