package io.kvasir.cli.engines;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;

import io.kvasir.cli.load.Outcome;
import io.kvasir.gateway.GatewayServer;
import io.kvasir.gateway.config.GatewayConfig;
import io.kvasir.gateway.config.GatewaySettings;
import io.kvasir.gateway.config.WorkerConfig;
import io.kvasir.gateway.openai.UsageReader;
import io.kvasir.pipeline.source.IndexState;
import io.kvasir.pipeline.source.RemovalRule;
import io.kvasir.router.Worker;
import io.kvasir.router.policy.RoutingMode;
import io.kvasir.router.settings.RouterSettings;
import io.kvasir.testsupport.Seeds;

import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.MethodOrderer;
import org.junit.jupiter.api.Order;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.TestMethodOrder;
import org.junit.jupiter.api.io.CleanupMode;
import org.junit.jupiter.api.io.TempDir;

import java.net.URI;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Random;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.function.BooleanSupplier;
import java.util.stream.Collectors;
import java.util.stream.Stream;

/**
 * The gateway in front of two real vLLM servers: what it predicts is what they report. Small
 * caches, so that prefixes are evicted and asked for again.
 */
@Tag("real-engine")
@TestMethodOrder(MethodOrderer.OrderAnnotation.class)
class RealEnginesTest {
    private static final ObjectMapper JSON = new ObjectMapper();
    private static final long QUIET_NS = Duration.ofMillis(120).toNanos();

    @TempDir(cleanup = CleanupMode.ON_SUCCESS)
    static Path logs;

    private static VllmServer first;
    private static VllmServer second;
    private static GatewayServer gateway;

    private final Random random = new Random(Seeds.next("RealEnginesTest"));

    /** One answered request: what the gateway said beforehand and what the engine said of it. */
    private record Outcome(
            int status,
            String worker,
            int predicted,
            int cached,
            int prompt,
            long decidedAt,
            String body) {
        boolean exact() {
            return status == 200 && predicted == cached;
        }
    }

    @BeforeAll
    static void start() throws Exception {
        final Path folder = VllmServer.installed();
        first = new VllmServer(folder, logs.resolve("first.log"));
        second = new VllmServer(folder, logs.resolve("second.log"));
        first.start();
        second.start();
        first.awaitHealthy();
        second.awaitHealthy();
        serve(folder, first.flag("first"), second.flag("second"));
    }

    private static void serve(Path folder, String... workers) throws Exception {
        final GatewayConfig.Builder config =
                GatewayConfig.builder()
                        .set(GatewaySettings.PORT, 0)
                        .set(GatewaySettings.TRUSTED_NETWORKS, List.of("127.0.0.1"))
                        .set(GatewaySettings.MODEL, VllmServer.MODEL)
                        .set(GatewaySettings.TOKENIZER, folder.resolve("model"))
                        .set(RouterSettings.BLOCK_SIZE, VllmServer.BLOCK_SIZE);
        for (String worker : workers) {
            config.worker(WorkerConfig.parse(worker));
        }
        gateway = GatewayServer.start(config.build());
        await(RealEnginesTest::allExact, "all workers EXACT");
    }

    @AfterAll
    static void stop() {
        if (gateway != null) {
            gateway.close();
        }
        for (VllmServer server : Arrays.asList(first, second)) {
            if (server != null) {
                server.close();
            }
        }
    }

    private static boolean allExact() {
        return gateway.router().workers().stream()
                .allMatch(w -> w.state() == IndexState.EXACT && w.available());
    }

    private static void await(BooleanSupplier condition, String what) throws InterruptedException {
        final long deadline = System.nanoTime() + Duration.ofSeconds(90).toNanos();
        while (!condition.getAsBoolean()) {
            if (System.nanoTime() - deadline > 0) {
                throw new AssertionError(
                        "still waiting for "
                                + what
                                + ": "
                                + gateway.router().workers().stream()
                                        .map(w -> w + " " + w.available() + " " + w.sourceStatus())
                                        .collect(Collectors.joining("; ")));
            }
            Thread.sleep(20);
        }
    }

    /**
     * Waits until no worker's events have moved for a while; answers the numbers they stopped at.
     */
    private static long[] quiet() throws InterruptedException {
        long[] seen = sequences();
        long since = System.nanoTime();
        while (System.nanoTime() - since < QUIET_NS) {
            Thread.sleep(10);
            final long[] now = sequences();
            if (!Arrays.equals(now, seen)) {
                seen = now;
                since = System.nanoTime();
            }
        }
        return seen;
    }

    private static long[] sequences() {
        return gateway.router().workers().stream().mapToLong(Worker::eventSequence).toArray();
    }

