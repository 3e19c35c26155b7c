package io.kvasir.pipeline.source;

import static io.kvasir.pipeline.source.Messages.batch;
import static io.kvasir.pipeline.source.Messages.cleared;
import static io.kvasir.pipeline.source.Messages.pack;
import static io.kvasir.pipeline.source.Messages.range;
import static io.kvasir.pipeline.source.Messages.removed;
import static io.kvasir.pipeline.source.Messages.stored;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.kvasir.core.index.PrefixIndex;
import io.kvasir.core.index.PrefixIndexConfig;
import io.kvasir.pipeline.events.IndexApplier;
import io.kvasir.pipeline.source.EngineStream.ReplayStep;
import io.kvasir.pipeline.wire.KvBatch;

import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Queue;
import java.util.concurrent.TimeUnit;
import java.util.function.UnaryOperator;

/** What a stream believes after disorder, silence, lost connections and unnoticed restarts. */
class EngineStreamTruthTest {
    private static final int SLOT = 2;
    private static final int BLOCK = 4;
    private static final double HALF = 0.5;
    private static final long LONG_LIFE = MessageSequencer.MOST_UNSEEN_AT_START;

    private final PrefixIndex index = new PrefixIndex(new PrefixIndexConfig(4, 4_096, 4_096));
    private final IndexApplier applier = new IndexApplier(index);
    private final Queue<KvBatch> waiting = new ArrayDeque<>();
    private boolean late;
    private long nowNs = 1;

    @AfterEach
    void closeIndex() {
        index.close();
    }

    private EngineStream stream(UnaryOperator<SourceConfig> change) {
        return new EngineStream(
                change.apply(SourceConfig.of("w", SLOT, BLOCK, "")), this::offer, () -> nowNs);
    }

    private EngineStream stream(boolean replayable) {
        return stream(c -> replayable ? c.withReplayEndpoint("direct") : c);
    }

    private boolean offer(KvBatch batch) {
        if (!late) {
            return applier.offer(batch);
        }
        final KvBatch copy = new KvBatch();
        copy.copyFrom(batch);
        return waiting.add(copy);
    }

    private void pass(long seconds) {
        nowNs += TimeUnit.SECONDS.toNanos(seconds);
    }

    private static byte[] store(int hash) {
        return batch(stored(List.of(hash), null, range(hash * 10, hash * 10 + 3), BLOCK));
    }

    private static byte[] storeOfRank(int hash, Object rank) {
        return pack(
                Arrays.asList(
                        1.5,
                        List.of(stored(List.of(hash), null, range(hash, hash + 3), BLOCK)),
                        rank));
    }

    /** A stream that has seen the messages 0 to {@code count} − 1, which store one block each. */
    private EngineStream seen(boolean replayable, long count) {
        final EngineStream stream = stream(replayable);
        for (int i = 0; i < count; i++) {
            stream.onMessage(i, store(i + 1));
        }
        return stream;
    }

    private List<Long> held() {
        final List<Long> hashes = new ArrayList<>();
        index.forEach((slot, engine, sequence, copies) -> hashes.add(engine));
        hashes.sort(null);
        return hashes;
    }

    @Test
    void whatWaitsForTheFirstLoadIsNotOfAnEngineThatIsConnectedLater() {
        final EngineStream stream = stream(true);
        stream.onConnected();
        stream.onMessage(1, store(101));
        stream.onMessage(2, store(102));
        stream.onDisconnected("cut");
        stream.onConnected();
        assertEquals(0, stream.replayFrom());
        stream.onReplayed(0, store(1));
        stream.replayEnded();

        assertEquals(List.of(1L), held());
        assertEquals(IndexState.EXACT, stream.state());
        stream.onMessage(1, store(2));
        assertEquals(List.of(1L, 2L), held());
        assertEquals(0, stream.status().restarts());
    }

    private void retryReplay(EngineStream stream) {
        for (int i = 0; i < 3; i++) {
            pass(60);
            stream.tick();
        }
    }

    @ParameterizedTest
    @ValueSource(ints = {10, 2_000})
    void noMessageThatComesWhileTheReplayIsNotAnsweredIsAProof(int first) {
        final EngineStream stream = seen(true, 10);
        stream.onDisconnected("cut");
        stream.onConnected();
        assertEquals(9, stream.replayFrom());
        stream.replayFailed();
        for (int i = first; i < first + 3; i++) {
            stream.onMessage(i, store(10_000 + i)); // of another life
            stream.replayFailed();
            assertEquals(IndexState.STALE, stream.state());
        }
        retryReplay(stream);
        assertEquals(9, stream.replayFrom());
        assertEquals(ReplayStep.STOP, stream.onReplayed(9, store(10_009)));
        assertEquals(List.of(), held());
        assertEquals(0, stream.replayFrom());
    }

