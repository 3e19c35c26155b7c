package io.kvasir.router;

import static org.junit.jupiter.api.Assertions.assertEquals;

import io.kvasir.router.policy.PolicyFailures;
import io.kvasir.router.settings.RouterSettings;
import io.kvasir.testsupport.Eventually;

import org.junit.jupiter.api.Test;

import java.util.ArrayList;
import java.util.List;

class FillWatchTest {
    private static final long SECOND = 1_000_000_000L;

    private final List<String> lines = new ArrayList<>();
    private RouterStatus status;
    private final FillWatch watch =
            new FillWatch(
                    () -> status,
                    line -> lines.add("WARN " + line),
                    line -> lines.add("INFO " + line));
    private long nowNs = Long.MAX_VALUE - 3 * SECOND; // the clock runs over

    private void look(long used) {
        status = status(used);
        watch.look(nowNs);
    }

    private static RouterStatus status(long used) {
        return new RouterStatus(
                List.of(
                        new RouterStatus.Usage(
                                "index-blocks", RouterSettings.MAX_BLOCKS, used, 1000),
                        new RouterStatus.Usage(
                                "event-ring", RouterSettings.EVENT_RING_SIZE, 0, 10)),
                new RouterStatus.Refusals(0, 0, 0, 0, 0, 0, 0, 0, 0, 0),
                0,
                0,
                0,
                0,
                0,
                null,
                null,
                new RouterStatus.Snapshots(null, null),
                new PolicyFailures(0, 0, 0, 0),
                List.of());
    }

    @Test
    void warnsOnceFromEightyPercentAndEndsBelowSeventy() {
        for (long used : new long[] {0, 799, 800, 900, 750, 810, 700, 699, 500, 850}) {
            look(used);
            nowNs += SECOND;
        }
        assertEquals(
                List.of(
                        "WARN index-blocks is 80 % full: 800 of 1000; raise max-blocks",
                        "INFO index-blocks is 70 % full: 699 of 1000 again",
                        "WARN index-blocks is 85 % full: 850 of 1000; raise max-blocks"),
                lines);
    }

    @Test
    void looksOnceASecond() {
        look(0);
        nowNs += SECOND - 1;
        look(900);
        assertEquals(List.of(), lines);
        nowNs += 1;
        look(900);
        assertEquals(1, lines.size());
    }

    @Test
    void theStatusOfARouterHasEveryLimitAndWhatIsUsed() throws RouteException {
        try (KvRouter router =
                KvRouter.builder().maxActiveRequests(4).maxWorkers(1).maxBlocks(7, 8).build()) {
            router.addWorker(new WorkerSpec(1, "w", "http://w", 0, null));
            final RouteRequest request = router.newRequest();
            final List<Lease> leases = new ArrayList<>(); // a forgotten one would be released
            for (int i = 0; i < 4; i++) {
                request.reset().tokens(new int[] {1}, 1);
                leases.add(router.reserve(request, new Decision()));
            }
            Eventually.holds(
                    "four in the table", () -> router.status().usages().getLast().used() == 4);
            status = router.status();
            watch.look(nowNs);
            assertEquals(
                    List.of(
                            "WARN active-requests is 100 % full: 4 of 4; raise"
                                    + " max-active-requests"),
                    lines);
            assertEquals(
                    List.of(7L, 8L),
                    status.usages().subList(0, 2).stream().map(RouterStatus.Usage::limit).toList());
            router.tick(nowNs);
            leases.forEach(Lease::close);
        }
    }
}
