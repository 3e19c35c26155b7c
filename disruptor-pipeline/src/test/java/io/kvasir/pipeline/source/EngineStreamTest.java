package io.kvasir.pipeline.source;

import static io.kvasir.pipeline.source.Messages.batch;
import static io.kvasir.pipeline.source.Messages.cleared;
import static io.kvasir.pipeline.source.Messages.pack;
import static io.kvasir.pipeline.source.Messages.range;
import static io.kvasir.pipeline.source.Messages.removed;
import static io.kvasir.pipeline.source.Messages.stored;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.kvasir.core.index.CopyRule;
import io.kvasir.core.index.PrefixIndex;
import io.kvasir.core.index.PrefixIndexConfig;
import io.kvasir.pipeline.events.IndexApplier;
import io.kvasir.pipeline.source.EngineStream.ReplayStep;
import io.kvasir.pipeline.wire.ApplyListener;
import io.kvasir.pipeline.wire.KvBatch;
import io.kvasir.pipeline.wire.KvEventSink;

import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import java.util.function.UnaryOperator;

class EngineStreamTest {
    private static final int SLOT = 2;
    private static final int BLOCK = 4;

    private final PrefixIndex index = new PrefixIndex(new PrefixIndexConfig(4, 256, 256));
    private final KvEventSink applier = new IndexApplier(index);
    private boolean full;
    private long nowNs;

    @AfterEach
    void closeIndex() {
        index.close();
    }

    private EngineStream stream(UnaryOperator<SourceConfig> change) {
        final SourceConfig config = change.apply(SourceConfig.of("w", SLOT, BLOCK, ""));
        return new EngineStream(config, this::offer, () -> nowNs);
    }

    private EngineStream replayable() {
        return stream(c -> c.withReplayEndpoint("direct"));
    }

    private boolean offer(KvBatch batch) {
        return !full && applier.offer(batch);
    }

    /** Message that stores one root block named {@code hash}. */
    private static byte[] store(int hash) {
        return batch(stored(List.of(hash), null, range(hash * 10, hash * 10 + 3), BLOCK));
    }

    private List<Long> held() {
        final List<Long> names = new ArrayList<>();
        index.forEach((slot, engine, sequence, copies) -> names.add(engine));
        names.sort(null);
        return names;
    }

    private static void replay(EngineStream stream, int from, byte[]... messages) {
        replayPart(stream, from, messages);
        stream.replayEnded();
    }

    private static void replayPart(EngineStream stream, int from, byte[]... messages) {
        for (int i = 0; i < messages.length; i++) {
            assertEquals(ReplayStep.CONTINUE, stream.onReplayed(from + i, messages[i]));
        }
    }

    @Test
    void consecutiveMessagesAreApplied() {
        final EngineStream stream = stream(c -> c);
        assertEquals(IndexState.LOADING, stream.state());
        for (int i = 0; i < 5; i++) {
            stream.onMessage(i, store(i + 1));
        }

        assertEquals(List.of(1L, 2L, 3L, 4L, 5L), held());
        assertEquals(IndexState.EXACT, stream.state());
        assertEquals(4, index.appliedSequence(SLOT));
        final SourceStatus status = stream.status();
        assertEquals(4, status.lastSequence());
        assertEquals(5, status.messages());
        assertEquals(5, status.events());
        assertEquals(5, status.applied());
        assertEquals(5, status.blocksStored());
        assertEquals(0, status.gaps());
        assertEquals("", status.problem());
    }

    @Test
    void aGapWithoutReplayKeepsWhatIsKnownAndIsDegraded() {
        final EngineStream stream = stream(c -> c);
        stream.onMessage(0, store(1));
        stream.onMessage(4, store(5));

        assertEquals(List.of(1L, 5L), held());
        assertEquals(IndexState.DEGRADED, stream.state());
        assertEquals(1, stream.status().gaps());
        assertEquals(3, stream.status().lostMessages());
        assertTrue(stream.status().problem().contains("1..3"), stream.status().problem());
    }

    /** Each message is kept for the one before it, as long as that may have been overtaken. */
    @Test
    void aViewThatLacksMessagesStaysSoWhileItWaitsForOne() {
        final EngineStream stream = stream(c -> c);
        stream.onMessage(0, store(1));
        stream.onMessage(4, store(5));
        for (int next = 6; next < 40; next += 2) {
            stream.onMessage(next, store(next + 1));
            assertTrue(stream.status().lastSequence() < next, "it waits for the one before it");
            assertEquals(IndexState.DEGRADED, stream.state());
            assertEquals(IndexState.DEGRADED, stream.status().state());
            assertEquals(IndexCause.LOST_MESSAGES, stream.status().cause());
            assertEquals(0.5, stream.credit(0.5));
        }
    }

    @Test
    void aViewThatLacksMessagesStaysSoWhileFurtherOnesAreAskedFor() {
        final EngineStream stream = replayable();
        stream.onMessage(0, store(1));
        stream.onMessage(9, store(9));
        replay(stream, 5, store(5), store(6), store(7), store(8), store(9));
        stream.onMessage(12, store(12));

        assertEquals(9, stream.replayFrom());
        assertEquals(IndexState.DEGRADED, stream.state());
        assertEquals(IndexCause.LOST_MESSAGES, stream.status().cause());
        assertEquals(0.5, stream.credit(0.5));
    }

    @Test
    void aViewThatTheIndexHadNoRoomForStaysSoWhileItWaitsForAMessage() {
        final EngineStream stream = stream(c -> c);
        int next = 0;
        while (stream.status().missingBlocks() == 0) {
            stream.onMessage(next, store(++next));
        }
        stream.onMessage(next + 1, store(next + 2));

        assertEquals(IndexState.DEGRADED, stream.state());
        assertEquals(IndexState.DEGRADED, stream.status().state());
        assertEquals(IndexCause.INDEX_FULL, stream.status().cause());
        assertEquals(1, stream.credit(0.5));
    }

    @Test
    void aClearOfTheEngineMakesADegradedViewExactAgain() {
        final EngineStream stream = stream(c -> c);
        stream.onMessage(3, store(1));
        assertEquals(IndexState.DEGRADED, stream.state());
        stream.onMessage(4, batch(cleared(), stored(List.of(9), null, range(1, 4), BLOCK)));

        assertEquals(List.of(9L), held());
        assertEquals(IndexState.EXACT, stream.state());
    }