    private static Outcome send(String path, String body) throws Exception {
        final HttpResponse<String> answer =
                EngineServer.HTTP.send(
                        HttpRequest.newBuilder(
                                        URI.create("http://127.0.0.1:" + gateway.port() + path))
                                .timeout(Duration.ofSeconds(60))
                                .header("content-type", "application/json")
                                .POST(HttpRequest.BodyPublishers.ofString(body))
                                .build(),
                        HttpResponse.BodyHandlers.ofString());
        final UsageReader usage = usage(answer.statusCode() == 200 ? answer.body() : "{}");
        return new Outcome(
                answer.statusCode(),
                answer.headers().firstValue("x-kvasir-worker").orElse(""),
                (int)
                        answer.headers()
                                .firstValueAsLong("x-kvasir-predicted-cached-tokens")
                                .orElse(-1),
                Math.max(0, usage.cachedTokens()),
                usage.promptTokens(),
                answer.headers().firstValueAsLong("x-kvasir-event-sequence").orElse(-2),
                answer.body());
    }

    /** What an answer of any API states last. */
    private static UsageReader usage(String body) {
        final UsageReader usage = new UsageReader();
        final Stream<String> objects =
                body.startsWith("{")
                        ? Stream.of(body)
                        : body.lines()
                                .filter(line -> line.startsWith("data: {"))
                                .map(line -> line.substring("data: ".length()));
        objects.map(object -> object.getBytes(StandardCharsets.UTF_8))
                .forEach(bytes -> assertTrue(usage.read(bytes, 0, bytes.length), body));
        return usage;
    }

    private static String completion(int[] prompt, int maxTokens) {
        return "{\"model\":\"tiny\",\"prompt\":"
                + Arrays.toString(prompt)
                + ",\"max_tokens\":"
                + maxTokens
                + ",\"temperature\":0,\"ignore_eos\":true}";
    }

    private int[] tokens(int count) {
        return random.ints(count, 10, 250).toArray();
    }

    /**
     * Prompts that share prefixes: more of them than both caches hold together. Two workloads of
     * one shape differ in their tokens only.
     */
    private static final class Workload {
        private final List<int[]> prefixes = new ArrayList<>();
        private final Random shape;
        private final Random content;

        Workload(int groups, long shapeSeed, long contentSeed) {
            shape = new Random(shapeSeed);
            content = new Random(contentSeed);
            for (int i = 0; i < groups; i++) {
                prefixes.add(tokens(96 + shape.nextInt(300)));
            }
        }

        private int[] tokens(int count) {
            return content.ints(count, 10, 250).toArray();
        }

        int[] next() {
            final int[] prefix = prefixes.get(shape.nextInt(prefixes.size()));
            final int cut =
                    shape.nextInt(4) == 0 ? 1 + shape.nextInt(prefix.length) : prefix.length;
            final int[] tail = tokens(shape.nextInt(3) == 0 ? 0 : shape.nextInt(90));
            final int[] prompt = Arrays.copyOf(prefix, cut + tail.length);
            System.arraycopy(tail, 0, prompt, cut, tail.length);
            if (shape.nextInt(8) == 0) {
                prefixes.set(shape.nextInt(prefixes.size()), prompt);
            }
            return prompt;
        }

        int outputTokens() {
            return 1 + shape.nextInt(40);
        }
    }

    private Workload workload(int groups) {
        return new Workload(groups, random.nextLong(), random.nextLong());
    }

    /** Sends requests one after the other, each only when all events have arrived. */
    private List<Outcome> sequential(Workload workload, int requests) throws Exception {
        final List<Outcome> outcomes = new ArrayList<>();
        for (int i = 0; i < requests; i++) {
            final long[] arrived = quiet();
            final Outcome outcome =
                    send("/v1/completions", completion(workload.next(), workload.outputTokens()));
            outcomes.add(outcome);
            if (!outcome.exact()) {
                System.out.printf(
                        "request %d: %s, decided at event %d, events then %s%n",
                        i, outcome, outcome.decidedAt(), Arrays.toString(arrived));
            }
        }
        return outcomes;
    }

    private static long exact(List<Outcome> outcomes) {
        return outcomes.stream().filter(Outcome::exact).count();
    }

