package io.kvasir.pipeline.source;

import static io.kvasir.pipeline.source.Messages.batch;
import static io.kvasir.pipeline.source.Messages.range;
import static io.kvasir.pipeline.source.Messages.removed;
import static io.kvasir.pipeline.source.Messages.stored;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.kvasir.core.hash.BlockHasher;
import io.kvasir.core.index.LowerTiers;
import io.kvasir.core.index.LowerTiersConfig;
import io.kvasir.core.index.PrefixIndex;
import io.kvasir.core.index.PrefixIndexConfig;
import io.kvasir.core.index.StorageTier;
import io.kvasir.core.radix.OverlapScores;
import io.kvasir.pipeline.events.IndexPipeline;
import io.kvasir.pipeline.events.IndexPipelineConfig;
import io.kvasir.testsupport.Eventually;

import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.EnumSet;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;
import java.util.function.BooleanSupplier;
import java.util.function.Supplier;

/** Events of several tiers over real sockets: gaps, restarts and retirement are of all of them. */
class TieredEventsTest {
    private static final int SLOT = 1;
    private static final int SLOTS = 4;
    private static final int BLOCK = 4;
    private static final PrefixIndexConfig SIZES = new PrefixIndexConfig(SLOTS, 4_096, 4_096);

    private final PrefixIndex index = new PrefixIndex(SIZES);
    private final LowerTiers lower =
            new LowerTiers(
                    index,
                    new LowerTiersConfig(
                            EnumSet.of(StorageTier.HOST, StorageTier.DISK, StorageTier.SHARED),
                            SIZES),
                    index.gate());
    private final IndexPipeline pipeline =
            new IndexPipeline(
                    IndexPipelineConfig.defaults().withReplay(1_500, 3, 200),
                    index,
                    lower,
                    error -> {
                        throw new AssertionError(error);
                    });
    private Publisher publisher = new Publisher();

    @AfterEach
    void close() {
        pipeline.close();
        index.close();
        publisher.close();
    }

    private EventSource open() {
        return pipeline.openZmq(
                SourceConfig.of("w", SLOT, BLOCK, publisher.endpoint())
                        .withReplayEndpoint(publisher.replayEndpoint()));
    }

    /** Blocks {@code from + 1} to {@code to} of the prompt 1, 2, 3, … in a medium. */
    private static Map<String, Object> store(String medium, int from, int to) {
        return stored(
                range(from + 1, to),
                from == 0 ? null : from,
                range(from * BLOCK + 1, to * BLOCK),
                BLOCK,
                "medium",
                medium);
    }

    private int depth(StorageTier tier) {
        final int[] prompt = new int[10 * BLOCK];
        for (int i = 0; i < prompt.length; i++) {
            prompt[i] = i + 1;
        }
        final long[] hashes = new long[10];
        BlockHasher.localHashes(prompt, 0, prompt.length, BLOCK, BlockHasher.BASE_SEED, hashes);
        if (tier == StorageTier.SHARED) {
            return lower.match(tier, hashes, 10, new OverlapScores(1));
        }
        final OverlapScores scores = new OverlapScores(SLOTS);
        if (tier == StorageTier.DEVICE) {
            index.match(hashes, 10, scores);
        } else {
            lower.match(tier, hashes, 10, scores);
        }
        return scores.depth(SLOT);
    }

    private String depths() {
        return depth(StorageTier.DEVICE)
                + " "
                + depth(StorageTier.HOST)
                + " "
                + depth(StorageTier.DISK)
                + " "
                + depth(StorageTier.SHARED);
    }

    private void awaitDepths(String expected, EventSource source) {
        await(() -> depths().equals(expected), source);
    }

    private void await(BooleanSupplier condition, EventSource source) {
        Eventually.holds(() -> depths() + " " + source.status(), condition);
    }

    private static void await(BooleanSupplier condition, Supplier<String> message) {
        final long deadline = System.nanoTime() + Duration.ofSeconds(60).toNanos();
        while (!condition.getAsBoolean()) {
            assertTrue(System.nanoTime() < deadline, message);
            LockSupport.parkNanos(5_000_000);
        }
    }

    /** All that an engine of some uptime has announced. */
    private void announce() {
        publisher.lose(batch(store("GPU", 0, 4)));
        publisher.lose(batch(store("CPU", 4, 6), store("DISK", 6, 9), store("EXTERNAL", 0, 3)));
        // offloads by name, then the device gives two blocks up
        publisher.lose(
                batch(
                        stored(List.of(3, 4), null, List.of(), 0, "medium", "CPU"),
                        removed(List.of(4, 3), "medium", "GPU")));
    }

    @Test
    void whatWasAnnouncedBeforeIsLoadedInAllTiers() {
        announce();
        final EventSource source = open();
        awaitDepths("2 6 9 3", source);
        await(() -> source.state() == IndexState.EXACT, source);
        assertEquals(Map.of(), source.status().drops());
        assertEquals(0, source.status().unknownRemovals());
    }

