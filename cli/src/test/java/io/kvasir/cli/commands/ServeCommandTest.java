package io.kvasir.cli.commands;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.kvasir.cli.CommandRun;
import io.kvasir.cli.KvasirProcess;
import io.kvasir.sim.SimEngine;
import io.kvasir.sim.config.SimConfig;
import io.kvasir.testsupport.Eventually;

import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

import java.io.IOException;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.List;
import java.util.stream.Stream;

/** The gateway in a process of its own before a simulated engine. */
class ServeCommandTest {
    @TempDir private Path dir;

    @Tag("integration") // starts processes
    @Test
    void flagsOverrideTheFileAndAnEngineIsReached() throws Exception {
        try (SimEngine engine = SimEngine.start(SimConfig.builder().build())) {
            final Path yaml = dir.resolve("gateway.yaml");
            Files.writeString(
                    yaml,
                    "model: kvasir-sim\nport: 1\nmode: random\noverlap-weight: 3\nworkers:\n- "
                            + engine.url()
                            + ",name=one,events="
                            + engine.eventsEndpoint(0)
                            + ",replay="
                            + engine.replayEndpoint(0)
                            + "\n");
            try (KvasirProcess serve =
                    new KvasirProcess(
                            "serve",
                            "--config=" + yaml,
                            "--port=0",
                            "--lame-duck-ms=50",
                            "--mode=kv",
                            "--no-include-usage")) {
                final String listening = serve.await(line -> line.startsWith("listening on "));
                final String mode = serve.await(line -> line.startsWith("  mode "));
                assertTrue(mode.startsWith("  mode kv, overlap weight 3.0"), mode);
                assertTrue(mode.contains("usage in streams as the client asks"), mode);
                final String worker = serve.await(line -> line.startsWith("worker one/0 "));
                assertTrue(worker.contains("health up"), worker);
                assertTrue(worker.contains("events exact, no message yet"), worker);
                assertEquals(200, completion(listening).statusCode());
                assertEquals(0, serve.terminate());
            }
        }
    }

    @Test
    void aConfigurationIsCheckedAndDumpedWithoutAStart() {
        final String[] good = {"serve", "--model=m", "--worker=http://h:1", "--mode=random"};
        final CommandRun checked = CommandRun.of(with(good, "--check-config"));
        assertEquals(0, checked.exitCode(), checked.err());
        assertEquals("ok\n", checked.out());
        final CommandRun dumped = CommandRun.of(with(good, "--dump-config"));
        assertEquals(0, dumped.exitCode(), dumped.err());
        assertTrue(dumped.out().contains("mode: random # --mode\n"), dumped.out());
        assertTrue(dumped.out().contains("worker: # --worker\n- 'http://h:1'\n"), dumped.out());
        final CommandRun wrong = CommandRun.of(with(good, "--check-config", "--retries=-1"));
        assertEquals(2, wrong.exitCode());
        assertTrue(wrong.err().contains("retries=-1 is out of range"), wrong.err());
    }

    @Test
    void aUserInAnAddressOfEtcdIsRefusedWithTheSettingsForIt() {
        final CommandRun run =
                CommandRun.of(
                        "serve",
                        "--model=m",
                        "--discovery-etcd-endpoints=http://u:secret@h:1",
                        "--check-config");
        assertTrue(
                run.err().contains("by discovery-etcd-user and discovery-etcd-password-file"),
                run.err());
        assertFalse(run.err().contains("secret"), run.err());
    }

    @ParameterizedTest
    @CsvSource({
        "--event-plane=zmq, event-plane-addresses",
        "--worker=http://h:1, two workers are named 'h:1'"
    })
    void optionsThatContradictEachOtherAreAWrongCommandLine(String option, String words)
            throws IOException {
        final Path file = Files.writeString(dir.resolve("of-model.yaml"), "model: m\n");
        for (final String model : List.of("--model=m", "--config=" + file)) {
            final CommandRun run =
                    CommandRun.of("serve", model, "--worker=http://h:1", "--check-config", option);
            assertEquals(2, run.exitCode(), run.err());
            assertTrue(run.err().contains(words), run.err());
        }
    }

    @Test
    void aFileThatContradictsTheOptionsIsNoWrongCommandLine() throws IOException {
        final Path file = Files.writeString(dir.resolve("of-plane.yaml"), "event-plane: zmq\n");
        final CommandRun run =
                CommandRun.of(
                        "serve",
                        "--config=" + file,
                        "--model=m",
                        "--worker=http://h:1",
                        "--check-config");
        assertEquals(3, run.exitCode(), run.err());
        assertTrue(run.err().contains("event-plane-addresses"), run.err());
    }

