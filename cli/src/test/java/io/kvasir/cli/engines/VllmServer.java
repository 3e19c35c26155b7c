package io.kvasir.cli.engines;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import io.kvasir.panama.nixl.NixlAvailability;
import io.kvasir.panama.nixl.NixlProbe;
import io.kvasir.protocol.handoff.KvTransferParams;
import io.kvasir.protocol.handoff.VerbatimJson;
import io.kvasir.protocol.handoff.VllmHandoff;
import io.kvasir.testsupport.FreePorts;

import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;
import java.util.stream.Collectors;
import java.util.stream.IntStream;

/** A real vLLM server. */
final class VllmServer extends EngineServer {
    static final int BLOCK_SIZE = 32;
    static final int BLOCKS = 48;
    static final int MAX_LENGTH = 1024;

    private static final int LAYERS = 12;
    private static final int HIDDEN = 512;
    private static final long PATIENCE_NS = TimeUnit.MINUTES.toNanos(1);
    private static final long PAUSE_NS = TimeUnit.MILLISECONDS.toNanos(20);

    private final int eventsPort;
    private final int replayPort;
    private final int sidePort;
    private final Map<String, String> environment = new HashMap<>();
    private String dtype = "bfloat16";
    private int maxLength = MAX_LENGTH;
    private int blocks = BLOCKS;
    private int prefills;

    /** Where vLLM is installed; ends the test as skipped where it is not. */
    static Path installed() {
        return installed("KVASIR_VLLM", "install-vllm.sh", "venv/bin/vllm");
    }

    /** The NIXL of that installation; ends the test as skipped where it cannot be loaded. */
    static NixlAvailability.Available nixl(Path home) {
        final NixlAvailability nixl =
                NixlProbe.probe(
                        Map.of(NixlProbe.PREFIX_PROPERTY, home.resolve("venv").toString())::get,
                        variable -> null,
                        List.of());
        assumeTrue(nixl instanceof NixlAvailability.Available, "skipped: " + nixl.describe());
        return (NixlAvailability.Available) nixl;
    }

    VllmServer(Path home, Path log) {
        this(home, log, FreePorts.run(4));
    }

    private VllmServer(Path home, Path log, int firstPort) {
        super(home, log, firstPort);
        eventsPort = firstPort + 1;
        replayPort = firstPort + 2;
        sidePort = firstPort + 3;
        environment.put("VLLM_SERVER_DEV_MODE", "1");
        environment.put("VLLM_CPU_OMP_THREADS_BIND", "nobind");
        environment.put("VLLM_CPU_KVCACHE_SPACE", "1");
        environment.put("VLLM_NO_USAGE_STATS", "1");
    }

    /** Makes it a server whose blocks others may read, through NIXL. */
    VllmServer transferring() {
        addFlag(
                "--kv-transfer-config={\"kv_connector\":\"NixlConnector\",\"kv_role\":\"kv_both\","
                        + "\"kv_buffer_device\":\"cpu\"}");
        environment.put("VLLM_NIXL_SIDE_CHANNEL_HOST", "127.0.0.1");
        environment.put("VLLM_NIXL_SIDE_CHANNEL_PORT", Integer.toString(sidePort));
        return this;
    }

    /**
     * Has it compute with 32 bits. With 16, two tokens are often equally likely to a model with
     * random weights, and which of them it says depends on how its prompt was cut into steps.
     */
    VllmServer precise() {
        dtype = "float32";
        return this;
    }

    /**
     * Has it serve a larger model with random weights, so that computing a prompt is what takes the
     * time; made where the installation does not have it.
     *
     * @param home the installation
     * @param length longest prompt and answer in tokens
     * @param cache its blocks
     */
    VllmServer larger(Path home, int length, int cache) throws Exception {
        final Path folder = home.resolve("model-" + LAYERS + 'x' + HIDDEN + '-' + length);
        make(home, folder, "tiny_model.py", folder, LAYERS, HIDDEN, length);
        model(folder);
        maxLength = length;
        blocks = cache;
        return this;
    }

    /**
     * Has it draft with EAGLE, by a drafter with random weights; made where the installation does
     * not have it.
     *
     * @param home the installation
     */
    VllmServer drafting(Path home) throws Exception {
        final Path folder = home.resolve("eagle");
        make(home, folder, "eagle_model.py", model(), folder);
        addFlag(
                "--speculative-config={\"method\":\"eagle\",\"model\":\""
                        + folder
                        + "\",\"num_speculative_tokens\":2}");
        return this;
    }

