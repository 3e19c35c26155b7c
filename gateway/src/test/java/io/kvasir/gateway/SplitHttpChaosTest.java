package io.kvasir.gateway;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotEquals;

import io.kvasir.core.memory.OffHeap;
import io.kvasir.gateway.config.GatewayConfig;
import io.kvasir.gateway.config.GatewaySettings;
import io.kvasir.gateway.config.WorkerConfig;
import io.kvasir.gateway.testing.ChaosClient;
import io.kvasir.gateway.testing.Gateways;
import io.kvasir.gateway.testing.SimFleet;
import io.kvasir.gateway.testing.SimRelease;
import io.kvasir.router.disagg.FallbackPolicy;
import io.kvasir.router.settings.RouterSettings;
import io.kvasir.sim.config.SimHandoff;
import io.kvasir.testsupport.Eventually;
import io.kvasir.testsupport.Seeds;

import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Semaphore;
import java.util.concurrent.TimeUnit;
import java.util.function.Predicate;
import java.util.stream.Stream;

/**
 * Split requests over real HTTP through simulated engines that restart, stall, refuse, cut answers
 * and lose parameters while clients leave. Every request ends with an answer of its own prompt or
 * an error that has a name; no block, booking, connection, thread or byte is left.
 */
@Tag("integration") // takes minutes
class SplitHttpChaosTest {
    private static final int AT_ONCE = 24;
    private static final int REQUESTS_PER_TROUBLE = 12;

    @ParameterizedTest
    @CsvSource({"VLLM,5000", "SGLANG,1500", "TRTLLM,1500"})
    void everyRequestEndsAndNothingIsLeft(SimHandoff protocol, int requests) throws Exception {
        story(protocol, 50, true, 1); // loads what is loaded once
        final long bytes = OffHeap.allocatedBytes();
        final int descriptors = descriptors();
        final List<String> shared = threads();
        final long seed = Seeds.next("SplitHttpChaosTest " + protocol);
        assertEquals(List.of(), story(protocol, requests, true, seed), "-Dseed=" + seed);
        assertEquals(bytes, OffHeap.allocatedBytes(), "bytes off the heap");
        Eventually.holds(
                "descriptors are closed: " + descriptors, () -> descriptors() <= descriptors);
        Eventually.holds("threads have ended", () -> shared.containsAll(threads()));
    }

    @Test
    void withoutTheFreeingOfPrefillsLeasesEnd() throws Exception {
        assertNotEquals(List.of(), story(SimHandoff.VLLM, 600, false, 1));
    }

    /** What went wrong. */
    private static List<String> story(SimHandoff protocol, int requests, boolean frees, long seed)
            throws Exception {
        final Random random = new Random(seed);
        final List<String> violations;
        try (SimFleet fleet = new SimFleet(protocol);
                GatewayServer gateway =
                        GatewayServer.startWith(
                                config(fleet.workers(protocol)),
                                new SimRelease(fleet.prefills, frees));
                ChaosClient client = new ChaosClient(gateway)) {
            Gateways.awaitContact(gateway);
            ask(client, fleet, requests, random);
            violations = new ArrayList<>(client.violations());
            fleet.peace();
            Eventually.holds("no booking is left", () -> bookings(gateway) == 0);
            Eventually.holds("engines are at rest", () -> fleet.unfinished().isEmpty());
            final long lost = lostPrefills(gateway) + fleet.strayPrefills();
            System.out.println(
                    protocol
                            + " "
                            + client.outcomes()
                            + ", leases that ended: "
                            + fleet.leaseEnds()
                            + ", answers that said nothing of blocks, at most: "
                            + lost);
            if (protocol == SimHandoff.VLLM && fleet.leaseEnds() > lost) {
                violations.add("leases ended: " + fleet.leaseEnds() + " of at most " + lost);
            }
        }
        return violations;
    }

    private static GatewayConfig config(List<WorkerConfig> workers) {
        return Gateways.config(workers.toArray(WorkerConfig[]::new))
                .set(GatewaySettings.RETRIES, 2)
                .set(GatewaySettings.SPLIT_FALLBACK, FallbackPolicy.DECODE_ONLY)
                .set(GatewaySettings.PREFILL_TIMEOUT, Duration.ofMillis(1_500))
                .set(GatewaySettings.FIRST_BYTE_TIMEOUT, Duration.ofSeconds(3))
                .set(GatewaySettings.STREAM_IDLE_TIMEOUT, Duration.ofSeconds(3))
                .set(GatewaySettings.ANSWER_TIMEOUT, Duration.ofSeconds(10))
                .set(GatewaySettings.BREAKER_HOLD, Duration.ofMillis(200))
                .set(RouterSettings.MAX_WORKERS, 8)
                .build();
    }

    private static void ask(ChaosClient client, SimFleet fleet, int requests, Random random)
            throws InterruptedException {
        final Semaphore free = new Semaphore(AT_ONCE);
        try (ExecutorService clients = Executors.newVirtualThreadPerTaskExecutor()) {
            for (int i = 0; i < requests; i++) {
                if (i % REQUESTS_PER_TROUBLE == 0) {
                    fleet.trouble(random);
                }
                final long seed = random.nextLong();
                free.acquire();
                clients.execute(
                        () -> {
                            client.ask(new Random(seed));
                            free.release();
                        });
            }
            clients.shutdown();
            if (!clients.awaitTermination(2, TimeUnit.MINUTES)) {
                clients.shutdownNow();
                throw new AssertionError("requests hang: " + client.outcomes());
            }
        }
    }

    private static double bookings(GatewayServer gateway) {
        return sum(gateway, line -> line.startsWith("kvasir_active_requests"))
                + sum(gateway, line -> line.startsWith("kvasir_prefill_pool_active_requests"))
                + sum(gateway, line -> line.startsWith("kvasir_prefills_held"));
    }

    /** Prefills that were given up before they answered: what they may hold is not known. */
    private static long lostPrefills(GatewayServer gateway) {
        return (long)
                sum(
                        gateway,
                        line ->
                                line.startsWith("kvasir_upstream_attempts_total")
                                        && line.contains("worker=\"p")
                                        && line.matches(".*outcome=\"(timeout|abandoned)\".*"));
    }

    private static double sum(GatewayServer gateway, Predicate<String> wanted) {
        try {
            return Gateways.admin(gateway, "/metrics")
                    .body()
                    .lines()
                    .filter(wanted)
                    .mapToDouble(line -> Double.parseDouble(line.substring(line.lastIndexOf(' '))))
                    .sum();
        } catch (Exception e) {
            throw new IllegalStateException(e);
        }
    }

    private static int descriptors() {
        try (Stream<Path> open = Files.list(Path.of("/proc/self/fd"))) {
            return (int) open.count();
        } catch (IOException e) {
            throw new IllegalStateException(e);
        }
    }

    /** Names of threads of gateways and engines. */
    private static List<String> threads() {
        return Thread.getAllStackTraces().keySet().stream()
                .map(Thread::getName)
                .filter(name -> name.startsWith("kvasir") || name.startsWith("sim-"))
                .toList();
    }
}
