package io.kvasir.cli;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.kvasir.pipeline.source.IndexState;
import io.kvasir.router.Decision;
import io.kvasir.router.KvRouter;
import io.kvasir.router.RouteException;
import io.kvasir.router.Worker;
import io.kvasir.sim.SimEngine;
import io.kvasir.sim.config.SimConfig;
import io.kvasir.testsupport.Eventually;
import io.kvasir.testsupport.Seeds;

import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Order;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

import java.io.IOException;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Random;
import java.util.concurrent.TimeUnit;
import java.util.function.BooleanSupplier;
import java.util.function.ToIntFunction;
import java.util.stream.Stream;

/** A router that is closed or killed and started again beside simulated engines. */
@Order(1) // takes long: begins first, beside the others
class RestartTest {
    private static final Duration LIMIT = Duration.ofMinutes(3); // starts of JVMs too
    private static final int NEVER_MS = 0; // but at the close
    private static final int KILLS = 8;

    @TempDir private Path temp;

    private final SimEngine[] engines = {engine(), engine()};
    private final HttpClient http = HttpClient.newHttpClient();
    private final List<int[]> prompts = new ArrayList<>();
    private final Random random = new Random(Seeds.next("RestartTest"));
    private KvRouter router;
    private int intervalMs = NEVER_MS;

    private static SimEngine engine() {
        return SimEngine.start(
                SimConfig.builder()
                        .blocks(2_000)
                        .prefillTokensPerSecond(10_000_000)
                        .interTokenMillis(0.01)
                        .build());
    }

    @AfterEach
    void close() {
        if (router != null) {
            router.close();
        }
        for (SimEngine engine : engines) {
            engine.close();
        }
    }

    private String[] endpoints(boolean replay) {
        final List<String> endpoints = new ArrayList<>();
        for (SimEngine engine : engines) {
            endpoints.add(engine.eventsEndpoint(0));
            endpoints.add(replay ? engine.replayEndpoint(0) : "");
        }
        return endpoints.toArray(String[]::new);
    }

    private void start(boolean replay) {
        router = FollowingRouter.start(temp.resolve("state"), intervalMs, endpoints(replay));
    }

    private void stop() {
        router.close();
        router = null;
    }

    /** Has the engines serve prompts, half of which go on from earlier ones. */
    private void serve(int count) throws IOException, InterruptedException {
        for (int i = 0; i < count; i++) {
            final int[] base =
                    prompts.isEmpty() || random.nextBoolean()
                            ? new int[0]
                            : prompts.get(random.nextInt(prompts.size()));
            final int[] prompt = Arrays.copyOf(base, base.length + 16 * (1 + random.nextInt(6)));
            for (int t = base.length; t < prompt.length; t++) {
                prompt[t] = 1_000 + random.nextInt(10_000);
            }
            prompts.add(prompt);
            post(engines[i % engines.length].url().resolve("/v1/completions"), prompt);
        }
    }

    /** The first messages may be faster than the subscription: then they are lost. */
    private void serveUntil(BooleanSupplier received) throws InterruptedException {
        Eventually.holds(
                "applied",
                () -> {
                    try {
                        serve(2);
                    } catch (IOException | InterruptedException e) {
                        throw new AssertionError(e);
                    }
                    return received.getAsBoolean();
                });
    }

    private void post(URI url, int[] prompt) throws IOException, InterruptedException {
        final String body =
                "{\"prompt\":" + Arrays.toString(prompt) + ",\"max_tokens\":2,\"ignore_eos\":true}";
        final HttpResponse<String> response =
                http.send(
                        HttpRequest.newBuilder(url)
                                .POST(HttpRequest.BodyPublishers.ofString(body))
                                .build(),
                        HttpResponse.BodyHandlers.ofString());
        assertEquals(200, response.statusCode(), response.body());
    }