    @Test
    void nothingGoesOnFromAMessageThatMayBeOfAnotherLife() {
        final EngineStream stream = seen(true, 10);
        stream.onDisconnected("cut");
        stream.onConnected();
        stream.replayFailed();
        late = true;
        stream.onMessage(10, store(11));
        assertFalse(waiting.remove().isOfMessage());
        retryReplay(stream);
        assertEquals(9, stream.replayFrom());
        stream.onReplayed(9, store(10));
        stream.replayEnded();
        stream.onMessage(11, store(12));
        assertTrue(waiting.remove().isOfMessage());
    }

    @ParameterizedTest
    @ValueSource(booleans = {false, true})
    void aMessageThatWasOvertakenIsApplied(boolean replayable) {
        final EngineStream stream = seen(replayable, 10);
        stream.onMessage(11, store(12));
        assertEquals(IndexState.RESYNC, stream.state());
        stream.onMessage(10, store(11));

        assertEquals(IndexState.EXACT, stream.state());
        assertEquals(12, held().size());
        assertEquals(11, stream.status().lastSequence());
        assertEquals(0, stream.status().gaps());
        assertEquals(0, stream.status().restarts());
        stream.onMessage(12, store(13));
        assertEquals(13, held().size());
    }

    @Test
    void theFirstMessageIsUsedAtOnceWhereverItsPublisherBeginsToCount() {
        final EngineStream stream = stream(false);
        stream.onMessage(1, store(2));

        assertEquals(List.of(2L), held());
    }

    @ParameterizedTest
    @ValueSource(booleans = {false, true})
    void theMessageBeforeIsNotWaitedForLong(boolean byTime) {
        final EngineStream stream = seen(false, 10);
        stream.onMessage(11, store(12));
        if (byTime) {
            nowNs += MessageSequencer.OVERTAKEN_NS;
            stream.tick();
        } else {
            stream.onMessage(12, store(13));
        }

        assertEquals(IndexState.DEGRADED, stream.state());
        assertEquals(1, stream.status().lostMessages());
        assertEquals(byTime ? 11 : 12, stream.status().lastSequence());
        stream.onMessage(10, store(11));
        assertEquals(1, stream.status().late());
        assertEquals(byTime ? 11 : 12, held().size());
    }

    @Test
    void aMissingMessageIsReplayedSoon() {
        final EngineStream stream = seen(true, 10);
        stream.onMessage(11, store(12));
        assertEquals(EngineStream.NO_REPLAY, stream.replayFrom());
        nowNs += MessageSequencer.OVERTAKEN_NS;
        stream.tick();

        assertEquals(9, stream.replayFrom());
        for (int i = 9; i < 12; i++) {
            assertEquals(ReplayStep.CONTINUE, stream.onReplayed(i, store(i + 1)));
        }
        stream.replayEnded();
        assertEquals(IndexState.EXACT, stream.state());
        assertEquals(12, held().size());
    }

    @ParameterizedTest
    @CsvSource({"false, 98", "false, 50", "false, 0", "true, 98", "true, 0"})
    void aRepeatedMessageCostsNothing(boolean replayable, int repeated) {
        final EngineStream stream = seen(replayable, 100);
        stream.onMessage(repeated, store(repeated + 1));
        stream.onMessage(100, store(101));

        assertEquals(101, held().size());
        assertEquals(IndexState.EXACT, stream.state());
        assertEquals(1, stream.status().duplicates());
        assertEquals(0, stream.status().restarts());
    }

    @Test
    void aRepeatOfWhatIsForgottenCostsNothingEither() {
        final EngineStream stream = seen(false, 600);
        stream.onMessage(17, store(18));
        stream.onMessage(600, store(601));
        stream.onMessage(18, store(19));
        stream.onMessage(0, store(1));
        stream.onMessage(601, store(602));

        assertEquals(602, held().size());
        assertEquals(IndexState.EXACT, stream.state());
        assertEquals(2, stream.status().late());
        assertEquals(1, stream.status().duplicates());
    }

