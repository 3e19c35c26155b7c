package io.kvasir.router;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.kvasir.router.policy.CostModel;
import io.kvasir.router.policy.RoutingMode;

import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.function.Executable;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** Whatever a setter accepts is routed; whatever it cannot use is refused by name. */
class AcceptedInputTest {
    private static final int WORKERS = 4;

    private final Decision decision = new Decision();

    private static KvRouter withLoad(CostModel model) throws RouteException {
        final KvRouter router = KvRouter.builder().costModel(model).build();
        for (int i = 0; i < WORKERS; i++) {
            router.addWorker(WorkerSpec.of(i, "w" + i, "http://w" + i));
        }
        final RouteRequest request = router.newRequest();
        for (int i = 1; i < WORKERS; i++) {
            request.reset().tokens(new int[64 * i], 64 * i).pin(router.workers().get(i));
            router.reserve("load " + i, request, new Decision()); // kept under its id
        }
        return router;
    }

    @ParameterizedTest
    @CsvSource({
        "1, 1e-310",
        "1, 4.9e-324",
        "1, 1e300",
        "1, 1.7e308",
        "0, 0.5",
        "1e18, 0",
        "1e306, 0",
        "1.7e308, 0",
        "1.7e308, 0.5",
        "1.7e308, 4.9e-324"
    })
    void everyWeightAndTemperatureThatIsAcceptedChooses(double weight, double temperature)
            throws RouteException {
        try (KvRouter router = withLoad(CostModel.LINEAR)) {
            for (RoutingMode mode : RoutingMode.values()) {
                final RouteRequest request = router.newRequest().tokens(new int[1024], 1024);
                request.mode(mode).overlapWeight(weight).temperature(temperature);
                if (mode == RoutingMode.DIRECT) {
                    request.pin(router.workers().get(2));
                }
                router.reserve(request, decision).close();
                assertNotNull(decision.worker());
                assertTrue(Double.isFinite(decision.cost()), () -> "cost " + decision.cost());
                for (double credit : new double[] {0, weight}) {
                    router.reserve(request.overlapCredit(credit), decision).close();
                    assertTrue(Double.isFinite(decision.cost()), () -> "cost " + decision.cost());
                }
            }
        }
    }

    @ParameterizedTest
    @CsvSource({"Infinity", "-Infinity", "NaN", "1.7e308", "-1.7e308"})
    void whateverACostModelAnswersAWorkerIsChosen(double answer) throws RouteException {
        final CostModel busy = busy(answer);
        final CostModel all = CostModel.each((_, _) -> answer);
        for (CostModel model : new CostModel[] {busy, all}) {
            try (KvRouter router = withLoad(model)) {
                for (double temperature : new double[] {0, 0.5, Double.MIN_VALUE}) {
                    final RouteRequest request = router.newRequest().tokens(new int[64], 64);
                    router.reserve(request.temperature(temperature), decision).close();
                    assertNotNull(decision.worker());
                }
            }
        }
    }

    private static CostModel busy(double answer) {
        return CostModel.each((_, one) -> one.activeRequests() > 0 ? answer : 7);
    }

    @Test
    void aDearOrUnknownCostIsAvoided() throws RouteException {
        for (double answer : new double[] {Double.POSITIVE_INFINITY, Double.NaN}) {
            try (KvRouter router = withLoad(busy(answer))) {
                router.select(router.newRequest().tokens(new int[64], 64), decision);
                assertEquals("w0", decision.worker().name());
            }
        }
    }

    @Test
    void valuesThatCannotBeUsedAreRefusedByName() throws RouteException {
        assertRefused("costModel", () -> KvRouter.builder().costModel(null));
        assertRefused("random", () -> KvRouter.builder().random(null));
        assertRefused("no name", () -> WorkerSpec.of(3, " ", "http://w"));
        try (KvRouter router = withLoad(CostModel.LINEAR);
                KvRouter other = KvRouter.builder().blockSize(32).build()) {
            assertRefused("mode", () -> router.mode(null));
            assertRefused("worker", () -> router.newRequest().exclude(null));
            final RouteRequest foreign = other.newRequest().tokens(new int[64], 64);
            assertRefused("block size=32", () -> router.select(foreign, decision));
            final Lease lease =
                    router.reserve(router.newRequest().tokens(new int[64], 64), decision);
            assertRefused("output tokens=-1", () -> lease.outputTokens(-1));
            lease.close();
        }
    }

    private static void assertRefused(String name, Executable executable) {
        final RuntimeException refused = assertThrows(RuntimeException.class, executable);
        assertTrue(refused.getMessage().contains(name), refused::toString);
    }
}
