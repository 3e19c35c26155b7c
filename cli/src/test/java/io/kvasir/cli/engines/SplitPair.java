package io.kvasir.cli.engines;

import static org.junit.jupiter.api.Assertions.assertFalse;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;

import io.kvasir.gateway.GatewayServer;
import io.kvasir.gateway.config.GatewayConfig;
import io.kvasir.gateway.config.GatewaySettings;
import io.kvasir.gateway.config.WorkerConfig;
import io.kvasir.router.settings.RouterSettings;
import io.kvasir.testsupport.Eventually;

import java.net.URI;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.function.Consumer;

/**
 * A real prefill and a real decode server with a gateway in front of them, where they are {@code p}
 * and {@code d}.
 */
final class SplitPair<S extends EngineServer> implements AutoCloseable {
    private static final ObjectMapper JSON = new ObjectMapper();

    final S prefill;
    final S decode;
    private GatewayServer gateway;
    private int prompts;

    private SplitPair(S prefill, S decode) {
        this.prefill = prefill;
        this.decode = decode;
    }

    /**
     * Starts two vLLM servers and the gateway; ends the test as skipped where there is no vLLM.
     *
     * @param logs folder of the servers' logs
     * @param more further settings of the gateway
     */
    static SplitPair<VllmServer> vllm(Path logs, Consumer<GatewayConfig.Builder> more)
            throws Exception {
        final Path home = VllmServer.installed();
        final SplitPair<VllmServer> pair =
                new SplitPair<>(
                        new VllmServer(home, logs.resolve("prefill.log")).transferring().precise(),
                        new VllmServer(home, logs.resolve("decode.log")).transferring().precise());
        pair.begin(
                VllmServer.BLOCK_SIZE,
                more,
                pair.prefill.flag("p") + ",role=prefill",
                pair.decode.flag("d") + ",role=decode");
        return pair;
    }

    /** Starts two SGLang servers and the gateway; ends the test as skipped likewise. */
    static SplitPair<SglangServer> sglang(Path logs, Consumer<GatewayConfig.Builder> more)
            throws Exception {
        final Path home = SglangServer.installed();
        final SplitPair<SglangServer> pair =
                new SplitPair<>(
                        new SglangServer(home, logs.resolve("prefill.log")).prefilling(),
                        new SglangServer(home, logs.resolve("decode.log")).decoding());
        pair.begin(SglangServer.BLOCK_SIZE, more, pair.prefill.flag("p"), pair.decode.flag("d"));
        return pair;
    }

    private void begin(int blockSize, Consumer<GatewayConfig.Builder> more, String... workers)
            throws Exception {
        try {
            prefill.start();
            decode.start();
            prefill.awaitHealthy();
            decode.awaitHealthy();
            final GatewayConfig.Builder config =
                    GatewayConfig.builder()
                            .set(GatewaySettings.PORT, 0)
                            .set(GatewaySettings.ADMIN_PORT, 0L)
                            .set(GatewaySettings.TRUSTED_NETWORKS, List.of("127.0.0.1"))
                            .set(GatewaySettings.MODEL, EngineServer.MODEL)
                            .set(GatewaySettings.TOKENIZER, prefill.model())
                            .set(RouterSettings.BLOCK_SIZE, blockSize);
            for (String worker : workers) {
                config.worker(WorkerConfig.parse(worker));
            }
            more.accept(config);
            gateway = GatewayServer.start(config.build());
            awaitUp();
        } catch (Throwable e) {
            close();
            throw e;
        }
    }

    /** Waits until the gateway uses both servers. */
    void awaitUp() throws Exception {
        Eventually.until("the gateway uses both", this::isUp);
    }

    private boolean isUp() throws Exception {
        final String workers = page("/health");
        return !workers.contains("\"available\":false")
                && workers.contains("\"available\":true")
                && !workers.contains("\"unknown\"");
    }

    URI url() {
        return URI.create(gateway.url());
    }

    private String page(String path) throws Exception {
        return EngineServer.HTTP
                .send(
                        HttpRequest.newBuilder(URI.create(gateway.adminUrl() + path)).build(),
                        HttpResponse.BodyHandlers.ofString())
                .body();
    }

    /** Has each leg of a request end by a deadline. */
    static void deadlines(GatewayConfig.Builder config, Duration each) {
        config.set(GatewaySettings.PREFILL_TIMEOUT, each)
                .set(GatewaySettings.FIRST_BYTE_TIMEOUT, each)
                .set(GatewaySettings.STREAM_IDLE_TIMEOUT, each)
                .set(GatewaySettings.ANSWER_TIMEOUT, each);
    }

    /** Has the gateway complete another prompt. */
    CompletableFuture<HttpResponse<String>> ask(int maxTokens, boolean stream) {
        final ObjectNode body = JSON.createObjectNode();
        body.put("model", EngineServer.MODEL)
                .put("temperature", 0)
                .put("ignore_eos", true)
                .put("max_tokens", maxTokens)
                .put("stream", stream)
                .put("prompt", "prompt " + prompts++ + " " + "word ".repeat(60));
        return EngineServer.HTTP.sendAsync(
                Completion.post(url(), body), HttpResponse.BodyHandlers.ofString());
    }

    /** That it ended with an answer, or an error that has a name, as an event too; says which. */
    static String ended(HttpResponse<String> answer) throws Exception {
        final int event = answer.body().indexOf("data: {\"error\"");
        if (answer.statusCode() == 200 && event < 0) {
            return "answered";
        }
        final JsonNode error =
                JSON.readTree(answer.body().substring(event < 0 ? 0 : event + "data: ".length()))
                        .path("error");
        assertFalse(error.path("code").asText("").isBlank(), answer.body());
        return answer.statusCode()
                + " "
                + error.path("code").asText()
                + ": "
                + error.path("message").asText();
    }

    /** Sum of the gateway's series that begin so; 0 where there is none yet. */
    double metric(String prefix) throws Exception {
        return Metrics.values(page("/metrics"), prefix).sum();
    }

    @Override
    public void close() {
        if (gateway != null) {
            gateway.close();
        }
        prefill.close();
        decode.close();
    }
}