    @Test
    @Order(1)
    void everyKindOfRequestIsAnsweredAndItsTokensAreTheEngines() throws Exception {
        final String chat =
                "\"messages\":[{\"role\":\"system\",\"content\":\"A router knows which worker holds"
                    + " it.\"},{\"role\":\"user\",\"content\":\"the longest prefix wins, ünless ☃"
                    + " no one is busy\"}]";
        final String text =
                "\"prompt\":\"a block holds the keys and values of sixteen tokens, and so on\"";
        final String ids = "\"prompt\":" + Arrays.toString(tokens(70));
        final String options =
                ",\"model\":\"tiny\",\"max_tokens\":5,\"temperature\":0,\"ignore_eos\":true";
        final List<String[]> kinds =
                List.of(
                        new String[] {"/v1/chat/completions", chat},
                        new String[] {"/v1/completions", text},
                        new String[] {"/v1/completions", ids});
        for (String[] kind : kinds) {
            for (String stream :
                    List.of(
                            "",
                            ",\"stream\":true",
                            ",\"stream\":true,\"stream_options\":{\"include_usage\":true}")) {
                quiet();
                final String body = "{" + kind[1] + options + stream + "}";
                final Outcome outcome = send(kind[0], body);
                assertEquals(200, outcome.status(), outcome.body());
                if (!stream.isEmpty()) {
                    assertTrue(outcome.body().endsWith("data: [DONE]\n\n"), outcome.body());
                    assertEquals(
                            stream.contains("include_usage"),
                            outcome.body().contains("\"choices\":[]"),
                            "only a client that asked sees the usage chunk: " + outcome.body());
                }
                if (outcome.prompt() >= 0) {
                    final JsonNode own = JSON.readTree(tokenize(kind[0].contains("chat"), body));
                    assertEquals(outcome.prompt(), own.path("count").asInt(), body);
                }
            }
        }
    }

    private static String tokenize(boolean chat, String body) throws Exception {
        final HttpResponse<String> answer =
                EngineServer.HTTP.send(
                        HttpRequest.newBuilder(
                                        URI.create(
                                                "http://127.0.0.1:" + gateway.port() + "/tokenize"))
                                .header("content-type", "application/json")
                                .POST(HttpRequest.BodyPublishers.ofString(body))
                                .build(),
                        HttpResponse.BodyHandlers.ofString());
        assertEquals(200, answer.statusCode(), (chat ? "chat: " : "text: ") + answer.body());
        return answer.body();
    }

    @Test
    @Order(2)
    void thePredictedHitIsTheEnginesThroughEvictions() throws Exception {
        final List<Outcome> outcomes = sequential(workload(14), 300);
        final long exact = exact(outcomes);
        final long hits = outcomes.stream().filter(o -> o.cached() > 0).count();
        System.out.printf(
                "300 requests: %d exact, %d with a hit, by worker %s%n",
                exact,
                hits,
                outcomes.stream()
                        .collect(Collectors.groupingBy(Outcome::worker, Collectors.counting())));
        assertTrue(exact >= 297, exact + " of 300 exact");
        assertTrue(hits > 50, "the workload must hit: " + hits);
    }

    @Test
    @Order(3)
    void concurrentRequestsDifferOnlyByEventsThatCameAfterTheDecision() throws Exception {
        final Workload workload = workload(10);
        quiet();
        final long differing =
                concurrent(workload, 60).stream().filter(outcome -> !outcome.exact()).count();
        System.out.printf(
                "60 concurrent requests: %d differ by the events of their neighbours%n", differing);
        final List<Outcome> after = sequential(workload, 20);
        assertEquals(20, exact(after), "exact again once it is quiet");
    }

    /** Four clients at a time: load counts, so that a crowded worker does not draw all of them. */
    private static List<Outcome> concurrent(Workload workload, int requests) throws Exception {
        final List<Outcome> outcomes = new ArrayList<>();
        for (int done = 0; done < requests; done += 4) {
            final List<Future<Outcome>> answers = new ArrayList<>();
            try (ExecutorService threads = Executors.newVirtualThreadPerTaskExecutor()) {
                for (int i = 0; i < 4; i++) {
                    final String body = completion(workload.next(), workload.outputTokens());
                    answers.add(threads.submit(() -> send("/v1/completions", body)));
                }
            }
            for (Future<Outcome> answer : answers) {
                assertEquals(200, answer.get().status(), answer.get().body());
                outcomes.add(answer.get());
            }
        }
        return outcomes;
    }

    @Test
    @Order(4)
    void cacheAwareRoutingBeatsRoundRobinInCachedTokens() throws Exception {
        final long shape = random.nextLong();
        final long[] cached = new long[2];
        final long[] prompts = new long[2];
        final List<RoutingMode> modes = List.of(RoutingMode.ROUND_ROBIN, RoutingMode.KV);
        for (int m = 0; m < 2; m++) {
            gateway.mode(modes.get(m));
            quiet();
            final List<Outcome> outcomes =
                    concurrent(new Workload(12, shape, random.nextLong()), 200);
            cached[m] = outcomes.stream().mapToLong(Outcome::cached).sum();
            prompts[m] = outcomes.stream().mapToLong(Outcome::prompt).sum();
        }
        gateway.mode(RoutingMode.KV);
        System.out.printf(
                "cached tokens of 200 requests: round-robin %d, kv %d, of %d%n",
                cached[0], cached[1], prompts[1]);
        assertEquals(prompts[0], prompts[1], "both saw the same shape");
        assertTrue(cached[1] > cached[0], "kv " + cached[1] + " against " + cached[0]);
    }

