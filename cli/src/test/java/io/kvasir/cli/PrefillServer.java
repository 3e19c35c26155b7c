package io.kvasir.cli;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.kvasir.protocol.handoff.KvTransferParams;
import io.kvasir.protocol.handoff.VerbatimJson;
import io.kvasir.protocol.handoff.VllmHandoff;

import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.charset.StandardCharsets;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;
import java.util.stream.Collectors;
import java.util.stream.IntStream;

/** A real vLLM server that is asked for prefills whose blocks stay until they are given back. */
final class PrefillServer implements AutoCloseable {
    private static final long PATIENCE_NS = TimeUnit.MINUTES.toNanos(1);
    private static final long PAUSE_NS = TimeUnit.MILLISECONDS.toNanos(20);
    private static final HttpClient HTTP =
            HttpClient.newBuilder().version(HttpClient.Version.HTTP_1_1).build();

    private final VllmServer server;
    private int requests;

    PrefillServer(VllmServer server) {
        this.server = server;
    }

    /** Starts it; {@link #awaitHealthy} waits for it. */
    PrefillServer start() throws Exception {
        server.start();
        return this;
    }

    void awaitHealthy() throws Exception {
        server.awaitHealthy();
    }

    /** Prefills a prompt of so many tokens; others for another start. */
    KvTransferParams prefill(int from, int tokens) throws Exception {
        final String prompt =
                IntStream.range(from, from + tokens)
                        .mapToObj(i -> Integer.toString(5 + (i + 30 * from) % 250))
                        .collect(Collectors.joining(",", "[", "]"));
        final VerbatimJson body =
                VllmHandoff.prefillBody(
                        VerbatimJson.parse(
                                "{\"model\":\""
                                        + VllmServer.MODEL
                                        + "\",\"prompt\":"
                                        + prompt
                                        + ",\"temperature\":0}"));
        final HttpResponse<byte[]> answer =
                HTTP.send(
                        HttpRequest.newBuilder(server.uri().resolve("/v1/completions"))
                                .header("content-type", "application/json")
                                .header("X-Request-Id", "prefill-" + requests++)
                                .POST(HttpRequest.BodyPublishers.ofByteArray(body.bytes()))
                                .build(),
                        HttpResponse.BodyHandlers.ofByteArray());
        assertEquals(200, answer.statusCode(), new String(answer.body(), StandardCharsets.UTF_8));
        return KvTransferParams.in(VerbatimJson.parse(answer.body())).orElseThrow();
    }

    private double cacheUsage() throws Exception {
        return metric("vllm:kv_cache_usage_perc");
    }

    /** Tokens of prompts that it has taken from its own cache. */
    double cacheHits() throws Exception {
        return metric("vllm:prefix_cache_hits_total");
    }

    private double metric(String name) throws Exception {
        return HTTP.send(
                        HttpRequest.newBuilder(server.uri().resolve("/metrics")).build(),
                        HttpResponse.BodyHandlers.ofString())
                .body()
                .lines()
                .filter(line -> line.startsWith(name))
                .mapToDouble(line -> Double.parseDouble(line.substring(line.lastIndexOf(' ') + 1)))
                .max()
                .orElseThrow();
    }

    /** Waits until blocks are held, or until none is. */
    void awaitUsage(boolean held) throws Exception {
        final long startNs = System.nanoTime();
        while (cacheUsage() > 0 != held) {
            assertTrue(
                    System.nanoTime() - startNs < PATIENCE_NS,
                    "cache usage " + cacheUsage() + ", should be held: " + held);
            LockSupport.parkNanos(PAUSE_NS);
        }
        System.out.printf(
                "%s after %d ms%n",
                held ? "blocks are held" : "blocks are free",
                TimeUnit.NANOSECONDS.toMillis(System.nanoTime() - startNs));
    }

    /** Whether blocks are held. */
    boolean isHolding() throws Exception {
        return cacheUsage() > 0;
    }

    @Override
    public void close() {
        server.close();
    }
}