    @Test
    void theCheckFindsAllFilesThatAStartWouldRefuse() throws IOException {
        final Path empty = Files.writeString(dir.resolve("empty"), "");
        final Path good = Files.writeString(dir.resolve("good"), "abc\n");
        final String[] settings = {
            "serve",
            "--model=m",
            "--worker=http://h:1",
            "--discovery-nats-bucket=b",
            "--discovery-etcd-endpoints=http://h:1",
            "--discovery-etcd-user=u",
            "--admin-token-file=" + good,
            "--trusted-token-file=" + good,
            "--worker-key-file=" + good,
            "--discovery-etcd-password-file=" + good
        };
        final CommandRun right = CommandRun.of(with(settings, "--check-config"));
        assertEquals(0, right.exitCode(), right.err());
        final String[] files = {
            "--admin-token-file",
            "--trusted-token-file",
            "--worker-key-file",
            "--worker-trust-store",
            "--nats-trust-store",
            "--discovery-etcd-trust-store",
            "--discovery-etcd-password-file"
        };
        for (String file : files) {
            final String[] wrong =
                    Stream.of(with(settings, "--check-config"))
                            .filter(arg -> !arg.startsWith(file + "="))
                            .toArray(String[]::new);
            final CommandRun run = CommandRun.of(with(wrong, file + "=" + empty));
            assertEquals(3, run.exitCode(), file + ": " + run.out());
            assertTrue(run.err().contains(empty.toString()), run.err());
        }
        final CommandRun two =
                CommandRun.of(
                        with(
                                settings,
                                "--check-config",
                                "--worker-trust-store=" + empty,
                                "--nats-trust-store=" + dir.resolve("missing")));
        assertEquals(3, two.exitCode(), two.out());
        assertTrue(two.err().contains("worker-trust-store " + empty), two.err());
        assertTrue(two.err().contains("nats-trust-store " + dir.resolve("missing")), two.err());
    }

    @ParameterizedTest
    @ValueSource(strings = {"--check-config", "--dump-config", "--port=0"})
    void aCommandLineWithoutAModelIsWrong(String option) {
        final CommandRun run = CommandRun.of("serve", "--worker=http://h:1", option);
        assertEquals(2, run.exitCode(), run.err());
        assertTrue(run.err().contains("--model"), run.err());
    }

    @ParameterizedTest
    @ValueSource(strings = {"--cors-origin=http://one:1", "--cors-origin=b"})
    void eachWrongElementOfAListIsSaidOnce(String second) {
        final CommandRun run =
                CommandRun.of(
                        "serve",
                        "--model=m",
                        "--worker=http://h:1",
                        "--cors-origin=a",
                        second,
                        "--retries=-1",
                        "--check-config");
        assertEquals(2, run.exitCode(), run.err());
        final List<String> said =
                run.err().lines().filter(line -> line.contains("cors-origin=")).toList();
        final String a = "cors-origin=a is no origin, as https://chat.example:8443 is";
        assertTrue(said.getFirst().endsWith(a), run.err());
        assertEquals(
                second.endsWith("b") ? List.of(a.replace("=a", "=b")) : List.of(),
                said.subList(1, said.size()));
        assertTrue(run.err().contains("retries=-1 is out of range"), run.err());
    }

    @Test
    void eachWrongElementOfAModelIsSaidWithTheModel() {
        final String model = "name=n,foo=1,block-size=x,nothing,block-size=32,mode=fast";
        final CommandRun run =
                CommandRun.of(
                        "serve",
                        "--model=m",
                        "--worker=http://h:1",
                        "--serve-model=" + model,
                        "--serve-model=name=o,host=h",
                        "--check-config");
        assertEquals(2, run.exitCode(), run.err());
        final List<String> said =
                run.err().lines().filter(line -> line.contains("serve-model=")).toList();
        final List<String> parts =
                List.of("'foo'", "block-size=x is", "'nothing'", "'block-size' is", "mode=fast");
        assertEquals(parts.size() + 1, said.size(), run.err());
        for (int i = 0; i < parts.size(); i++) {
            assertTrue(said.get(i).contains("serve-model=" + model + " "), said.get(i));
            assertTrue(said.get(i).contains(parts.get(i)), said.get(i));
        }
        assertTrue(said.getLast().contains("serve-model=name=o,host=h 'host'"), run.err());
    }