    @Test
    void aRunOfNumbersThatFellBackIsARestart() {
        final EngineStream stream = seen(false, 600);
        stream.onMessage(20, store(1_020));
        stream.onMessage(21, store(1_021));
        assertEquals(600, held().size());
        stream.onMessage(22, store(1_022));
        stream.onMessage(23, store(1_023));

        assertEquals(List.of(1_022L, 1_023L), held());
        assertEquals(1, stream.status().restarts());
        assertEquals(IndexState.DEGRADED, stream.state());
    }

    @Test
    void aLateMessageMakesTheEngineSayWhetherItHasRestarted() {
        final EngineStream stream = seen(true, 600);
        stream.onMessage(20, store(1_020));

        assertEquals(599, stream.replayFrom());
        stream.replayEnded();
        assertEquals(1, stream.status().restarts());
        assertEquals(0, stream.replayFrom());
    }

    @Test
    void messageZeroWithOtherContentIsARestartHoweverLongAgoItWas() {
        final EngineStream stream = seen(false, 600);
        stream.onMessage(0, store(1_000));

        assertEquals(List.of(1_000L), held());
        assertEquals(1, stream.status().restarts());
        assertEquals(IndexState.EXACT, stream.state());
    }

    @Test
    void aLostConnectionIsStaleAtOnceAndItsCreditFalls() {
        final EngineStream stream = seen(true, 10);
        assertEquals(1, stream.credit(HALF));
        stream.onDisconnected("closed by peer");
        assertEquals(IndexState.STALE, stream.state());
        assertEquals(1, stream.credit(HALF));
        pass(1);
        assertEquals(0.5, stream.credit(HALF));
        pass(30);
        assertEquals(0, stream.credit(HALF));

        stream.onConnected();
        assertEquals(0, stream.credit(HALF));
        assertEquals(9, stream.replayFrom());
        stream.onReplayed(9, store(10));
        stream.replayEnded();
        assertEquals(IndexState.EXACT, stream.state());
        assertEquals(1, stream.credit(HALF));
        assertEquals(10, held().size());
        assertEquals("", stream.status().problem());
    }

    @Test
    void aConnectionThatWasNeverMadeIsStale() {
        final EngineStream stream = stream(c -> c);
        stream.onConnectFailed("tcp://10.0.0.7:1234: refused");

        assertEquals(IndexState.STALE, stream.state());
        assertTrue(stream.status().problem().contains("refused"), stream.status().problem());
        stream.onConnected();
        stream.onMessage(0, store(1));
        assertEquals(IndexState.EXACT, stream.state());
    }

    /** An engine says that it was emptied with its next step: one forecast before that is wrong. */
    @Test
    void anEngineThatIsEmptiedAgainAndAgainHasNoOtherRuleOfRemovals() {
        final EngineStream stream = seen(false, 10);
        for (int i = 0; i < 50; i++) {
            stream.reportEngineHit(BLOCK, 0, true);
            stream.onMessage(
                    10 + i, batch(cleared(), stored(List.of(1), null, range(1, 4), BLOCK)));
        }
        assertEquals(RemovalRule.PHYSICAL, stream.status().removals());
        assertEquals("", stream.status().problem());
        for (int i = 0; i < RemovalRuleDetector.OVER_PREDICTIONS; i++) {
            stream.reportEngineHit(BLOCK, 0, true);
        }
        assertEquals(RemovalRule.LAST_COPY, stream.status().removals());
    }

    @Test
    void anEngineThatServesAndIsSilentIsStale() {
        final EngineStream stream = seen(false, 10);
        pass(3_600);
        stream.tick();
        assertEquals(IndexState.EXACT, stream.state()); // nothing served, nothing to announce
        stream.reportServed(stream.activityMark());
        stream.reportServed(stream.activityMark());
        pass(60);
        stream.tick();
        assertEquals(IndexState.EXACT, stream.state());
        stream.reportServed(stream.activityMark());

        assertEquals(IndexState.STALE, stream.state());
        assertTrue(stream.status().problem().contains("served"), stream.status().problem());
        pass(60);
        assertEquals(0, stream.credit(HALF));
        stream.onMessage(10, store(11));
        assertEquals(IndexState.EXACT, stream.state());
        assertEquals(1, stream.credit(HALF));
    }

    @Test
    void anEngineThatAnnouncesWhatItServesIsNotSilent() {
        final EngineStream stream = seen(false, 1);
        for (int i = 1; i < 50; i++) {
            stream.reportServed(stream.activityMark());
            pass(4);
            stream.onMessage(i, store(i + 1));
            stream.tick();
            assertEquals(IndexState.EXACT, stream.state());
        }
    }

