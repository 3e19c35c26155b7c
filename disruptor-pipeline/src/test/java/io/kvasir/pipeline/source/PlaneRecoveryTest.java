package io.kvasir.pipeline.source;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.kvasir.core.index.PrefixIndex;
import io.kvasir.core.index.PrefixIndexConfig;
import io.kvasir.pipeline.events.IndexApplier;
import io.kvasir.pipeline.wire.KvBatch;
import io.kvasir.pipeline.wire.RecoveryAnswer;
import io.kvasir.pipeline.wire.RecoveryAnswer.Kind;
import io.kvasir.pipeline.wire.RecoveryQuery;
import io.kvasir.pipeline.wire.RouterEventWriter;
import io.kvasir.pipeline.wire.RouterMessage;

import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Order;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

import java.io.IOException;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Set;
import java.util.TreeSet;
import java.util.concurrent.TimeUnit;

/** What a plane asks of local indexers, and what it makes of their answers. */
@Order(1) // takes long: begins first, beside the others
class PlaneRecoveryTest {
    private static final long WORKER = 100;
    private static final int SLOT = 0;
    private static final int RING = 4;
    private static final int PART_BYTES = 1_200;
    private static final int WORKERS = 40;
    private static final long SECOND_NS = TimeUnit.SECONDS.toNanos(1);

    /** A query that was sent. */
    private record Asked(long id, RecoveryQuery query) {}

    private final PrefixIndex index =
            new PrefixIndex(new PrefixIndexConfig(WORKERS + 1, 1 << 14, 1 << 14));
    private final IndexApplier applier = new IndexApplier(index);
    private final EventPlane plane = new EventPlane(EventPlane.KNOWN_ONLY, () -> this.nowNs);
    private final List<Asked> asked = new ArrayList<>();
    private final SimulatedWorker worker = new SimulatedWorker(WORKER, SLOT, RING, this::arrive);
    private final EngineStream stream = stream(SLOT);
    private int room = Integer.MAX_VALUE; // batches
    private boolean losing;
    private boolean reachable = true;
    private long nowNs = 1;

    PlaneRecoveryTest() {
        plane.recoverOver(this::ask, RecoveryLimits.DEFAULT);
    }

    @AfterEach
    void closeIndex() {
        index.close();
    }

    private EngineStream stream(int slot) {
        return new EngineStream(
                SourceConfig.ofRouterEvents("w" + slot, slot, 1),
                batch -> (isClear(batch) || room-- > 0) && applier.offer(batch),
                () -> nowNs);
    }

    private static boolean isClear(KvBatch batch) {
        return batch.operations() == 1 && batch.kind(batch.first()) == KvBatch.Kind.CLEARED;
    }

    private boolean ask(long id, RecoveryQuery query) {
        asked.add(new Asked(id, query));
        return reachable;
    }

    private void arrive(byte[] message) {
        if (!losing) {
            plane.onMessage(message, 0, message.length);
        }
    }

    private void register() {
        plane.register(WORKER, 0, stream);
        plane.tick();
    }

    /** The worker is known from its first event on. */
    private void registerAndLoad() {
        register();
        answer();
        assertEquals(IndexState.EXACT, stream.state());
        asked.clear();
    }

    private void pass(long seconds) {
        nowNs += seconds * SECOND_NS;
        plane.tick();
    }

    private Asked last() {
        return asked.getLast();
    }

    private List<byte[]> parts() {
        return worker.indexer().answer(last().query.toBytes(), PART_BYTES);
    }

    private void answer() {
        answer(last().id, parts());
    }

    private void answer(long id, List<byte[]> parts) {
        parts.forEach(part -> plane.onAnswer(id, part));
    }

    private void lose(int events) throws IOException {
        losing = true;
        for (int i = 0; i < events; i++) {
            worker.store(null, 1_000 + worker.lastEventId());
        }
        losing = false;
    }

    private Set<String> held() {
        return held(SLOT);
    }

    private Set<String> held(int ofSlot) {
        final Set<String> all = new TreeSet<>();
        index.forEach(
                (slot, name, sequence, copies) -> {
                    if (slot == ofSlot) {
                        all.add(name + " " + sequence);
                    }
                });
        return all;
    }

    private void assertRight() {
        assertEquals(worker.held(), held());
        assertEquals(IndexState.EXACT, stream.state(), stream.status().problem());
    }