    @ParameterizedTest
    @ValueSource(
            strings = {
                "--tokenizer=MISSING",
                "--workers-file=MISSING",
                "--workers-file=FILE",
                "--access-log=MISSING/log",
                "--state-dir=FILE/state",
                "--counters-dir=FILE",
                "--state-mapped-dir=/proc/x",
                "--access-log=/proc/aa",
                "--nats-url=http://x"
            })
    void theCheckFindsWhatAStartWouldRefuse(String option) throws IOException {
        final Path file = Files.writeString(dir.resolve("file"), "no list of workers");
        final String given =
                option.replace("MISSING", dir.resolve("missing").toString())
                        .replace("FILE", file.toString());
        final CommandRun run =
                CommandRun.of("serve", "--model=m", "--worker=http://h:1", "--check-config", given);
        assertNotEquals(0, run.exitCode(), run.out());
        final String name = option.substring(2, option.indexOf('='));
        assertTrue(run.err().contains(name.replace("access-log", "access log")), run.err());
    }

    private static String[] with(String[] args, String... more) {
        return Stream.concat(Arrays.stream(args), Arrays.stream(more)).toArray(String[]::new);
    }

    @Tag("integration") // starts processes
    @Test
    void anEngineWithoutEventsIsPredictedWhereThatIsAskedFor() throws Exception {
        try (SimEngine engine = SimEngine.start(SimConfig.builder().build());
                KvasirProcess serve =
                        new KvasirProcess(
                                "serve",
                                "--model=kvasir-sim",
                                "--port=0",
                                "--lame-duck-ms=50",
                                "--worker=" + engine.url() + ",name=one",
                                "--index-bytes=1048576",
                                "--booking-timeout-ms=60000",
                                "--approximate",
                                "--ttl-secs=7",
                                "--max-tree-size=1000",
                                "--prune-target-ratio=0.5")) {
            final String predicted = serve.await(line -> line.startsWith("  workers without"));
            assertTrue(predicted.endsWith("in the last 7 s, at most 1000 blocks"), predicted);
            final String limits = serve.await(line -> line.startsWith("  limits: "));
            assertTrue(limits.contains(", 1048576 index bytes, "), limits);
            final String worker = serve.await(line -> line.startsWith("worker one/0 "));
            assertTrue(worker.endsWith("none: predicted from what is routed there"), worker);
            assertEquals(0, serve.terminate());
        }
    }

    @Tag("integration") // starts processes
    @Test
    void severalModelsAreEachSaidWithTheirWorkers() throws Exception {
        try (SimEngine one = SimEngine.start(SimConfig.builder().build());
                SimEngine two = SimEngine.start(SimConfig.builder().model("org/n").build());
                KvasirProcess serve =
                        new KvasirProcess(
                                "serve",
                                "--model=kvasir-sim",
                                "--serve-model=name=org/n,tokenizer=sim,approximate=true",
                                "--max-blocks=4096",
                                "--port=0",
                                "--lame-duck-ms=50",
                                "--worker=" + one.url() + ",name=one",
                                "--worker=" + two.url() + ",name=two,model=org/n")) {
            final String listening = serve.await(line -> line.startsWith("listening on "));
            serve.await(line -> line.equals("  model kvasir-sim, adapters []"));
            serve.await(line -> line.startsWith("  tokenizer none"));
            serve.await(line -> line.equals("  model org/n, adapters []"));
            serve.await(line -> line.equals("  tokenizer sim, block size 16"));
            final String first = serve.await(line -> line.startsWith("worker one/0 "));
            assertTrue(first.contains(": model kvasir-sim, health up"), first);
            assertTrue(first.endsWith("none: routed by load alone"), first);
            final String second = serve.await(line -> line.startsWith("worker two/0 "));
            assertTrue(second.contains(": model org/n, health up"), second);
            assertTrue(second.endsWith("none: predicted from what is routed there"), second);
            assertEquals(200, completion(listening).statusCode());
            assertEquals(0, serve.terminate());
        }
    }

    /** A gateway of the workers in a file, which it reads again when it is asked to. */
    private static KvasirProcess servingOf(Path workers, String more) throws IOException {
        return new KvasirProcess(
                "serve",
                "--model=kvasir-sim",
                "--port=0",
                "--lame-duck-ms=50",
                more,
                "--workers-file=" + workers,
                "--workers-file-interval-ms=86400000");
    }

    @Tag("integration") // starts processes
    @Test
    void aHangUpReadsTheWorkersFileAgain() throws Exception {
        try (SimEngine engine = SimEngine.start(SimConfig.builder().build())) {
            final Path workers = Files.writeString(dir.resolve("workers.yaml"), "[]\n");
            try (KvasirProcess serve = servingOf(workers, "--admin-port=0")) {
                final String listening = serve.await(line -> line.startsWith("listening on "));
                serve.await(line -> line.startsWith("running; "));
                assertEquals(503, completion(listening).statusCode());
                Files.writeString(workers, "- " + engine.url() + ",name=one\n");
                serve.hangUp();
                awaitCompletion(listening);
            }
        }
    }

