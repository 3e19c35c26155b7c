package io.kvasir.pipeline.source;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.kvasir.core.index.CopyRule;
import io.kvasir.core.index.PrefixIndex;
import io.kvasir.core.index.PrefixIndexConfig;
import io.kvasir.pipeline.events.IndexApplier;
import io.kvasir.pipeline.wire.ApplyListener;
import io.kvasir.pipeline.wire.KvBatch;
import io.kvasir.pipeline.wire.RouterEventWriter;

import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;

class EventPlaneTest {
    private static final long WORKER = -7; // as 64 unsigned bits
    private static final int BLOCK = 4;

    private final PrefixIndex index = new PrefixIndex(new PrefixIndexConfig(4, 4_096, 4_096));
    private final IndexApplier applier = new IndexApplier(index);
    private final Map<String, EngineStream> unregistered = new HashMap<>();
    private final EventPlane plane =
            new EventPlane((worker, rank) -> unregistered.get(worker + "/" + rank));
    private final EngineStream stream = stream("w", 1, 0);
    private volatile boolean full;
    private long nowNs;

    @BeforeEach
    void register() {
        plane.register(WORKER, 0, stream);
    }

    @AfterEach
    void closeIndex() {
        index.close();
    }

    private EngineStream stream(String name, int slot, int rank) {
        return new EngineStream(
                SourceConfig.ofRouterEvents(name, slot, BLOCK).withDpRank(rank),
                batch -> !full && applier.offer(batch),
                () -> nowNs);
    }

    private static KvBatch store(long... names) {
        final KvBatch batch = empty();
        for (long name : names) {
            batch.addStored(true, 0, new long[] {name}, new long[] {name * 1_000}, 1);
        }
        return batch;
    }

    private static KvBatch empty() {
        final KvBatch batch = new KvBatch();
        batch.reset(0, 0, CopyRule.LAST_COPY, false, ApplyListener.NONE);
        return batch;
    }

    private void publish(long publisher, long sequence, long worker, long firstId, KvBatch batch) {
        final byte[] bytes =
                RouterEventWriter.envelope(
                        publisher,
                        sequence,
                        0,
                        "kv-events",
                        RouterEventWriter.payload(worker, 0, firstId, batch));
        plane.onMessage(bytes, 0, bytes.length);
    }

    private void publishJson(long worker, int rank, long id, KvBatch batch) {
        final byte[] bytes = RouterEventWriter.json(worker, rank, id, batch, batch.first());
        plane.onMessage(bytes, 0, bytes.length);
    }

    private List<Long> held() {
        final List<Long> names = new ArrayList<>();
        index.forEach((slot, engine, sequence, copies) -> names.add(slot * 1_000L + engine));
        names.sort(null);
        return names;
    }

    @Test
    void eventsNumberedFromOneAreExact() {
        assertEquals(IndexState.LOADING, stream.state());
        publish(5, 0, WORKER, 1, store(1, 2));
        publish(5, 1, WORKER, 3, store(3));
        assertEquals(List.of(1_001L, 1_002L, 1_003L), held());
        assertEquals(IndexState.EXACT, stream.state());
        assertEquals(3, stream.status().lastSequence());
        assertEquals(0, stream.status().gaps());
    }

    @Test
    void eventsNumberedFromZeroAreExact() {
        publishJson(WORKER, 0, 0, store(1));
        publishJson(WORKER, 0, 1, store(2));
        assertEquals(IndexState.EXACT, stream.state());
        assertEquals(List.of(1_001L, 1_002L), held());
    }

    @Test
    void aSubscriptionThatBeganLateIsDegradedUntilAClear() {
        publish(5, 40, WORKER, 17, store(1));
        assertEquals(IndexState.DEGRADED, stream.state());
        final KvBatch cleared = empty();
        cleared.addCleared();
        publish(5, 41, WORKER, 18, cleared);
        assertEquals(IndexState.EXACT, stream.state());
        assertEquals(List.of(), held());
    }