    @Test
    void aWorkerThatIsJoinedLateIsLoadedFromItsDumpAndTheEventsThatCameMeanwhileFollow()
            throws IOException {
        for (int name = 1; name <= 50; name++) {
            worker.store(name == 1 ? null : (long) name - 1, name);
        }
        worker.remove(20); // a hole
        register();
        assertEquals(IndexState.LOADING, stream.state());
        assertEquals(0, last().query.startEventId());
        worker.store(50L, 51); // waits
        final List<byte[]> parts = parts();
        worker.store(51L, 52);
        assertTrue(parts.size() > 1, parts.size() + " parts");
        assertEquals(Set.of(), held());
        answer(last().id, parts);
        assertRight();
        assertEquals(1, plane.status().recoveredDumps());
        worker.store(19L, 20);
        assertRight();
        assertEquals(0, stream.status().gaps());
        assertEquals(1, asked.size());
    }

    /** A worker that has not answered yet is in another life, and its numbers seem to go on. */
    private void restartUnseen() throws IOException {
        register();
        plane.onNoAnswerer(last().id);
        worker.store(null, 1);
        worker.restart(false);
        lose(1);
        worker.store(null, 2);
    }

    @Test
    void aNewLifeWhoseFirstEventsAreLostIsAskedForThoughItsNumbersGoOn() throws IOException {
        restartUnseen();
        assertEquals(IndexState.RESYNC, stream.state());
        plane.tick();
        answer();
        assertRight();
    }

    @Test
    void aPublisherThatGoesOnWithTheNumbersAndAnswersNothingIsBelieved() throws IOException {
        restartUnseen();
        plane.tick();
        plane.onNoAnswerer(last().id);
        assertEquals(2, held().size());
        assertEquals(IndexState.EXACT, stream.state(), stream.status().problem());
    }

    @Test
    void aGapIsFilledWithTheEventsThatAreMissing() throws IOException {
        registerAndLoad();
        worker.store(null, 1);
        lose(2);
        worker.store(1L, 2);
        assertEquals(IndexState.RESYNC, stream.state());
        plane.tick();
        assertEquals(2, last().query.startEventId());
        final List<byte[]> parts = parts();
        worker.store(2L, 3); // waits with the one before
        answer(last().id, parts);
        assertRight();
        assertEquals(1, plane.status().recoveredRanges() - 1, "beside the load");
        assertEquals(0, stream.status().lostMessages());
    }

    @Test
    void aGapBeyondTheRingIsFilledWithADumpWhileWhatIsKnownServes() throws IOException {
        registerAndLoad();
        worker.store(null, 1, 2, 3);
        lose(3 * RING);
        worker.remove(2);
        final Set<String> before = held();
        plane.tick();
        assertEquals(3, before.size());
        answer(last().id, parts().subList(0, 1));
        assertEquals(before, held(), "until all of the dump is there");
        assertEquals(IndexState.RESYNC, stream.state());
        answer(last().id, parts().subList(1, parts().size()));
        assertRight();
    }

    /** The oldest event that is remembered is the one after the last dump. */
    private void loseAllButTheEventsSinceADump() throws IOException {
        worker.store(null, 1);
        lose(3 * RING);
        final byte[] ofAnotherRouter =
                new RecoveryQuery(WORKER, 0, 0, RecoveryQuery.NO_END).toBytes();
        worker.indexer().answer(ofAnotherRouter, PART_BYTES);
        lose(RING - 1);
        worker.store(1L, 2);
        plane.tick();
    }

    @Test
    void aDumpThatWasMadeBeforeEventsWereLostIsUsedTogetherWithThoseAfterIt() throws IOException {
        registerAndLoad();
        loseAllButTheEventsSinceADump();
        answer();
        assertEquals(IndexState.RESYNC, stream.state());
        plane.tick();
        assertEquals(3 * RING + 2, last().query.startEventId());
        answer();
        assertRight();
        assertEquals(0, stream.status().lostMessages());
        assertEquals(1, worker.indexer().counts().dumpsMade());
    }