    private void awaitExact() throws InterruptedException {
        for (int i = 0; i < engines.length; i++) {
            final SimEngine engine = engines[i];
            final Worker worker = router.workers().get(i);
            Eventually.holds(
                    "exact: " + worker + " " + worker.sourceStatus(),
                    () ->
                            worker.state() == IndexState.EXACT
                                    && worker.eventSequence() == engine.state(0).lastSequence());
        }
    }

    /** Cached tokens that are predicted of each prompt, for each worker. */
    private List<Integer> predictions() throws RouteException {
        return decisions(Decision::predictedCachedTokens);
    }

    /** Leading blocks of each prompt that each worker holds, however much that counts now. */
    private List<Integer> overlaps() throws RouteException {
        return decisions(Decision::overlapBlocks);
    }

    private List<Integer> decisions(ToIntFunction<Decision> value) throws RouteException {
        final List<Integer> predicted = new ArrayList<>();
        final Decision decision = new Decision();
        for (Worker worker : router.workers()) {
            for (int[] prompt : prompts) {
                router.select(
                        router.newRequest().tokens(prompt, prompt.length).pin(worker), decision);
                predicted.add(value.applyAsInt(decision));
            }
        }
        return predicted;
    }

    private void assertIsTruth() {
        for (int i = 0; i < engines.length; i++) {
            assertEquals(engines[i].heldBlocks(0).size(), router.workers().get(i).indexedBlocks());
        }
    }

    private long messages() {
        return router.workers().stream().mapToLong(w -> w.sourceStatus().messages()).sum();
    }

    @ParameterizedTest
    @ValueSource(ints = {NEVER_MS, FollowingRouter.MAPPED})
    void aRestartedRouterPredictsTheSameWithoutAFullReplay(int kept) throws Exception {
        intervalMs = kept;
        start(true);
        serve(60);
        awaitExact();
        final List<Integer> before = predictions();
        final List<Integer> overlaps = overlaps();
        assertTrue(overlaps.stream().anyMatch(blocks -> blocks > 0));
        stop();
        start(true);
        assertEquals(overlaps, overlaps(), "at once, whatever the engines say later");
        awaitExact();
        assertEquals(before, predictions());
        assertIsTruth();
        assertTrue(messages() <= 4, () -> "messages: " + messages());
        // what was served meanwhile is asked for, and nothing else
        final long last = engines[0].state(0).lastSequence();
        stop();
        serve(10);
        final long missed = engines[0].state(0).lastSequence() - last;
        start(true);
        awaitExact();
        assertIsTruth();
        final long asked = router.workers().get(0).sourceStatus().messages();
        assertTrue(asked <= missed + 2, () -> "messages: " + asked + ", missed: " + missed);
        final List<Integer> now = predictions();
        stop();
        deleteSnapshots();
        start(true); // the check is checked: without the snapshot everything is asked for
        awaitExact();
        assertEquals(now, predictions());
        assertTrue(messages() > 60, () -> "messages: " + messages());
    }

    private void deleteSnapshots() throws IOException {
        try (Stream<Path> files = Files.list(temp.resolve("state"))) {
            for (Path file : files.toList()) {
                Files.delete(file);
            }
        }
    }

    @Tag("integration") // a long story
    @ParameterizedTest
    @ValueSource(ints = {NEVER_MS, FollowingRouter.MAPPED})
    void anotherLifeOfTheEngineIsLoadedAfresh(int kept) throws Exception {
        intervalMs = kept;
        start(true);
        serve(40);
        awaitExact();
        stop();
        for (SimEngine engine : engines) {
            engine.faults().restart();
        }
        prompts.clear();
        serve(60); // beyond the number of the snapshot
        start(true);
        awaitExact();
        assertIsTruth();
        for (Worker worker : router.workers()) {
            assertEquals(1, worker.sourceStatus().restarts());
        }
    }