    @Test
    void aGapIsReplayedInAllTiers() {
        final EventSource source = open();
        publisher.awaitSubscriber();
        publisher.publish(batch(store("GPU", 0, 4)));
        await(() -> source.status().lastSequence() >= 0, source);
        publisher.lose(batch(store("CPU", 4, 6)));
        publisher.lose(batch(removed(List.of(6), "medium", "CPU")));
        publisher.publish(batch(store("DISK", 5, 8)));
        awaitDepths("4 5 8 0", source);
        await(() -> source.state() == IndexState.EXACT, source);
    }

    @Test
    void aClearEmptiesAllTiers() {
        announce();
        publisher.lose(batch(Map.of("type", "AllBlocksCleared"), store("CPU", 0, 1)));
        awaitDepths("0 1 0 0", open());
    }

    @Test
    void anEngineThatStartsAnewHasNothingInAnyTier() {
        announce();
        final EventSource source = open();
        awaitDepths("2 6 9 3", source);
        final String endpoint = publisher.endpoint();
        final String replay = publisher.replayEndpoint();
        publisher.close();
        publisher = Publisher.at(endpoint, replay);
        publisher.lose(batch(store("CPU", 0, 1)));
        awaitDepths("0 1 0 0", source);
    }

    @Test
    void aSlotIsHandedOnWithAllTiersEmpty() throws InterruptedException {
        announce();
        final EventSource source = open();
        awaitDepths("2 6 9 3", source);
        source.close();
        final CountDownLatch swept = new CountDownLatch(1);
        pipeline.retire(SLOT, swept::countDown);
        assertTrue(swept.await(1, TimeUnit.MINUTES));
        assertEquals("0 0 0 0", depths());

        try (Publisher next = new Publisher()) {
            next.lose(batch(store("GPU", 0, 2), store("CPU", 2, 3)));
            final EventSource ofNext =
                    pipeline.openZmq(
                            SourceConfig.of("next", SLOT, BLOCK, next.endpoint())
                                    .withReplayEndpoint(next.replayEndpoint()));
            awaitDepths("2 3 0 0", ofNext);
        }
    }

    private static byte[] router(int id, String tier, String data) {
        return ("{\"worker_id\":7,\"storage_tier\":\""
                        + tier
                        + "\",\"event\":{\"event_id\":"
                        + id
                        + ",\"data\":"
                        + data
                        + "}}")
                .getBytes(StandardCharsets.US_ASCII);
    }

    private static String stores(int from, int to) {
        final int[] prompt = new int[to * BLOCK];
        for (int i = 0; i < prompt.length; i++) {
            prompt[i] = i + 1;
        }
        final long[] locals = new long[to];
        BlockHasher.localHashes(prompt, 0, prompt.length, BLOCK, BlockHasher.BASE_SEED, locals);
        final StringBuilder blocks = new StringBuilder();
        for (int i = from; i < to; i++) {
            blocks.append(i == from ? "" : ",").append("{\"block_hash\":").append(i + 1);
            blocks.append(",\"tokens_hash\":").append(Long.toUnsignedString(locals[i])).append('}');
        }
        return "{\"stored\":{\"parent_hash\":"
                + (from == 0 ? "null" : from)
                + ",\"blocks\":["
                + blocks
                + "]}}";
    }

    /** Each tier is cleared alone; a block that lies in another one, too, stays. */
    @ParameterizedTest
    @CsvSource({"device, 0 6 9 3", "host_pinned, 4 4 9 3", "disk, 4 6 6 3", "external, 4 6 9 0"})
    void aTierIsClearedAlone(String tier, String expected) {
        final EngineStream stream =
                pipeline.openDirect(
                        SourceConfig.ofRouterEvents("w", SLOT, BLOCK).withTiers(lower.tiers()));
        int id = 0;
        stream.onMessage(id, router(id++, "device", stores(0, 4)));
        stream.onMessage(id, router(id++, "host_pinned", stores(0, 6)));
        stream.onMessage(id, router(id++, "disk", stores(4, 9)));
        stream.onMessage(id, router(id++, "external", stores(0, 3)));
        stream.onMessage(id, router(id++, "device", "{\"tier_cleared\":\"" + tier + "\"}"));
        final long last = id - 1L;
        await(() -> index.appliedSequence(SLOT) == last, () -> depths() + ", not " + last);
        assertEquals(expected, depths());
        assertEquals(IndexState.EXACT, stream.state());
    }

    /** What was loaded from a snapshot is the device's; tiers go on from it. */
    @Test
    void tiersGoOnFromWhatASnapshotHadOfTheDevice() {
        final long[] names = {1, 2, 3};
        final int[] prompt = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12};
        final long[] locals = new long[3];
        BlockHasher.localHashes(prompt, 0, 12, BLOCK, BlockHasher.BASE_SEED, locals);
        assertTrue(pipeline.loadBlocks(SLOT, true, 0, names, locals, 3));
        final EngineStream stream = pipeline.openDirect(SourceConfig.of("w", SLOT, BLOCK, ""));
        final byte[] message = batch(store("CPU", 3, 5));
        stream.onMessage(0, message);
        await(() -> depth(StorageTier.HOST) == 5, this::depths);
        assertEquals("3 5 0 0", depths());
    }
}