    @Test
    void aWorkerThatIsSilentNowIsHealedByADumpOlderThanItsLastEventAndThoseAfterIt()
            throws IOException {
        registerAndLoad();
        loseAllButTheEventsSinceADump();
        plane.onNoAnswerer(last().id);
        assertEquals(IndexState.DEGRADED, stream.state());
        pass(60);
        plane.tick();
        assertEquals(0, last().query.startEventId());
        answer();
        assertEquals(IndexState.RESYNC, stream.state());
        plane.tick();
        plane.onNoAnswerer(last().id);
        assertEquals(IndexState.DEGRADED, stream.state(), "the events after the dump are missing");
        pass(60);
        plane.tick();
        answer();
        plane.tick();
        answer();
        assertRight();
        assertEquals(1, worker.indexer().counts().dumpsMade());
        assertEquals(0, stream.status().restarts());
        worker.store(2L, 3);
        assertRight();
    }

    @Test
    void withoutALocalIndexerWhatIsMissingIsLostAndAskedForEverMoreRarely() throws IOException {
        register();
        plane.onNoAnswerer(last().id);
        assertEquals(IndexState.LOADING, stream.state());
        worker.store(null, 1);
        assertRight();
        lose(2);
        worker.store(null, 2);
        plane.tick();
        plane.onNoAnswerer(last().id);
        assertEquals(IndexState.DEGRADED, stream.state());
        assertEquals(2, stream.status().lostMessages());
        assertTrue(stream.status().problem().contains("lost"), stream.status().problem());
        int asks = 0;
        for (int minute = 0; minute < 60; minute++) {
            final int before = asked.size();
            pass(60);
            plane.tick();
            if (asked.size() > before) {
                asks++;
                plane.onNoAnswerer(last().id);
            }
        }
        assertTrue(asks >= 10 && asks <= 40, asks + " times in an hour");
        pass(600);
        plane.tick();
        answer();
        assertRight();
    }

    @Test
    void anAnswerThatNeverComesIsAskedForAgainThenTheWorkerIsDegradedUntilOneComes()
            throws IOException {
        registerAndLoad();
        worker.store(null, 1);
        lose(2);
        worker.store(null, 2);
        plane.tick();
        for (int tries = 1; tries < RecoveryLimits.DEFAULT.tries(); tries++) {
            assertEquals(tries, asked.size());
            assertEquals(IndexState.RESYNC, stream.state());
            pass(30); // no answer
            pass(30); // more than any time between tries
        }
        assertEquals(RecoveryLimits.DEFAULT.tries(), asked.size());
        pass(30);
        assertEquals(IndexState.DEGRADED, stream.state());
        assertEquals(2, stream.status().lostMessages());
        final long late = asked.getFirst().id;
        answer(late, parts());
        assertEquals(IndexState.DEGRADED, stream.state(), "it is waited for no more");
        pass(60);
        answer();
        assertRight();
    }

    @Test
    void theTimeBetweenTriesGrows() throws IOException {
        register();
        final List<Long> times = new ArrayList<>();
        int before = 0;
        while (times.size() < RecoveryLimits.DEFAULT.tries()) {
            if (asked.size() > before) {
                before = asked.size();
                times.add(TimeUnit.NANOSECONDS.toMillis(nowNs));
                plane.onAnswer(last().id, new byte[] {1});
            }
            nowNs += TimeUnit.MILLISECONDS.toNanos(50);
            plane.tick();
        }
        final List<Long> pauses = new ArrayList<>();
        for (int i = 1; i < times.size(); i++) {
            pauses.add((times.get(i) - times.get(i - 1)) / 50 * 50);
        }
        assertEquals(List.of(200L, 400L, 800L, 1_600L, 3_200L, 6_400L, 12_800L), pauses);
    }

    @ParameterizedTest
    @ValueSource(
            strings = {
                "junk",
                "empty",
                "of another worker",
                "of another rank",
                "without a publisher",
                "an error",
                "without its first event",
                "without its last event",
                "without its last part",
                "twice its first part",
                "cut off",
                "too new"
            })
    void anAnswerThatCannotBeUsedChangesNothingThatIsNotTrueAndIsAskedForAgain(String what)
            throws IOException {
        registerAndLoad();
        worker.store(null, 1);
        lose(what.contains("part") ? 40 : 2);
        worker.store(1L, 2);
        plane.tick();
        final long id = last().id;
        final int before = asked.size();
        spoil(what, parts()).forEach(part -> plane.onAnswer(id, part));
        assertEquals(IndexState.RESYNC, stream.state(), what);
        assertTrue(worker.held().containsAll(held()), what);
        pass(31);
        pass(1);
        assertTrue(asked.size() > before, "asked again");
        assertTrue(plane.status().failedRecoveries() > 0);
        answer();
        assertRight();
    }