    /** What one API has put into a cache is found by another, as vLLM makes their prompts. */
    @Test
    @Order(5)
    void aConversationIsPredictedWhateverTheApi() throws Exception {
        final List<Outcome> outcomes = new ArrayList<>();
        for (int conversation = 0; conversation < 6; conversation++) {
            final String system = random.ints(40, 0, 99).mapToObj(n -> "w" + n).toList().toString();
            final StringBuilder turns = new StringBuilder();
            for (int turn = 0; turn < 10; turn++) {
                turns.append(turn == 0 ? "" : ",{\"role\":\"assistant\",\"content\":\"yes\"},")
                        .append("{\"role\":\"user\",\"content\":\"")
                        .append(random.nextLong())
                        .append("\"}");
                quiet();
                outcomes.add(ask(random.nextInt(3), system, turns.toString()));
            }
        }
        final long exact = exact(outcomes);
        System.out.printf(
                "60 turns by three APIs: %d exact, %d cached tokens%n",
                exact, outcomes.stream().mapToInt(Outcome::cached).sum());
        assertTrue(exact >= 59, outcomes.toString());
        assertTrue(outcomes.stream().filter(o -> o.cached() > 0).count() >= 40, "hits");
    }

    private Outcome ask(int api, String system, String turns) throws Exception {
        final boolean stream = random.nextBoolean();
        final String options =
                "{\"model\":\"tiny\",\"temperature\":0,"
                        + (stream ? "\"stream\":true," : "")
                        + (stream && api == 0
                                ? "\"stream_options\":{\"include_usage\":true},"
                                : "");
        return switch (api) {
            case 0 ->
                    send(
                            "/v1/chat/completions",
                            options
                                    + "\"max_tokens\":4,"
                                    + "\"messages\":[{\"role\":\"system\",\"content\":\""
                                    + system
                                    + "\"},"
                                    + turns
                                    + "]}");
            case 1 ->
                    send(
                            "/v1/messages",
                            options
                                    + "\"max_tokens\":4,\"system\":\""
                                    + system
                                    + "\",\"messages\":["
                                    + turns
                                    + "]}");
            default ->
                    send(
                            "/v1/responses",
                            options
                                    + "\"max_output_tokens\":4,\"instructions\":\""
                                    + system
                                    + "\",\"input\":["
                                    + turns
                                    + "]}");
        };
    }

    @Test
    @Order(6)
    void aServerThatIsKilledAndRestartedIsLeftAloneAndThenExactAgain() throws Exception {
        final Workload workload = workload(10);
        sequential(workload, 20);
        second.kill();
        for (int i = 0; i < 15; i++) {
            final Outcome outcome = send("/v1/completions", completion(workload.next(), 4));
            assertEquals(200, outcome.status(), outcome.body());
            assertEquals("first", outcome.worker());
        }
        second.start();
        second.awaitHealthy();
        await(RealEnginesTest::allExact, "both workers EXACT after the restart");
        final List<Outcome> outcomes = sequential(workload, 40);
        outcomes.addAll(sequential(workload(10), 60)); // prefixes that nobody holds go to either
        System.out.printf(
                "100 requests after the restart: %d exact, by worker %s%n",
                exact(outcomes),
                outcomes.stream()
                        .collect(Collectors.groupingBy(Outcome::worker, Collectors.counting())));
        assertEquals(100, exact(outcomes));
        assertTrue(
                outcomes.stream().anyMatch(o -> o.worker().equals("second")),
                "the restarted worker serves again");
    }

    /** It computes the last block of each hit anew, which its events do not say. */
    @Test
    @Order(7)
    void aServerThatDraftsIsPredictedOnceItsHitsHaveShownThatTheyLackABlock() throws Exception {
        gateway.close();
        first.close();
        second.close();
        final Path folder = VllmServer.installed();
        try (VllmServer drafting =
                new VllmServer(folder, logs.resolve("drafting.log")).drafting(folder)) {
            drafting.start();
            drafting.awaitHealthy();
            serve(folder, drafting.flag("drafting"));
            final Worker worker = gateway.router().workers().get(0);
            final Workload workload = workload(5);
            for (int i = 0; i < 100 && !worker.lacksLastBlock(); i++) {
                sequential(workload, 1);
            }
            assertTrue(worker.lacksLastBlock(), worker.indexProblem());
            final List<Outcome> outcomes = sequential(workload, 60);
            assertEquals(60, exact(outcomes));
            assertTrue(outcomes.stream().anyMatch(o -> o.cached() > 0), "the workload must hit");
            assertEquals(IndexState.EXACT, worker.state());
            assertEquals(RemovalRule.PHYSICAL, worker.sourceStatus().removals());
        }
    }
}
