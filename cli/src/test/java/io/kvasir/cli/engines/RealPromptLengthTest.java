package io.kvasir.cli.engines;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.kvasir.cli.load.LoadClient;
import io.kvasir.cli.load.Outcome;
import io.kvasir.gateway.GatewayServer;
import io.kvasir.gateway.config.GatewayConfig;
import io.kvasir.gateway.config.GatewaySettings;
import io.kvasir.gateway.config.WorkerConfig;
import io.kvasir.pipeline.source.IndexState;
import io.kvasir.router.Worker;
import io.kvasir.router.settings.RouterSettings;
import io.kvasir.testsupport.Seeds;

import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.CleanupMode;
import org.junit.jupiter.api.io.TempDir;

import java.net.URI;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Random;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import java.util.stream.Stream;

/**
 * What a prefix that a worker holds saves of the time to the first token, by the length of the
 * prompt, and what the weight of prefill does to first tokens and to the time between tokens: two
 * real vLLM servers whose model is large enough that computing prompts is what takes the time. Both
 * tables are printed; what is asserted is where requests went and what was cached.
 */
@Tag("real-engine")
class RealPromptLengthTest {
    private static final int LENGTH = 9216;
    private static final int CACHE = 768;
    private static final int ROOM = CACHE - 32; // of a server; more are evicted
    private static final int PROMPTS = 3;
    private static final int SHARED = 12;
    private static final int SHARED_TOKENS = 1_504;
    private static final int OWN_TOKENS = 100;
    private static final int TURNS = 6;
    private static final int CALLERS = 6;
    private static final Duration TIMEOUT = Duration.ofMinutes(5);
    private static final double NS_PER_MS = TimeUnit.MILLISECONDS.toNanos(1);

    @TempDir(cleanup = CleanupMode.ON_SUCCESS)
    static Path logs;

    private static List<VllmServer> servers = List.of();

    private final Random random = new Random(Seeds.next("RealPromptLengthTest"));

    @BeforeAll
    static void start() throws Exception {
        final Path home = VllmServer.installed();
        servers =
                List.of(
                        new VllmServer(home, logs.resolve("a.log")).larger(home, LENGTH, CACHE),
                        new VllmServer(home, logs.resolve("b.log")).larger(home, LENGTH, CACHE));
        for (VllmServer server : servers) {
            server.start();
        }
        for (VllmServer server : servers) {
            server.awaitHealthy();
        }
    }

    @AfterAll
    static void stop() {
        servers.forEach(VllmServer::close);
    }

    private static GatewayServer gateway(double weight) throws Exception {
        final GatewayServer gateway =
                GatewayServer.start(
                        GatewayConfig.builder()
                                .set(GatewaySettings.PORT, 0)
                                .set(GatewaySettings.ADMIN_PORT, 0L)
                                .set(GatewaySettings.MODEL, VllmServer.MODEL)
                                .set(RouterSettings.BLOCK_SIZE, VllmServer.BLOCK_SIZE)
                                .set(RouterSettings.OVERLAP_WEIGHT, weight)
                                .worker(WorkerConfig.parse(servers.getFirst().flag("a")))
                                .worker(WorkerConfig.parse(servers.getLast().flag("b")))
                                .build());
        final long startNs = System.nanoTime();
        while (gateway.router().workers().stream().anyMatch(worker -> !usable(worker, weight))) {
            assertTrue(System.nanoTime() - startNs < TIMEOUT.toNanos(), gateway.workersPage());
            Thread.sleep(20);
        }
        return gateway;
    }

    private static boolean usable(Worker worker, double weight) {
        return worker.available() && (weight == 0 || worker.state() == IndexState.EXACT);
    }

    private int[] tokens(int count) {
        return random.ints(count, 5, 250).toArray();
    }

    private static byte[] body(int[] prompt, int output) {
        return ("{\"model\":\""
                        + VllmServer.MODEL
                        + "\",\"ignore_eos\":true,\"temperature\":0,\"allowed_token_ids\":[20,21,22,23]," // with text
                        + "\"stream\":true,"
                        + "\"stream_options\":{\"include_usage\":true},\"max_tokens\":"
                        + output
                        + ",\"prompt\":"
                        + Arrays.stream(prompt)
                                .mapToObj(Integer::toString)
                                .collect(Collectors.joining(",", "[", "]"))
                        + "}")
                .getBytes(StandardCharsets.UTF_8);
    }

    private static CompletableFuture<Outcome> send(LoadClient client, byte[] body) {
        return client.send("/v1/completions", body, System.nanoTime(), false);
    }

    private static double firstTokenMs(Outcome outcome) {
        assertNull(outcome.error());
        return (outcome.firstTokenNs() - outcome.sentNs()) / NS_PER_MS;
    }

    /** The value below which a share of them is. */
    private static double at(double share, List<Double> values) {
        final List<Double> sorted = values.stream().sorted().toList();
        return sorted.get((int) Math.min(sorted.size() - 1L, (long) (share * sorted.size())));
    }

