package io.kvasir.pipeline.source;

import static io.kvasir.pipeline.source.Messages.batch;
import static io.kvasir.pipeline.source.Messages.range;
import static io.kvasir.pipeline.source.Messages.stored;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.kvasir.core.index.PrefixIndex;
import io.kvasir.core.index.PrefixIndexConfig;
import io.kvasir.pipeline.events.IndexPipeline;
import io.kvasir.pipeline.events.IndexPipelineConfig;
import io.kvasir.testsupport.Eventually;

import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.parallel.Isolated;

import java.io.File;
import java.util.ArrayList;
import java.util.List;

/** What many sources in one process cost. */
@Isolated // looks at the threads of the process
class ManySourcesTest {
    private static final int SOURCES = 1_000;
    private static final int BLOCK = 4;

    private final PrefixIndex index =
            new PrefixIndex(new PrefixIndexConfig(SOURCES, 4 * SOURCES, 4 * SOURCES));
    private final IndexPipeline pipeline =
            new IndexPipeline(
                    IndexPipelineConfig.defaults()
                            .withZmq(ZmqConfig.defaults().withConnects(30_000, 20, 200)),
                    index);
    private final RawPublisher publisher = new RawPublisher();
    private final List<EventSource> sources = new ArrayList<>();

    @AfterEach
    void close() {
        pipeline.close();
        index.close();
        publisher.close();
    }

    private static int descriptors() {
        final String[] names = new File("/proc/self/fd").list();
        return names == null ? 0 : names.length;
    }

    private static long threads() {
        return Thread.getAllStackTraces().keySet().stream()
                .filter(thread -> thread.getName().startsWith("kvasir-"))
                .count();
    }

    private void openAll() {
        for (int i = 0; i < SOURCES; i++) {
            sources.add(
                    pipeline.openZmq(SourceConfig.of("w" + i, i, BLOCK, publisher.endpoint(i))));
        }
    }

    private static byte[] store(int hash) {
        return batch(stored(List.of(hash), null, range(hash * 10, hash * 10 + 3), BLOCK));
    }

    @Test
    void aSourceCostsOneDescriptorAndNoThread() {
        final int descriptorsBefore = descriptors();
        final long threadsBefore = threads();
        openAll();
        Eventually.holds("connections", () -> publisher.connections() == SOURCES);
        publisher.send(RawPublisher.message("kv", 0, store(1)));
        Eventually.holds(
                "first messages",
                () -> sources.stream().allMatch(s -> s.state() == IndexState.EXACT));
        publisher.send(RawPublisher.message("kv", 1, store(2)));
        Eventually.holds(
                "blocks", () -> index.heldBlocks(SOURCES - 1) == 2 && index.heldBlocks(0) == 2);

        final int ours = descriptors() - descriptorsBefore - publisher.connections();
        assertTrue(ours <= SOURCES + 20, () -> ours + " descriptors for " + SOURCES + " sources");
        final long started = threads() - threadsBefore;
        final int pollers = ZmqConfig.defaults().pollers();
        assertTrue(started <= pollers, () -> started + " threads for " + SOURCES + " sources");

        sources.forEach(EventSource::close);
        Eventually.holds(
                "descriptors",
                () -> {
                    publisher.drop(); // its own ends; some may have come back before they closed
                    return descriptors() <= descriptorsBefore + 20;
                });
        assertTrue(sources.stream().allMatch(s -> s.state() == IndexState.GONE));
    }

    @Test
    void allComeBackWhenTheirPublishersDo() {
        openAll();
        Eventually.holds("connections", () -> publisher.connections() == SOURCES);
        publisher.send(RawPublisher.message("kv", 0, store(1)));
        Eventually.holds(
                "blocks", () -> sources.stream().allMatch(s -> s.state() == IndexState.EXACT));
        for (int round = 1; round <= 4; round++) {
            final int lost = round;
            publisher.drop();
            Eventually.holds(
                    "round " + round,
                    () ->
                            sources.stream().allMatch(s -> s.status().reconnects() == lost)
                                    && publisher.connections() == SOURCES);
            assertTrue(sources.stream().allMatch(s -> s.status().disconnects() == lost));
        }
        publisher.send(RawPublisher.message("kv", 1, store(2)));
        Eventually.holds(
                "blocks", () -> sources.stream().allMatch(s -> s.status().lastSequence() == 1));
        assertEquals(5 * SOURCES, publisher.accepted());
    }
}