    private static void make(Path home, Path folder, String script, Object... words)
            throws Exception {
        if (Files.exists(folder.resolve("config.json"))) {
            return;
        }
        final List<String> command = new ArrayList<>();
        command.add(home.resolve("venv/bin/python").toString());
        command.add("src/test/real-engines/" + script);
        for (Object word : words) {
            command.add(word.toString());
        }
        final Process made = new ProcessBuilder(command).inheritIO().start();
        assertEquals(0, made.waitFor(), "the model could not be made in " + folder);
    }

    /** Forgets all that is cached, and says so in an event. */
    void forget() throws Exception {
        final HttpResponse<String> answer =
                HTTP.send(
                        HttpRequest.newBuilder(uri().resolve("/reset_prefix_cache"))
                                .POST(HttpRequest.BodyPublishers.noBody())
                                .build(),
                        HttpResponse.BodyHandlers.ofString());
        assertEquals(200, answer.statusCode(), answer.body());
    }

    /** Shares the model between so many ranks, processes of their own. */
    VllmServer tensorParallel(int ranks) {
        addFlag("--tensor-parallel-size=" + ranks);
        return this;
    }

    @Override
    List<String> command(Path home, int port) {
        final String events =
                "{\"enable_kv_cache_events\":true,\"publisher\":\"zmq\",\"endpoint\":\"tcp://*:"
                        + eventsPort
                        + "\",\"replay_endpoint\":\"tcp://*:"
                        + replayPort
                        + "\",\"topic\":\"kv-events\"}";
        return List.of(
                home.resolve("venv/bin/vllm").toString(),
                "serve",
                model().toString(),
                "--served-model-name=" + MODEL,
                "--host=127.0.0.1",
                "--port=" + port,
                "--dtype=" + dtype,
                "--enforce-eager",
                "--max-model-len=" + maxLength,
                "--max-num-seqs=8",
                "--block-size=" + BLOCK_SIZE,
                "--num-gpu-blocks-override=" + blocks,
                "--enable-prefix-caching",
                "--enable-prompt-tokens-details",
                "--kv-events-config=" + events);
    }

    @Override
    Map<String, String> environment() {
        return environment;
    }

    @Override
    void awaitHealthy() throws Exception {
        super.awaitHealthy();
        // a server that has never prefilled must not meet a decode-only step first on CPUs with AMX
        complete(
                "{\"model\":\"tiny\",\"prompt\":[11,12,13,14,15,16],\"max_tokens\":2}"
                        .getBytes(StandardCharsets.UTF_8));
    }

    private byte[] complete(byte[] body) throws Exception {
        final HttpResponse<byte[]> answer =
                HTTP.send(
                        HttpRequest.newBuilder(uri().resolve("/v1/completions"))
                                .header("content-type", "application/json")
                                .header("X-Request-Id", "prefill-" + prefills++)
                                .POST(HttpRequest.BodyPublishers.ofByteArray(body))
                                .build(),
                        HttpResponse.BodyHandlers.ofByteArray());
        assertEquals(200, answer.statusCode(), new String(answer.body(), StandardCharsets.UTF_8));
        return answer.body();
    }

    @Override
    String flag(String name) {
        return uri()
                + ",events=tcp://127.0.0.1:"
                + eventsPort
                + ",replay=tcp://127.0.0.1:"
                + replayPort
                + ",name="
                + name;
    }

    /**
     * Prefills a prompt whose blocks stay until they are given back.
     *
     * @param from another prompt for another number
     * @param tokens of the prompt
     */
    KvTransferParams prefill(int from, int tokens) throws Exception {
        final String prompt =
                IntStream.range(from, from + tokens)
                        .mapToObj(i -> Integer.toString(5 + (i + 30 * from) % 250))
                        .collect(Collectors.joining(",", "[", "]"));
        final VerbatimJson body =
                VllmHandoff.prefillBody(
                        VerbatimJson.parse(
                                "{\"model\":\"tiny\",\"temperature\":0,\"prompt\":"
                                        + prompt
                                        + "}"));
        return KvTransferParams.in(VerbatimJson.parse(complete(body.bytes()))).orElseThrow();
    }

    /** Tokens of prompts that it has taken from its own cache. */
    double cacheHits() throws Exception {
        return metric("vllm:prefix_cache_hits_total");
    }

    /** Whether blocks are held. */
    boolean isHolding() throws Exception {
        return metric("vllm:kv_cache_usage_perc") > 0;
    }

    /** Waits until blocks are held, or until none is. */
    void awaitUsage(boolean held) throws Exception {
        final long startNs = System.nanoTime();
        while (isHolding() != held) {
            assertTrue(System.nanoTime() - startNs < PATIENCE_NS, "should be held: " + held);
            LockSupport.parkNanos(PAUSE_NS);
        }
        System.out.printf(
                "%s after %d ms%n",
                held ? "blocks are held" : "blocks are free",
                TimeUnit.NANOSECONDS.toMillis(System.nanoTime() - startNs));
    }
}
