package io.kvasir.cli.engines;

import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import io.kvasir.testsupport.Signals;

import java.io.File;
import java.io.IOException;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import java.util.stream.DoubleStream;
import java.util.stream.Stream;

/**
 * A real engine's server on the CPU, with a tiny model: started by a test on free ports and killed
 * with all of its processes.
 */
abstract class EngineServer implements AutoCloseable {
    static final String MODEL = "tiny";
    static final HttpClient HTTP =
            HttpClient.newBuilder().version(HttpClient.Version.HTTP_1_1).build();

    private static final Duration START_UP = Duration.ofMinutes(10);

    private final Path home;
    private final Path log;
    private final int port;
    private final List<String> moreFlags = new ArrayList<>();
    private Path model;
    private Process process;

    /**
     * @param home where the engine is installed, by its script in {@code cli/src/test/real-engines}
     * @param port to listen on
     */
    EngineServer(Path home, Path log, int port) {
        this.home = home;
        this.log = log;
        this.port = port;
        model = home.resolve("model");
    }

    /** Where an engine is installed; ends the test as skipped where it is not. */
    static Path installed(String variable, String script, String program) {
        final String home = System.getenv(variable);
        assumeTrue(
                home != null,
                "skipped: "
                        + variable
                        + " does not name a folder made by cli/src/test/real-engines/"
                        + script);
        final Path folder = Path.of(home);
        assumeTrue(
                Files.isExecutable(folder.resolve(program)),
                "skipped: no " + program + " in " + variable + "=" + home);
        return folder;
    }

    /** The program and its flags, but those of {@link #addFlag}. */
    abstract List<String> command(Path home, int port);

    abstract Map<String, String> environment();

    /** The worker flag that names this server, its events and the name given. */
    abstract String flag(String name);

    /** Folder of its model and tokenizer. */
    final Path model() {
        return model;
    }

    /** Has it serve another model than that of its installation. */
    final void model(Path folder) {
        model = folder;
    }

    final void addFlag(String flag) {
        moreFlags.add(flag);
    }

    final void start() throws IOException {
        final List<String> command = new ArrayList<>(command(home, port));
        command.addAll(moreFlags);
        final ProcessBuilder builder = new ProcessBuilder(command);
        final Map<String, String> environment = builder.environment();
        environment.put(
                "PATH", home.resolve("venv/bin") + File.pathSeparator + environment.get("PATH"));
        environment.put("OMP_NUM_THREADS", "1");
        environment.put("HF_HUB_OFFLINE", "1");
        environment.put("TRANSFORMERS_OFFLINE", "1");
        environment.put("CUDA_VISIBLE_DEVICES", "");
        environment.putAll(environment());
        builder.redirectErrorStream(true)
                .redirectOutput(ProcessBuilder.Redirect.appendTo(log.toFile()));
        process = builder.start();
    }

    void awaitHealthy() throws Exception {
        final long deadline = System.nanoTime() + START_UP.toNanos();
        while (!healthy()) {
            assertTrue(
                    process.isAlive() && System.nanoTime() - deadline < 0,
                    "the engine did not come up on port " + port + "; its log: " + log);
            Thread.sleep(500);
        }
    }

    private boolean healthy() throws InterruptedException {
        try {
            return get("/health").statusCode() == 200;
        } catch (IOException e) {
            return false; // not listening yet
        }
    }

    private HttpResponse<String> get(String path) throws IOException, InterruptedException {
        return HTTP.send(
                HttpRequest.newBuilder(uri().resolve(path)).build(),
                HttpResponse.BodyHandlers.ofString());
    }

    final URI uri() {
        return URI.create("http://127.0.0.1:" + port);
    }

    /** The sum of what it says of this metric; fails where it has none of that name. */
    final double metric(String name) throws Exception {
        return series(name).reduce(Double::sum).orElseThrow();
    }

    /** What it says of this metric; nothing where it has none of that name, or none yet. */
    final DoubleStream series(String name) throws Exception {
        return Metrics.values(get("/metrics").body(), name);
    }

    /** Has all of its processes stand still, as if they hung. */
    final void pause() throws IOException, InterruptedException {
        for (ProcessHandle each : processes()) {
            Signals.stop(each);
        }
    }

    /** Lets them go on. */
    final void resume() throws IOException, InterruptedException {
        for (ProcessHandle each : processes()) {
            Signals.goOn(each);
        }
    }

    private List<ProcessHandle> processes() {
        try (Stream<ProcessHandle> children = process.descendants()) {
            return Stream.concat(Stream.of(process.toHandle()), children).toList();
        }
    }

    /** As a crash would: no goodbye, nothing flushed. */
    final void kill() throws InterruptedException {
        processes().reversed().forEach(ProcessHandle::destroyForcibly);
        process.waitFor(20, TimeUnit.SECONDS);
    }

    @Override
    public void close() {
        if (process == null) {
            return;
        }
        final List<ProcessHandle> all = processes();
        process.destroy();
        try {
            process.waitFor(10, TimeUnit.SECONDS);
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
        all.forEach(ProcessHandle::destroyForcibly);
    }
}