    @Test
    void aFirstNumberAboveZeroIsLoadedFromZero() {
        final EngineStream stream = replayable();
        stream.onMessage(2, store(3));

        assertEquals(0, stream.replayFrom());
        assertEquals(IndexState.LOADING, stream.state());
        assertEquals(List.of(), held());
        replay(stream, 0, store(1), store(2), store(3));
        assertEquals(List.of(1L, 2L, 3L), held());
        assertEquals(IndexState.EXACT, stream.state());
        assertEquals(EngineStream.NO_REPLAY, stream.replayFrom());
        stream.onMessage(3, store(4));
        assertEquals(List.of(1L, 2L, 3L, 4L), held());
        assertEquals(0, stream.status().gaps());
        assertEquals(1, stream.status().replays());
    }

    @Test
    void publishersThatCountFromOneAreExact() {
        final EngineStream loaded = replayable();
        loaded.onMessage(1, store(1));
        replay(loaded, 1, store(1));
        assertEquals(IndexState.EXACT, loaded.state());

        final EngineStream bound = stream(c -> c.withBind(true));
        bound.onMessage(1, store(1));
        assertEquals(IndexState.EXACT, bound.state());

        final EngineStream connected = stream(c -> c);
        connected.onMessage(1, store(1));
        assertEquals(IndexState.DEGRADED, connected.state());
    }

    @Test
    void aGapIsReplayedBeginningWithTheLastMessage() {
        final EngineStream stream = replayable();
        stream.onMessage(0, store(1));
        stream.onMessage(1, store(2));
        stream.onMessage(4, store(5));

        assertEquals(IndexState.RESYNC, stream.state());
        assertEquals(1, stream.replayFrom());
        replay(stream, 1, store(2), store(3), store(4), store(5), store(6));
        assertEquals(List.of(1L, 2L, 3L, 4L, 5L, 6L), held());
        assertEquals(IndexState.EXACT, stream.state());
        stream.onMessage(5, store(6));
        assertEquals(1, stream.status().duplicates());
        stream.onMessage(6, store(7));
        assertEquals(7, held().size());
        assertEquals(0, stream.status().restarts());
        assertEquals(1, stream.status().gaps());
        index.forEach((slot, engine, sequence, copies) -> assertEquals(1, copies));
    }

    @Test
    void whatComesLiveDuringAReplayIsUsedAfterIt() {
        final EngineStream stream = replayable();
        stream.onMessage(0, store(1));
        stream.onMessage(3, store(4));
        assertEquals(0, stream.replayFrom());
        stream.onReplayed(0, store(1));
        stream.onMessage(4, store(5));
        stream.onReplayed(1, store(2));
        stream.onMessage(5, store(6));
        stream.onReplayed(2, store(3));
        stream.onReplayed(3, store(4));
        stream.replayEnded(); // made before message 4
        assertEquals(List.of(1L, 2L, 3L, 4L, 5L, 6L), held());
        assertEquals(IndexState.EXACT, stream.state());
        assertEquals(EngineStream.NO_REPLAY, stream.replayFrom());
    }

    /** Message 257 is remembered where message 1 was. */
    @Test
    void theLastMessageIsKnownAgainHoweverFarTheLiveOnesAreAhead() {
        final EngineStream stream = replayable();
        stream.onMessage(0, store(1));
        stream.onMessage(1, store(2));
        stream.onMessage(257, store(258));

        assertEquals(1, stream.replayFrom());
        replay(stream, 1, store(2), store(3));
        assertEquals(2, stream.replayFrom());
        replay(stream, 2, store(3)); // nothing new
        assertEquals(0, stream.status().restarts());
        assertEquals(List.of(1L, 2L, 3L, 258L), held());
    }

    @Test
    void aGapOfAnEngineThatHasRestartedIsNoticedByTheBytes() {
        final EngineStream stream = replayable();
        stream.onMessage(0, store(1));
        stream.onMessage(1, store(2));
        stream.onMessage(4, store(5));

        assertEquals(ReplayStep.STOP, stream.onReplayed(1, store(22)));
        assertEquals(List.of(), held());
        assertEquals(0, stream.replayFrom());
        replay(stream, 0, store(21), store(22), store(23), store(24), store(5));
        assertEquals(List.of(5L, 21L, 22L, 23L, 24L), held());
        assertEquals(1, stream.status().restarts());
        assertEquals(IndexState.EXACT, stream.state());
    }

    @Test
    void lostMessagesOfAnyNumbersAreNeverFewerThanBefore() {
        final EngineStream stream = stream(c -> c);
        long lost = 0;
        for (int life = 0; life < 4; life++) {
            stream.onMessage(0, store(1 + life));
            stream.onMessage(1, store(11 + life));
            stream.onMessage(Long.MAX_VALUE - life, store(21 + life));
            assertTrue(stream.status().lostMessages() >= lost, stream.status().toString());
            lost = stream.status().lostMessages();
        }
        assertEquals(4, stream.status().gaps());
        assertEquals(Long.MAX_VALUE, lost);
    }

    @Test
    void aReplayThatNoLongerReachesBackIsDegraded() {
        final EngineStream stream = replayable();
        stream.onMessage(0, store(1));
        stream.onMessage(9, store(9));
        replay(stream, 5, store(5), store(6), store(7), store(8), store(9));

        assertEquals(List.of(1L, 5L, 6L, 7L, 8L, 9L), held());
        assertEquals(IndexState.DEGRADED, stream.state());
        assertEquals(4, stream.status().lostMessages());
        assertTrue(stream.status().problem().contains("1..4"), stream.status().problem());
    }

    /** vLLM's socket drops what does not fit between it and a slower reader. */
    @Test
    void whatAReplayLeavesOutInItsMiddleIsAskedForAgain() {
        final EngineStream stream = replayable();
        stream.onMessage(9, store(10));

        assertEquals(0, stream.replayFrom());
        assertEquals(ReplayStep.CONTINUE, stream.onReplayed(0, store(1)));
        assertEquals(ReplayStep.CONTINUE, stream.onReplayed(1, store(2)));
        assertEquals(ReplayStep.STOP, stream.onReplayed(6, store(7)));
        assertEquals(1, stream.replayFrom());
        assertEquals(ReplayStep.CONTINUE, stream.onReplayed(1, store(2)));
        assertEquals(ReplayStep.CONTINUE, stream.onReplayed(2, store(3)));
        assertEquals(ReplayStep.STOP, stream.onReplayed(8, store(9)));
        assertEquals(2, stream.replayFrom());
        replay(
                stream, 2, store(3), store(4), store(5), store(6), store(7), store(8), store(9),
                store(10));
        assertEquals(10, held().size());
        assertEquals(IndexState.EXACT, stream.state());
        assertEquals(0, stream.status().lostMessages());
        assertEquals(1, stream.status().replays());
    }