    @Test
    void withoutReplayNothingIsBelievedThatTheNextMessageDoesNotConfirm() throws Exception {
        start(false);
        // whether a view is complete that began at a later message is not known
        serve(40);
        serveUntil(() -> router.workers().stream().allMatch(w -> w.indexedBlocks() > 0));
        for (int i = 0; i < engines.length; i++) {
            final int engine = i;
            Eventually.holds(
                    "followed",
                    () ->
                            router.workers().get(engine).eventSequence()
                                    == engines[engine].state(0).lastSequence());
        }
        stop();
        start(false);
        for (Worker worker : router.workers()) {
            assertTrue(worker.indexedBlocks() > 0);
            assertTrue(
                    worker.state() == IndexState.STALE,
                    () -> "nothing has been received, and it is " + worker.state());
        }
        engines[1].faults().restart();
        prompts.clear();
        for (int i = 0; i < engines.length; i++) {
            final Worker worker = router.workers().get(i);
            Eventually.holds("connected", () -> worker.sourceStatus().reconnects() > 0);
        }
        serveUntil(() -> router.workers().stream().noneMatch(w -> w.state() == IndexState.STALE));
        for (int i = 0; i < engines.length; i++) {
            final SimEngine engine = engines[i];
            final Worker worker = router.workers().get(i);
            Eventually.holds(
                    "followed", () -> worker.eventSequence() == engine.state(0).lastSequence());
            assertTrue(worker.indexedBlocks() <= engine.heldBlocks(0).size(), "too much");
        }
        assertEquals(IndexState.DEGRADED, router.workers().get(0).state());
    }

    @Test
    void twoRoutersDoNotShareAFolder() {
        start(true);
        final IllegalStateException refused =
                assertThrows(
                        IllegalStateException.class,
                        () -> FollowingRouter.start(temp.resolve("state"), NEVER_MS));
        assertTrue(refused.getMessage().contains("state-dir"), refused.getMessage());
    }

    @Tag("integration") // starts JVMs
    @Test
    void aRouterThatIsKilledAtAnyMomentLeavesAWholeSnapshotOrNone() throws Exception {
        assertTrue(killedAndRestarted(1) > 0, "no kill has left a snapshot");
    }

    @Tag("integration") // starts JVMs
    @Test
    void aRouterThatIsKilledAtAnyMomentGoesOnWithItsMappedIndex() throws Exception {
        intervalMs = FollowingRouter.MAPPED;
        // before the first kill nothing may have been followed yet
        assertTrue(killedAndRestarted(FollowingRouter.MAPPED) >= KILLS - 1);
    }

    /** Kills a router again and again; says how often the next one had blocks at once. */
    private int killedAndRestarted(int killedIntervalMs) throws Exception {
        final List<String> command =
                new ArrayList<>(
                        List.of(
                                Path.of(System.getProperty("java.home"), "bin", "java").toString(),
                                "-XX:TieredStopAtLevel=1",
                                "-Xmx256m",
                                "--enable-native-access=ALL-UNNAMED",
                                "-cp",
                                System.getProperty("java.class.path"),
                                FollowingRouter.class.getName(),
                                temp.resolve("state").toString(),
                                Integer.toString(killedIntervalMs)));
        command.addAll(List.of(endpoints(true)));
        int restored = 0;
        for (int kill = 0; kill < KILLS; kill++) {
            final Process process =
                    new ProcessBuilder(command)
                            .redirectErrorStream(true)
                            .redirectOutput(temp.resolve("output").toFile())
                            .start();
            Eventually.holds(
                    "ready",
                    () -> {
                        try {
                            return Files.readString(temp.resolve("output")).contains("ready");
                        } catch (IOException e) {
                            throw new AssertionError(e);
                        }
                    });
            serve(10);
            Thread.sleep(random.nextInt(30)); // any moment will do
            process.destroyForcibly(); // SIGKILL
            assertTrue(process.waitFor(LIMIT.toSeconds(), TimeUnit.SECONDS));
            start(true);
            restored += router.workers().stream().anyMatch(w -> w.indexedBlocks() > 0) ? 1 : 0;
            awaitExact();
            assertIsTruth();
            for (Worker worker : router.workers()) {
                assertEquals(0, worker.sourceStatus().restarts());
            }
            stop();
        }
        return restored;
    }
}
