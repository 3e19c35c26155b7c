package io.kvasir.pipeline.source;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.kvasir.core.index.PrefixIndex;
import io.kvasir.core.index.PrefixIndexConfig;
import io.kvasir.pipeline.events.IndexPipeline;
import io.kvasir.pipeline.events.IndexPipelineConfig;
import io.kvasir.pipeline.wire.RecoveryQuery;
import io.kvasir.testsupport.Eventually;
import io.kvasir.testsupport.Latches;

import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

import java.io.IOException;
import java.util.Deque;
import java.util.List;
import java.util.Set;
import java.util.TreeSet;
import java.util.concurrent.ConcurrentLinkedDeque;
import java.util.concurrent.CountDownLatch;

/** A dump whose parts find the ring of the index writer full. */
class FullRingRecoveryTest {
    private static final long WORKER = 100;
    private static final int SLOT = 0;
    private static final int OTHER_SLOT = 1;
    private static final int RING = 8;
    private static final int BLOCKS = 600;
    private static final int PART_BYTES = 1_200;

    /** A query that was sent. */
    private record Asked(long id, RecoveryQuery query) {}

    private final PrefixIndex index = new PrefixIndex(new PrefixIndexConfig(2, 1 << 12, 1 << 12));
    private final IndexPipeline pipeline =
            new IndexPipeline(IndexPipelineConfig.defaults().withRingSize(RING), index);
    private final EventPlane plane = new EventPlane(EventPlane.KNOWN_ONLY);
    private final Deque<Asked> asked = new ConcurrentLinkedDeque<>();
    private final SimulatedWorker worker =
            new SimulatedWorker(WORKER, SLOT, 4, bytes -> plane.onMessage(bytes, 0, bytes.length));
    private final EngineStream stream =
            pipeline.openDirect(SourceConfig.ofRouterEvents("w", SLOT, 1));
    private final CountDownLatch blocked = new CountDownLatch(1);
    private final CountDownLatch release = new CountDownLatch(1);

    FullRingRecoveryTest() {
        plane.recoverOver((id, query) -> asked.add(new Asked(id, query)));
    }

    @AfterEach
    void close() {
        release.countDown();
        pipeline.close();
        index.close();
    }

    /** A worker that was joined late is asked, and the writer stands still. */
    private List<byte[]> begin() throws IOException {
        for (int name = 1; name <= BLOCKS; name++) {
            worker.store(name == 1 ? null : (long) name - 1, name);
        }
        plane.register(WORKER, 0, stream);
        plane.tick();
        pipeline.retire(
                OTHER_SLOT,
                () -> {
                    blocked.countDown();
                    Latches.await(release);
                });
        Latches.await(blocked);
        final List<byte[]> parts = parts();
        assertTrue(parts.size() > 2 * RING, parts.size() + " parts");
        return parts;
    }

    private List<byte[]> parts() {
        return worker.indexer().answer(asked.getLast().query.toBytes(), PART_BYTES);
    }

    private Thread deliver(List<byte[]> parts) {
        final long id = asked.getLast().id;
        return Thread.ofPlatform().start(() -> parts.forEach(part -> plane.onAnswer(id, part)));
    }

    private Set<String> held() {
        final Set<String> all = new TreeSet<>();
        index.forEach((slot, name, sequence, copies) -> all.add(name + " " + sequence));
        return all;
    }

    @Test
    void theDumpWaitsForRoomAndIsWhole() throws Exception {
        final Thread transport = deliver(begin());
        Eventually.holds(() -> pipeline.refused() > 0);
        assertEquals(IndexState.LOADING, stream.state(), "a part of it is in the ring");
        assertEquals(1, plane.status().recovering());
        release.countDown();
        transport.join();
        Eventually.holds(
                () -> {
                    answerWhatIsAsked(); // where the writer had no turn for as long as is waited
                    return stream.state() == IndexState.EXACT;
                });
        assertEquals(worker.held(), held());
        worker.store((long) BLOCKS, BLOCKS + 1);
        Eventually.holds(() -> held().equals(worker.held()));
    }

    private void answerWhatIsAsked() {
        final int before = asked.size();
        plane.tick();
        if (asked.size() > before) {
            parts().forEach(part -> plane.onAnswer(asked.getLast().id, part));
        }
    }

    @Test
    void closingTheStreamEndsTheWait() throws Exception {
        final Thread transport = deliver(begin());
        Eventually.holds(() -> pipeline.refused() > 0);
        stream.close();
        transport.join();
        assertEquals(IndexState.GONE, stream.state());
        plane.remove(WORKER, 0);
        assertEquals(0, plane.status().recovering());
    }
}