    @Test
    void whatEachReplayLeavesOutIsLost() {
        final EngineStream stream = replayable();
        stream.onMessage(0, store(1));
        stream.onMessage(6, store(7));

        assertEquals(0, stream.replayFrom());
        assertEquals(ReplayStep.CONTINUE, stream.onReplayed(0, store(1)));
        assertEquals(ReplayStep.CONTINUE, stream.onReplayed(1, store(2)));
        assertEquals(ReplayStep.STOP, stream.onReplayed(5, store(6)));
        assertEquals(1, stream.replayFrom());
        assertEquals(ReplayStep.CONTINUE, stream.onReplayed(1, store(2)));
        replay(stream, 5, store(6), store(7));
        assertEquals(List.of(1L, 2L, 6L, 7L), held());
        assertEquals(IndexState.DEGRADED, stream.state());
        assertEquals(3, stream.status().lostMessages());
        assertTrue(stream.status().problem().contains("2..4"), stream.status().problem());
    }

    @Test
    void aReplayThatIsNotAnsweredKeepsWhatIsKnown() {
        final EngineStream stream = replayable();
        stream.onMessage(0, store(1));
        stream.onMessage(3, store(4));
        stream.replayFailed();

        assertEquals(List.of(1L, 4L), held());
        assertEquals(IndexState.DEGRADED, stream.state());
        assertEquals(1, stream.status().replayFailures());
        assertEquals(2, stream.status().lostMessages());
        assertEquals(EngineStream.NO_REPLAY, stream.replayFrom());
        stream.onMessage(4, store(5));
        assertEquals(List.of(1L, 4L, 5L), held());
    }

    @Test
    void aLostViewIsHealedWhenTheReplaySocketAnswersAgain() {
        final EngineStream stream = replayable();
        stream.onMessage(0, store(1));
        stream.onMessage(3, store(4));
        stream.replayFailed();
        stream.tick();
        assertEquals(EngineStream.NO_REPLAY, stream.replayFrom());
        nowNs += TimeUnit.SECONDS.toNanos(31);
        stream.tick();

        assertEquals(0, stream.replayFrom());
        assertEquals(List.of(1L, 4L), held());
        replay(stream, 0, store(1), store(2), store(3), store(4));
        assertEquals(List.of(1L, 2L, 3L, 4L), held());
        assertEquals(IndexState.EXACT, stream.state());
        stream.onMessage(4, store(5));
        assertEquals(IndexState.EXACT, stream.state());
    }

    @Test
    void furtherGapsAreLostAtOnceWhileTheReplaySocketDoesNotAnswer() {
        final EngineStream stream = replayable();
        stream.onMessage(0, store(1));
        stream.onMessage(3, store(4));
        stream.replayFailed();
        stream.onMessage(6, store(7));

        assertEquals(EngineStream.NO_REPLAY, stream.replayFrom());
        assertEquals(List.of(1L, 4L, 7L), held());
        assertEquals(IndexState.DEGRADED, stream.state());
        assertEquals(IndexCause.LOST_MESSAGES, stream.status().cause());
        assertEquals(4, stream.status().lostMessages());
        assertEquals(2, stream.status().gaps());
        assertEquals(
                "messages 4..5 are lost: replay endpoint direct does not answer",
                stream.status().problem());
        stream.onMessage(8, store(9)); // waits for one that was overtaken
        nowNs += MessageSequencer.OVERTAKEN_NS;
        stream.tick();
        assertEquals(List.of(1L, 4L, 7L, 9L), held());
        assertEquals(EngineStream.NO_REPLAY, stream.replayFrom());

        nowNs += TimeUnit.SECONDS.toNanos(6);
        stream.tick();
        assertEquals(0, stream.replayFrom());
        stream.onMessage(11, store(12));
        stream.replayFailed(); // what waited for it is used
        assertEquals(List.of(1L, 4L, 7L, 9L, 12L), held());
        nowNs += TimeUnit.SECONDS.toNanos(9); // twice as long as before
        stream.onMessage(13, store(14));
        stream.onMessage(16, store(17));
        assertEquals(EngineStream.NO_REPLAY, stream.replayFrom());
        nowNs += TimeUnit.SECONDS.toNanos(2);
        stream.tick();
        assertEquals(0, stream.replayFrom());
        final List<byte[]> all = new ArrayList<>();
        for (int i = 1; i <= 17; i++) {
            all.add(store(i));
        }
        replay(stream, 0, all.toArray(new byte[0][]));
        assertEquals(17, held().size());
        assertEquals(IndexState.EXACT, stream.state());

        stream.onMessage(19, store(20)); // the socket answers: it is asked at once
        stream.tick();
        stream.onMessage(20, store(21));
        assertEquals(16, stream.replayFrom());
    }

    @Test
    void aViewThatIsWholeAgainDoesNotMakeASilentReplaySocketAnswer() {
        final EngineStream stream = replayable();
        stream.onMessage(0, store(1));
        stream.onMessage(3, store(4));
        stream.replayFailed();
        stream.onMessage(4, batch(cleared()));
        stream.tick();
        assertEquals(IndexState.EXACT, stream.state());
        stream.onMessage(9, store(10));

        assertEquals(EngineStream.NO_REPLAY, stream.replayFrom());
        assertEquals(List.of(10L), held());
        assertEquals(IndexState.DEGRADED, stream.state());
    }

    @Test
    void aSilentReplaySocketIsAskedForNothingElseMeanwhile() {
        final EngineStream stream = replayable();
        stream.onMessage(0, store(1));
        stream.onMessage(9, store(10));
        stream.replayFailed();
        stream.onMessage(5, store(6)); // has come too late
        stream.checkTail();
        assertEquals(EngineStream.NO_REPLAY, stream.replayFrom());
        full = true;
        stream.onMessage(10, store(11));
        full = false;
        stream.onMessage(11, store(12));

        assertEquals(EngineStream.NO_REPLAY, stream.replayFrom());
        assertEquals(List.of(1L, 10L, 12L), held());
        assertEquals(9, stream.status().lostMessages());
    }

    @Test
    void whatWaitedForASilentReplaySocketDoesNotWaitForRoom() {
        final EngineStream stream = replayable();
        stream.onMessage(0, store(1));
        stream.onMessage(3, store(4));
        full = true;
        stream.replayFailed();
        full = false;
        stream.onMessage(4, store(5));

        assertEquals(EngineStream.NO_REPLAY, stream.replayFrom());
        assertEquals(List.of(1L, 5L), held());
        assertEquals(3, stream.status().lostMessages());
    }

