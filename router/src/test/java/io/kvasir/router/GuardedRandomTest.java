package io.kvasir.router;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.kvasir.router.policy.RandomSource;
import io.kvasir.router.policy.RoutingMode;
import io.kvasir.router.settings.RouterSettings;

import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

import java.time.Duration;
import java.util.HashSet;
import java.util.Set;

/** Random numbers of an embedder's own: what they cannot break. */
class GuardedRandomTest {
    private static final int REQUESTS = 64;

    /** A source that breaks its contract. */
    private static RandomSource broken(String how) {
        return new RandomSource() {
            @Override
            public long nextLong() {
                return switch (how) {
                    case "throws" -> throw new IllegalStateException("broken");
                    case "fails to link" -> throw new NoSuchMethodError("x");
                    default -> 5;
                };
            }

            @Override
            public int nextInt(int bound) {
                return switch (how) {
                    case "too large" -> bound;
                    case "negative" -> -1;
                    default -> RandomSource.super.nextInt(bound);
                };
            }

            @Override
            public double nextDouble() {
                return switch (how) {
                    case "too large" -> 1.0;
                    case "negative" -> -0x1.0p-53;
                    case "NaN" -> Double.NaN;
                    default -> RandomSource.super.nextDouble();
                };
            }
        };
    }

    private static KvRouter start(RandomSource source) {
        final KvRouter router =
                KvRouter.builder()
                        .tickedBy(() -> 0)
                        .blockSize(16)
                        .maxWorkers(64)
                        .maxBlocks(1_024, 1_024)
                        .maxActiveRequests(64)
                        .set(RouterSettings.SEED, 1L)
                        .set(RouterSettings.SESSION_TTL, Duration.ofSeconds(9))
                        .random(source)
                        .build();
        for (int i = 0; i < 3; i++) {
            router.addWorker(WorkerSpec.of(i, "w" + i, "http://w" + i));
        }
        return router;
    }

    @ParameterizedTest
    @ValueSource(strings = {"throws", "fails to link", "too large", "negative", "NaN"})
    void aSourceThatFailsCostsNoRequest(String how) throws RouteException {
        final Decision decision = new Decision();
        try (KvRouter router = start(broken(how))) {
            final long before = router.status().failures(); // the salt of sessions, where it throws
            for (RoutingMode mode :
                    new RoutingMode[] {
                        RoutingMode.KV,
                        RoutingMode.RANDOM,
                        RoutingMode.POWER_OF_TWO,
                        RoutingMode.LEAST_LOADED
                    }) {
                final Set<Worker> chosen = new HashSet<>();
                for (int i = 0; i < REQUESTS; i++) {
                    router.select(request(router).mode(mode), decision);
                    chosen.add(decision.worker());
                }
                if (!how.equals("NaN")) { // whose whole numbers are as they should be
                    assertEquals(3, chosen.size(), () -> how + ", " + mode + ": " + chosen);
                }
            }
            router.board().add(0, 70, 5, 1);
            final Set<Worker> chosen = new HashSet<>();
            for (int i = 0; i < REQUESTS; i++) {
                router.select(request(router).temperature(9), decision);
                chosen.add(decision.worker());
            }
            assertEquals(3, chosen.size(), () -> how + ", with a temperature: " + chosen);
            assertTrue(
                    router.status().failures() - before >= REQUESTS,
                    () -> how + ": " + router.status().failures());
        }
    }

    @Test
    void aSourceThatAnswersIsLeftAlone() throws RouteException {
        final Decision guarded = new Decision();
        final Decision seeded = new Decision();
        try (KvRouter one = start(RandomSource.seeded(7));
                KvRouter other = start(RandomSource.seeded(7))) {
            for (int i = 0; i < REQUESTS; i++) {
                one.select(request(one).temperature(i % 2), guarded);
                other.select(request(other).temperature(i % 2), seeded);
                assertEquals(seeded.worker().id(), guarded.worker().id());
            }
            assertEquals(0, one.status().failures());
        }
    }

    private static RouteRequest request(KvRouter router) {
        return router.newRequest().tokens(new int[70], 70);
    }
}
