package io.kvasir.pipeline.publish;

import static io.kvasir.pipeline.source.Messages.batch;
import static io.kvasir.pipeline.source.Messages.range;
import static io.kvasir.pipeline.source.Messages.removed;
import static io.kvasir.pipeline.source.Messages.stored;

import static org.junit.jupiter.api.Assertions.assertEquals;

import io.kvasir.pipeline.source.EngineStream;
import io.kvasir.pipeline.source.IndexState;
import io.kvasir.pipeline.source.SourceConfig;
import io.kvasir.testsupport.Eventually;

import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

import java.util.List;
import java.util.Map;

/** What a relay makes of blocks whose adapter is a number. */
class RelayedAdaptersTest {

    private final RecordedTransport transport = new RecordedTransport();
    private final RelayQueue queue = new RelayQueue(new KvEventPublisher(7, 0, 4, transport));

    @AfterEach
    void close() {
        queue.close();
    }

    private EngineStream stream(Map<Long, String> names) {
        return new EngineStream(SourceConfig.of("e", 0, 4, "").withLoraNumbers(names), queue);
    }

    private static byte[] store(int hash, int number) {
        return batch(stored(List.of(hash), null, range(1, 4), 4, "lora_id", number));
    }

    private void awaitLines(String... lines) {
        Eventually.holds(
                () -> transport.lines().toString(), () -> transport.lines().size() >= lines.length);
        assertEquals(List.of(lines), transport.lines());
    }

    @Test
    void blocksOfANumberWithANameArePassedOn() {
        final EngineStream engine = stream(Map.of(3L, "a"));
        engine.onMessage(0, store(101, 3));
        engine.onMessage(1, store(102, 0));
        awaitLines("7/0 1 cleared", "7/0 2 stored root [101]", "7/0 3 stored root [102]");
        assertEquals(IndexState.EXACT, engine.state());
    }

    /** Readers see one gap where blocks begin to be left out, and not one a message. */
    @Test
    void readersSeeThatBlocksOfANumberWithoutANameAreMissing() {
        final EngineStream engine = stream(Map.of());
        engine.onMessage(0, store(101, 0));
        engine.onMessage(1, store(102, 3));
        engine.onMessage(2, store(103, 3));
        engine.onMessage(3, store(104, 0));
        engine.onMessage(4, batch(removed(List.of(102, 103))));
        engine.onMessage(5, store(105, 3));
        engine.onMessage(6, store(106, 0));
        awaitLines(
                "7/0 1 cleared",
                "7/0 2 stored root [101]",
                "7/0 4 stored root [104]",
                "7/0 6 stored root [106]"); // removals of what was left out are none to them
        assertEquals(IndexState.DEGRADED, engine.state());
    }
}