    private static List<byte[]> spoil(String what, List<byte[]> parts) {
        final RecoveryAnswer first = RecoveryAnswer.read(parts.getFirst());
        return switch (what) {
            case "junk" -> List.of(new byte[] {(byte) 0xc1, 7, 7});
            case "empty" -> List.of(new byte[0]);
            case "of another worker" -> List.of(with(first, WORKER + 1, 0, first.publisherId()));
            case "of another rank" -> List.of(with(first, WORKER, 1, first.publisherId()));
            case "without a publisher" -> List.of(with(first, WORKER, 0, 0));
            case "an error" -> List.of(with(first, Kind.ERROR, first.payload()));
            case "too new" -> List.of(with(first, Kind.TOO_NEW, first.payload()));
            case "without its first event" ->
                    List.of(with(first, Kind.EVENTS, events(first, 1, 3)));
            case "without its last event" -> List.of(with(first, Kind.EVENTS, events(first, 0, 2)));
            case "without its last part" -> parts.subList(0, parts.size() - 1);
            case "twice its first part" -> List.of(parts.getFirst(), parts.getFirst());
            case "cut off" ->
                    List.of(
                            with(
                                    first,
                                    first.kind(),
                                    Arrays.copyOf(first.payload(), first.payload().length - 9)));
            default -> throw new AssertionError(what);
        };
    }

    private static byte[] with(RecoveryAnswer a, long worker, int rank, long publisher) {
        return new RecoveryAnswer(
                        a.kind(),
                        publisher,
                        worker,
                        rank,
                        a.lastEventId(),
                        a.lostEventId(),
                        0,
                        1,
                        "",
                        a.payload())
                .toBytes();
    }

    private static byte[] with(RecoveryAnswer a, Kind kind, byte[] payload) {
        return new RecoveryAnswer(
                        kind,
                        a.publisherId(),
                        WORKER,
                        0,
                        a.lastEventId(),
                        a.lostEventId(),
                        0,
                        1,
                        "",
                        payload)
                .toBytes();
    }

    /** Events of an answer by their position, from the first one up to before the last one. */
    private static byte[] events(RecoveryAnswer of, int first, int end) {
        final RouterMessage events = new RouterMessage();
        events.wrapPayload(of.payload(), 0, of.payload().length);
        final List<byte[]> list = new ArrayList<>();
        for (int i = 0; events.next(); i++) {
            if (i >= first && i < end) {
                list.add(
                        Arrays.copyOfRange(
                                of.payload(),
                                events.eventOffset(),
                                events.eventOffset() + events.eventLength()));
            }
        }
        return RouterEventWriter.payload(list);
    }

    @Test
    void theAnswerOfALifeThatHasEndedMeanwhileIsRefused() throws IOException {
        registerAndLoad();
        worker.store(null, 1);
        lose(3 * RING);
        worker.store(1L, 2);
        plane.tick();
        final List<byte[]> ofFormerLife = parts();
        final long id = last().id;
        worker.restart(true);
        worker.store(null, 7);
        assertRight();
        answer(id, ofFormerLife);
        assertRight();
        plane.tick();
        assertRight();
    }

    @Test
    void aLateEventOfALifeThatWasNotKnownDoesNotEndTheOneThatAnswersForEver() throws IOException {
        final List<byte[]> late = new ArrayList<>();
        final SimulatedWorker before = new SimulatedWorker(WORKER, SLOT, RING, late::add);
        before.store(null, 5);
        before.store(5L, 6);
        registerAndLoad();
        worker.store(null, 1);
        arrive(late.getLast());
        for (int i = 0; i < 20 && stream.state() != IndexState.EXACT; i++) {
            pass(60);
            plane.tick();
            answer();
        }
        assertRight();
    }

    @Test
    void aSilentWorkerIsAskedForWhatCameAfterADumpThatIsRemembered() throws IOException {
        worker.store(null, 1);
        lose(2 * RING);
        register();
        answer();
        assertRight();
        lose(RING);
        pass(30); // the tail is asked for
        plane.tick();
        answer();
        assertRight();
        assertEquals(1, worker.indexer().counts().dumpsMade());
    }