    @Test
    void aRestartBehindASilentReplaySocketIsFollowedAtOnce() {
        final EngineStream stream = replayable();
        for (int i = 0; i < 4; i++) {
            stream.onMessage(i, store(i + 1));
        }
        stream.onMessage(9, store(10));
        stream.replayFailed();
        stream.onMessage(1, store(12)); // other bytes

        assertEquals(1, stream.status().restarts());
        assertEquals(EngineStream.NO_REPLAY, stream.replayFrom());
        assertEquals(List.of(12L), held());
        assertEquals(IndexState.DEGRADED, stream.state());
    }

    @Test
    void healingThatWouldLoseMoreIsNotDone() {
        final EngineStream stream = replayable();
        stream.onMessage(0, store(1));
        stream.onMessage(3, store(4));
        stream.replayFailed();
        nowNs += TimeUnit.SECONDS.toNanos(31);
        stream.tick();

        assertEquals(ReplayStep.STOP, stream.onReplayed(2, store(3)));
        assertEquals(EngineStream.NO_REPLAY, stream.replayFrom());
        assertEquals(List.of(1L, 4L), held());
        assertEquals(IndexState.DEGRADED, stream.state());
        stream.onMessage(9, store(10)); // the socket has answered
        assertEquals(3, stream.replayFrom());
    }

    /** As where a replay endpoint is configured that another rank listens at. */
    @Test
    void anAnswerOfAnotherRankTakesTheSlotsBlocksFromNobody() {
        final EngineStream stream = replayable();
        stream.onMessage(0, store(1));
        stream.onMessage(1, store(2));
        stream.onMessage(4, store(5));
        replay(stream, 0, ofAnotherRank(11), ofAnotherRank(12), ofAnotherRank(13));
        assertEquals(List.of(1L, 2L, 5L), held(), "a gap");
        stream.tick();
        nowNs += TimeUnit.SECONDS.toNanos(31);
        stream.tick();
        assertEquals(0, stream.replayFrom());
        replay(stream, 0, ofAnotherRank(11), ofAnotherRank(12));
        assertEquals(List.of(1L, 2L, 5L), held(), "mending");
        stream.onDisconnected("reset");
        stream.onConnected();
        assertEquals(4, stream.replayFrom());
        replay(stream, 4, ofAnotherRank(15));

        assertEquals(List.of(1L, 2L, 5L), held(), "a reconnect");
        assertEquals(0, stream.status().restarts());
        assertEquals(IndexState.STALE, stream.state());
    }

    private static byte[] ofAnotherRank(int hash) {
        final Object event = stored(List.of(hash), null, range(hash * 10, hash * 10 + 3), BLOCK);
        return pack(List.of(1.5, List.of(event), 3));
    }

    @Test
    void aNumberThatFallsBackIsARestart() {
        final EngineStream stream = stream(c -> c);
        for (int i = 0; i < 4; i++) {
            stream.onMessage(i, store(i + 1));
        }
        stream.onMessage(0, store(11));

        assertEquals(List.of(11L), held());
        assertEquals(1, stream.status().restarts());
        assertEquals(IndexState.EXACT, stream.state());
        assertEquals(0, index.appliedSequence(SLOT));
        stream.onMessage(1, store(12));
        assertEquals(List.of(11L, 12L), held());
    }

    @Test
    void aRestartSeenLateIsLoadedFromZero() {
        final EngineStream stream = replayable();
        for (int i = 0; i < 4; i++) {
            stream.onMessage(i, store(i + 1));
        }
        stream.onMessage(2, store(13));

        assertEquals(0, stream.replayFrom());
        assertEquals(List.of(), held());
        assertEquals(-1, index.appliedSequence(SLOT));
        replay(stream, 0, store(11), store(12), store(13));
        assertEquals(List.of(11L, 12L, 13L), held());
        assertEquals(IndexState.EXACT, stream.state());
    }

    @Test
    void aMessageDeliveredTwiceIsNoRestart() {
        final EngineStream stream = stream(c -> c);
        stream.onMessage(0, store(1));
        stream.onMessage(0, store(1));

        assertEquals(1, stream.status().duplicates());
        assertEquals(0, stream.status().restarts());
        stream.onMessage(0, store(2));
        assertEquals(1, stream.status().restarts());
        assertEquals(List.of(2L), held());
    }

    @Test
    void afterAReconnectTheSameLastMessageMeansTheSameLife() {
        final EngineStream stream = replayable();
        stream.onConnected();
        assertEquals(0, stream.replayFrom());
        replay(stream, 0, store(1), store(2));
        stream.onConnected();
        assertEquals(IndexState.RESYNC, stream.state());
        assertEquals(1, stream.replayFrom());
        replay(stream, 1, store(2), store(3));

        assertEquals(List.of(1L, 2L, 3L), held());
        assertEquals(0, stream.status().restarts());
        assertEquals(1, stream.status().reconnects());
        assertEquals(IndexState.EXACT, stream.state());
    }

    @Test
    void afterAReconnectOtherBytesMeanARestart() {
        final EngineStream stream = replayable();
        stream.onMessage(0, store(1));
        stream.onMessage(1, store(2));
        stream.onConnected();

        assertEquals(ReplayStep.STOP, stream.onReplayed(1, store(12)));
        assertEquals(0, stream.replayFrom());
        replay(stream, 0, store(11), store(12));
        assertEquals(List.of(11L, 12L), held());
        assertEquals(1, stream.status().restarts());
    }

    @Test
    void afterAReconnectNothingMeansARestart() {
        final EngineStream stream = replayable();
        stream.onMessage(0, store(1));
        stream.onConnected();
        stream.replayEnded();

        assertEquals(List.of(), held());
        assertEquals(0, stream.replayFrom());
        assertEquals(IndexState.LOADING, stream.state());
        stream.replayEnded();
        assertEquals(IndexState.EXACT, stream.state());
        stream.onMessage(0, store(11));
        assertEquals(List.of(11L), held());
        assertEquals(1, stream.status().restarts());
    }

