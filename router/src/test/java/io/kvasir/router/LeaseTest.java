package io.kvasir.router;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.kvasir.router.settings.RouterSettings;
import io.kvasir.testsupport.Eventually;
import io.kvasir.testsupport.Latches;

import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.lang.ref.WeakReference;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.BooleanSupplier;
import java.util.stream.Collectors;

/** Leases that are not closed: what ends their bookings, and whose clock says when. */
class LeaseTest {
    private static final long HOUR_NS = TimeUnit.HOURS.toNanos(1);
    private static final long TICK_NS = TimeUnit.MILLISECONDS.toNanos(2);

    private final Decision decision = new Decision();
    private long nowNs = -HOUR_NS - 5; // the usual deadline passes 0, which is no deadline
    private KvRouter router;

    private RouterConfig.Builder small() {
        return KvRouter.builder().maxWorkers(2).maxBlocks(1_024, 1_024).maxActiveRequests(4);
    }

    private void start(RouterConfig.Builder builder) {
        router = builder.build();
        router.addWorker(WorkerSpec.of(1, "w", "http://w"));
    }

    @AfterEach
    void close() {
        router.close();
    }

    private RouteRequest request() {
        return router.newRequest().tokens(new int[64], 64);
    }

    private void tick() {
        router.tick(nowNs);
        Eventually.holds("the tick applied", () -> router.bookingPipeline().backlog() == 0);
    }

    @Test
    void aBookingWithoutADeadlineOfItsOwnEndsAfterAnHour() throws RouteException {
        start(small().tickedBy(() -> nowNs));
        final Lease usual = router.reserve(request(), decision);
        final Lease longer = router.reserve(request().deadline(nowNs + 2 * HOUR_NS), decision);
        final Lease endless = router.reserve(request().noDeadline(), decision);
        final Lease again =
                router.reserve(request().noDeadline().reset().tokens(new int[64], 64), decision);
        nowNs += HOUR_NS;
        tick();
        assertTrue(usual.isOpen());
        nowNs += TICK_NS;
        tick();
        assertFalse(usual.isOpen());
        assertFalse(again.isOpen(), "a request that is reset has the usual deadline");
        assertEquals(2, router.expiredLeases());
        nowNs += HOUR_NS;
        tick();
        assertFalse(longer.isOpen());
        assertTrue(endless.isOpen());
    }

    @Test
    void aDeadlineThatFallsOnTheNumberOfNoneIsKept() throws RouteException {
        nowNs = -HOUR_NS;
        start(small().tickedBy(() -> nowNs));
        final Lease lease = router.reserve(request(), decision);
        nowNs = TICK_NS;
        tick();
        assertFalse(lease.isOpen());
    }

    @Test
    void theTimeoutOfBookingsIsASettingAndZeroIsNone() throws RouteException {
        start(
                small().tickedBy(() -> nowNs)
                        .set(RouterSettings.BOOKING_TIMEOUT, Duration.ofMillis(10)));
        final Lease lease = router.reserve(request(), decision);
        nowNs += 10_000_000 + TICK_NS;
        tick();
        assertFalse(lease.isOpen());
        router.close();

        start(small().tickedBy(() -> nowNs).set("booking-timeout-ms", "0"));
        final Lease endless = router.reserve(request(), decision);
        nowNs += 1_000_000 * HOUR_NS;
        tick();
        assertTrue(endless.isOpen());
    }

    @Test
    void aClockThatJumpsBackEndsNothingUntilItHasCaughtUp() throws RouteException {
        start(small().tickedBy(() -> nowNs));
        final Lease before = router.reserve(request(), decision);
        tick();
        nowNs -= 5 * HOUR_NS;
        final Lease after = router.reserve(request(), decision);
        nowNs += 5 * HOUR_NS - TICK_NS; // four hours after its deadline
        tick();
        assertTrue(after.isOpen());
        nowNs += 2 * TICK_NS;
        tick();
        assertFalse(after.isOpen());
        assertTrue(before.isOpen());
        nowNs += HOUR_NS;
        tick();
        assertFalse(before.isOpen());
    }

    /** The clock of an embedder stands for all that may fail, memory included. */
    @ParameterizedTest
    @ValueSource(booleans = {false, true})
    void whatFailsWhileItIsBookedLeavesNoLoad(boolean watched) throws RouteException {
        final AtomicInteger reads = new AtomicInteger(Integer.MAX_VALUE);
        start(
                small().tickedBy(() -> readUntilNone(reads))
                        .set(RouterSettings.SESSION_TTL, Duration.ofSeconds(1)));
        final Worker worker = router.workers().get(0);
        final RouteRequest request = request().session("s").firstTokenUnseen(watched);
        final List<Lease> kept = new ArrayList<>(); // a forgotten one would be released
        int failed = 0;
        boolean booked = false;
        while (!booked) {
            reads.set(failed);
            final Lease lease = new Lease();
            kept.add(lease);
            try {
                router.reserve(request, decision, lease);
                booked = true;
            } catch (UncheckedIOException e) {
                failed++;
                assertFalse(lease.isOpen(), "read " + failed);
                assertEquals(0, router.activeLeases(), "read " + failed);
                Eventually.holds("no load", () -> worker.prefillTokens() == 0);
            }
        }
        reads.set(Integer.MAX_VALUE);
        assertTrue(failed >= 4, "the clock was read " + failed + " times");
        kept.getLast().close();
    }

    private static long readUntilNone(AtomicInteger reads) {
        if (reads.getAndDecrement() == 0) {
            throw new UncheckedIOException(new IOException("no clock"));
        }
        return 1;
    }

