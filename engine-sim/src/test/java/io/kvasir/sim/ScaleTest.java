package io.kvasir.sim;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.sun.management.OperatingSystemMXBean;

import io.kvasir.sim.config.SimConfig;
import io.kvasir.testsupport.Seeds;

import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;

import java.io.IOException;
import java.io.InputStream;
import java.lang.management.ManagementFactory;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Random;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;

/** Eight engines in one JVM under long prompts; prints what they cost, so it takes real time. */
@Tag("integration")
class ScaleTest {
    private static final int ENGINES = 8;
    private static final int SECONDS = Integer.getInteger("sim.scale.seconds", 3);
    private static final int REQUESTS_PER_SECOND = 30;
    private static final int PROMPT_TOKENS = 12_000;
    private static final int OUTPUT_TOKENS = 100;

    @Test
    void eightEnginesServeLongPromptsInOneJvm() {
        final Random random = new Random(Seeds.next("scale"));
        final List<SimEngine> engines = new ArrayList<>();
        try (HttpClient client =
                HttpClient.newBuilder().version(HttpClient.Version.HTTP_1_1).build()) {
            for (int i = 0; i < ENGINES; i++) {
                engines.add(
                        SimEngine.start(
                                SimConfig.builder()
                                        .blocks(65_536)
                                        .speedUp(20)
                                        .prefillTokensPerSecond(8000)
                                        .interTokenMillis(15)
                                        .build()));
            }
            final String[] bodies = bodies(random);
            final OperatingSystemMXBean system =
                    (OperatingSystemMXBean) ManagementFactory.getOperatingSystemMXBean();
            final long cpuBefore = system.getProcessCpuTime();
            final long began = System.nanoTime();
            final List<CompletableFuture<Double>> answers = new ArrayList<>();
            final int requests = SECONDS * REQUESTS_PER_SECOND;
            for (int i = 0; i < requests; i++) {
                final long due = began + i * TimeUnit.SECONDS.toNanos(1) / REQUESTS_PER_SECOND;
                LockSupport.parkNanos(due - System.nanoTime());
                final URI url = engines.get(i % ENGINES).url().resolve("/v1/completions");
                answers.add(send(client, url, bodies[random.nextInt(bodies.length)]));
            }
            final double[] firstByteMillis =
                    answers.stream().mapToDouble(CompletableFuture::join).sorted().toArray();
            final double cpu = (system.getProcessCpuTime() - cpuBefore) / 1e9;
            final double wall = (System.nanoTime() - began) / 1e9;
            System.out.printf(
                    "sim scale: %d requests in %.1f s, %.2f s CPU in all (%.1f ms a request, client"
                            + " included), first byte p50 %.1f ms, p95 %.1f ms%n",
                    requests,
                    wall,
                    cpu,
                    cpu * 1000 / requests,
                    firstByteMillis[requests / 2],
                    firstByteMillis[requests * 95 / 100]);
            long finished = 0;
            for (SimEngine engine : engines) {
                finished += engine.state(0).finished();
            }
            assertEquals(requests, finished);
        } finally {
            engines.forEach(SimEngine::close);
        }
    }

    /** Prompts that share prefixes: 10 roots of two thirds, 40 prompts. */
    private static String[] bodies(Random random) {
        final int[][] roots = new int[10][];
        for (int r = 0; r < roots.length; r++) {
            roots[r] = random.ints(PROMPT_TOKENS, 0, 32_000).toArray();
        }
        final String[] bodies = new String[40];
        for (int b = 0; b < bodies.length; b++) {
            final int[] prompt = roots[b % roots.length].clone();
            for (int i = PROMPT_TOKENS * 2 / 3; i < PROMPT_TOKENS; i++) {
                prompt[i] = random.nextInt(32_000);
            }
            bodies[b] =
                    "{\"prompt\":"
                            + Arrays.toString(prompt)
                            + ",\"stream\":true,\"ignore_eos\":true,\"max_tokens\":"
                            + OUTPUT_TOKENS
                            + "}";
        }
        return bodies;
    }

    /** Milliseconds to the first byte of the answer; completes when all of it was read. */
    private static CompletableFuture<Double> send(HttpClient client, URI url, String body) {
        final long sent = System.nanoTime();
        final HttpRequest request =
                HttpRequest.newBuilder(url).POST(HttpRequest.BodyPublishers.ofString(body)).build();
        return client.sendAsync(request, HttpResponse.BodyHandlers.ofInputStream())
                .thenApplyAsync(
                        response -> {
                            try (InputStream in = response.body()) {
                                final int first = in.read();
                                final double millis = (System.nanoTime() - sent) / 1e6;
                                final String rest =
                                        new String(in.readAllBytes(), StandardCharsets.UTF_8);
                                assertTrue(first == 'd' && rest.endsWith("[DONE]\n\n"), rest);
                                return millis;
                            } catch (IOException e) {
                                throw new AssertionError("stream broke", e);
                            }
                        },
                        Thread::startVirtualThread);
    }
}
