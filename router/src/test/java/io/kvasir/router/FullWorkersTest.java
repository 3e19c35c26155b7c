package io.kvasir.router;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotSame;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.kvasir.router.Decision.Exclusion;
import io.kvasir.router.RouteException.Kind;
import io.kvasir.router.load.BusyState;
import io.kvasir.router.load.LoadReading;
import io.kvasir.router.policy.RoutingMode;
import io.kvasir.router.settings.RouterSettings;

import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.EnumSource;

import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;

/** Workers that are left out because they are full, and how they come back. */
class FullWorkersTest {
    private static final long LEASE_NS = Duration.ofSeconds(1).toNanos();

    private final AtomicLong nowNs = new AtomicLong(5_000_000);
    private final Decision decision = new Decision();
    private final List<Lease> leases = new ArrayList<>(); // forgotten ones would be released
    private KvRouter router;
    private Worker first;
    private Worker second;

    @BeforeEach
    void start() {
        router =
                KvRouter.builder()
                        .tickedBy(nowNs::get)
                        .maxWorkers(4)
                        .set(RouterSettings.BUSY_LEASE, Duration.ofSeconds(1))
                        .set(RouterSettings.ENGINE_LOAD, true)
                        .set(RouterSettings.ENGINE_WAITING_LIMIT, 8L)
                        .set(RouterSettings.ENGINE_USAGE_LIMIT, 0.9)
                        .build();
        first = router.addWorker(WorkerSpec.of(1, "first", "http://first"));
        second = router.addWorker(WorkerSpec.of(2, "second", "http://second"));
    }

    @AfterEach
    void close() {
        router.close();
    }

    private RouteRequest request() {
        return router.newRequest().tokens(new int[64], 64);
    }

    private Lease reserve(RouteRequest request) throws RouteException {
        final Lease lease = router.reserve(request, decision);
        leases.add(lease);
        return lease;
    }

    @ParameterizedTest
    @EnumSource(value = RoutingMode.class, names = "DIRECT", mode = EnumSource.Mode.EXCLUDE)
    void aFullWorkerIsNoCandidateInAnyModeUntilItsProbeIsAnswered(RoutingMode mode)
            throws RouteException {
        first.full("status 429");
        assertEquals(BusyState.FULL, first.busyState());
        for (int i = 0; i < 20; i++) {
            reserve(request().mode(mode)).close();
            assertSame(second, decision.worker());
            assertEquals(Exclusion.BUSY, decision.exclusion(0));
        }
        nowNs.addAndGet(LEASE_NS);
        assertEquals(BusyState.HALF_OPEN, first.busyState());
        final Lease probe = reserve(request().pin(first));
        assertEquals(BusyState.FULL, first.busyState(), "others wait for the probe");
        for (int i = 0; i < 20; i++) {
            reserve(request().mode(mode)).close();
            assertSame(second, decision.worker());
        }
        probe.prefillComplete();
        assertEquals(BusyState.OPEN, first.busyState());
        second.full("status 429");
        reserve(request().mode(mode));
        assertSame(first, decision.worker());
    }

    @Test
    void aProbeThatTheWorkerFailsIsFollowedByAnotherAfterItsLease() throws RouteException {
        first.full("status 503");
        nowNs.addAndGet(LEASE_NS);
        final Lease failed = reserve(request().pin(first));
        failed.workerFailed();
        failed.close();
        assertEquals(BusyState.FULL, first.busyState());
        nowNs.addAndGet(LEASE_NS);
        reserve(request().pin(first)).prefillComplete();
        assertEquals(BusyState.OPEN, first.busyState());
    }

    @Test
    void aProbeThatIsWithdrawnLetsTheNextRequestInAtOnce() throws RouteException {
        first.full("status 503");
        nowNs.addAndGet(LEASE_NS);
        final Lease withdrawn = reserve(request().pin(first));
        assertEquals(BusyState.FULL, first.busyState());
        withdrawn.close();
        assertEquals(BusyState.HALF_OPEN, first.busyState());
        final Lease next = reserve(request().pin(first));
        withdrawn.close();
        assertEquals(BusyState.FULL, first.busyState(), "it has the probe no more");
        next.prefillComplete();
        next.close();
        assertEquals(BusyState.OPEN, first.busyState());
    }

    @Test
    void aProbeThatIsWithdrawnAfterAnotherMarkEndsNothing() throws RouteException {
        first.full("status 503");
        nowNs.addAndGet(LEASE_NS);
        final Lease withdrawn = reserve(request().pin(first));
        first.full("status 429");
        withdrawn.close();
        assertEquals(BusyState.FULL, first.busyState());
    }

    @Test
    void aProbeThatIsWithdrawnAfterItsLeaseLeavesTheNextOneAlone() throws RouteException {
        first.full("status 503");
        nowNs.addAndGet(LEASE_NS);
        final Lease withdrawn = reserve(request().pin(first));
        nowNs.addAndGet(LEASE_NS);
        reserve(request().pin(first));
        withdrawn.close();
        assertEquals(BusyState.FULL, first.busyState(), "another probe is under way");
    }

    @Test
    void aProbeWhoseAnswerTakesLongerThanTheLeaseEndsTheMark() throws RouteException {
        first.full("status 429");
        nowNs.addAndGet(LEASE_NS);
        final Lease slow = reserve(request().pin(first));
        nowNs.addAndGet(LEASE_NS);
        final Lease next = reserve(request().pin(first));
        slow.prefillComplete();
        assertEquals(BusyState.OPEN, first.busyState());
        first.full("status 429");
        next.prefillComplete();
        assertEquals(BusyState.FULL, first.busyState(), "it was let in before the second mark");
    }