    @Test
    void theDumpOfAnOlderLifeIsRefusedWhileANewerOneIsAskedFor() throws IOException {
        registerAndLoad();
        worker.store(null, 1);
        lose(3 * RING);
        worker.store(1L, 2);
        plane.tick();
        final List<byte[]> ofFormerLife = parts();
        losing = true;
        worker.restart(true);
        worker.store(null, 7);
        losing = false;
        worker.store(7L, 8); // the first one of the new life that is read
        plane.tick();
        answer(last().id, ofFormerLife);
        assertEquals(
                Set.of(), held(), "its blocks are cleared, and those of the other are not here");
        pass(1);
        answer();
        assertRight();
    }

    @Test
    void aRestartThatWasMissedShowsInTheAnswer() throws IOException {
        registerAndLoad();
        for (int name = 1; name < 30; name++) {
            worker.store(null, name);
        }
        losing = true;
        worker.restart(false);
        worker.store(null, 70);
        losing = false;
        pass(30); // nothing comes: the tail is asked for
        assertEquals(30, last().query.startEventId());
        answer();
        assertEquals(1, stream.status().restarts());
        pass(1);
        assertEquals(0, last().query.startEventId());
        answer();
        assertRight();
        worker.store(70L, 71);
        assertRight();
        assertEquals(1, plane.status().publisherChanges());
    }

    @Test
    void whatWasLostLastIsFoundByAskingASilentWorker() throws IOException {
        registerAndLoad();
        worker.store(null, 1);
        lose(2);
        assertEquals(IndexState.EXACT, stream.state(), "nothing tells");
        pass(29);
        assertEquals(0, asked.size());
        pass(1);
        answer();
        assertRight();
        pass(31);
        answer();
        assertRight();
    }

    @Test
    void moreLiveEventsThanCanWaitAreAskedForAgain() throws IOException {
        registerAndLoad();
        worker.store(null, 1);
        lose(2);
        worker.store(null, 2);
        plane.tick();
        final List<byte[]> parts = parts();
        for (int name = 1; name <= 3_000; name++) {
            worker.store(null, 10_000 + name);
        }
        answer(last().id, parts);
        assertEquals(IndexState.RESYNC, stream.state());
        plane.tick();
        answer();
        assertRight();
    }

    @Test
    void noMoreThanSomeWorkersAreAskedAtOnceAndAllInTheEnd() {
        final List<EngineStream> streams = new ArrayList<>();
        final List<SimulatedWorker> workers = new ArrayList<>();
        for (int i = 0; i < WORKERS; i++) {
            workers.add(new SimulatedWorker(i, i, RING, bytes -> {}));
            streams.add(stream(i));
            plane.register(i, 0, streams.getLast());
        }
        plane.tick();
        plane.tick();
        assertEquals(16, asked.size());
        assertEquals(16, plane.status().recovering());
        for (int i = 0; i < asked.size(); i++) {
            final Asked next = asked.get(i);
            final SimulatedWorker of = workers.get((int) next.query.workerId());
            answer(next.id, of.indexer().answer(next.query.toBytes(), PART_BYTES));
            plane.tick();
            assertTrue(plane.status().recovering() <= 16);
        }
        assertEquals(WORKERS, asked.size());
        streams.forEach(each -> assertEquals(IndexState.EXACT, each.state()));
    }

    @Test
    void aDumpThatIsTooLargeIsRefusedBeforeAllOfItIsHere() throws IOException {
        final EventPlane small = new EventPlane(EventPlane.KNOWN_ONLY, () -> this.nowNs);
        small.recoverOver(
                this::ask, new RecoveryLimits(16, 1, 1, SECOND_NS, SECOND_NS, 10_000, 1 << 20, 1));
        for (int name = 1; name <= 100; name++) {
            worker.store(null, name);
        }
        small.register(WORKER, 0, stream);
        small.tick();
        for (byte[] part : parts()) {
            small.onAnswer(last().id, part);
        }
        assertEquals(IndexState.LOADING, stream.state());
        assertEquals(0, small.status().recoveredDumps());
        assertEquals(1, small.status().failedRecoveries());
        assertTrue(
                stream.status().problem().contains("dumps have no room"),
                stream.status().problem());
    }