    @Tag("integration") // starts processes
    @Test
    void aHangUpDuringTheStartTakesEffectAfterIt() throws Exception {
        try (SimEngine engine = SimEngine.start(SimConfig.builder().build())) {
            final Path workers = Files.writeString(dir.resolve("late.yaml"), "[]\n");
            try (KvasirProcess serve = servingOf(workers, "--warm-up-ms=3000")) {
                serve.await(line -> line.contains("no tokenizer is set")); // of the start
                Files.writeString(workers, "- " + engine.url() + ",name=one\n");
                serve.hangUp();
                final String listening = serve.await(line -> line.startsWith("listening on "));
                awaitCompletion(listening);
                assertEquals(0, serve.terminate());
            }
        }
    }

    /** The configuration is a pipe: the process waits in it, and refuses to read it again. */
    @Tag("integration") // starts processes
    @Test
    void aHangUpWhileTheConfigurationIsReadTakesEffectAfterTheStart() throws Exception {
        try (KvasirProcess serve =
                new KvasirProcess(
                        "serve",
                        "--config=/dev/stdin",
                        "--lame-duck-ms=50",
                        "--worker=http://127.0.0.1:1",
                        "--max-blocks=4096")) {
            serve.awaitOpenedInput();
            serve.hangUp();
            serve.input("model: m\nhost: 127.0.0.1\nport: 0\nadmin-port: 0\n");
            serve.await(line -> line.contains("/dev/stdin: it is a pipe, which can be read once"));
            assertEquals(0, serve.terminate());
        }
    }

    @Test
    void aPortInUseIsOneLineWithThePortAndTheOption() throws Exception {
        try (ServerSocket taken = new ServerSocket(0, 1, InetAddress.getLoopbackAddress());
                KvasirProcess serve =
                        new KvasirProcess(
                                "serve",
                                "--host=127.0.0.1",
                                "--port=" + taken.getLocalPort(),
                                "--model=m",
                                "--worker=http://127.0.0.1:1")) {
            final String line = serve.await(l -> l.startsWith("kvasir serve: "));
            assertTrue(line.contains(":" + taken.getLocalPort()), line);
            assertTrue(line.contains("--port"), line);
            assertEquals(3, serve.exitCode());
        }
    }

    @Test
    void wrongWorkersModesAndMissingOnesAreAWrongCommandLine() {
        assertWrong("--worker=127.0.0.1:1", "127.0.0.1:1");
        assertWrong("--mode=fastest", "fastest");
        assertWrong("--port=0", "no workers; give --worker");
    }

    @ParameterizedTest
    @ValueSource(
            strings = {
                "--workers-file=",
                "--discovery-nats-bucket=b",
                "--discovery-etcd-endpoints=http://h:1",
                "--discovery-kubernetes-selector=a=b",
                "--discovery-kubernetes-resources"
            })
    void anySourceOfWorkersMakesUpForNone(String source) throws IOException {
        final String value =
                source.endsWith("file=")
                        ? Files.writeString(dir.resolve("w"), "[]").toString()
                        : "";
        final CommandRun run =
                CommandRun.of(
                        "serve",
                        "--model=m",
                        "--discovery-kubernetes-server=https://h:1", // as in a pod
                        "--discovery-kubernetes-namespace=n",
                        "--check-config",
                        source + value);
        assertEquals(0, run.exitCode(), run.err());
    }

    private static void awaitCompletion(String listening) throws Exception {
        Eventually.until("a worker is used", () -> completion(listening).statusCode() == 200);
    }

    private static void assertWrong(String option, String expected) {
        final CommandRun run = CommandRun.of("serve", "--model=m", option);
        assertEquals(2, run.exitCode(), run.err());
        assertTrue(run.err().contains(expected), run.err());
    }

    private static HttpResponse<String> completion(String listening)
            throws IOException, InterruptedException {
        final String port = listening.substring(listening.lastIndexOf(':') + 1);
        try (HttpClient http = HttpClient.newHttpClient()) {
            return http.send(
                    HttpRequest.newBuilder(
                                    URI.create("http://127.0.0.1:" + port + "/v1/completions"))
                            .header("content-type", "application/json")
                            .POST(
                                    HttpRequest.BodyPublishers.ofString(
                                            "{\"model\":\"kvasir-sim\",\"prompt\":[1,2,3],"
                                                    + "\"max_tokens\":2}"))
                            .build(),
                    HttpResponse.BodyHandlers.ofString());
        }
    }
}