    @ParameterizedTest
    @CsvSource({
        "PT3S, 3000",
        "PT0.5S, 1000", // less than the lease
        "PT0S, 1000",
        "PT-5S, 1000",
        "PT59.999S, 59999",
        "PT60S, 60000",
        "PT1H, 60000",
        "PT2562047788015215H, 60000",
        "PT-2562047788015215H, 1000"
    })
    void aWorkerThatSaysWhenToTryAgainIsLeftOutForAsLong(Duration asked, long expectedMs) {
        first.full("status 429", asked);
        nowNs.addAndGet(TimeUnit.MILLISECONDS.toNanos(expectedMs) - 1);
        assertEquals(BusyState.FULL, first.busyState());
        nowNs.incrementAndGet();
        assertEquals(BusyState.HALF_OPEN, first.busyState());
    }

    @Test
    void aShorterMarkDoesNotCutShortWhatTheWorkerHasAskedFor() {
        first.full("status 429", Duration.ofSeconds(30));
        nowNs.addAndGet(LEASE_NS / 10);
        first.full("status 503");
        first.reportLoad(new LoadReading().running(3).waiting(9));
        nowNs.addAndGet(TimeUnit.MILLISECONDS.toNanos(29_900) - 1);
        assertEquals(BusyState.FULL, first.busyState());
        nowNs.incrementAndGet();
        assertEquals(BusyState.HALF_OPEN, first.busyState());
    }

    @Test
    void askingWithoutBookingIsNoProbe() throws RouteException {
        first.full("status 503");
        nowNs.addAndGet(LEASE_NS);
        for (int i = 0; i < 5; i++) {
            router.select(request().pin(first), decision);
            assertSame(first, decision.worker());
        }
        assertEquals(BusyState.HALF_OPEN, first.busyState());
    }

    @Test
    void whereAllAreFullTheRefusalSaysWhyAndWhenToTryAgain() {
        first.full("status 429");
        nowNs.addAndGet(LEASE_NS / 4);
        second.reportLoad(new LoadReading().running(3).waiting(9));
        final RouteException all =
                assertThrows(RouteException.class, () -> router.reserve(request(), decision));
        assertEquals(Kind.ALL_WORKERS_BUSY, all.kind());
        assertEquals(LEASE_NS * 3 / 4, all.retryNs());
        assertTrue(all.getMessage().contains("2 of 2 workers"), all.getMessage());
        assertTrue(
                all.getMessage().contains("first/0: status 429, is tried again in 750 ms"),
                all.getMessage());
        assertTrue(all.getMessage().contains("busy-lease-ms"), all.getMessage());
        final RouteException pinned =
                assertThrows(
                        RouteException.class,
                        () -> router.reserve(request().pin(second), decision));
        assertTrue(
                pinned.getMessage().contains("waiting requests=9, engine-waiting-threshold=8"),
                pinned.getMessage());
        assertEquals(LEASE_NS, pinned.retryNs());
    }

    @Test
    void aReportThatSaysSoRenewsTheLeaseAndItsEndIsThatOfTheLastOne() throws RouteException {
        for (int i = 0; i < 5; i++) {
            first.reportLoad(new LoadReading().running(3).usage(0.95).blocks(100));
            nowNs.addAndGet(LEASE_NS / 2);
            assertEquals(BusyState.FULL, first.busyState());
        }
        first.reportLoad(new LoadReading().running(3).waiting(8).usage(0.9).blocks(100));
        assertEquals("cache usage=0.95, engine-cache-usage-threshold=0.9", first.whyFullOrNull());
        nowNs.addAndGet(LEASE_NS / 2);
        assertEquals(BusyState.HALF_OPEN, first.busyState());
        reserve(request().pin(first)).prefillComplete();
        assertEquals(BusyState.OPEN, first.busyState());
    }

    @Test
    void oneOfTwoThatChooseAtOnceHasTheProbe() throws RouteException {
        first.full("status 429");
        second.full("status 429");
        nowNs.addAndGet(LEASE_NS);
        reserve(request());
        final Worker one = decision.worker();
        reserve(request());
        assertNotSame(one, decision.worker());
        assertThrows(RouteException.class, () -> router.reserve(request(), decision));
    }

    private Worker nextOf(int slot) {
        for (int id = 3; ; id++) {
            final Worker added = router.addWorker(WorkerSpec.of(id, "w" + id, "http://w" + id));
            if (added.slot() == slot) {
                return added;
            }
            router.removeWorker(added);
        }
    }

    @Test
    void theNextWorkerOfASlotIsNotFull() throws RouteException {
        first.full("status 429");
        router.removeWorker(first);
        first.full("status 429");
        final Worker next = nextOf(first.slot());
        assertEquals(BusyState.OPEN, next.busyState());
        assertNull(next.whyFullOrNull());
        next.full("status 503", Duration.ofSeconds(2));
        assertNull(first.whyFullOrNull());
        nowNs.addAndGet(2 * LEASE_NS);
        reserve(request().pin(next)).prefillComplete();
        second.full("status 429");
        reserve(request());
        assertSame(next, decision.worker());
    }
}