    @Test
    void whatIsMissedWhileTheConnectionIsLostIsCountedOnceAndIsNoRestart() {
        final EngineStream stream = stream(c -> c);
        stream.onConnected();
        for (int i = 0; i <= 10; i++) {
            stream.onMessage(i, store(i + 1));
        }
        stream.onDisconnected("closed");
        stream.onConnected();
        stream.onMessage(15, store(16));

        assertEquals(List.of(16L), held(), "nothing says whether it is the same engine");
        assertEquals(IndexState.DEGRADED, stream.state());
        assertEquals(4, stream.status().lostMessages());
        assertEquals(1, stream.status().gaps());
        assertEquals(0, stream.status().restarts());
        final String problem = stream.status().problem();
        assertTrue(problem.startsWith("messages 11..14 are lost: "), problem);
        stream.onMessage(16, store(17));
        assertEquals(List.of(16L, 17L), held());
        stream.onMessage(0, store(1));
        assertEquals(List.of(1L), held());
        assertEquals(4, stream.status().lostMessages());
        assertEquals(1, stream.status().restarts());
        assertEquals(IndexState.EXACT, stream.state());
    }

    @ParameterizedTest
    @ValueSource(booleans = {false, true})
    void aReconnectDuringALoadHasItsOwnAnswer(boolean atItsEnd) {
        final EngineStream stream = replayable();
        stream.onConnected();
        assertEquals(0, stream.replayFrom());
        assertEquals(ReplayStep.CONTINUE, stream.onReplayed(0, store(1)));
        assertEquals(ReplayStep.CONTINUE, stream.onReplayed(1, store(2)));
        stream.onConnected();
        if (atItsEnd) {
            stream.replayEnded();
        } else {
            assertEquals(ReplayStep.STOP, stream.onReplayed(2, store(3)));
        }
        assertEquals(List.of(1L, 2L), held());
        assertEquals(0, stream.status().restarts());

        assertEquals(1, stream.replayFrom());
        replay(stream, 1, store(2), store(3));
        assertEquals(List.of(1L, 2L, 3L), held());
        assertEquals(0, stream.status().restarts());
        assertEquals(IndexState.EXACT, stream.state());
    }

    @Test
    void aRestartBehindAReconnectDuringALoadIsNoticed() {
        final EngineStream stream = replayable();
        stream.onConnected();
        assertEquals(ReplayStep.CONTINUE, stream.onReplayed(0, store(1)));
        stream.onConnected();
        assertEquals(ReplayStep.STOP, stream.onReplayed(1, store(2)));
        assertEquals(0, stream.replayFrom());
        assertEquals(ReplayStep.STOP, stream.onReplayed(0, store(11)));
        assertEquals(1, stream.status().restarts());
        assertEquals(0, stream.replayFrom());
        replay(stream, 0, store(11), store(12));
        assertEquals(List.of(11L, 12L), held());
        assertEquals(IndexState.EXACT, stream.state());
    }

    @Test
    void anEarlyMessageIsOfTheConnectionThatItCameBy() {
        final EngineStream stream = stream(c -> c);
        stream.onConnected();
        stream.onMessage(0, store(1));
        stream.onMessage(2, batch(cleared()));
        stream.onDisconnected("reset");
        stream.onConnected();
        stream.onMessage(1, store(12)); // of the next life
        nowNs += TimeUnit.SECONDS.toNanos(1);
        stream.tick();
        assertNotEquals(IndexState.EXACT, stream.state(), () -> "with " + held());
    }

    @Test
    void messagesThatHadWaitedAreFoundToBeOfTheFormerLife() {
        final EngineStream stream = replayable();
        stream.onConnected();
        assertEquals(ReplayStep.CONTINUE, stream.onReplayed(0, store(11)), "of the next life");
        stream.onDisconnected("its host was lost");
        stream.onMessage(1, store(2));
        stream.replayEnded();
        stream.onConnected();
        assertEquals(0, stream.replayFrom());
        assertEquals(ReplayStep.CONTINUE, stream.onReplayed(0, store(11)));
        assertEquals(ReplayStep.STOP, stream.onReplayed(1, store(12)));
        assertEquals(0, stream.replayFrom());
        replay(stream, 0, store(11), store(12));
        assertEquals(List.of(11L, 12L), held());
        assertEquals(IndexState.EXACT, stream.state());
    }

    @Test
    void aLoadThatGoesOnBehindItsLastMessageIsOfAnotherLife() {
        final EngineStream stream = replayable();
        stream.onConnected();
        replayPart(stream, 0, store(1), store(2));
        assertEquals(1, stream.replayFrom(), "the answer broke off");
        assertEquals(ReplayStep.STOP, stream.onReplayed(5, store(16)), "the engine keeps no more");
        assertEquals(List.of(), held());
        assertEquals(0, stream.replayFrom());
        replay(stream, 5, store(16), store(17));
        assertEquals(List.of(16L, 17L), held(), "nothing of the former life");
        assertEquals(IndexState.DEGRADED, stream.state());
        assertEquals(1, stream.status().restarts());
    }

    @Test
    void afterAReconnectWithoutAnswerTheViewIsStaleAndTheEngineIsAskedAgain() {
        final EngineStream stream = replayable();
        stream.onMessage(0, store(1));
        stream.onConnected();
        stream.replayFailed();

        assertEquals(IndexState.STALE, stream.state());
        assertEquals(List.of(1L), held());
        nowNs += TimeUnit.SECONDS.toNanos(6);
        stream.tick();
        assertEquals(0, stream.replayFrom());
        replay(stream, 0, store(1), store(2));
        assertEquals(IndexState.EXACT, stream.state());
        assertEquals(List.of(1L, 2L), held());
    }

    @Test
    void liveMessagesThatAReplayHasBroughtAlreadyAreIgnored() {
        final EngineStream stream = replayable();
        stream.onConnected();
        replay(stream, 0, store(1), store(2), store(3));
        stream.onMessage(1, store(2));
        stream.onMessage(2, store(3));
        stream.onMessage(3, store(4));

        assertEquals(List.of(1L, 2L, 3L, 4L), held());
        assertEquals(2, stream.status().duplicates());
        assertEquals(0, stream.status().restarts());
    }

    @Test
    void aMissedNewestMessageIsFoundByTheTailCheck() {
        final EngineStream stream = replayable();
        stream.onMessage(0, store(1));
        stream.checkTail();
        assertEquals(0, stream.replayFrom());
        replay(stream, 0, store(1), store(2));

        assertEquals(List.of(1L, 2L), held());
        assertEquals(IndexState.EXACT, stream.state());
    }

