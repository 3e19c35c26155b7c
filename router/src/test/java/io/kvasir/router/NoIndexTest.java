package io.kvasir.router;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.kvasir.core.load.PredictedPrefixesConfig;
import io.kvasir.pipeline.source.EventPlane;
import io.kvasir.pipeline.source.IndexState;
import io.kvasir.pipeline.source.SourceConfig;
import io.kvasir.router.settings.IndexUse;
import io.kvasir.router.settings.RouterSettings;
import io.kvasir.router.state.FileStateStore;
import io.kvasir.testsupport.Eventually;

import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.Set;
import java.util.stream.Stream;

/** Where cached blocks count nothing no index is kept. */
class NoIndexTest {
    private static final int BLOCK_SIZE = 16;

    private final Decision decision = new Decision();

    private static RouterConfig.Builder small() {
        return KvRouter.builder().tickedBy(() -> 0).blockSize(BLOCK_SIZE);
    }

    /** Names of the routers' threads that have come since. */
    private static Stream<String> startedSince(Set<Thread> before) {
        return FormerRouters.threads().stream()
                .filter(thread -> !before.contains(thread))
                .map(Thread::getName);
    }

    /** An endpoint on which no process listens. */
    private static SourceConfig events(String name) {
        return SourceConfig.of(name, 0, BLOCK_SIZE, "tcp://127.0.0.1:9");
    }

    @ParameterizedTest
    @CsvSource({"overlap-weight, 0, auto", "overlap-weight, 1, off"})
    void noMemoryIsTakenAndNoThreadIsStarted(String name, String value, String use)
            throws Exception {
        final Set<Thread> before = FormerRouters.threads();
        try (KvRouter router =
                small().set(name, value).set("prefix-index", use).maxWorkers(64).build()) {
            final Worker first =
                    router.addWorker(new WorkerSpec(1, "w1", "http://w1", 0, events("w1")));
            final Worker second =
                    router.addWorker(
                            WorkerSpec.of(2, "w2", "http://w2")
                                    .onEventPlane(new EventPlaneWorker(7, 0)));
            assertNull(first.source());
            assertEquals(IndexState.DEGRADED, second.state());
            assertTrue(router.awaitReady(Duration.ZERO), "nothing is waited for");
            final int[] prompt = new int[8 * BLOCK_SIZE];
            final Lease lease =
                    router.reserve(
                            router.newRequest().tokens(prompt, prompt.length).pin(first), decision);
            EngineMessages.awaitLoad(router, first, 1, 8);
            router.select(router.newRequest(), decision);
            assertSame(second, decision.worker(), "load counts");
            lease.close();
            assertEquals(0, router.findMatches(router.newRequest().tokens(prompt, 128)).max());
            router.removeWorker(first);
            router.addWorker(WorkerSpec.of(3, "w3", "http://w3"));
            for (int i = 4; i < 200; i++) { // slots are swept without an index writer
                router.removeWorker(router.addWorker(WorkerSpec.of(i, "w" + i, "http://w" + i)));
            }
            router.tick(1);
            assertEquals(0, router.index().blocks());
            assertTrue(router.index().config().budgetBytes() < 2 << 20, "reserved, not touched");
            assertEquals(1, router.index().config().maxBlocks());
            assertEquals(2, router.indexPipeline().ringSize());
            assertEquals(
                    Set.of("kvasir-booking-writer"), Set.copyOf(startedSince(before).toList()));
            final IllegalStateException refused =
                    assertThrows(
                            IllegalStateException.class,
                            () ->
                                    router.openDirect(
                                            second, EngineMessages.source("w2", BLOCK_SIZE)));
            assertTrue(refused.getMessage().contains("set prefix-index=on"), refused.getMessage());
        }
        Eventually.holds("the end of the threads", () -> startedSince(before).findAny().isEmpty());
    }

