package io.kvasir.pipeline.publish;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;

import io.kvasir.core.index.CopyRule;
import io.kvasir.pipeline.source.IndexState;
import io.kvasir.pipeline.source.SourceConfig;
import io.kvasir.pipeline.source.ZmqConfig;
import io.kvasir.pipeline.wire.ApplyListener;
import io.kvasir.pipeline.wire.KvBatch;
import io.kvasir.testsupport.Eventually;

import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

import java.io.IOException;
import java.util.List;
import java.util.function.BooleanSupplier;

class ZmqKvEventPublisherTest {
    private static final int[] TOKENS = {1, 2, 3, 4, 5, 6, 7, 8};
    private static final String CLEARED = "7/0 1 cleared"; // what was published before has ended

    private final RecordedTransport transport = new RecordedTransport();
    private EngineEventPublisher engine = engine("tcp://127.0.0.1:0", "tcp://127.0.0.1:0");
    private final ZmqKvEventPublisher relay =
            new ZmqKvEventPublisher(
                    SourceConfig.of("e", 0, 4, engine.endpoint())
                            .withReplayEndpoint(engine.replayEndpoint()),
                    ZmqConfig.defaults(),
                    7,
                    transport);

    private static EngineEventPublisher engine(String endpoint, String replay) {
        try {
            return new EngineEventPublisher(endpoint, replay, "", 0, 4);
        } catch (IOException e) {
            throw new AssertionError(e);
        }
    }

    @AfterEach
    void close() {
        relay.close();
        engine.close();
    }

    private void await(BooleanSupplier condition) {
        Eventually.holds(() -> transport.lines() + " " + relay.status(), condition);
    }

    private void awaitLines(String... lines) {
        await(() -> transport.lines().size() >= lines.length);
        assertEquals(List.of(lines), transport.lines());
    }

    @Test
    void whatAnEngineAnnouncesIsPublishedAsRouterEvents() {
        engine.publishStored(TOKENS, new long[] {101, 102}, null, null);
        engine.publishRemoved(102);
        engine.publishAllCleared();
        awaitLines(CLEARED, "7/0 2 stored root [101, 102]", "7/0 3 removed [102]", "7/0 4 cleared");
        await(() -> relay.status().state() == IndexState.EXACT);
        assertEquals(4, relay.publishedEvents());
    }

    @Test
    void theRemovalOfTheLastCopyAloneIsPublished() {
        engine.publishStored(TOKENS, new long[] {101, 102}, null, null);
        engine.publishStored(TOKENS, new long[] {101, 102}, null, null);
        engine.publishRemoved(102);
        engine.publishRemoved(101, 102);
        engine.publishRemoved(101);
        awaitLines(
                CLEARED,
                "7/0 2 stored root [101, 102]",
                "7/0 3 stored root [101, 102]",
                "7/0 4 removed [102]",
                "7/0 5 removed [101]");
    }

    @Test
    void aRestartOfTheEngineIsAClear() {
        engine.publishStored(TOKENS, new long[] {101, 102}, null, null);
        awaitLines(CLEARED, "7/0 2 stored root [101, 102]");
        final String endpoint = engine.endpoint();
        final String replay = engine.replayEndpoint();
        engine.close();
        engine = engine(endpoint, replay);
        engine.publishStored(TOKENS, new long[] {201, 202}, null, null);
        awaitLines(
                CLEARED,
                "7/0 2 stored root [101, 102]",
                "7/0 3 cleared",
                "7/0 4 stored root [201, 202]");
    }

    @Test
    void aTransportThatFailsGetsTheSameEventsUnderTheSameNumbers() {
        transport.failNext(2);
        engine.publishRemoved(1);
        engine.publishRemoved(2);
        awaitLines(CLEARED, "7/0 2 removed [1]", "7/0 3 removed [2]");
        assertEquals(2, relay.failedTries());
        assertEquals("", relay.problem());
    }

    @Test
    void eventsThatNoMessageCanCarryAreAGapAndDoNotEndTheRelay() {
        awaitLines(CLEARED);
        transport.limitBlocks(1);
        engine.publishStored(TOKENS, new long[] {101, 102}, null, null);
        engine.publishRemoved(3);
        awaitLines(CLEARED, "7/0 3 removed [3]");
        await(() -> relay.publishedEvents() == 2);
        assertEquals(1, relay.lostEvents());
        assertEquals(0, relay.failedTries());
        assertEquals("", relay.problem());
    }

    @Test
    void messagesThatAreLostBeforeTheRelayAreAGapForReaders() {
        awaitLines(CLEARED); // of the relay of all tests
        final RelayQueue queue = new RelayQueue(new KvEventPublisher(8, 0, 4, transport));
        queue.offer(message(0));
        queue.offer(message(1));
        queue.offer(message(5));
        awaitLines(
                CLEARED,
                "8/0 1 cleared",
                "8/0 2 removed [0]",
                "8/0 3 removed [1]",
                "8/0 5 removed [5]");
        queue.close();
        assertFalse(queue.offer(message(6)));
    }

    private static KvBatch message(long number) {
        final KvBatch batch = new KvBatch();
        batch.reset(0, number, CopyRule.PHYSICAL, false, ApplyListener.NONE);
        batch.addRemoved(new long[] {number}, 1);
        return batch;
    }
}