    @Test
    void aRouterTicksByItself() throws RouteException {
        start(small());
        final Lease lease =
                router.reserve(request().deadline(System.nanoTime() - HOUR_NS), decision);
        Eventually.holds("the deadline has passed", () -> !lease.isOpen());
        assertEquals(1, router.expiredLeases());
    }

    @Test
    void theTickerIsOneDaemonThreadOfEachRouterThatEndsWithIt() {
        final Set<Thread> others = tickers();
        start(small());
        final Set<Thread> own = tickers();
        own.removeAll(others);
        assertEquals(1, own.size());
        assertTrue(own.iterator().next().isDaemon());
        router.close();
        Eventually.holds("the ticker runs on", () -> !own.iterator().next().isAlive());
        start(small().tickedBy(System::nanoTime));
        assertTrue(others.containsAll(tickers()), "the embedder ticks");
    }

    private static Set<Thread> tickers() {
        return Thread.getAllStackTraces().keySet().stream()
                .filter(thread -> thread.getName().equals(PartMaker.TICKER_THREAD))
                .collect(Collectors.toSet());
    }

    @Test
    void forgottenLeasesAreFoundAndTheirBookingsReleased() throws RouteException {
        start(small().tickedBy(() -> nowNs));
        for (int i = 0; i < 3; i++) {
            router.reserve(request(), decision); // closed by nothing
        }
        final Lease kept = router.reserve(request(), decision);
        collectUntil(3);
        assertEquals(1, router.activeLeases());
        Eventually.holds("load", () -> router.workers().get(0).activeRequests() == 1);
        assertTrue(kept.isOpen());
        kept.close();
        assertEquals(0, router.activeLeases());
        assertEquals(3, router.status().forgottenLeases());
    }

    @Test
    void aLeaseThatTookSeveralBookingsIsFoundWithTheLastOfThem() throws RouteException {
        start(small().tickedBy(() -> nowNs));
        reuseAndForget();
        collectUntil(1);
        assertEquals(0, router.activeLeases());
    }

    private void reuseAndForget() throws RouteException {
        final Lease reused = new Lease();
        for (int i = 0; i < 3; i++) {
            router.reserve(request(), decision, reused);
            reused.close();
        }
        router.reserve(request(), decision, reused);
    }

    @Test
    void closedAndUnusedLeasesAreNotForgotten() throws RouteException {
        start(small().tickedBy(() -> nowNs));
        for (int i = 0; i < 100; i++) {
            new Lease().close();
            router.reserve(request(), decision).close();
        }
        router.reserve(request(), decision); // is found after those that were made before
        collectUntil(1);
        assertEquals(1, router.status().forgottenLeases());
    }

    @Test
    void aLeaseThatIsForgottenAfterTheCloseOfItsRouterIsNoFault() throws RouteException {
        start(small());
        router.reserve(request(), decision);
        router.close();
        collectUntil(1);
        assertEquals(0, router.activeLeases());
    }

    @Test
    void aClosedRouterDoesNotStayInMemoryUntilItsLeasesAreCleaned() throws RouteException {
        start(small());
        final CountDownLatch cleaned = new CountDownLatch(1);
        final CountDownLatch goOn = new CountDownLatch(1);
        final AtomicBoolean goesOn = new AtomicBoolean();
        HeldBooking.CLEANER.register(
                new Object(),
                () -> {
                    cleaned.countDown();
                    try {
                        Latches.await(goOn);
                    } finally {
                        goesOn.set(true);
                    }
                });
        try {
            collectUntil(() -> cleaned.getCount() == 0); // the cleaner is late
            final WeakReference<KvRouter> former = formerRouter();
            collectUntil(() -> former.get() == null);
            assertFalse(goesOn.get(), "the cleaner has gone on first");
        } finally {
            goOn.countDown();
        }
    }

    private WeakReference<KvRouter> formerRouter() throws RouteException {
        try (KvRouter former = small().build()) {
            former.addWorker(WorkerSpec.of(1, "w", "http://w"));
            former.reserve(former.newRequest().tokens(new int[64], 64), new Decision()).close();
            return new WeakReference<>(former);
        }
    }

    private static void collectUntil(BooleanSupplier collected) {
        Eventually.holds(
                () -> {
                    System.gc();
                    return collected.getAsBoolean();
                });
    }

    private void collectUntil(long forgotten) {
        Eventually.holds(
                () -> "forgotten=" + router.status().forgottenLeases(),
                () -> {
                    System.gc();
                    return router.status().forgottenLeases() >= forgotten;
                });
    }

    @Test
    void forgottenLeasesAreLoggedByNumberAndOnceAMinute() {
        final List<String> lines = new ArrayList<>();
        final ForgottenLeases forgotten = new ForgottenLeases(lines::add);
        final long minuteNs = TimeUnit.MINUTES.toNanos(1);
        router = small().tickedBy(() -> nowNs).build();
        forgotten.look(nowNs);
        forgotten.add();
        forgotten.add();
        forgotten.look(nowNs);
        forgotten.add();
        forgotten.look(nowNs + minuteNs - 1);
        assertEquals(1, lines.size());
        assertTrue(lines.get(0).startsWith("leases were forgotten: 2 "), lines::toString);
        forgotten.look(nowNs + minuteNs);
        forgotten.look(nowNs + 5 * minuteNs);
        assertEquals(2, lines.size());
        assertTrue(lines.get(1).startsWith("leases were forgotten: 3 "), lines::toString);
        assertEquals(3, forgotten.count());
    }
}