    @Test
    void whatIsKnownAlreadyIsIgnored() {
        publish(5, 0, WORKER, 1, store(1));
        publish(5, 1, WORKER, 2, store(2));
        publish(5, 0, WORKER, 1, store(1));
        assertEquals(IndexState.EXACT, stream.state());
        assertEquals(1, stream.status().duplicates());
        assertEquals(0, stream.status().restarts());
    }

    @Test
    void aMissingEventDegradesItsWorkerAlone() {
        final EngineStream other = stream("other", 2, 0);
        plane.register(8, 0, other);
        publish(5, 0, WORKER, 1, store(1));
        publish(6, 0, 8, 1, store(1));
        publish(5, 2, WORKER, 5, store(2));
        assertEquals(IndexState.DEGRADED, stream.state());
        assertEquals(3, stream.status().lostMessages());
        assertTrue(stream.status().problem().contains("event plane"), stream.status().problem());
        assertEquals(IndexState.EXACT, other.state());
        assertEquals(1, plane.status().gaps());
    }

    @Test
    void anOvertakenEventIsWaitedForAWhile() {
        publishJson(WORKER, 0, 1, store(1));
        publishJson(WORKER, 0, 3, store(3));
        assertEquals(IndexState.RESYNC, stream.state());
        publishJson(WORKER, 0, 2, store(2));
        assertEquals(IndexState.EXACT, stream.state());
        assertEquals(3, stream.status().lastSequence());

        publishJson(WORKER, 0, 5, store(5));
        nowNs += TimeUnit.SECONDS.toNanos(1);
        plane.tick();
        assertEquals(IndexState.DEGRADED, stream.state());
    }

    @Test
    void aMessageLostAtTheEndOfAWorkersEventsIsNoticedWhenItsPublisherSpeaksOfAnother() {
        final EngineStream other = stream("other", 2, 0);
        plane.register(8, 0, other);
        publish(5, 0, WORKER, 1, store(1));
        publish(5, 1, 8, 1, store(1));
        publish(5, 3, 8, 2, store(2)); // message 2 is missing; it was of the other worker
        assertEquals(IndexState.EXACT, other.state(), "its own numbers have no gap");
        assertEquals(IndexState.STALE, stream.state());
        assertTrue(stream.status().problem().contains("missing"), stream.status().problem());
        assertEquals(1, plane.status().missedMessages());

        publish(5, 4, WORKER, 3, store(3));
        nowNs += TimeUnit.SECONDS.toNanos(1);
        plane.tick();
        assertEquals(IndexState.DEGRADED, stream.state());
    }

    @Test
    void aMissedMessageOfOthersLeavesAWorkerExactAtItsNextEvent() {
        final EngineStream other = stream("other", 2, 0);
        plane.register(8, 0, other);
        publish(5, 0, WORKER, 1, store(1));
        publish(5, 1, 8, 1, store(1));
        publish(5, 3, 8, 2, store(2));
        assertEquals(IndexState.STALE, stream.state());
        publish(5, 4, WORKER, 2, store(2));
        assertEquals(IndexState.EXACT, stream.state());
    }

    @Test
    void aNewPublisherOfAWorkerIsANewLifeEvenIfItBeginsWithTheSameEvent() {
        publish(5, 0, WORKER, 1, store(1));
        publish(5, 1, WORKER, 2, store(2));
        publish(9, 0, WORKER, 1, store(1));
        assertEquals(List.of(1_001L), held());
        assertEquals(1, stream.status().restarts());
        assertEquals(IndexState.EXACT, stream.state());
        assertEquals(1, plane.status().publisherChanges());
    }

    @Test
    void aNewPublisherThatGoesOnWithTheNumbersIsTheSameLife() {
        publish(5, 0, WORKER, 1, store(1));
        publish(9, 0, WORKER, 2, store(2));
        assertEquals(List.of(1_001L, 1_002L), held());
        assertEquals(0, stream.status().restarts());
        assertEquals(IndexState.EXACT, stream.state());
    }

