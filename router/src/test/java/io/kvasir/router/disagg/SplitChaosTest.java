package io.kvasir.router.disagg;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.kvasir.testsupport.Seeds;

import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.TreeMap;
import java.util.concurrent.TimeUnit;
import java.util.function.Predicate;

/**
 * Requests through engines that are killed, stall, restart, refuse, answer late or without
 * parameters, while clients leave and the gateway is cut: all of it in virtual time, on one thread,
 * drawn from a seed. Every request ends in time, with an answer of its own prompt or a failure that
 * has a name; nothing stays held, booked or waited for.
 */
class SplitChaosTest {
    private static final int REQUESTS = 25;
    private static final long ARRIVALS_MS = 60_000;

    /** After this a gateway has let go of all that ended requests have left. */
    private static final long SETTLE_MS =
            ChaosRequest.GRACE_MS + ChaosRequest.PREFILL_TIMEOUT_MS + 1_000;

    private final Map<String, Integer> outcomes = new TreeMap<>();

    @Test
    void everyRequestOf200StoriesEndsAndLeavesNothingBehind() {
        allStoriesAreTrue(200);
        for (String how : List.of("answer", "failed", "broken", "client", "gateway")) {
            assertTrue(
                    outcomes.keySet().stream().anyMatch(key -> key.startsWith(how))
                            || System.getProperty("seed") != null,
                    "no request ended so: " + how + "; " + outcomes);
        }
    }

    @Test
    @Tag("integration") // takes seconds
    void everyRequestOf2000StoriesEndsAndLeavesNothingBehind() {
        allStoriesAreTrue(2_000);
    }

    @Test
    void withoutTheFreeingOfPrefillsLeasesEnd() {
        storiesFail(ChaosRequest.Defect.FREES_NOTHING, 90, what -> what.startsWith("the lease of"));
    }

    @Test
    void parametersThatAreUsedAgainFetchAnotherPrompt() {
        storiesFail(
                ChaosRequest.Defect.REUSES_PARAMETERS,
                30,
                what -> what.endsWith("got the answer of another"));
    }

    @Test
    void withoutTheAbortOfDecodesRequestsEndTwice() {
        storiesFail(
                ChaosRequest.Defect.ABORTS_NOTHING, 50, what -> what.contains(" ended twice: "));
    }

    private void allStoriesAreTrue(int stories) {
        for (long seed : seeds(stories)) {
            assertEquals(
                    List.of(), story(seed, ChaosRequest.Defect.NONE), "replay with -Dseed=" + seed);
        }
    }

    /** In the same stories each time: they are to fail, not to be replayed. */
    private void storiesFail(ChaosRequest.Defect defect, int percent, Predicate<String> so) {
        final long failed =
                new Random(1)
                        .longs(100)
                        .filter(seed -> story(seed, defect).stream().anyMatch(so))
                        .count();
        assertTrue(failed >= percent, failed + " of 100 stories fail");
    }

    /** That which is to be replayed, or many. */
    private static long[] seeds(int stories) {
        final long seed = Seeds.next("SplitChaosTest");
        return System.getProperty("seed") != null
                ? new long[] {seed}
                : new Random(seed).longs(stories).toArray();
    }

    /** What went wrong. */
    private List<String> story(long seed, ChaosRequest.Defect defect) {
        final ChaosWorld world = new ChaosWorld(seed);
        final ChaosFleet fleet = new ChaosFleet(world);
        final List<ChaosRequest> requests = new ArrayList<>();
        fleet.trouble(ARRIVALS_MS);
        for (int i = 0; i < REQUESTS; i++) {
            final int prompt = i;
            world.time.afterMs(
                    world.drawMs(0, ARRIVALS_MS),
                    () -> requests.add(request(world, fleet, prompt, defect)));
        }
        if (world.chance(20)) {
            world.time.afterMs(
                    world.drawMs(0, ARRIVALS_MS),
                    () -> requests.forEach(request -> request.leave("gateway cut")));
        }
        world.time.pass(TimeUnit.MILLISECONDS.toNanos(ARRIVALS_MS + ChaosRequest.LIMIT_MS));
        requests.forEach(ChaosRequest::check);
        world.time.pass(TimeUnit.MILLISECONDS.toNanos(SETTLE_MS));
        fleet.checkGateway();
        while (world.time.next()) {
            // until nothing will happen any more
        }
        fleet.checkEngines();
        requests.forEach(
                request -> outcomes.merge(String.valueOf(request.outcome()), 1, Integer::sum));
        return world.violations;
    }

    private static ChaosRequest request(
            ChaosWorld world, ChaosFleet fleet, int prompt, ChaosRequest.Defect defect) {
        final ChaosRequest request =
                new ChaosRequest(
                        world, fleet, prompt, world.any(List.of(FallbackPolicy.values())), defect);
        request.start();
        if (world.chance(20)) {
            world.time.afterMs(world.drawMs(0, 15_000), () -> request.leave("client left"));
        }
        return request;
    }
}