    @ParameterizedTest
    @CsvSource({
        "1, true, AUTO, linear, true",
        "0, true, AUTO, linear, false",
        "1, false, AUTO, linear, true",
        "0, false, ON, linear, true",
        "5, true, OFF, logits, false",
        "0, true, AUTO, logits, true",
        "0, true, AUTO, load-deviation, true"
    })
    void anIndexIsKeptWhereSomethingOfItCounts(
            double weight, boolean prefill, IndexUse use, String policy, boolean kept) {
        final RouterConfig.Builder builder =
                small().overlapWeight(weight)
                        .set(RouterSettings.TRACK_PREFILL_TOKENS, prefill)
                        .set(RouterSettings.PREFIX_INDEX, use)
                        .set(RouterSettings.SELECTION_POLICY, policy);
        assertEquals(kept, RouterConfig.keepsIndex(builder.settings()));
        assertEquals(kept, builder.config().isIndexed());
        assertTrue(
                builder.costModel((all, costs) -> {}).config().isIndexed() || use == IndexUse.OFF);
    }

    @Test
    void aRequestsOwnWeightFindsNothingUnlessTheIndexIsKept() throws RouteException {
        for (IndexUse use : new IndexUse[] {IndexUse.AUTO, IndexUse.ON}) {
            try (KvRouter router =
                    small().overlapWeight(0).set(RouterSettings.PREFIX_INDEX, use).build()) {
                router.addWorker(WorkerSpec.of(1, "w1", "http://w1"));
                final Worker warm = router.addWorker(WorkerSpec.of(2, "w2", "http://w2"));
                final int[] prompt = new int[64];
                if (use == IndexUse.ON) {
                    router.openDirect(warm, EngineMessages.source("w2", BLOCK_SIZE))
                            .onMessage(0, EngineMessages.stored(prompt, 3, BLOCK_SIZE, 1_000));
                    Eventually.holds("events", warm::ready);
                }
                router.select(
                        router.newRequest().tokens(prompt, 64).pin(warm).overlapWeight(2),
                        decision);
                assertEquals(use == IndexUse.ON ? 3 : 0, decision.overlapBlocks());
                assertEquals(use == IndexUse.ON ? 2 * 1 + 4 : 2 * 4 + 4, decision.cost());
            }
        }
    }

    @Test
    void nothingIsPredicted() {
        try (KvRouter router =
                small().overlapWeight(0)
                        .routedPrefixes(new PredictedPrefixesConfig(4, 100, 0.5, 1))
                        .build()) {
            assertNull(router.routedPrefixes());
            assertEquals(
                    IndexState.DEGRADED,
                    router.addWorker(WorkerSpec.of(1, "w1", "http://w1")).state());
        }
    }

    @Test
    void nothingIsSaved(@TempDir Path folder) throws IOException {
        final Path state = Files.createDirectory(folder.resolve("state"));
        final Path mapped = Files.createDirectory(folder.resolve("mapped"));
        small().overlapWeight(0)
                .set(RouterSettings.STATE_DIR, state)
                .set(RouterSettings.STATE_MAPPED_DIR, mapped)
                .build()
                .close();
        for (Path each : new Path[] {state, mapped}) {
            try (Stream<Path> files = Files.list(each)) {
                assertFalse(files.findAny().isPresent());
            }
        }
    }

    @ParameterizedTest
    @ValueSource(strings = {"eventPlane", "stateStore"})
    void whatFeedsOrKeepsItIsRefusedByName(String part, @TempDir Path folder) throws IOException {
        final RouterConfig.Builder builder = small().overlapWeight(0);
        try (FileStateStore store = new FileStateStore(folder)) {
            if (part.equals("stateStore")) {
                builder.stateStore(store);
            } else {
                builder.eventPlane((EventPlane plane) -> () -> {});
            }
            final IllegalArgumentException refused =
                    assertThrows(IllegalArgumentException.class, builder::build);
            assertEquals(
                    part
                            + " is given, and no index is kept: prefix-index=auto,"
                            + " overlap-weight=0; set prefix-index=on, or leave it out",
                    refused.getMessage());
        }
    }
}
