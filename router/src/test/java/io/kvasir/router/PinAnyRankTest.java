package io.kvasir.router;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.kvasir.router.policy.RoutingMode;

import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

import java.util.HashSet;
import java.util.Set;

/** A request that is for one server, whichever of its ranks. */
class PinAnyRankTest {
    private final KvRouter router = KvRouter.builder().tickedBy(() -> 0).blockSize(16).build();
    private final Worker other = worker(1, "other", 0);
    private final Worker zero = worker(2, "two", 0);
    private final Worker one = worker(3, "two", 1);
    private final Decision decision = new Decision();

    private Worker worker(int id, String name, int rank) {
        return router.addWorker(new WorkerSpec(id, name, "http://" + name, rank, null));
    }

    private RouteRequest request() {
        return router.newRequest().tokens(new int[64], 64).assumeKvReuse(false);
    }

    @AfterEach
    void close() {
        router.close();
    }

    @ParameterizedTest
    @EnumSource(RoutingMode.class)
    void inEveryModeBothRanksAreChosenAndNoOtherWorker(RoutingMode mode) throws RouteException {
        final Set<Worker> chosen = new HashSet<>();
        for (int i = 0; i < 200; i++) {
            router.select(request().mode(mode).session("s" + i).pinAnyRank(zero), decision);
            chosen.add(decision.worker());
        }
        assertEquals(Set.of(zero, one), chosen);
        assertEquals(Decision.Exclusion.NOT_PINNED, decision.exclusion(other));
        assertEquals(Decision.Exclusion.NONE, decision.exclusion(zero));
        assertEquals(Decision.Exclusion.NONE, decision.exclusion(one));
    }

    @Test
    void theCheapestRankIsChosenAlsoInModeDirect() throws RouteException {
        final Lease first =
                router.reserve(request().mode(RoutingMode.DIRECT).pinAnyRank(one), decision);
        router.select(request().mode(RoutingMode.DIRECT).pinAnyRank(one), decision);
        assertNotEquals(first.worker(), decision.worker());
        first.close();
    }

    @Test
    void oneThatFailedOrLeftIsNoneOfThem() throws RouteException {
        router.select(request().pinAnyRank(zero).exclude(one), decision);
        assertSame(zero, decision.worker());
        router.removeWorker(zero);
        router.select(request().pinAnyRank(zero), decision);
        assertSame(one, decision.worker(), "the name is what counts");
        one.available(false);
        final RouteException none =
                assertThrows(
                        RouteException.class,
                        () -> router.select(request().pinAnyRank(zero), decision));
        assertEquals(RouteException.Kind.PINNED_UNAVAILABLE, none.kind());
        assertTrue(none.getMessage().startsWith("the pinned worker two is"), none.getMessage());
    }

    @Test
    void theNextPinIsOfOneWorkerAgain() throws RouteException {
        final RouteRequest request = request().pinAnyRank(zero);
        assertNotEquals(request().pin(zero).reach(), request.reach());
        assertEquals(request().pinAnyRank(zero).reach(), request.reach());
        final Lease first = router.reserve(request.pin(one), decision);
        assertSame(one, first.worker());
        router.select(request.reset().tokens(new int[64], 64).pin(one), decision);
        assertSame(one, decision.worker());
        router.select(request.reset().tokens(new int[64], 64), decision);
        assertNotEquals(Decision.Exclusion.NOT_PINNED, decision.exclusion(other));
        first.close();
    }
}