    @Test
    void aWorkerThatIsRemovedOrALostConnectionEndsTheQuery() throws IOException {
        register();
        plane.remove(WORKER, 0);
        answer();
        assertEquals(0, plane.status().recovering());
        plane.register(WORKER, 0, stream);
        plane.tick();
        plane.onDisconnected("cut");
        assertEquals(0, plane.status().recovering());
        worker.store(null, 1);
        answer();
        final int before = asked.size();
        plane.tick();
        assertEquals(before, asked.size(), "nothing is asked without a connection");
        plane.onConnected();
        plane.tick();
        answer();
        assertRight();
        reachable = false;
        lose(2);
        worker.store(null, 2);
        plane.tick();
        assertEquals(0, plane.status().recovering());
        reachable = true;
        pass(1);
        answer();
        assertRight();
    }

    @Test
    void whatThePublisherItselfHasMissedIsLostUntilAClear() throws IOException {
        registerAndLoad();
        worker.store(null, 1);
        worker.skip();
        worker.store(null, 2);
        pass(1); // not overtaken
        answer();
        assertEquals(IndexState.DEGRADED, stream.state());
        assertEquals(1, stream.status().lostMessages());
        lose(3 * RING);
        worker.store(null, 3);
        plane.tick();
        answer();
        assertEquals(worker.held(), held());
        assertEquals(IndexState.DEGRADED, stream.state());
        assertTrue(
                stream.status().problem().contains("lost events of the engine"),
                stream.status().problem());
        worker.clear();
        assertRight();
    }

    @Test
    void aLiveEventThatADumpHasAlreadyIsNoNewLife() throws IOException {
        losing = true;
        worker.store(null, 1);
        worker.store(1L, 2);
        losing = false;
        final List<byte[]> late = new ArrayList<>();
        final SimulatedWorker slow = new SimulatedWorker(WORKER, SLOT, RING, late::add);
        for (int name = 1; name <= 2 * RING; name++) {
            slow.store(null, name);
        }
        register();
        answer(last().id, slow.indexer().answer(last().query.toBytes(), PART_BYTES));
        late.forEach(this::arrive);
        assertEquals(slow.held(), held());
        assertEquals(IndexState.EXACT, stream.state());
        assertEquals(0, stream.status().restarts());
        assertEquals(2 * RING, stream.status().duplicates());
    }

    @Test
    void aDumpThatFindsNoRoomInItsMiddleIsClearedAndAskedForAgain() throws IOException {
        registerAndLoad();
        worker.store(null, 1, 2, 3);
        lose(3 * RING);
        worker.remove(2);
        lose(4 * RING);
        plane.tick();
        assertTrue(parts().size() > 3);
        room = 2;
        answer(); // waits for room in vain
        assertEquals(IndexState.LOADING, stream.state());
        assertEquals(Set.of(), held(), "not the half of it");
        assertTrue(plane.status().failedRecoveries() > 0);
        room = Integer.MAX_VALUE;
        pass(1);
        answer();
        assertRight();
    }

    @Test
    void anAnswerThatHasNoEndIsGivenUp() throws IOException {
        registerAndLoad();
        worker.store(null, 1);
        lose(2);
        worker.store(null, 2);
        plane.tick();
        final long id = last().id;
        final RecoveryAnswer answer = RecoveryAnswer.read(parts().getFirst());
        final byte[] nothing = RouterEventWriter.payload(List.of());
        for (int part = 0; last().id == id && part < 1_000; part++) {
            plane.onAnswer(id, with(answer, part, Integer.MAX_VALUE, nothing));
            pass(1);
        }
        assertEquals(2, asked.size());
        assertEquals(1, plane.status().failedRecoveries());
        answer();
        assertRight();
    }

    private static byte[] with(RecoveryAnswer a, int part, int parts, byte[] payload) {
        return new RecoveryAnswer(
                        a.kind(),
                        a.publisherId(),
                        WORKER,
                        0,
                        a.lastEventId(),
                        a.lostEventId(),
                        part,
                        parts,
                        "",
                        payload)
                .toBytes();
    }

    @Test
    void theNextWorkerIsAskedAsSoonAsOneHasAnsweredOrNothingAnswersForIt() {
        final List<SimulatedWorker> workers = new ArrayList<>();
        for (int i = 0; i < WORKERS; i++) {
            workers.add(new SimulatedWorker(i, i, RING, bytes -> {}));
            plane.register(i, 0, stream(i));
        }
        plane.tick();
        for (int i = 0; i < asked.size(); i++) {
            final Asked next = asked.get(i);
            if (i % 2 == 0) {
                plane.onNoAnswerer(next.id);
            } else {
                final SimulatedWorker of = workers.get((int) next.query.workerId());
                answer(next.id, of.indexer().answer(next.query.toBytes(), PART_BYTES));
            }
        }
        assertEquals(WORKERS, asked.size(), "without another tick");
    }

