package io.kvasir.pipeline.source;

import io.kvasir.pipeline.wire.EngineBatchDecoder;
import io.kvasir.pipeline.wire.LoraNumbers;
import io.kvasir.pipeline.wire.MessageDecoder;
import io.kvasir.pipeline.wire.RouterEventDecoder;

/** What the messages of a source are, and what their numbers count. */
public enum MessageForm {
    /** An engine's own batches of events, numbered by message from 0, or sometimes from 1. */
    ENGINE_BATCH(0),
    /**
     * Single events of an event plane, numbered one by one from 1, or sometimes from 0. They carry
     * public hashes, so they fit an index with the public seed only. At most a local indexer of the
     * worker can send them again.
     */
    ROUTER_EVENT(1);

    private final long firstNumber;

    MessageForm(long firstNumber) {
        this.firstNumber = firstNumber;
    }

    /** Highest number that the first message of an engine's life may have. */
    long firstNumber() {
        return firstNumber;
    }

    /**
     * @param loraNumbers of the engine; router events have names in their hashes
     */
    MessageDecoder newDecoder(SourceConfig config, LoraNumbers loraNumbers) {
        return switch (this) {
            case ENGINE_BATCH ->
                    new EngineBatchDecoder(
                            config.blockSize(), config.hashSeed(), config.tiers(), loraNumbers);
            case ROUTER_EVENT -> new RouterEventDecoder(config.tiers());
        };
    }
}