    @Test
    void afterAReconnectWithoutReplayNothingIsBelievedUntilTheNextMessage() {
        final EngineStream stream = seen(false, LONG_LIFE + 1);
        stream.onDisconnected("reset");
        stream.onConnected();
        assertEquals(IndexState.STALE, stream.state());
        pass(10);
        assertEquals(0, stream.credit(HALF));
        stream.onMessage(LONG_LIFE + 1, store(2_000));

        assertEquals(IndexState.EXACT, stream.state());
        assertEquals(LONG_LIFE + 2, held().size());
        assertEquals(1, stream.credit(HALF));
    }

    @ParameterizedTest
    @CsvSource({"1030, 1035, 0", "1030, 20, 1", "10, 14, 0"})
    void afterAReconnectWithoutReplayOtherNumbersDropWhatMayBeOfAnotherLife(
            long seen, long next, int restarts) {
        final EngineStream stream = seen(false, seen);
        stream.onConnected();
        stream.onMessage(next, store(2_000));

        assertEquals(List.of(2_000L), held());
        assertEquals(IndexState.DEGRADED, stream.state());
        assertEquals(restarts, stream.status().restarts());
        stream.onMessage(next + 1, store(2_001));
        assertEquals(List.of(2_000L, 2_001L), held());
    }

    @Test
    void numbersThatGoOnEarlyMayBeOfAnotherLife() {
        final EngineStream stream = seen(false, 10);
        stream.onConnected();
        stream.onMessage(10, store(2_000));

        assertEquals(11, held().size());
        assertEquals(IndexState.DEGRADED, stream.state());
        assertEquals(HALF, stream.credit(HALF));
        stream.onMessage(0, store(3_000));
        assertEquals(IndexState.EXACT, stream.state());
    }

    @Test
    void anEngineThatComesBackWithMessageZeroIsExact() {
        final EngineStream stream = seen(false, 10);
        stream.onDisconnected("closed");
        stream.onConnected();
        stream.onMessage(0, store(2_000));

        assertEquals(List.of(2_000L), held());
        assertEquals(IndexState.EXACT, stream.state());
    }

    @Test
    void whatCameByTheLostConnectionIsStillUsed() {
        final EngineStream stream = seen(false, 10);
        stream.onDisconnected("closed");
        stream.onMessage(10, store(11));

        assertEquals(11, held().size());
        assertEquals(IndexState.STALE, stream.state());
    }

    @Test
    void theNewsOfTheFirstConnectionMayComeBehindItsFirstMessage() {
        final EngineStream stream =
                new EngineStream(
                        SourceConfig.of("w", SLOT, BLOCK, "tcp://h:1"), this::offer, () -> nowNs);
        stream.onMessage(0, store(1));
        stream.onConnected();
        stream.onMessage(1, store(2));

        assertEquals(List.of(1L, 2L), held());
        assertEquals(IndexState.EXACT, stream.state());
    }

    @Test
    void eventsOfAnotherRankAreDroppedAndNamed() {
        final EngineStream stream = stream(c -> c);
        stream.onMessage(0, storeOfRank(1, 3));

        assertEquals(List.of(), held());
        assertEquals(IndexState.DEGRADED, stream.state());
        assertEquals(HALF, stream.credit(HALF));
        assertEquals(Map.of("foreign_rank", 1L), stream.status().drops());
        assertTrue(stream.status().problem().contains("rank 3"), stream.status().problem());
        stream.onMessage(0, storeOfRank(2, 0));
        assertEquals(List.of(2L), held());
        assertEquals(IndexState.EXACT, stream.state());
    }

    @Test
    void whatWaitedBeforeAReconnectIsNotOfTheNextLife() {
        final EngineStream stream = stream(true);
        stream.onConnected();
        stream.onMessage(2, store(3));
        stream.onDisconnected("reset");
        stream.onConnected();
        assertEquals(0, stream.replayFrom());
        stream.onReplayed(0, store(1_000));
        stream.onReplayed(1, store(1_001));
        stream.replayEnded();

        assertEquals(EngineStream.NO_REPLAY, stream.replayFrom());
        assertEquals(List.of(1_000L, 1_001L), held());
        assertEquals(IndexState.EXACT, stream.state());
    }

