package io.kvasir.cli;

import static org.junit.jupiter.api.Assumptions.assumeTrue;

import io.kvasir.testsupport.FreePorts;
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
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import java.util.stream.Stream;

/**
 * A real vLLM server on the CPU, started by a test on free ports and killed with all of its
 * processes.
 */
final class VllmServer implements AutoCloseable {
    static final int BLOCK_SIZE = 32;
    static final int BLOCKS = 48;
    static final int MAX_LENGTH = 1024;
    static final String MODEL = "tiny";

    private static final Duration START_UP = Duration.ofMinutes(10);

    private final HttpClient http = HttpClient.newHttpClient();
    private final Path home;
    private final Path log;
    private final int port;
    private final int eventsPort;
    private final int replayPort;
    private final int sidePort;
    private final List<String> moreFlags = new ArrayList<>();
    private final Map<String, String> moreEnvironment = new HashMap<>();
    private Process process;

    /** Where vLLM is installed; ends the test as skipped where it is not. */
    static Path installed() {
        final String home = System.getenv("KVASIR_VLLM");
        assumeTrue(
                home != null,
                "skipped: KVASIR_VLLM does not name a folder made by"
                        + " cli/src/test/real-engines/install.sh");
        final Path folder = Path.of(home);
        assumeTrue(
                Files.isExecutable(folder.resolve("venv/bin/vllm")),
                "skipped: no venv/bin/vllm in KVASIR_VLLM=" + home);
        return folder;
    }

    VllmServer(Path home, Path log) {
        this.home = home;
        this.log = log;
        final int ports = FreePorts.run(4);
        this.port = ports;
        this.eventsPort = ports + 1;
        this.replayPort = ports + 2;
        this.sidePort = ports + 3;
    }

    /** Makes it a server whose blocks others may read, through NIXL. */
    VllmServer transferring() {
        moreFlags.add(
                "--kv-transfer-config={\"kv_connector\":\"NixlConnector\",\"kv_role\":\"kv_both\","
                        + "\"kv_buffer_device\":\"cpu\"}");
        moreEnvironment.put("VLLM_NIXL_SIDE_CHANNEL_HOST", "127.0.0.1");
        moreEnvironment.put("VLLM_NIXL_SIDE_CHANNEL_PORT", Integer.toString(sidePort));
        return this;
    }

    /** Shares the model between so many ranks, processes of their own. */
    VllmServer tensorParallel(int ranks) {
        moreFlags.add("--tensor-parallel-size=" + ranks);
        return this;
    }

    void start() throws IOException {
        final String events =
                "{\"enable_kv_cache_events\":true,\"publisher\":\"zmq\",\"endpoint\":\"tcp://*:"
                        + eventsPort
                        + "\",\"replay_endpoint\":\"tcp://*:"
                        + replayPort
                        + "\",\"topic\":\"kv-events\"}";
        final ProcessBuilder builder =
                new ProcessBuilder(
                        List.of(
                                home.resolve("venv/bin/vllm").toString(),
                                "serve",
                                home.resolve("model").toString(),
                                "--served-model-name=" + MODEL,
                                "--host=127.0.0.1",
                                "--port=" + port,
                                "--dtype=bfloat16",
                                "--enforce-eager",
                                "--max-model-len=" + MAX_LENGTH,
                                "--max-num-seqs=8",
                                "--block-size=" + BLOCK_SIZE,
                                "--num-gpu-blocks-override=" + BLOCKS,
                                "--enable-prefix-caching",
                                "--enable-prompt-tokens-details",
                                "--kv-events-config=" + events));
        final List<String> command = new ArrayList<>(builder.command());
        command.addAll(moreFlags);
        builder.command(command);
        final Map<String, String> environment = builder.environment();
        environment.putAll(moreEnvironment);
        environment.put(
                "PATH", home.resolve("venv/bin") + File.pathSeparator + environment.get("PATH"));
        environment.put("VLLM_SERVER_DEV_MODE", "1");
        environment.put("VLLM_CPU_OMP_THREADS_BIND", "nobind");
        environment.put("VLLM_CPU_KVCACHE_SPACE", "1");
        environment.put("VLLM_NO_USAGE_STATS", "1");
        environment.put("OMP_NUM_THREADS", "1");
        environment.put("HF_HUB_OFFLINE", "1");
        environment.put("TRANSFORMERS_OFFLINE", "1");
        environment.put("CUDA_VISIBLE_DEVICES", "");
        builder.redirectErrorStream(true)
                .redirectOutput(ProcessBuilder.Redirect.appendTo(log.toFile()));
        process = builder.start();
    }

    void awaitHealthy() throws Exception {
        final long deadline = System.nanoTime() + START_UP.toNanos();
        while (!healthy()) {
            if (!process.isAlive() || System.nanoTime() - deadline > 0) {
                throw new AssertionError(
                        "vLLM did not come up on port " + port + "; its log: " + log);
            }
            Thread.sleep(500);
        }
        // a server that has never prefilled must not meet a decode-only step first on CPUs with AMX
        complete("{\"model\":\"" + MODEL + "\",\"prompt\":[11,12,13,14,15,16],\"max_tokens\":2}");
    }

    private boolean healthy() throws InterruptedException {
        try {
            return http.send(
                                    HttpRequest.newBuilder(uri().resolve("/health")).build(),
                                    HttpResponse.BodyHandlers.discarding())
                            .statusCode()
                    == 200;
        } catch (IOException e) {
            return false; // not listening yet
        }
    }

    private void complete(String body) throws Exception {
        http.send(
                HttpRequest.newBuilder(uri().resolve("/v1/completions"))
                        .header("content-type", "application/json")
                        .POST(HttpRequest.BodyPublishers.ofString(body))
                        .build(),
                HttpResponse.BodyHandlers.discarding());
    }

    URI uri() {
        return URI.create("http://127.0.0.1:" + port);
    }

    /** The worker flag that names this server. */
    String flag(String name) {
        return uri()
                + ",events=tcp://127.0.0.1:"
                + eventsPort
                + ",replay=tcp://127.0.0.1:"
                + replayPort
                + ",name="
                + name;
    }

    /** Has all of its processes stand still, as if they hung. */
    void pause() throws IOException, InterruptedException {
        for (ProcessHandle each : processes()) {
            Signals.stop(each);
        }
    }

    /** Lets them go on. */
    void resume() throws IOException, InterruptedException {
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
    void kill() throws InterruptedException {
        try (Stream<ProcessHandle> children = process.descendants()) {
            children.toList().forEach(ProcessHandle::destroyForcibly);
        }
        process.destroyForcibly();
        process.waitFor(20, TimeUnit.SECONDS);
    }

    @Override
    public void close() {
        if (process == null) {
            return;
        }
        try (Stream<ProcessHandle> children = process.descendants()) {
            final List<ProcessHandle> all = children.toList();
            process.destroy();
            if (!process.waitFor(10, TimeUnit.SECONDS)) {
                process.destroyForcibly();
            }
            all.forEach(ProcessHandle::destroyForcibly);
        } catch (InterruptedException e) {
            process.destroyForcibly();
            Thread.currentThread().interrupt();
        }
    }
}
