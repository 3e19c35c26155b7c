package io.kvasir.pipeline.source;

import static io.kvasir.pipeline.source.Messages.batch;
import static io.kvasir.pipeline.source.Messages.cleared;
import static io.kvasir.pipeline.source.Messages.range;
import static io.kvasir.pipeline.source.Messages.stored;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.kvasir.core.index.PrefixIndex;
import io.kvasir.core.index.PrefixIndexConfig;
import io.kvasir.pipeline.events.IndexApplier;
import io.kvasir.pipeline.events.IndexPipeline;
import io.kvasir.pipeline.events.IndexPipelineConfig;
import io.kvasir.pipeline.source.EngineStream.ReplayStep;
import io.kvasir.testsupport.Eventually;

import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Order;
import org.junit.jupiter.api.Test;

import java.util.ArrayList;
import java.util.List;
import java.util.function.BooleanSupplier;

/** Engines whose replay socket drops what a slow reader has no room for. */
@Order(1) // takes long: begins first, beside the others
class ReplayHolesTest {
    private static final int SLOT = 1;
    private static final int BLOCK = 4;
    private static final int MESSAGES = 2_000;

    private final PrefixIndex index = new PrefixIndex(new PrefixIndexConfig(4, 4_096, 4_096));
    private final Publisher publisher = new Publisher();
    private IndexPipeline pipeline; // null where there are no sockets
    private long nowNs;

    @AfterEach
    void close() {
        if (pipeline != null) {
            pipeline.close();
        }
        index.close();
        publisher.close();
    }

    private EventSource open(int timeoutMs, Publisher.Sends sends) {
        pipeline =
                new IndexPipeline(
                        IndexPipelineConfig.defaults()
                                .withRingSize(4_096)
                                .withReplay(timeoutMs, 1, 0),
                        index);
        for (int i = 0; i < MESSAGES; i++) {
            publisher.lose(store(i));
        }
        publisher.sends(sends);
        return pipeline.openZmq(
                SourceConfig.of("w", SLOT, BLOCK, publisher.endpoint())
                        .withReplayEndpoint(publisher.replayEndpoint()));
    }

    private static byte[] store(int hash) {
        return batch(stored(List.of(hash), null, range(hash * 10, hash * 10 + 3), BLOCK));
    }

    private static void await(BooleanSupplier condition, EventSource source) {
        Eventually.holds(() -> source.status().toString(), condition);
    }

    private void awaitWhole(EventSource source) {
        await(() -> source.status().replays() > 0, source);
        await(() -> source.state() != IndexState.LOADING, source);
        final SourceStatus status = source.status();
        assertEquals(IndexState.EXACT, status.state(), status::toString);
        assertEquals("", status.problem());
        assertEquals(0, status.lostMessages());
        assertEquals(MESSAGES - 1, status.lastSequence());
        assertEquals(MESSAGES, index.heldBlocks(SLOT));
    }

    @Test
    void aHoleInTheMiddleIsAskedForAgain() {
        final EventSource source =
                open(20_000, (request, number) -> request > 1 || number < 1_000 || number > 1_954);
        awaitWhole(source);
        assertEquals(List.of(0L, 999L), publisher.asked());
    }

    @Test
    void anAnswerWithoutItsEndIsAskedForAgainWhileItBringsSomething() {
        final EventSource source =
                open(
                        3_000,
                        (request, number) ->
                                request > 1 || (number != Publisher.END && number < 1_000));
        awaitWhole(source);
        assertEquals(List.of(0L, 999L), publisher.asked());
    }

    @Test
    void anAnswerThatBringsNothingIsGivenUp() {
        final EventSource source =
                open(1_000, (request, number) -> number != Publisher.END && number < 1_000);
        await(() -> source.status().replayFailures() > 0, source);
        assertEquals(999, source.status().lastSequence());
        assertTrue(source.status().problem().contains("does not answer"), source.status()::problem);
    }

    @Test
    void whatIsLeftOutOfEachAnswerIsLost() {
        final EventSource source = open(20_000, (request, number) -> number != 1_200);
        await(() -> source.status().replays() > 0, source);
        await(() -> source.state() == IndexState.DEGRADED, source);
        final SourceStatus status = source.status();
        assertEquals(IndexCause.LOST_MESSAGES, status.cause());
        assertEquals(1, status.lostMessages());
        assertTrue(status.problem().startsWith("messages 1200..1200 are lost"), status::problem);
        assertEquals(List.of(0L, 1_199L), publisher.asked());
    }

    private EngineStream stream() {
        return new EngineStream(
                SourceConfig.of("w", SLOT, BLOCK, "").withReplayEndpoint("direct"),
                new IndexApplier(index),
                () -> nowNs);
    }

    /** Answers until nothing is wanted; returns what was asked for. */
    private static List<Long> answer(EngineStream stream, int messages, Publisher.Sends sends) {
        final List<Long> asked = new ArrayList<>();
        for (long from = stream.replayFrom(); from >= 0; from = stream.replayFrom()) {
            asked.add(from);
            assertTrue(asked.size() < 100, asked::toString);
            ReplayStep step = ReplayStep.CONTINUE;
            for (int i = (int) from; i < messages && step != ReplayStep.STOP; i++) {
                if (sends.sends(asked.size(), i)) {
                    step = stream.onReplayed(i, store(i));
                }
            }
            if (step != ReplayStep.STOP) {
                stream.replayEnded();
            }
        }
        return asked;
    }