    @Test
    void aMessageThatTheSinkRefusesIsReplayed() {
        final EngineStream stream = replayable();
        stream.onMessage(0, store(1));
        full = true;
        stream.onMessage(1, store(2));
        assertEquals(1, stream.status().refused());
        assertEquals(IndexState.RESYNC, stream.state());
        assertEquals(0, stream.replayFrom());
        assertEquals(ReplayStep.CONTINUE, stream.onReplayed(0, store(1)));
        assertEquals(ReplayStep.RETRY, stream.onReplayed(1, store(2)));
        full = false;
        assertEquals(ReplayStep.CONTINUE, stream.onReplayed(1, store(2)));
        stream.replayEnded();

        assertEquals(List.of(1L, 2L), held());
        assertEquals(IndexState.EXACT, stream.state());
        index.forEach((slot, engine, sequence, copies) -> assertEquals(1, copies));
    }

    @Test
    void aRingThatHasRoomAgainIsNoProblem() {
        final EngineStream stream = replayable();
        stream.onConnected();
        assertEquals(0, stream.replayFrom());
        full = true;
        assertEquals(ReplayStep.RETRY, stream.onReplayed(0, store(1)));
        final String problem = stream.status().problem();
        assertTrue(problem.contains("event-ring-size"), problem);
        full = false;
        replay(stream, 0, store(1));

        assertEquals("", stream.status().problem());
        assertEquals(IndexState.EXACT, stream.state());
    }

    @Test
    void aRefusedMessageWithoutReplayIsLostAndSaysSo() {
        final EngineStream stream = stream(c -> c);
        stream.onMessage(0, store(1));
        full = true;
        stream.onMessage(1, store(2));
        full = false;
        stream.onMessage(2, store(3));

        assertEquals(List.of(1L, 3L), held());
        assertEquals(IndexState.DEGRADED, stream.state());
        assertEquals(1, stream.status().lostMessages());
        assertTrue(
                stream.status().problem().contains("event-ring-size"), stream.status().problem());
    }

    @Test
    void aClearThatTheSinkRefusesComesLater() {
        final EngineStream stream = stream(c -> c);
        stream.onMessage(0, store(1));
        full = true;
        stream.clear();
        assertEquals(List.of(1L), held());
        full = false;
        stream.tick();

        assertEquals(List.of(), held());
        assertEquals(0, index.appliedSequence(SLOT));
        assertEquals(IndexState.EXACT, stream.state());
    }

    private EngineStream onLoaded(boolean replayable) {
        final long[] hashes = {1, 2};
        final KvBatch loaded = new KvBatch();
        loaded.reset(SLOT, KvBatch.NO_SEQUENCE, CopyRule.PHYSICAL, false, ApplyListener.NONE);
        loaded.addReported(true, 0, hashes, hashes, 2);
        applier.offer(loaded);
        final EngineStream stream = replayable ? replayable() : stream(c -> c);
        stream.startOnLoaded();
        return stream;
    }

    @Test
    void whatWasLoadedGoesBeforeTheFirstMessageOfAnEngineThatHasBegunAnew() {
        final EngineStream stream = onLoaded(false);
        assertEquals(List.of(1L, 2L), held());
        stream.onMessage(0, store(3));
        stream.onMessage(1, store(4));

        assertEquals(List.of(3L, 4L), held());
        assertEquals(IndexState.EXACT, stream.state());
    }

    @Test
    void whatWasLoadedGoesAlsoWhereThatMessageFindsNoRoom() {
        final EngineStream stream = onLoaded(false);
        full = true;
        stream.onMessage(0, store(3));
        full = false;
        stream.onMessage(1, store(4));

        assertEquals(List.of(4L), held());
        assertEquals(IndexState.DEGRADED, stream.state());
    }

    @Test
    void whatWasLoadedStaysWhereTheStreamBeginsInTheMiddleOfItsLife() {
        final EngineStream stream = onLoaded(false);
        stream.onMessage(9, batch(removed(List.of(2))));
        stream.onMessage(10, store(3));

        assertEquals(List.of(1L, 3L), held());
        assertEquals(IndexState.DEGRADED, stream.state());
        stream.onMessage(0, store(4));
        assertEquals(List.of(4L), held(), "it has begun anew");
    }

    @Test
    void whatWasLoadedGoesAtOnceWhereTheEngineSendsAllAgain() {
        final EngineStream stream = onLoaded(true);
        assertEquals(List.of(), held());
        stream.onConnected();
        replay(stream, 0, store(3), store(4));

        assertEquals(List.of(3L, 4L), held());
        assertEquals(IndexState.EXACT, stream.state());
    }

    @Test
    void garbageIsCountedAndItsNumberNotBelieved() {
        final EngineStream stream = stream(c -> c);
        stream.onMessage(0, store(1));
        stream.onMessage(1L << 60, new byte[] {1, 2, 3});
        stream.onMessage(-1, store(9));
        stream.onMessage(1, store(2));

        assertEquals(List.of(1L, 2L), held());
        assertEquals(
                Map.of("undecodable_message", 1L, "bad_sequence_frame", 1L),
                stream.status().drops());
        assertEquals(IndexState.EXACT, stream.state());
    }

    @Test
    void aWrongBlockSizeIsLoud() {
        final EngineStream stream = stream(c -> c);
        stream.onMessage(0, batch(stored(List.of(1), null, range(1, 16), 16)));

        final SourceStatus status = stream.status();
        assertEquals(IndexState.DEGRADED, stream.state());
        assertEquals(16, status.learnedBlockSize());
        assertEquals(Map.of("block_size_mismatch", 1L), status.drops());
        assertTrue(status.problem().contains("set block-size=16"), status.problem());
    }

    @Test
    void storesThatTheIndexRefusesAreCountedAndDegrade() {
        final EngineStream stream = stream(c -> c);
        stream.onMessage(0, batch(stored(List.of(5), 77, range(1, 4), BLOCK)));

        assertEquals(1, stream.status().unknownParents());
        assertEquals(IndexState.DEGRADED, stream.state());
        assertTrue(
                stream.status().problem().contains("do not")
                        || !stream.status().problem().isEmpty());
        stream.onMessage(1, batch(cleared()));
        assertEquals(IndexState.EXACT, stream.state());
    }