    @Test
    void numbersThatFallBackWithOtherContentAreANewLife() {
        publishJson(WORKER, 0, 1, store(1));
        publishJson(WORKER, 0, 2, store(2));
        publishJson(WORKER, 0, 1, store(9));
        assertEquals(List.of(1_009L), held());
        assertEquals(1, stream.status().restarts());
        assertEquals(IndexState.EXACT, stream.state());
    }

    @Test
    void eachRankOfAWorkerHasItsOwnNumbers() {
        final EngineStream second = stream("w", 2, 1);
        plane.register(WORKER, 1, second);
        publishJson(WORKER, 0, 1, store(1));
        publishJson(WORKER, 1, 1, store(1));
        publishJson(WORKER, 1, 2, store(2));
        assertEquals(List.of(1_001L, 2_001L, 2_002L), held());
        assertEquals(IndexState.EXACT, stream.state());
        assertEquals(IndexState.EXACT, second.state());
        assertEquals(1, second.status().dpRank());
    }

    @Test
    void unknownWorkersAreCountedAndCanBeRegisteredWhenTheySpeak() {
        publish(5, 0, 8, 1, store(1));
        assertEquals(1, plane.status().unknownEvents());
        assertEquals(0, plane.status().events());

        unregistered.put("8/0", stream("late", 2, 0));
        publish(5, 1, 8, 2, store(2));
        assertEquals(1, plane.status().events());
        assertEquals(2, plane.status().streams());
        assertEquals(List.of(2_002L), held());
        assertEquals(IndexState.DEGRADED, unregistered.get("8/0").state(), "event 1 was left out");
    }

    @Test
    void aLostConnectionMakesAllStaleUntilTheirNextEvents() {
        publish(5, 0, WORKER, 1, store(1));
        plane.onDisconnected("nats://x: refused");
        assertEquals(IndexState.STALE, stream.state());
        assertEquals("nats://x: refused", plane.status().unconnected());
        plane.onConnected();
        assertEquals(IndexState.STALE, stream.state(), "what was published meanwhile is not known");
        publish(5, 1, WORKER, 2, store(2));
        assertEquals(IndexState.EXACT, stream.state());

        plane.onDisconnected("nats://x: refused");
        plane.onCaughtUp();
        assertEquals(IndexState.EXACT, stream.state(), "the transport has kept it");
    }

    @Test
    void aWorkerRegisteredWithoutAConnectionIsStale() {
        plane.onDisconnected("nats://x: refused");
        final EngineStream late = stream("late", 2, 0);
        plane.register(8, 0, late);
        assertEquals(IndexState.STALE, late.state());
    }

    @Test
    void unreadableMessagesAreCountedAndTheRestGoesOn() {
        final byte[] junk = "no message".getBytes(StandardCharsets.UTF_8);
        plane.onMessage(junk, 0, junk.length);
        plane.onMessage(new byte[0], 0, 0);
        final byte[] unaddressed = "{\"worker_id\":7}".getBytes(StandardCharsets.UTF_8);
        plane.onMessage(unaddressed, 0, unaddressed.length);
        publish(5, 0, WORKER, 1, store(1));
        assertEquals(3, plane.status().unreadable());
        assertEquals(4, plane.status().messages());
        assertEquals(IndexState.EXACT, stream.state());
    }

    @Test
    void aMalformedEventDegradesItsWorkerWithoutAGap() {
        publishJson(WORKER, 0, 1, store(1));
        final byte[] bad =
                ("{\"worker_id\":"
                                + Long.toUnsignedString(WORKER)
                                + ",\"event\":{\"event_id\":2,\"data\":{\"stored\":{}},\"dp_rank\":0}}")
                        .getBytes(StandardCharsets.UTF_8);
        plane.onMessage(bad, 0, bad.length);
        publishJson(WORKER, 0, 3, store(3));
        assertEquals(IndexState.DEGRADED, stream.state());
        assertEquals(0, stream.status().gaps());
        assertEquals(Map.of("malformed_event", 1L), stream.status().drops());
        assertEquals(List.of(1_001L, 1_003L), held());
    }

