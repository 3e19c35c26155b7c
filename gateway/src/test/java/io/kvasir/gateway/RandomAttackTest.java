package io.kvasir.gateway;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.sun.management.UnixOperatingSystemMXBean;

import io.kvasir.gateway.config.GatewayConfig;
import io.kvasir.gateway.config.GatewaySettings;
import io.kvasir.gateway.config.Secret;
import io.kvasir.gateway.config.WorkerConfig;
import io.kvasir.gateway.testing.FaultyEngine;
import io.kvasir.gateway.testing.Gateways;
import io.kvasir.prompt.chat.SimModel;
import io.kvasir.router.Worker;
import io.kvasir.router.settings.RouterSettings;
import io.kvasir.testsupport.Eventually;
import io.kvasir.testsupport.Seeds;

import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;

import java.io.IOException;
import java.lang.management.ManagementFactory;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.atomic.AtomicLong;

/**
 * Random attacks beside honest requests. A short run by default; {@code -Dkvasir.attack.seconds}
 * makes it a long one, {@code -Dkvasir.attack.seed} repeats one.
 */
@Tag("integration")
class RandomAttackTest {
    private static final String TOKEN = "a-token-of-trusted-callers";
    private static final int SHORT_RUN = 900;
    private static final int ATTACKERS = 24;
    private static final int HONEST_PER_SECOND = 50;
    private static final long REFUSING_MS = 200;

    /** What the two pools of I/O threads may grow by when all of an attack meets at once. */
    private static final int POOLED_THREADS = 2 * 32;

    private static final long SETTLE_MS = 1_500;

    private final List<FaultyEngine> engines = new ArrayList<>();
    private final List<GatewayServer> gateways = new ArrayList<>();

    private record Footprint(long heapMiB, long descriptors, int threads) {}

    @AfterEach
    void stop() throws IOException {
        gateways.forEach(GatewayServer::close);
        for (FaultyEngine engine : engines) {
            engine.close();
        }
    }

    /** One renders the templates of requests, the other one leaves them to the engine. */
    private void start() throws Exception {
        for (int i = 0; i < 4; i++) {
            engines.add(new FaultyEngine());
        }
        for (boolean trustsTemplates : new boolean[] {true, false}) {
            final GatewayConfig.Builder config =
                    Gateways.config(
                                    WorkerConfig.parse(engines.get(0).url() + ",name=w0"),
                                    WorkerConfig.parse(engines.get(1).url() + ",name=w1"))
                            .set(GatewaySettings.TRUSTED_NETWORKS, List.of())
                            .set(GatewaySettings.TRUSTED_TOKENS, List.of(new Secret(TOKEN)))
                            .set(GatewaySettings.TOKENIZER, Path.of(SimModel.KEYWORD))
                            .set(GatewaySettings.TRUST_REQUEST_CHAT_TEMPLATE, trustsTemplates)
                            .set(RouterSettings.APPROXIMATE, true);
            gateways.add(GatewayServer.start(config.build()));
            Gateways.awaitContact(gateways.getLast());
        }
    }

    @Test
    void honestRequestsAreAnsweredRightlyWhateverOthersDo() throws Exception {
        final String givenSeed = System.getProperty("kvasir.attack.seed");
        final long seed =
                givenSeed == null ? Seeds.next("random attacks") : Long.parseLong(givenSeed);
        final long seconds = Long.getLong("kvasir.attack.seconds", 0);
        start();
        final RandomAttacker attacker = new RandomAttacker(seed, gateways, engines);
        final AtomicLong number = new AtomicLong();
        attack(attacker, number, SHORT_RUN / 3, 0);
        final Footprint before = footprint();
        final HonestClients honest = new HonestClients(gateways, TOKEN);
        honest.start(HONEST_PER_SECOND);
        try {
            attack(attacker, number, SHORT_RUN, seconds);
        } finally {
            honest.finish();
        }
        final String run = "seed " + seed + ", " + number + " attacks, " + honest.answered();
        assertEquals(List.of(), honest.failures(), run);
        for (GatewayServer gateway : gateways) {
            assertAtRest(gateway, run);
        }
        Eventually.holds(
                run + ": engines at rest",
                () -> engines.stream().allMatch(engine -> engine.inFlight() == 0));
        Footprint after = footprint();
        for (int tries = 0; !isAsBefore(before, after) && tries < 40; tries++) {
            after = footprint(); // connections and pooled threads end later than requests
        }
        System.out.println(run + " honest requests; before " + before + ", after " + after);
        assertTrue(after.descriptors <= before.descriptors + 40, run + " " + before + after);
        assertTrue(after.threads <= before.threads + POOLED_THREADS, run + " " + before + after);
        assertTrue(after.heapMiB <= before.heapMiB + 24, run + " " + before + after);
    }

    private static boolean isAsBefore(Footprint before, Footprint after) {
        return after.descriptors <= before.descriptors + 40
                && after.threads <= before.threads + POOLED_THREADS
                && after.heapMiB <= before.heapMiB + 24;
    }

    /** By count, or for some seconds; one engine refuses connections now and then meanwhile. */
    private void attack(RandomAttacker attacker, AtomicLong number, int count, long seconds)
            throws Exception {
        final long last = number.get() + count;
        final long endNs = System.nanoTime() + Duration.ofSeconds(seconds).toNanos();
        try (ExecutorService threads = Executors.newVirtualThreadPerTaskExecutor()) {
            final List<Future<?>> all = new ArrayList<>();
            for (int i = 0; i < ATTACKERS; i++) {
                all.add(
                        threads.submit(
                                () -> {
                                    while (seconds > 0
                                            ? System.nanoTime() - endNs < 0
                                            : number.get() < last) {
                                        attacker.attack(number.getAndIncrement());
                                    }
                                    return null;
                                }));
            }
            while (!all.stream().allMatch(Future::isDone)) {
                engines.getLast().toggleListening();
                Thread.sleep(REFUSING_MS);
            }
            for (Future<?> each : all) {
                each.get();
            }
        }
    }

    private static void assertAtRest(GatewayServer gateway, String run) throws Exception {
        Eventually.holds(run + ": no leases", () -> gateway.router().activeLeases() == 0);
        Eventually.holds(
                run + ": no load",
                () -> gateway.router().workers().stream().allMatch(RandomAttackTest::hasNoLoad));
        final String metrics = Gateways.get(gateway, "/metrics").body();
        for (String none :
                List.of(
                        "kvasir_load_corrections_total",
                        "kvasir_leases_forgotten_total",
                        "kvasir_bookings_expired_total")) {
            assertTrue(metrics.contains("\n" + none + " 0.0\n"), run + ": " + none + metrics);
        }
    }

    private static boolean hasNoLoad(Worker worker) {
        return worker.activeRequests() == 0
                && worker.prefillTokens() == 0
                && worker.activeBlocks() == 0;
    }

    /** What is held once the unused descriptors are closed. */
    private static Footprint footprint() throws InterruptedException {
        long before = Long.MAX_VALUE;
        for (long now = descriptors(); now < before; now = descriptors()) {
            before = now;
            Thread.sleep(SETTLE_MS);
        }
        System.gc();
        System.gc();
        final Runtime runtime = Runtime.getRuntime();
        return new Footprint(
                (runtime.totalMemory() - runtime.freeMemory()) >> 20, before, Thread.activeCount());
    }

    private static long descriptors() {
        return ((UnixOperatingSystemMXBean) ManagementFactory.getOperatingSystemMXBean())
                .getOpenFileDescriptorCount();
    }
}
