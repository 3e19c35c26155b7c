package io.kvasir.pipeline.publish;

import io.kvasir.core.index.PrefixIndex;
import io.kvasir.core.index.PrefixIndexConfig;
import io.kvasir.pipeline.events.IndexPipeline;
import io.kvasir.pipeline.events.IndexPipelineConfig;
import io.kvasir.pipeline.source.EventSource;
import io.kvasir.pipeline.source.IndexState;
import io.kvasir.pipeline.source.SourceConfig;
import io.kvasir.testsupport.Eventually;

import org.junit.jupiter.api.Test;

import java.io.IOException;
import java.util.stream.IntStream;

/** The example of docs/operations/engine-events.md: the lines between the marks stand there. */
class EngineHooksExampleTest {
    private static final int SLOT = 0;
    private static final int BLOCK = 4;

    // example
    /** What an engine calls when its KV cache changes; in the order of the changes. */
    static final class CacheHooks implements AutoCloseable {
        private final EngineEventPublisher events;

        CacheHooks(String endpoint, String replayEndpoint, int dpRank, int blockSize)
                throws IOException {
            events =
                    new EngineEventPublisher(
                            endpoint, replayEndpoint, "kv-events", dpRank, blockSize);
        }

        /** The keys and values of these whole blocks are in the cache from now on. */
        void onPrefillComplete(int[] tokens, long[] blockHashes, Long parentHash) {
            events.publishStored(tokens, blockHashes, parentHash, null);
        }

        /** The cache needs room: these blocks are in it no longer. */
        void onCacheEviction(long... blockHashes) {
            events.publishRemoved(blockHashes);
        }

        /** The whole cache is dropped. */
        void onCacheReset() {
            events.publishAllCleared();
        }

        @Override
        public void close() {
            events.close();
        }
    }

    // example ends

    @Test
    void theIndexFollowsTheEnginesHooks() throws IOException {
        try (PrefixIndex index = new PrefixIndex(new PrefixIndexConfig(2, 64, 64));
                IndexPipeline pipeline = new IndexPipeline(IndexPipelineConfig.defaults(), index);
                CacheHooks hooks =
                        new CacheHooks("tcp://127.0.0.1:0", "tcp://127.0.0.1:0", 0, BLOCK)) {
            hooks.onPrefillComplete(tokens(3), new long[] {11, 12, 13}, null);
            final EventSource source =
                    pipeline.openZmq(
                            SourceConfig.of("engine", SLOT, BLOCK, hooks.events.endpoint())
                                    .withReplayEndpoint(hooks.events.replayEndpoint()));
            awaitBlocks(3, index, source);
            hooks.onPrefillComplete(tokens(1), new long[] {14}, 13L);
            awaitBlocks(4, index, source);
            hooks.onCacheEviction(14, 13);
            awaitBlocks(2, index, source);
            hooks.onCacheReset();
            awaitBlocks(0, index, source);
        }
    }

    private static int[] tokens(int blocks) {
        return IntStream.range(0, blocks * BLOCK).toArray();
    }

    private static void awaitBlocks(int blocks, PrefixIndex index, EventSource source) {
        Eventually.holds(
                () -> source.status().toString(),
                () -> index.heldBlocks(SLOT) == blocks && source.state() == IndexState.EXACT);
    }
}