    private static void awaitWaiting(Thread thread) {
        while (thread.getState() != Thread.State.TIMED_WAITING) {
            assertTrue(thread.isAlive(), "it did not wait");
            Thread.onSpinWait();
        }
    }

    @Test
    void aFullRingIsWaitedFor() throws InterruptedException {
        full = true;
        final Thread feeder = Thread.ofPlatform().start(() -> publishJson(WORKER, 0, 1, store(1)));
        awaitWaiting(feeder);
        full = false;
        feeder.join();
        assertEquals(List.of(1_001L), held());
        assertEquals(IndexState.EXACT, stream.state());
    }

    @Test
    void aStreamThatIsClosedWhileTheRingIsFullIsNotWaitedFor() throws InterruptedException {
        full = true;
        final Thread feeder = Thread.ofPlatform().start(() -> publishJson(WORKER, 0, 1, store(1)));
        awaitWaiting(feeder);
        stream.close();
        feeder.join();
        assertEquals(IndexState.GONE, stream.state());
    }

    @Test
    void oneWorkerAndRankHasOneStream() {
        final EngineStream again = stream("again", 2, 0);
        assertThrows(IllegalArgumentException.class, () -> plane.register(WORKER, 0, again));
        stream.close();
        plane.register(WORKER, 0, again);
        publishJson(WORKER, 0, 1, store(1));
        assertEquals(List.of(2_001L), held());
        plane.remove(WORKER, 0);
        publishJson(WORKER, 0, 2, store(2));
        assertEquals(1, plane.status().unknownEvents());
        assertEquals(0, plane.status().streams());
    }

    @Test
    void aStreamOfEngineBatchesIsRefused() {
        final EngineStream batches =
                new EngineStream(SourceConfig.of("w", 2, BLOCK, ""), applier, () -> nowNs);
        assertThrows(IllegalArgumentException.class, () -> plane.register(9, 0, batches));
    }

    @Test
    void anIndexWithASeedOfItsOwnIsRefusedByName() {
        final SourceConfig config = SourceConfig.ofRouterEvents("w", 1, BLOCK);
        final String message =
                assertThrows(IllegalArgumentException.class, () -> config.withHashSeed(42))
                        .getMessage();
        assertTrue(message.contains("hash-seed=1337"), message);
    }

    @Test
    void allThatWasPassedOnIsApplied() {
        assertTrue(plane.isApplied());
        publishJson(WORKER, 0, 1, store(1));
        assertTrue(plane.isApplied());
        final EngineStream held =
                new EngineStream(
                        SourceConfig.ofRouterEvents("held", 2, BLOCK), batch -> true, () -> nowNs);
        plane.register(8, 0, held);
        publishJson(8, 0, 1, store(1));
        assertFalse(plane.isApplied(), "nobody has applied it");
    }

    @Test
    void tenThousandWorkersOfOnePlaneAreFollowed() {
        final int workers = 10_000;
        for (int i = 0; i < workers; i++) {
            plane.register(
                    1_000 + i,
                    0,
                    new EngineStream(
                            SourceConfig.ofRouterEvents("w" + i, 1, BLOCK),
                            batch -> true,
                            () -> nowNs));
        }
        for (int round = 0; round < 2; round++) {
            for (int i = 0; i < workers; i++) {
                publish(i, round, 1_000 + i, 1 + round, store(1 + round));
            }
        }
        assertEquals(2 * workers, plane.status().events());
        assertEquals(0, plane.status().gaps());
        assertEquals(workers + 1, plane.status().streams());
    }
}