    @ParameterizedTest
    @ValueSource(booleans = {false, true})
    void aReplayThatGoesOnInAnotherLifeBeginsAnew(boolean shorter) {
        final EngineStream stream = stream(true);
        stream.onConnected();
        assertEquals(0, stream.replayFrom());
        stream.onReplayed(0, store(1));
        stream.onReplayed(1, store(2)); // here the engine dies
        assertEquals(1, stream.replayFrom());
        if (shorter) {
            stream.replayEnded();
        } else {
            assertEquals(ReplayStep.STOP, stream.onReplayed(1, store(1_001)));
        }

        assertEquals(List.of(), held());
        assertEquals(0, stream.replayFrom());
    }

    /** The endpoint is mute while the engine restarts, and comes as far as it was. */
    @ParameterizedTest
    @ValueSource(booleans = {false, true})
    void whatCameWhileNothingShowedTheLifeDoesNotShowItEither(boolean other) {
        final EngineStream stream = seen(true, 10);
        stream.onDisconnected("reset");
        stream.onConnected();
        assertEquals(9, stream.replayFrom());
        stream.replayFailed();
        stream.onMessage(10, store(1_010));
        stream.onMessage(10, store(1_010));
        assertEquals(IndexState.STALE, stream.state());
        pass(10);
        stream.tick();

        assertEquals(9, stream.replayFrom());
        if (other) {
            assertEquals(ReplayStep.STOP, stream.onReplayed(9, store(1_009)));
            assertEquals(1, stream.status().restarts());
            assertEquals(List.of(), held());
            assertEquals(0, stream.replayFrom());
        } else {
            stream.onReplayed(9, store(10));
            stream.onReplayed(10, store(1_010));
            stream.replayEnded();
            assertEquals(IndexState.EXACT, stream.state());
            assertEquals(11, held().size());
        }
    }

    @Test
    void aMessageThatNothingIsKnownOfDoesNotShowThatTheEngineIsTheSame() {
        final EngineStream stream = stream(true);
        stream.onConnected();
        assertEquals(0, stream.replayFrom());
        for (int i = 0; i < 600; i++) {
            stream.onReplayed(i, store(i + 1));
        }
        stream.replayEnded();
        stream.onDisconnected("reset");
        stream.onConnected();
        assertEquals(599, stream.replayFrom());
        stream.replayFailed();
        stream.onMessage(20, store(1_020));

        assertEquals(IndexState.STALE, stream.state());
    }

    @Test
    void aReplayOfAnotherRankIsAskedForOnce() {
        final EngineStream stream = stream(true);
        stream.onConnected();
        assertEquals(0, stream.replayFrom());
        for (int i = 0; i < 5; i++) {
            assertEquals(ReplayStep.CONTINUE, stream.onReplayed(i, storeOfRank(i + 1, 3)));
        }
        stream.replayEnded();

        assertEquals(EngineStream.NO_REPLAY, stream.replayFrom());
        assertEquals(IndexCause.FOREIGN_RANK, stream.status().cause());
        assertEquals(0, stream.status().lostMessages());
    }

    @ParameterizedTest
    @ValueSource(ints = {0, 3, 127, 128, 300, 70_000})
    void theOwnRankIsKnownHoweverItIsWritten(int rank) {
        final EngineStream stream = stream(c -> c.withDpRank(rank));
        for (int i = 0; i < 3; i++) {
            stream.onMessage(2L * i, storeOfRank(i + 1, rank));
            stream.onMessage(2 * i + 1, storeOfRank(100 * i + 50, null));
        }

        assertEquals(6, held().size());
        assertEquals(rank, stream.status().learnedRank());
        stream.onMessage(7, storeOfRank(9, rank + 1));
        assertEquals(6, held().size());
    }

    @ParameterizedTest
    @CsvSource({"5, 192", "5, 261", "0, 256", "127, 383"})
    void aForeignRankIsKnownHoweverItIsWritten(int own, int foreign) {
        final EngineStream stream = stream(c -> c.withDpRank(own));
        stream.onMessage(0, storeOfRank(1, own));
        stream.onMessage(1, storeOfRank(2, foreign));

        assertEquals(List.of(1L), held());
        assertEquals(Map.of("foreign_rank", 1L), stream.status().drops());
        assertEquals(foreign, stream.status().learnedRank());
    }

    @Test
    void replayedMessagesHaveNoAge() {
        nowNs = TimeUnit.HOURS.toNanos(50);
        final EngineStream stream = stream(true);
        stream.onConnected();
        stream.onReplayed(0, store(1));
        stream.replayEnded();
        assertEquals(-1, stream.status().lastEventAgeNs());
        pass(1);
        stream.onMessage(1, store(2));
        pass(2);
        assertEquals(TimeUnit.SECONDS.toNanos(2), stream.status().lastEventAgeNs());
    }

