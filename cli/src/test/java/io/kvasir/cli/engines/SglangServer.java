package io.kvasir.cli.engines;

import static org.junit.jupiter.api.Assertions.assertTrue;

import io.kvasir.testsupport.FreePorts;

import java.nio.file.Path;
import java.util.List;
import java.util.Map;

/** A real SGLang server. */
final class SglangServer extends EngineServer {
    static final int BLOCK_SIZE = 16;

    /** Longer than its own patience with the other server, 300 s. */
    private static final long PATIENCE_NS = 400_000_000_000L;

    private final int eventsPort;
    private final int replayPort;
    private final int bootstrapPort;
    private String more = "";

    /** Where SGLang is installed; ends the test as skipped where it is not. */
    static Path installed() {
        return installed("KVASIR_SGLANG", "install-sglang.sh", "venv/bin/python");
    }

    SglangServer(Path home, Path log) {
        this(home, log, FreePorts.run(4));
    }

    private SglangServer(Path home, Path log, int firstPort) {
        super(home, log, firstPort);
        eventsPort = firstPort + 1;
        replayPort = firstPort + 2;
        bootstrapPort = firstPort + 3;
    }

    /** Makes it a server that computes prompts, and hands their blocks over through NIXL. */
    SglangServer prefilling() {
        addFlag("--disaggregation-mode=prefill");
        addFlag("--disaggregation-transfer-backend=nixl");
        addFlag("--disaggregation-bootstrap-port=" + bootstrapPort);
        more = ",role=prefill,bootstrap=127.0.0.1:" + bootstrapPort;
        return this;
    }

    /** Makes it a server that goes on from such blocks. */
    SglangServer decoding() {
        addFlag("--disaggregation-mode=decode");
        addFlag("--disaggregation-transfer-backend=nixl");
        addFlag("--disaggregation-decode-retraction-backup=cpu_tensor");
        more = ",role=decode,handoff=sglang";
        return this;
    }

    /** Has it compute each prompt from its first token. */
    SglangServer uncached() {
        addFlag("--disable-radix-cache");
        return this;
    }

    @Override
    List<String> command(Path home, int port) {
        final String events =
                "{\"publisher\":\"zmq\",\"endpoint\":\"tcp://127.0.0.1:"
                        + eventsPort
                        + "\",\"replay_endpoint\":\"tcp://127.0.0.1:"
                        + replayPort
                        + "\",\"bind\":true,\"topic\":\"kv-events\"}";
        return List.of(
                home.resolve("venv/bin/python").toString(),
                "-m",
                "sglang.launch_server",
                "--model-path=" + model(),
                "--served-model-name=" + MODEL,
                "--host=127.0.0.1",
                "--port=" + port,
                "--device=cpu",
                "--dtype=bfloat16",
                "--attention-backend=torch_native",
                "--sampling-backend=pytorch",
                "--disable-cuda-graph",
                "--disable-overlap-schedule",
                "--page-size=" + BLOCK_SIZE,
                "--mem-fraction-static=0.2",
                "--max-total-tokens=4096",
                "--max-running-requests=8",
                "--context-length=2048",
                "--skip-server-warmup",
                "--enable-metrics",
                "--enable-cache-report",
                "--kv-events-config=" + events);
    }

    @Override
    Map<String, String> environment() {
        return Map.of("SGLANG_USE_CPU_ENGINE", "1");
    }

    @Override
    String flag(String name) {
        return uri()
                + ",events=tcp://127.0.0.1:"
                + eventsPort
                + ",replay=tcp://127.0.0.1:"
                + replayPort
                + ",name="
                + name
                + more;
    }

    /** Waits until it has no request, of those that were given up either. */
    void awaitIdle() throws Exception {
        final long startNs = System.nanoTime();
        while (series("sglang:num_running_reqs").sum() > 0
                || series("sglang:num_queue_reqs").sum() > 0) {
            assertTrue(System.nanoTime() - startNs < PATIENCE_NS, "requests stay behind");
            Thread.sleep(100);
        }
        System.out.printf("idle after %d ms%n", (System.nanoTime() - startNs) / 1_000_000);
    }
}
