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
import io.kvasir.pipeline.wire.DecoderMemory;
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
    private static final long NO_STORE = 0;
    private static final long STORE = 99;

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

    private static PlanePosition at(long number) {
        return new PlanePosition(STORE, number);
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

    private void keep(long number, long publisher, long worker, long id, KvBatch batch) {
        final byte[] bytes = RouterEventWriter.json(worker, 0, id, batch, batch.first());
        plane.onKept(bytes, 0, bytes.length, number, publisher);
    }

    @Test
    void aWorkerThatHasSpokenBeforeItIsRegisteredHasTheTransportBeginAgain() {
        plane.keepsMessages();
        keep(1, 0, WORKER, 1, store(1));
        keep(2, 0, 8, 1, store(2));
        keep(3, 0, 8, 2, store(3));
        assertFalse(plane.isAgainWanted());
        assertEquals(List.of(new UnknownWorker(8, 0, 2)), plane.unknownWorkers());
        final EngineStream late = stream("late", 2, 0);
        plane.register(8, 0, late);
        assertTrue(plane.isAgainWanted());
        assertEquals(List.of(), plane.unknownWorkers());
        keep(4, 0, 8, 3, store(4)); // before it begins again: comes once more, and in order
        assertEquals(List.of(1_001L), held());
        assertEquals(0, plane.beginsAgainAfter());
        assertEquals(EventPlane.NOT_AGAIN, plane.beginsAgainAfter());
        keep(1, 0, WORKER, 1, store(1));
        keep(2, 0, 8, 1, store(2));
        keep(3, 0, 8, 2, store(3));
        keep(4, 0, 8, 3, store(4));
        keep(5, 0, WORKER, 2, store(5));
        assertEquals(List.of(1_001L, 1_005L, 2_002L, 2_003L, 2_004L), held());
        assertEquals(IndexState.EXACT, late.state());
        assertEquals(2, stream.status().messages(), "nothing comes to it twice");
        final EventPlaneStatus status = plane.status();
        assertEquals(9, status.messages());
        assertEquals(4, status.redelivered());
        assertEquals(2, status.unknownEvents());
        assertEquals(5, status.events());
        assertEquals(5, status.applied());
        assertEquals(0, status.behind());
    }

    @Test
    void aWorkerThatHasNotSpokenWantsNothingAgain() {
        plane.keepsMessages();
        keep(1, 0, WORKER, 1, store(1));
        plane.register(8, 0, stream("silent", 2, 0));
        assertFalse(plane.isAgainWanted());
        plane.remove(WORKER, 0);
        plane.register(WORKER, 0, stream("its next description", 3, 0));
        assertTrue(plane.isAgainWanted(), "its slot is empty, and it has spoken");
    }

    @Test
    void aTransportThatKeepsNothingIsNotAskedToBeginAgain() {
        publishJson(8, 0, 1, store(1));
        plane.register(8, 0, stream("late", 2, 0));
        assertFalse(plane.isAgainWanted());
        publishJson(8, 0, 2, store(2));
        assertEquals(List.of(2_002L), held());
    }

    @Test
    void keptMessagesWhoseNumbersBeginAnewAreTakenAgain() {
        plane.keepsMessages();
        keep(7, 0, WORKER, 1, store(1));
        plane.onRenumbered(STORE);
        keep(1, 0, WORKER, 2, store(2));
        assertEquals(List.of(1_001L, 1_002L), held());
        assertEquals(0, plane.status().redelivered());
    }

    @Test
    void aNewPublisherOfKeptMessagesIsANewLifeEvenIfItBeginsWithTheSameEvents() {
        keep(1, 5, WORKER, 1, store(1));
        keep(2, 5, WORKER, 2, store(2));
        keep(3, 6, WORKER, 1, store(1));
        assertEquals(List.of(1_001L), held());
        assertEquals(1, stream.status().restarts());
        assertEquals(IndexState.EXACT, stream.state());
    }

    @Test
    void aLateEventOfAnEndedLifeChangesNothing() {
        keep(1, 5, WORKER, 1, store(1));
        keep(2, 6, WORKER, 1, store(2));
        keep(3, 5, WORKER, 2, store(3)); // sent before its publisher was killed
        keep(4, 6, WORKER, 2, store(4));
        assertEquals(List.of(1_002L, 1_004L), held());
        assertEquals(IndexState.EXACT, stream.state());
        assertEquals(1, plane.status().late());
        assertEquals(1, plane.status().publisherChanges());
    }

    @Test
    void aPublisherThatGoesOnSpeakingHasItsWorkerAgain() {
        keep(1, 5, WORKER, 1, store(1));
        keep(2, 6, WORKER, 1, store(2)); // one too many, which ends soon
        for (int i = 2; i <= 18; i++) {
            keep(1 + i, 5, WORKER, i, store(i));
        }
        assertEquals(List.of(1_018L), held());
        assertEquals(IndexState.DEGRADED, stream.state(), "what it said meanwhile is not known");
        assertEquals(16, plane.status().late());
        assertEquals(2, plane.status().publisherChanges());
    }

    @Test
    void withoutAPublisherTheSameFirstEventsAreTakenForTheOnesBefore() {
        keep(1, EventPlane.NO_PUBLISHER, WORKER, 1, store(1));
        keep(2, EventPlane.NO_PUBLISHER, WORKER, 2, store(2));
        keep(3, EventPlane.NO_PUBLISHER, WORKER, 1, store(1));
        assertEquals(List.of(1_001L, 1_002L), held(), "block 2 is believed, and is not there");
    }

    @Test
    void moreUnknownWorkersThanAreKeptApartMayBeAnyWorker() {
        plane.keepsMessages();
        for (int worker = 0; worker < 2 * DetachedWorkers.MOST; worker++) {
            keep(1 + worker, 0, 100 + worker, 1, store(1));
        }
        assertEquals(DetachedWorkers.MOST, plane.unknownWorkers().size());
        assertEquals(2 * DetachedWorkers.MOST, plane.status().unknownEvents());
        plane.register(8, 0, stream("never seen", 2, 0));
        assertTrue(plane.isAgainWanted());
    }

    @Test
    void whoseEventsTheTransportHasNoMoreIsAsOneThatHasNotSpoken() {
        plane.keepsMessages();
        for (int worker = 0; worker <= DetachedWorkers.MOST; worker++) {
            keep(1 + worker, 0, 100 + worker, 1, store(1));
        }
        plane.keptFrom(DetachedWorkers.MOST + 1);
        plane.register(8, 0, stream("late", 2, 0));
        assertTrue(plane.isAgainWanted(), "the last message may be its");
        plane.beginsAgainAfter();
        plane.keptFrom(DetachedWorkers.MOST + 2);
        plane.register(9, 0, stream("later", 3, 0));
        plane.register(100, 0, stream("seen long ago", 3, 0));
        assertFalse(plane.isAgainWanted());
    }

    @Test
    void manyWorkersThatHaveDepartedAreNotTakenForOneThatIsNew() {
        plane.keepsMessages();
        final int departed = DetachedWorkers.MOST + 1;
        for (int i = 0; i < departed; i++) {
            plane.register(100 + i, 0, stream("short-lived", 2, 0));
            keep(1 + i, 0, 100 + i, 1, store(1));
            plane.remove(100 + i, 0);
        }
        plane.register(8, 0, stream("never seen", 2, 0));
        assertFalse(plane.isAgainWanted());
        plane.register(100, 0, stream("back again", 3, 0));
        assertTrue(plane.isAgainWanted());
    }

    @Test
    void anEventThatWaitsForTheOneBeforeItIsNotAppliedYet() {
        keep(1, 0, WORKER, 1, store(1));
        assertTrue(plane.isApplied());
        keep(2, 0, WORKER, 3, store(3));
        assertFalse(plane.isApplied(), "an acknowledgement now would be for nothing");
        keep(3, 0, WORKER, 2, store(2));
        assertTrue(plane.isApplied());
    }

    @Test
    void aStatusDoesNotWaitForRoomInTheRing() throws InterruptedException {
        full = true;
        final Thread transport =
                Thread.ofPlatform().start(() -> publishJson(WORKER, 0, 1, store(1)));
        final long since = System.nanoTime();
        while (plane.status().messages() == 0) {
            assertTrue(System.nanoTime() - since < TimeUnit.MINUTES.toNanos(1));
            Thread.onSpinWait();
        }
        plane.onWaiting(17);
        assertEquals(17, plane.status().waiting(), "read while the event waits");
        assertTrue(transport.isAlive());
        full = false;
        transport.join();
        assertEquals(List.of(1_001L), held());
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
    void missedMessagesOfAnyNumbersAreNeverFewerThanBefore() {
        for (int publisher = 5; publisher < 8; publisher++) {
            publish(publisher, 0, WORKER, 1, store(1));
            publish(publisher, Long.MAX_VALUE - 1, WORKER, 2, store(2));
        }
        assertEquals(Long.MAX_VALUE, plane.status().missedMessages());
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

    private void keep(long number, long worker, long id) {
        final KvBatch batch = store(id);
        final byte[] bytes = RouterEventWriter.json(worker, 0, id, batch, batch.first());
        plane.onKept(bytes, 0, bytes.length, number, EventPlane.NO_PUBLISHER);
        plane.settle();
    }

    @Test
    void aStreamThatWasRestoredGetsWhatCameAfterItsSnapshotAlone() {
        plane.keepsMessages();
        plane.onResumed(at(9));
        final EngineStream restored = restored("restored", 8, 2); // as of event 3, message 11
        keep(10, 8, 2);
        keep(11, 8, 3);
        keep(12, 8, 4);
        keep(13, WORKER, 1);
        assertEquals(1, restored.status().messages());
        assertEquals(4, restored.status().lastSequence());
        assertEquals(1, stream.status().messages());
    }

    @Test
    void whatIsInTheIndexIsVouchedFor() {
        plane.keepsMessages();
        plane.onResumed(at(4));
        assertEquals(4, plane.vouchesUpTo(STORE, 1));
        keep(5, WORKER, 1);
        keep(6, WORKER, 2);
        assertEquals(6, plane.vouchesUpTo(STORE, 1));
        final KvBatch batch = store(4);
        final byte[] early = RouterEventWriter.json(WORKER, 0, 4, batch, batch.first());
        plane.onKept(early, 0, early.length, 7, EventPlane.NO_PUBLISHER);
        plane.settle();
        assertEquals(6, plane.vouchesUpTo(STORE, 1), "it waits for the one before it");
        keep(8, WORKER, 3);
        assertEquals(8, plane.vouchesUpTo(STORE, 1));
    }

    @Test
    void whatWasLeftOutIsVouchedForOnceItHasComeAgain() {
        plane.keepsMessages();
        keep(1, WORKER, 1);
        keep(2, 8, 1);
        keep(3, WORKER, 2);
        assertEquals(1, plane.vouchesUpTo(NO_STORE, 1));
        plane.register(8, 0, stream("late", 2, 0));
        assertTrue(plane.isAgainWanted());
        keep(4, 8, 2);
        assertEquals(1, plane.vouchesUpTo(NO_STORE, 1), "it gets nothing before all comes again");
        assertEquals(0, plane.beginsAgainAfter());
        assertEquals(0, plane.vouchesUpTo(NO_STORE, 1));
        keep(1, WORKER, 1);
        keep(2, 8, 1);
        keep(3, WORKER, 2);
        keep(4, 8, 2);
        assertEquals(4, plane.vouchesUpTo(NO_STORE, 1));
    }

    @Test
    void ofAWorkerThatJoinsAnewNoMoreIsVouchedForThanWasRestored() {
        plane.keepsMessages();
        plane.onResumed(at(11));
        restored("before", 8, 2); // as of event 3, message 11
        keep(12, 8, 4);
        keep(13, WORKER, 1);
        assertEquals(13, plane.vouchesUpTo(STORE, 10));
        plane.remove(8, 0);
        final EngineStream restored = restored("anew", 8, 2);
        keep(14, WORKER, 2);
        assertEquals(11, plane.vouchesUpTo(STORE, 10), "it gets nothing before all comes again");
        assertEquals(11, plane.beginsAgainAfter());
        keep(12, 8, 4);
        assertEquals(12, plane.vouchesUpTo(STORE, 10));
        assertEquals(4, restored.status().lastSequence());
    }

    @Test
    void ofAWorkerThatWasRestoredBeforeTheStartNoMoreIsVouchedFor() {
        plane.keepsMessages();
        plane.onResumed(at(20));
        keep(21, WORKER, 1);
        restored("behind", 8, 2); // as of message 11
        assertEquals(11, plane.vouchesUpTo(STORE, 10));
        assertEquals(11, plane.beginsAgainAfter());
    }

    @Test
    void aWorkerThatIsAheadOfTheTransportSkipsNothingOfOthers() {
        plane.keepsMessages();
        plane.onResumed(at(4));
        keep(5, 8, 1); // left out
        keep(6, WORKER, 1);
        final EngineStream ahead = restored("ahead", 8, 2); // as another router had it, message 11
        assertEquals(6, plane.beginsAgainAfter());
        keep(7, WORKER, 2);
        keep(11, 8, 3);
        keep(12, 8, 4);
        assertEquals(2, stream.status().lastSequence());
        assertEquals(4, ahead.status().lastSequence());
        assertEquals(12, plane.vouchesUpTo(STORE, 1));
    }

    @Test
    void whatAWorkerHasSaidBeforeItWasRemovedIsNotVouchedForAgain() {
        plane.keepsMessages();
        plane.register(8, 0, stream("before", 2, 0));
        keep(1, WORKER, 1);
        keep(2, 8, 1);
        plane.remove(8, 0);
        keep(3, WORKER, 2);
        keep(4, 8, 2); // left out
        assertEquals(3, plane.vouchesUpTo(NO_STORE, 1));
        plane.register(8, 0, stream("after", 2, 0));
        assertEquals(0, plane.vouchesUpTo(NO_STORE, 1));
    }

    @Test
    void whatTheTransportHasNoMoreKeepsNothingBack() {
        plane.keepsMessages();
        keep(1, WORKER, 1);
        keep(2, 8, 1);
        keep(3, 8, 2);
        keep(4, WORKER, 2);
        assertEquals(
                2,
                plane.vouchesUpTo(NO_STORE, 3),
                "the second of the unknown worker is still there");
        assertEquals(4, plane.vouchesUpTo(NO_STORE, 4));
        keep(5, 8, 3);
        assertEquals(4, plane.vouchesUpTo(NO_STORE, 4));
    }

    @Test
    void moreUnknownWorkersThanAreKeptApartKeepBackAllTheSame() {
        plane.keepsMessages();
        keep(1, WORKER, 1);
        for (int i = 0; i < 2_000; i++) {
            keep(2 + i, 1_000 + i, 1);
        }
        assertEquals(1, plane.vouchesUpTo(NO_STORE, 1));
        assertEquals(1_999, plane.vouchesUpTo(NO_STORE, 2_000));
        assertEquals(2_001, plane.vouchesUpTo(NO_STORE, 2_002));
    }

    @Test
    void aStreamMadeAnewIsReadFromItsFirstNumber() {
        plane.keepsMessages();
        plane.onResumed(at(100));
        keep(101, WORKER, 1);
        keep(102, 8, 1);
        plane.onRenumbered(STORE);
        assertEquals(0, plane.vouchesUpTo(STORE, 1));
        keep(1, WORKER, 2);
        assertEquals(1, plane.vouchesUpTo(STORE, 1));
        assertEquals(2, stream.status().lastSequence());
    }

    @Test
    void aWorkerThatIsRestoredBeforeTheStoreIsKnownIsNotTakenForRestarted() {
        plane.keepsMessages();
        final EngineStream restored = restored("early", 8, 2); // as of event 3, message 11
        plane.onRenumbered(STORE);
        keep(10, 8, 2);
        keep(11, 8, 3);
        keep(12, 8, 4);
        assertEquals(1, restored.status().messages());
        assertEquals(4, restored.status().lastSequence());
        assertEquals(0, restored.status().restarts());
        assertEquals(12, plane.heldUpTo(8, 0, 12, 9));
    }

    @Test
    void whatASlotHasIsNotSaidInNumbersOfAStoreThatIsNoMore() {
        plane.keepsMessages();
        plane.onResumed(at(100));
        keep(101, WORKER, 1);
        plane.settle();
        assertEquals(0, plane.vouchesUpTo(STORE + 1, 1), "it is not read yet");
        assertEquals(101, plane.heldUpTo(WORKER, 0, 101, 100));
        plane.onRenumbered(STORE + 1);
        assertEquals(0, plane.vouchesUpTo(STORE, 1));
        assertEquals(2, plane.heldUpTo(WORKER, 0, 101, 2), "nothing has come since");
        keep(3, WORKER, 2);
        assertEquals(EventPlane.NOT_KNOWN, plane.heldUpTo(WORKER, 0, 101, 2));
        keep(4, WORKER, 3);
        assertEquals(4, plane.heldUpTo(WORKER, 0, 4, 3));
        assertEquals(EventPlane.NOT_KNOWN, plane.heldUpTo(1_000, 0, 4, 3), "it was removed");
    }

    @Test
    void aBatchSaysUpToWhichMessageAllOfItsWorkerAreInIt() {
        final List<String> batches = new ArrayList<>();
        final EngineStream shared =
                new EngineStream(
                        SourceConfig.ofRouterEvents("w", 1, BLOCK),
                        batch -> batches.add(batch.sequence() + "@" + batch.position()),
                        () -> nowNs);
        pass(shared, 1, 10);
        pass(shared, 3, 11); // overtook the next one
        pass(shared, 2, 12);
        pass(shared, 4, 20);
        pass(shared, 6, 21); // waits for number 5, which never comes
        pass(shared, 8, 30); // waits in its turn
        nowNs += TimeUnit.SECONDS.toNanos(1);
        shared.tick();
        assertEquals(List.of("1@10", "2@10", "3@12", "4@20", "6@29", "8@30"), batches);
    }

    private static void pass(EngineStream to, long id, long number) {
        final KvBatch batch = store(id);
        final byte[] bytes = RouterEventWriter.json(WORKER, 0, id, batch, batch.first());
        to.onMessage(id, number, bytes, 0, bytes.length);
    }

    /** A stream whose slot was restored as of event 3, and message 11 of the transport. */
    private EngineStream restored(String name, long worker, int slot) {
        final EngineStream restored = stream(name, slot, 0);
        restored.startAfter(
                new StreamStart(
                        3,
                        1,
                        true,
                        0,
                        new StreamMemory(RemovalRule.LAST_COPY, DecoderMemory.NONE)));
        assertEquals(IndexState.STALE, restored.state());
        plane.register(worker, 0, restored, at(11));
        return restored;
    }

    @Test
    void aStreamThatIsRestoredIsBelievedWhenAllHasComeThatCameAfterItsSnapshot() {
        plane.keepsMessages();
        plane.onDisconnected("not yet");
        plane.onResumed(at(11));
        final EngineStream before = restored("before", 8, 2);
        assertEquals(IndexState.STALE, before.state());
        keep(12, WORKER, 1);
        plane.onCaughtUp();
        assertEquals(IndexState.EXACT, before.state());
        assertEquals(IndexState.EXACT, restored("after", 9, 3).state());
    }

    @Test
    void aStreamThatIsRestoredIsNotBelievedWhereMessagesAreMissing() {
        plane.keepsMessages();
        plane.onResumed(at(11));
        plane.onCaughtUp();
        plane.onMissed("12 to 20 are not kept any more");
        assertEquals(IndexState.STALE, restored("after", 9, 3).state());
    }

    @Test
    void whatMayBeMissingIsSoUntilTheNextEventHoweverOftenAllIsRead() {
        plane.keepsMessages();
        plane.onResumed(at(11));
        final EngineStream one = restored("one", 8, 2);
        final EngineStream other = restored("other", 9, 2);
        plane.onDisconnected("not yet");
        plane.onMissed("the stream was made anew");
        keep(12, 9, 4);
        for (int i = 0; i < 2; i++) {
            plane.onCaughtUp();
            assertEquals(IndexState.STALE, one.state());
            assertEquals("the stream was made anew", one.status().problem());
            assertEquals(IndexState.EXACT, other.state());
            plane.onDisconnected("for a moment");
        }
        plane.onCaughtUp();
        keep(13, 8, 4);
        assertEquals(IndexState.EXACT, one.state());
        plane.onDisconnected("for a moment");
        plane.onCaughtUp();
        assertEquals(IndexState.EXACT, one.state());
    }

    @Test
    void aSnapshotFromTheMiddleOfAMessageIsGoneOnWithByTheRestOfIt() {
        plane.keepsMessages();
        plane.onResumed(at(10));
        final EngineStream middle = restored("middle", 8, 2); // as of event 3, message 11
        keepMany(11, 8, 1, 5);
        assertEquals(5, middle.status().lastSequence());
        assertEquals(2, middle.status().messages(), "4 and 5 alone");
        keepMany(11, 8, 1, 5); // all is read again
        keepMany(12, 8, 6, 7);
        assertEquals(4, middle.status().messages());
        assertEquals(0, middle.status().restarts());
        assertEquals(0, middle.status().gaps());
    }

    private void keepMany(long number, long worker, long firstId, long lastId) {
        final KvBatch batch = empty();
        for (long id = firstId; id <= lastId; id++) {
            batch.addStored(true, 0, new long[] {id}, new long[] {id * 1_000}, 1);
        }
        final byte[] bytes =
                RouterEventWriter.envelope(
                        5,
                        number,
                        0,
                        "kv-events",
                        RouterEventWriter.payload(worker, 0, firstId, batch));
        plane.onKept(bytes, 0, bytes.length, number, EventPlane.NO_PUBLISHER);
    }
}