    @Test
    void exactMeansApplied() {
        late = true;
        final EngineStream stream = stream(true);
        stream.onConnected();
        for (int i = 0; i < 5; i++) {
            stream.onReplayed(i, store(i + 1));
        }
        stream.replayEnded();
        assertEquals(IndexState.LOADING, stream.state());
        assertFalse(stream.ready());
        assertEquals(5, stream.status().behind());
        while (waiting.size() > 1) {
            applier.offer(waiting.remove());
        }
        assertEquals(IndexState.LOADING, stream.state());
        applier.offer(waiting.remove());
        assertEquals(IndexState.EXACT, stream.state());
        assertTrue(stream.ready());

        stream.onMessage(5, store(6));
        assertEquals(IndexState.RESYNC, stream.state());
        assertEquals(1, stream.credit(HALF));
        applier.offer(waiting.remove());
        assertEquals(IndexState.EXACT, stream.state());
    }

    @Test
    void mendingIsTriedForEverAndEverMoreRarely() {
        final EngineStream stream = seen(true, 3);
        stream.onMessage(9, store(10));
        stream.onReplayed(7, store(8));
        stream.onReplayed(8, store(9));
        stream.replayEnded();
        assertEquals(4, stream.status().lostMessages());
        assertEquals(IndexState.DEGRADED, stream.state());
        final List<Long> tries = new ArrayList<>();
        for (int second = 0; second < 4_000; second++) {
            pass(1);
            stream.tick();
            if (stream.replayFrom() == 0) {
                tries.add((long) second);
                assertEquals(ReplayStep.STOP, stream.onReplayed(7, store(8)));
            }
        }
        assertTrue(tries.size() > 12, tries.toString());
        assertTrue(tries.get(0) <= 6, tries.toString());
        for (int i = 1; i < tries.size(); i++) {
            assertTrue(tries.get(i) - tries.get(i - 1) <= 302, tries.toString());
        }
        stream.onMessage(10, batch(cleared()));
        assertEquals(IndexState.EXACT, stream.state());
    }

    @Test
    void whatTheIndexRefusedIsLoadedAgain() {
        final EngineStream stream = stream(true);
        stream.onMessage(0, batch(stored(List.of(5), 77, range(1, 4), BLOCK)));
        assertEquals(IndexState.DEGRADED, stream.state());
        stream.tick();
        pass(6);
        stream.tick();

        assertEquals(0, stream.replayFrom());
        stream.onReplayed(0, store(5));
        stream.replayEnded();
        assertEquals(IndexState.EXACT, stream.state());
        assertEquals(List.of(5L), held());
    }

    @Test
    void whatFoundNoRoomIsLoadedAgainAsSoonAsTheEngineMakesRoom() {
        try (PrefixIndex small = new PrefixIndex(new PrefixIndexConfig(4, 2, 2))) {
            final EngineStream stream =
                    new EngineStream(
                            SourceConfig.of("w", SLOT, BLOCK, "").withReplayEndpoint("direct"),
                            new IndexApplier(small),
                            () -> nowNs);
            for (int i = 0; i < 3; i++) {
                stream.onMessage(i, store(i + 1));
            }
            stream.tick();
            assertEquals(IndexState.DEGRADED, stream.state());
            assertEquals(EngineStream.NO_REPLAY, stream.replayFrom());
            stream.onMessage(3, batch(removed(List.of(1))));
            stream.tick();

            assertEquals(0, stream.replayFrom());
            for (int i = 0; i < 3; i++) {
                stream.onReplayed(i, store(i + 1));
            }
            stream.onReplayed(3, batch(removed(List.of(1))));
            stream.replayEnded();
            assertEquals(IndexState.EXACT, stream.state());
            assertEquals(2, small.heldBlocks(SLOT));
        }
    }

    @Test
    void aPhantomCacheIsLoadedAgain() {
        final EngineStream stream = stream(c -> c.withRemovals(RemovalRule.LAST_COPY));
        stream.onMessage(0, store(1));
        for (int i = 0; i < 8; i++) {
            assertEquals(List.of(1L), held());
            stream.reportEngineHit(4, 0, true);
        }

        assertEquals(List.of(), held());
        assertEquals(IndexState.DEGRADED, stream.state());
        assertEquals(0, stream.status().ruleSwitches());
    }
}