    @Test
    void repeatedOverPredictionChangesTheMeaningOfRemovals() {
        final EngineStream stream = replayable();
        stream.onMessage(0, store(1));
        stream.onMessage(1, store(1));
        stream.onMessage(2, batch(removed(List.of(1))));
        assertEquals(List.of(1L), held());
        for (int i = 0; i < 20; i++) {
            stream.reportEngineHit(4, 4, true);
            stream.reportEngineHit(0, 8, true);
        }
        reportTooHigh(stream, 7);
        assertEquals(RemovalRule.PHYSICAL, stream.status().removals());
        stream.reportEngineHit(4, 0, true);

        assertEquals(RemovalRule.LAST_COPY, stream.status().removals());
        assertEquals(1, stream.status().ruleSwitches());
        assertTrue(stream.status().problem().contains("last-copy"), stream.status().problem());
        assertEquals(List.of(), held());
        assertEquals(0, stream.replayFrom());
        replay(stream, 0, store(1), store(1), batch(removed(List.of(1))));
        assertEquals(List.of(), held());
        assertEquals(IndexState.EXACT, stream.state());
        stream.onMessage(3, store(2));
        assertEquals(List.of(2L), held());
        assertEquals(0, stream.status().restarts());
    }

    @Test
    void theMeaningOfRemovalsIsFoundAnewAfterARestart() {
        final EngineStream stream = replayable();
        stream.onMessage(0, store(1));
        reportTooHigh(stream, 8);
        replay(stream, 0, store(1));
        assertEquals(RemovalRule.LAST_COPY, stream.status().removals());
        stream.onMessage(1, store(2));
        stream.onMessage(2, batch(cleared()));
        stream.onMessage(3, store(3));
        assertEquals(RemovalRule.LAST_COPY, stream.status().removals(), "the same engine");

        stream.onMessage(0, store(4)); // another one, which may be another version
        assertEquals(1, stream.status().restarts());
        assertEquals(RemovalRule.PHYSICAL, stream.status().removals());
        stream.onMessage(1, store(4));
        stream.onMessage(2, batch(removed(List.of(4))));
        assertEquals(List.of(4L), held());
        reportTooHigh(stream, 7);
        assertEquals(RemovalRule.PHYSICAL, stream.status().removals());
        stream.reportEngineHit(4, 0, true);
        assertEquals(RemovalRule.LAST_COPY, stream.status().removals());
        assertEquals(2, stream.status().ruleSwitches());
    }

    @Test
    void aRuleThatIsConfiguredStaysAfterARestart() {
        final EngineStream stream = stream(c -> c.withRemovals(RemovalRule.LAST_COPY));
        stream.onMessage(0, store(1));
        stream.onMessage(1, store(2));
        stream.onMessage(0, store(3));
        assertEquals(1, stream.status().restarts());
        assertEquals(RemovalRule.LAST_COPY, stream.status().removals());
    }

    @Test
    void aFixedRuleIsNotChangedButTheBlocksThatTheEngineHasNotAreDropped() {
        final EngineStream stream = stream(c -> c.withRemovals(RemovalRule.PHYSICAL));
        stream.onMessage(0, store(1));
        reportTooHigh(stream, 100);

        assertEquals(RemovalRule.PHYSICAL, stream.status().removals());
        assertEquals(List.of(), held());
        assertEquals(IndexState.DEGRADED, stream.state());
    }

    @Test
    void hitsThatOtherCacheGroupsBoundSayNothingOfRemovals() {
        final EngineStream stream = stream(c -> c);
        stream.onMessage(
                0, batch(ofGroup(1, 0, "full_attention"), ofGroup(1, 1, "sliding_window")));
        for (int i = 0; i < 100; i++) {
            stream.reportEngineHit(4, 0, true);
            assertEquals(List.of(1L), held(), "what is held stays");
        }
        assertEquals(RemovalRule.PHYSICAL, stream.status().removals());
        assertEquals(0, stream.status().ruleSwitches());
    }

    @Test
    void aRuleThatWasConcludedBeforeTheyWereKnownIsTakenBack() {
        final EngineStream stream = replayable();
        stream.onMessage(0, store(1));
        reportTooHigh(stream, 8);
        replay(stream, 0, store(1));
        assertEquals(RemovalRule.LAST_COPY, stream.status().removals());
        final byte[] both = batch(ofGroup(2, 0, "full_attention"), ofGroup(2, 1, "mamba"));
        stream.onMessage(1, both);
        stream.reportEngineHit(4, 0, true);
        assertEquals(RemovalRule.PHYSICAL, stream.status().removals());
        replay(stream, 0, store(1), both);
        assertEquals(List.of(1L, 2L), held());
        assertEquals(IndexState.EXACT, stream.state());
    }

    /** As of prompts that SGLang has whole, with EAGLE and its page of one token. */
    @Test
    void hitsThatLackOneTokenSayNothingOfRemovalsWhereABlockIsOne() {
        final EngineStream stream =
                new EngineStream(SourceConfig.of("w", SLOT, 1, ""), applier, () -> nowNs);
        stream.onMessage(0, batch(stored(List.of(1), null, List.of(7), 1)));
        for (int i = 0; i < 100; i++) {
            stream.reportEngineHit(4, 3, true);
        }
        assertEquals(RemovalRule.PHYSICAL, stream.status().removals());
        assertEquals(IndexState.EXACT, stream.state());
        for (int i = 0; i < 8; i++) {
            stream.reportEngineHit(4, 2, true);
        }
        assertEquals(RemovalRule.LAST_COPY, stream.status().removals());
    }

    @Test
    void wrongForecastsNameTheOtherCacheGroupsAndAskForNothing() {
        final EngineStream stream = replayable();
        stream.onMessage(
                0, batch(ofGroup(1, 0, "full_attention"), ofGroup(1, 1, "sliding_window")));
        for (int i = 0; i < 32; i++) {
            stream.reportEngineHit(4, 0, true);
            stream.tick();
        }
        assertEquals(IndexCause.FORECASTS, stream.status().cause());
        assertTrue(
                stream.status().problem().contains("layers of kind sliding_window"),
                stream.status().problem());
        assertEquals(-1, stream.replayFrom(), "nothing is missing");
        assertEquals(List.of(1L), held());
        for (int i = 0; i < 16; i++) {
            stream.reportEngineHit(4, 4, true);
        }
        assertEquals(IndexState.EXACT, stream.state());
    }