    @Test
    void theLongerThePromptTheMoreItsHeldPrefixSaves() throws Exception {
        try (GatewayServer gateway = gateway(1);
                LoadClient client = new LoadClient(URI.create(gateway.url()), TIMEOUT, Map.of())) {
            for (int length : List.of(500, 2_000, 8_000)) {
                final List<Double> computed = new ArrayList<>();
                final List<Double> cached = new ArrayList<>();
                for (int i = 0; i < PROMPTS; i++) {
                    final byte[] body = body(tokens(length), 4);
                    final long blocks =
                            Math.min(blocks(gateway), ROOM - length / VllmServer.BLOCK_SIZE);
                    final Outcome first = send(client, body).get();
                    computed.add(firstTokenMs(first));
                    assertEquals(0, first.cachedTokens());
                    awaitBlocks(gateway, blocks + length / VllmServer.BLOCK_SIZE);
                    final Outcome second = send(client, body).get();
                    cached.add(firstTokenMs(second));
                    // the engine computes at least the last token of a prompt
                    assertEquals(
                            (length - 1L) / VllmServer.BLOCK_SIZE * VllmServer.BLOCK_SIZE,
                            second.cachedTokens());
                }
                System.out.printf(
                        Locale.ROOT,
                        "%,d tokens: first token after %.0f ms computed, %.0f ms cached: %.2f%n",
                        length,
                        at(0.5, computed),
                        at(0.5, cached),
                        at(0.5, cached) / at(0.5, computed));
            }
        }
    }

    private static long blocks(GatewayServer gateway) {
        return gateway.router().workers().stream().mapToLong(Worker::indexedBlocks).sum();
    }

    private static void awaitBlocks(GatewayServer gateway, long least) throws Exception {
        final long startNs = System.nanoTime();
        while (blocks(gateway) < least) {
            assertTrue(System.nanoTime() - startNs < TIMEOUT.toNanos(), gateway.workersPage());
            Thread.sleep(5);
        }
    }

    @Test
    void aHigherWeightKeepsPrefixesWhereTheyAre() throws Exception {
        final List<int[]> shared =
                IntStream.range(0, SHARED).mapToObj(i -> tokens(SHARED_TOKENS)).toList();
        final List<byte[]> bodies = new ArrayList<>();
        for (int turn = 0; turn < TURNS; turn++) {
            for (int[] prefix : shared) {
                final int[] prompt = Arrays.copyOf(prefix, SHARED_TOKENS + OWN_TOKENS);
                System.arraycopy(tokens(OWN_TOKENS), 0, prompt, SHARED_TOKENS, OWN_TOKENS);
                bodies.add(body(prompt, 24));
            }
        }
        for (double weight : List.of(0.0, 0.5, 1.0, 2.0, 4.0)) {
            for (VllmServer server : servers) {
                server.forget();
            }
            sweep(weight, bodies);
        }
    }

    private static void sweep(double weight, List<byte[]> bodies) throws Exception {
        final ConcurrentLinkedQueue<Long> gaps = new ConcurrentLinkedQueue<>();
        final ConcurrentLinkedQueue<Outcome> outcomes = new ConcurrentLinkedQueue<>();
        try (GatewayServer gateway = gateway(weight);
                LoadClient client = new LoadClient(URI.create(gateway.url()), TIMEOUT, gaps::add)) {
            final AtomicInteger next = new AtomicInteger();
            final List<Thread> callers =
                    Stream.generate(
                                    () ->
                                            Thread.startVirtualThread(
                                                    () -> ask(client, next, bodies, outcomes)))
                            .limit(CALLERS)
                            .toList();
            for (Thread caller : callers) {
                caller.join();
            }
        }
        assertEquals(bodies.size(), outcomes.size());
        final List<Double> first =
                outcomes.stream().map(RealPromptLengthTest::firstTokenMs).toList();
        final List<Double> between = gaps.stream().map(ns -> ns / NS_PER_MS).toList();
        final double prompt = outcomes.stream().mapToLong(Outcome::promptTokens).sum();
        System.out.printf(
                Locale.ROOT,
                "weight %.1f: %.0f %% cached; first token p50 %.0f, p95 %.0f ms; between tokens p50"
                        + " %.1f, p95 %.1f ms%n",
                weight,
                100 * outcomes.stream().mapToLong(Outcome::cachedTokens).sum() / prompt,
                at(0.5, first),
                at(0.95, first),
                at(0.5, between),
                at(0.95, between));
    }

    private static void ask(
            LoadClient client,
            AtomicInteger next,
            List<byte[]> bodies,
            ConcurrentLinkedQueue<Outcome> outcomes) {
        for (int i = next.getAndIncrement(); i < bodies.size(); i = next.getAndIncrement()) {
            outcomes.add(send(client, bodies.get(i)).join());
        }
    }
}
