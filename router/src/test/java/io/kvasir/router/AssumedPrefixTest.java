package io.kvasir.router;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.kvasir.router.settings.RouterSettings;
import io.kvasir.testsupport.Allocations;
import io.kvasir.testsupport.Eventually;

import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

import java.util.Arrays;
import java.util.Random;
import java.util.Set;

/**
 * What a request says of itself for those that let requests wait: beginnings, room, what is
 * assumed.
 */
class AssumedPrefixTest {
    private final int[] tokens = new Random(7).ints(640, 0, 50_000).toArray();
    private final Decision decision = new Decision();
    private KvRouter router;
    private Worker one;
    private Worker two;

    @BeforeEach
    void start() {
        router =
                KvRouter.builder()
                        .tickedBy(() -> 0)
                        .maxWorkers(4)
                        .degradedCredit(1) // of workers without events
                        .set(RouterSettings.QUEUE_PREFILL_TOKENS, 100L)
                        .build();
        one = router.addWorker(WorkerSpec.of(1, "one", "http://one"));
        two = router.addWorker(WorkerSpec.of(2, "two", "http://two"));
    }

    @AfterEach
    void close() {
        router.close();
    }

    private RouteRequest request(int count) {
        return router.newRequest().tokens(tokens, count);
    }

    @Test
    void whatIsAssumedCountsAsFoundForThatWorker() throws RouteException {
        router.select(request(640).assumeHeld(two, 30), decision);
        assertSame(two, decision.worker());
        assertEquals(30, decision.overlapBlocks());
        assertEquals(480, decision.predictedCachedTokens());
        router.select(request(160).assumeHeld(one, 30), decision);
        assertEquals(10, decision.overlapBlocks(), "no more than the prompt has");
        final RouteRequest reused = request(640).assumeHeld(two, 30).reset();
        router.select(reused.tokens(tokens, 640), decision);
        assertEquals(0, reused.deepestOverlap());
        assertThrows(IllegalArgumentException.class, () -> request(1).assumeHeld(one, 0));
    }

    @Test
    void ofARemovedWorkerNothingIsAssumed() throws RouteException {
        router.removeWorker(two);
        router.select(request(640).assumeHeld(two, 30), decision);
        assertSame(one, decision.worker());
        assertEquals(0, decision.overlapBlocks());
    }

    @Test
    void whatIsBeingComputedIsNoWorkToWaitForMoreThanElsewhere() throws RouteException {
        try (Lease first = router.reserve(request(640).pin(two), decision)) {
            router.select(request(640).assumeHeld(two, 40), decision);
            assertSame(one, decision.worker(), "the work before it counts");
            router.select(request(640).assumeComputing(two, 40), decision);
            assertSame(two, decision.worker());
            assertEquals(-40, decision.addedBlocks(1));
            assertTrue(router.isPrefilling(first.requestId()));
            first.prefillComplete();
            assertFalse(router.isPrefilling(first.requestId()));
            Eventually.holds("it is computed", () -> two.prefillTokens() == 0);
            router.select(request(640).assumeComputing(two, 40), decision);
            assertEquals(0, decision.addedBlocks(1), "no more than is booked");
        }
        for (long unknown : new long[] {0, -1, 1, 1L << 40, Long.MAX_VALUE, Long.MIN_VALUE}) {
            assertFalse(router.isPrefilling(unknown));
        }
    }

    @Test
    void beginningsAreEqualWhereAllOfThemIs() {
        final long[] keys = new long[8];
        assertEquals(3, request(640).prefixKeys(12, keys));
        final long[] again = new long[2];
        assertEquals(2, request(600).prefixKeys(12, again));
        assertArrayEquals(Arrays.copyOf(keys, 2), again, "as many as there is room for");
        final long[] salted = new long[8];
        request(640).salt("s").prefixKeys(12, salted);
        assertNotEquals(keys[0], salted[0]);
        final int[] other = tokens.clone();
        other[12 * 16]++;
        final long[] differing = new long[8];
        router.newRequest().tokens(other, 640).prefixKeys(12, differing);
        assertEquals(keys[0], differing[0]);
        assertNotEquals(keys[1], differing[1]);
        assertNotEquals(keys[2], differing[2]);
        assertEquals(0, request(15).prefixKeys(1, keys));
        final RouteRequest request = router.newRequest();
        assertEquals(
                0,
                Allocations.bytesPerRound(
                        1_000, () -> request.reset().tokens(tokens, 640).prefixKeys(12, keys)));
    }

    @Test
    void theReachIsWhatARequestAsksOfItsWorker() {
        assertEquals(request(1).reach(), request(640).reach());
        final Reach all =
                new Reach(
                        one, false, 3, Set.of(two), Set.of("a=1", "b=2"), Set.of("t", "c=3"), "x");
        assertEquals(
                all,
                request(1)
                        .pin(one)
                        .excludeTainted(3)
                        .exclude(two)
                        .require("a=1")
                        .require("b=2")
                        .prefer("c=3", -1)
                        .tolerate("t")
                        .lora("x")
                        .reach());
        assertEquals(
                all.withoutAdapter(),
                request(1)
                        .require("b=2")
                        .require("a=1")
                        .require("b=2")
                        .tolerate("c=3")
                        .tolerate("t")
                        .exclude(two)
                        .exclude(two)
                        .excludeTainted(3)
                        .pin(one)
                        .reach());
    }

    @Test
    void aReachOfAnyWorkerIsOneObject() {
        final RouteRequest request = request(640);
        final long bytes = Allocations.bytesPerRound(1_000, request::reach);
        assertTrue(bytes <= 48 * 1_000, "bytes of a thousand: " + bytes);
    }

    @Test
    void onlyWithRoomIsRefusedWhereNoWorkerHasItAndNamesTheThreshold() throws RouteException {
        final Lease first = router.reserve(request(101).pin(one), decision);
        router.select(request(640).onlyWithRoom(true), decision);
        final Lease second = router.reserve(request(101).pin(two), decision);
        final RouteException none =
                assertThrows(
                        RouteException.class,
                        () -> router.select(request(640).onlyWithRoom(true), decision));
        assertEquals(RouteException.Kind.NO_ROOM, none.kind());
        assertTrue(none.kind().retryable());
        assertEquals(
                "none of 2 workers has room for a further prompt: queue-prefill-tokens=100; add"
                        + " workers, or raise the threshold",
                none.getMessage());
        router.select(request(640), decision);
        first.close();
        second.close();
    }

    @ParameterizedTest
    @ValueSource(ints = {0, -1, Integer.MIN_VALUE})
    void aStrideOfLessThanABlockIsRefused(int stride) {
        assertEquals(
                "stride=" + stride + " must be 1 or more",
                assertThrows(
                                IllegalArgumentException.class,
                                () -> request(640).prefixKeys(stride, new long[4]))
                        .getMessage());
    }

    @Test
    void aStrideBeyondThePromptHasNoKeys() {
        assertEquals(0, request(640).prefixKeys(Integer.MAX_VALUE, new long[4]));
    }
}