    /** Of two copies one was removed, and blocks are stored behind the other one. */
    @Test
    void refusedStoresTakeAConcludedRuleBack() {
        final byte[] behind = batch(stored(List.of(2), 1, range(20, 23), BLOCK));
        final EngineStream stream = replayable();
        stream.onMessage(0, store(1));
        reportTooHigh(stream, 8);
        replay(stream, 0, store(1));
        assertEquals(RemovalRule.LAST_COPY, stream.status().removals());
        stream.onMessage(1, store(1));
        stream.onMessage(2, batch(removed(List.of(1))));
        stream.onMessage(3, behind);
        stream.tick();

        assertEquals(RemovalRule.PHYSICAL, stream.status().removals());
        assertTrue(stream.status().problem().contains("physical"), stream.status().problem());
        assertEquals(0, stream.replayFrom(), "at once");
        replay(stream, 0, store(1), store(1), batch(removed(List.of(1))), behind);
        assertEquals(List.of(1L, 2L), held());
        assertEquals(IndexState.EXACT, stream.state());
        assertEquals("", stream.status().problem());

        reportTooHigh(stream, 8);
        assertEquals(RemovalRule.PHYSICAL, stream.status().removals(), "known for this engine");
        assertEquals(List.of(), held(), "what it has not is dropped all the same");
        stream.replayFailed();
        stream.onMessage(0, store(5)); // another engine
        stream.onMessage(1, store(6));
        assertEquals(1, stream.status().restarts());
        reportTooHigh(stream, 8);
        assertEquals(RemovalRule.LAST_COPY, stream.status().removals());
    }

    @Test
    void refusedStoresSayNothingOfARuleThatIsConfiguredOrWhereMessagesAreMissing() {
        final byte[] behind = batch(stored(List.of(2), 1, range(20, 23), BLOCK));
        final EngineStream configured = stream(c -> c.withRemovals(RemovalRule.LAST_COPY));
        configured.onMessage(0, behind);
        configured.tick();
        assertEquals(RemovalRule.LAST_COPY, configured.status().removals());
        assertEquals(IndexCause.REFUSED_STORES, configured.status().cause());

        final EngineStream stream = stream(c -> c);
        stream.onMessage(0, store(1));
        reportTooHigh(stream, 8);
        stream.onMessage(1, behind);
        stream.tick();
        assertEquals(RemovalRule.LAST_COPY, stream.status().removals());
        assertEquals(IndexCause.LOST_MESSAGES, stream.status().cause());
    }

    private static void reportTooHigh(EngineStream stream, int times) {
        for (int i = 0; i < times; i++) {
            stream.reportEngineHit(4, 0, true);
        }
    }

    private static Object ofGroup(int hash, int group, String kind) {
        return stored(
                List.of(hash),
                null,
                range(hash * 10, hash * 10 + 3),
                BLOCK,
                "group_idx",
                group,
                "kv_cache_spec_kind",
                kind);
    }

    @Test
    void withoutReplayAChangeOfRuleStartsFromAnEmptySlot() {
        final EngineStream stream = stream(c -> c);
        stream.onMessage(0, store(1));
        reportTooHigh(stream, 8);
        assertEquals(List.of(), held());
        assertEquals(IndexState.DEGRADED, stream.state());
        stream.onMessage(1, store(2));
        assertEquals(List.of(2L), held());
        assertEquals(0, stream.status().gaps());
    }

    @Test
    void lastCopyRemovesEveryCopyAtOnce() {
        final EngineStream stream = stream(c -> c.withRemovals(RemovalRule.LAST_COPY));
        stream.onMessage(0, store(1));
        stream.onMessage(1, store(1));
        stream.onMessage(2, batch(removed(List.of(1))));

        assertEquals(List.of(), held());
    }

    @Test
    void rootStoresOfHeldBlocksCanBeReports() {
        final EngineStream stream = stream(c -> c.withRootStoresRefresh(true));
        stream.onMessage(0, store(1));
        stream.onMessage(1, store(1));
        stream.onMessage(2, batch(removed(List.of(1))));

        assertEquals(List.of(), held());
    }

    @ParameterizedTest
    @ValueSource(booleans = {false, true})
    void saltsAreKnownOfAsManyBlocksAsAreHeldNotAsWereStored(boolean cleared) {
        final EngineStream stream = stream(c -> c);
        int number = 0;
        for (int first = 100; first < 240_000; first += 240) {
            final List<?> hashes = range(first, first + 239);
            final byte[] salted =
                    batch(stored(hashes, null, range(1, 4 * 240), BLOCK, "cache_salt", "tenant"));
            stream.onMessage(number++, salted);
            if (cleared) {
                stream.clear();
            } else {
                stream.onMessage(number++, batch(removed(hashes)));
            }
        }
        stream.onMessage(number++, store(1));
        stream.onMessage(number, batch(stored(List.of(2), 1, range(1, 4), BLOCK)));

        assertEquals(List.of(1L, 2L), held());
        assertEquals(Map.of(), stream.status().drops());
        assertEquals(IndexState.EXACT, stream.state());
    }

    @Test
    void aClosedStreamTakesNothing() {
        final EngineStream stream = stream(c -> c);
        stream.onMessage(0, store(1));
        stream.close();
        stream.onMessage(1, store(2));
        stream.clear();

        assertEquals(List.of(1L), held());
        assertEquals(IndexState.GONE, stream.state());
    }

    @Test
    void aLostConnectionIsNamedAndCountedUntilItIsBack() {
        final EngineStream stream = stream(c -> c);
        stream.onConnectFailed("tcp://10.0.0.7:5557 refused");
        assertEquals(1, stream.status().connectFailures());
        assertTrue(stream.status().problem().contains("10.0.0.7"), stream.status().problem());
        stream.onConnected();
        assertEquals("", stream.status().problem());
        stream.onMessage(0, store(1));
        stream.onDisconnected("tcp://10.0.0.7:5557 closed");

        assertEquals(1, stream.status().disconnects());
        assertTrue(stream.status().problem().contains("closed"), stream.status().problem());
        stream.onConnected();
        stream.onMessage(0, store(1));
        assertEquals("", stream.status().problem());
    }

    @Test
    void messagesThatWaitForOlderOnesAreCounted() {
        final EngineStream stream = replayable();
        stream.onMessage(0, store(1));
        assertEquals(0, stream.status().waiting());
        stream.onMessage(2, store(3)); // may have been overtaken
        assertEquals(1, stream.status().waiting());
        stream.onMessage(5, store(6)); // both wait for a replay
        stream.onMessage(6, store(7));
        assertEquals(3, stream.status().waiting());
        stream.replayFailed();
        assertEquals(0, stream.status().waiting());
    }

    @Test
    void theAgeOfTheLastMessageIsTold() {
        final EngineStream stream = stream(c -> c);
        assertEquals(-1, stream.status().lastEventAgeNs());
        nowNs = 500;
        stream.onMessage(0, store(1));
        nowNs = 1_700;

        assertEquals(1_200, stream.status().lastEventAgeNs());
    }
}