    @Test
    void whatIsMissingBetweenTheLastOfAnAnswerAndTheLiveOnesIsAskedForAgain() {
        final EngineStream stream = stream();
        stream.onMessage(0, store(0));
        stream.onMessage(9, store(9));
        assertEquals(
                List.of(0L, 3L),
                answer(stream, 10, (request, number) -> request > 1 || number < 4));
        assertEquals(0, stream.status().lostMessages());
        assertEquals(IndexState.EXACT, stream.state());
        assertEquals(10, index.heldBlocks(SLOT));
    }

    @Test
    void whatNoAnswerHasBeforeTheLiveOnesIsLost() {
        final EngineStream stream = stream();
        stream.onMessage(0, store(0));
        stream.onMessage(9, store(9));
        assertEquals(List.of(0L, 3L), answer(stream, 10, (request, number) -> number < 4));
        assertEquals(5, stream.status().lostMessages());
        assertEquals(IndexState.DEGRADED, stream.state());
    }

    /** The first 3 of 5 messages, and then no more of the answer. */
    private EngineStream cutOff() {
        final EngineStream stream = stream();
        stream.onConnected();
        assertEquals(0, stream.replayFrom());
        for (int i = 0; i < 3; i++) {
            stream.onReplayed(i, store(i));
        }
        stream.replayFailed("no end of its answer");
        return stream;
    }

    @Test
    void aViewWhoseEndWasNotSeenIsNotExact() {
        final EngineStream stream = cutOff();
        assertEquals(IndexState.DEGRADED, stream.state());
        assertEquals(IndexCause.LOST_MESSAGES, stream.status().cause());
        assertEquals(0, stream.status().lostMessages());
        assertTrue(
                stream.status().problem().contains("messages after 2 may be missing"),
                stream.status()::problem);
    }

    @Test
    void theNextLiveMessageShowsThatTheEndWasSeen() {
        final EngineStream stream = cutOff();
        stream.onMessage(3, store(3));
        assertEquals(IndexState.EXACT, stream.state());
        assertEquals(
                "replay endpoint direct does not answer: no end of its answer",
                stream.status().problem());
    }

    @Test
    void theEndIsAskedForAgainWithoutWhatIsThere() {
        final EngineStream stream = cutOff();
        nowNs += RetryTimer.FIRST_DELAY_NS + 1;
        stream.tick();
        nowNs += 10 * RetryTimer.FIRST_DELAY_NS;
        stream.tick();
        assertEquals(List.of(2L), answer(stream, 5, (_, _) -> true));
        assertEquals(IndexState.EXACT, stream.state());
        assertEquals("", stream.status().problem());
        assertEquals(5, index.heldBlocks(SLOT));
    }

    @Test
    void whatCameAfterAnEndThatWasNotSeenIsAskedFor() {
        final EngineStream stream = cutOff();
        stream.onMessage(4, store(4));
        stream.onMessage(5, store(5));
        assertEquals(List.of(2L), answer(stream, 6, (_, _) -> true));
        assertEquals(IndexState.EXACT, stream.state());
        assertEquals(0, stream.status().lostMessages());
        assertEquals(6, index.heldBlocks(SLOT));
    }

    @Test
    void aRestartIsNoProblemOnceTheNewLifeIsLoaded() {
        final EngineStream stream = stream();
        stream.onConnected();
        answer(stream, 4, (_, _) -> true);
        assertEquals(IndexState.EXACT, stream.state());
        stream.onMessage(1, store(9)); // of the life that has begun
        assertTrue(stream.status().problem().contains("restarted"), stream.status()::problem);
        assertEquals(List.of(0L), answer(stream, 2, (_, _) -> true));
        assertEquals(IndexState.EXACT, stream.state());
        assertEquals(1, stream.status().restarts());
        assertEquals("", stream.status().problem());
    }

    @Test
    void aViewThatIsWholeAgainHasNoProblem() {
        final EngineStream stream = stream();
        stream.onMessage(0, store(0));
        stream.onMessage(3, store(3));
        stream.replayFailed("closed");
        assertEquals(2, stream.status().lostMessages());
        nowNs += RetryTimer.FIRST_DELAY_NS + 1;
        stream.tick();
        assertEquals(
                List.of(0L, 1L),
                answer(stream, 5, (request, number) -> request > 1 || number < 2 || number > 3));
        assertEquals(IndexState.EXACT, stream.state());
        assertEquals("", stream.status().problem());
        assertEquals(5, index.heldBlocks(SLOT));
    }

    @Test
    void aReplayThatBeginsWithAClearLacksNothing() {
        final EngineStream stream = stream();
        stream.onConnected();
        assertEquals(0, stream.replayFrom());
        final Object after = stored(List.of(7), null, range(1, 4), BLOCK);
        assertEquals(ReplayStep.CONTINUE, stream.onReplayed(5, batch(cleared(), after)));
        stream.replayEnded();

        assertEquals(IndexState.EXACT, stream.state());
        assertEquals(5, stream.status().lostMessages());
        assertEquals("", stream.status().problem());
    }
}