    @Test
    void liveEventsOfAllWorkersThatWaitAreBoundedTogether() throws IOException {
        final int most = 20_000;
        final EventPlane small = new EventPlane(EventPlane.KNOWN_ONLY, () -> this.nowNs);
        small.recoverOver(
                this::ask,
                new RecoveryLimits(1, 8, 1, SECOND_NS, SECOND_NS, 1 << 20, most, SECOND_NS));
        final List<SimulatedWorker> workers = new ArrayList<>();
        final List<EngineStream> streams = new ArrayList<>();
        for (int i = 0; i < WORKERS; i++) {
            workers.add(
                    new SimulatedWorker(
                            i, i, 8 * RING, bytes -> small.onMessage(bytes, 0, bytes.length)));
            streams.add(stream(i));
            small.register(i, 0, streams.getLast());
        }
        final HeldBytes all = small.waitingForAnswers();
        for (int name = 1; name <= 100; name++) {
            for (SimulatedWorker each : workers) {
                each.store(null, name);
            }
            assertTrue(all.used() <= most + WORKERS * 400L, all.used() + " bytes"); // one of each
        }
        assertTrue(all.used() > most / 2);
        int answered = 0;
        for (int round = 0; streams.stream().anyMatch(this::isNotRight); round++) {
            nowNs++;
            small.tick();
            if (answered < asked.size()) {
                final Asked next = asked.get(answered++);
                final SimulatedWorker of = workers.get((int) next.query.workerId());
                of.indexer()
                        .answer(next.query.toBytes(), PART_BYTES)
                        .forEach(part -> small.onAnswer(next.id, part));
            }
            assertTrue(round < 100 * WORKERS, "it has no end");
        }
        assertEquals(0, all.used());
        for (SimulatedWorker each : workers) {
            assertEquals(each.held(), held(each.slot));
        }
    }

    private boolean isNotRight(EngineStream each) {
        return each.state() != IndexState.EXACT;
    }

    @Test
    void whatWaitsForAnAnswerIsNotAppliedAndAClosedStreamHasNothingThatWaits() throws IOException {
        registerAndLoad();
        worker.store(null, 1);
        assertTrue(plane.isApplied());
        lose(2);
        worker.store(null, 2);
        assertFalse(plane.isApplied(), "it waits");
        assertTrue(plane.waitingForAnswers().used() > 0);
        stream.close();
        assertTrue(plane.isApplied());
        assertEquals(0, plane.waitingForAnswers().used());
    }

    @Test
    void aPlaneWithKeptMessagesAsksNoLocalIndexers() {
        final EventPlane kept = new EventPlane(EventPlane.KNOWN_ONLY);
        kept.keepsMessages();
        assertThrows(IllegalStateException.class, () -> kept.recoverOver(this::ask));
        kept.register(WORKER, 0, stream);
        kept.onConnected();
        kept.tick();
        assertEquals(List.of(), asked);
        assertThrows(IllegalStateException.class, plane::keepsMessages);
        assertThrows(IllegalStateException.class, () -> plane.recoverOver(this::ask));
    }

    @Test
    void whatAFormerProcessHasKeptIsNoPositionOfAPlaneThatIsRecovered() throws IOException {
        final List<PlanePosition> kept = new ArrayList<>();
        final EventPlane of =
                new EventPlane(EventPlane.KNOWN_ONLY, kept::add, new PlanePosition(5, 20));
        of.recoverOver(this::ask);
        worker.store(null, 1);
        stream.startAfter(new StreamStart(3, 0, true, 0, stream.memory())); // of JetStream's events
        of.register(WORKER, 0, stream, new PlanePosition(5, 18));
        of.tick();
        answer(last().id, parts(), of);
        of.tick();
        answer(last().id, parts(), of);
        assertRight();
        assertEquals(List.of(), kept, "what the index has is no prefix of kept messages");
    }

    private static void answer(long id, List<byte[]> parts, EventPlane of) {
        parts.forEach(part -> of.onAnswer(id, part));
    }
}
