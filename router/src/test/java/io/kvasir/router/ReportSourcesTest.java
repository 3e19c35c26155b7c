package io.kvasir.router;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.kvasir.core.load.EngineLoad;
import io.kvasir.pipeline.source.EngineStream;
import io.kvasir.pipeline.source.LoadPlane;
import io.kvasir.router.load.LoadOutcome;
import io.kvasir.router.load.LoadSource;
import io.kvasir.router.settings.RouterSettings;

import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

import java.nio.charset.StandardCharsets;
import java.util.HexFormat;
import java.util.Map;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicLong;

/** Load reports by the ways on which events come, too. */
class ReportSourcesTest {
    private static final int BLOCK_SIZE = 16;

    /** {@code ["LoadStat", 4, 1, 464, 4096, 0, 0, 464, 8, 389, 18523]}, as SGLang sends it. */
    private static final byte[] LOAD_STAT =
            HexFormat.of().parseHex("9ba84c6f6164537461740401cd01d0cd10000000cd01d008cd0185cd485b");

    private final AtomicLong nowNs = new AtomicLong(1);
    private final AtomicBoolean closed = new AtomicBoolean();
    private KvRouter router;
    private LoadPlane plane;

    private void start(boolean on) {
        router =
                KvRouter.builder()
                        .tickedBy(nowNs::get)
                        .blockSize(BLOCK_SIZE)
                        .maxWorkers(4)
                        .set(RouterSettings.ENGINE_LOAD, on)
                        .eventPlane(_ -> () -> {})
                        .loadPlane(
                                opened -> {
                                    plane = opened;
                                    return () -> closed.set(true);
                                })
                        .build();
    }

    @AfterEach
    void close() {
        router.close();
    }

    private void publish(String json) {
        final byte[] bytes = json.getBytes(StandardCharsets.UTF_8);
        plane.onMessage(bytes, 0, bytes.length);
    }

    private Worker onPlane(int id, int rank) {
        return router.addWorker(
                new WorkerSpec(id, "w" + id, "http://w" + id, rank, null)
                        .onEventPlane(new EventPlaneWorker(100 + id, rank)));
    }

    @Test
    void whatAnEngineSendsAmongItsEventsIsReported() {
        start(true);
        final Worker worker = router.addWorker(WorkerSpec.of(1, "w", "http://w"));
        final EngineStream stream =
                router.openDirect(worker, EngineMessages.source("w", BLOCK_SIZE));
        stream.onMessage(7, LOAD_STAT);
        assertEquals(new EngineLoad(4, 1, -1, 29, 256, -1), worker.reportedLoadOrNull().load());
        assertEquals(LoadSource.EVENT_SOCKET, worker.reportedLoadOrNull().source());
        stream.onMessage(6, LOAD_STAT);
        assertEquals(1, router.loadReports().of(LoadSource.EVENT_SOCKET, LoadOutcome.OLDER));
        assertEquals(Map.of(), stream.status().drops());
    }

    @Test
    void switchedOffItIsAnIgnoredMessage() {
        start(false);
        final Worker worker = router.addWorker(WorkerSpec.of(1, "w", "http://w"));
        final EngineStream stream =
                router.openDirect(worker, EngineMessages.source("w", BLOCK_SIZE));
        stream.onMessage(7, LOAD_STAT);
        assertNull(worker.reportedLoadOrNull());
        assertEquals(Map.of("ignored_message", 1L), stream.status().drops());
        assertNull(plane, "nothing is opened");
    }

    @Test
    void whatAPlaneSaysOfAWorkerIsThatRanksAlone() {
        start(true);
        final Worker first = onPlane(1, 0);
        final Worker second = onPlane(1, 1);
        publish(
                "{\"worker_id\":101,\"dp_rank\":1,\"kv_used_blocks\":40,\"active_prefill_tokens\":80}");
        assertNull(first.reportedLoadOrNull());
        assertEquals(new EngineLoad(-1, -1, 80, 40, -1, -1), second.reportedLoadOrNull().load());
        assertEquals(40, second.reportedLoadOrNull().others().blocks());
        assertEquals(80, second.reportedLoadOrNull().others().prefillTokens());
        publish("{\"worker_id\":999,\"kv_used_blocks\":40}");
        publish("no report");
        publish("{\"worker_id\":101,\"dp_rank\":1,\"kv_used_blocks\":-40}");
        publish("{\"worker_id\":101,\"dp_rank\":1,\"kv_used_blocks\":null}");
        assertEquals(40, second.reportedLoadOrNull().others().blocks());
        for (LoadOutcome outcome :
                new LoadOutcome[] {
                    LoadOutcome.UNKNOWN_WORKER,
                    LoadOutcome.UNREADABLE,
                    LoadOutcome.BAD_VALUE,
                    LoadOutcome.EMPTY
                }) {
            assertEquals(
                    1, router.loadReports().of(LoadSource.EVENT_PLANE, outcome), outcome.name());
        }
        router.removeWorker(second);
        publish("{\"worker_id\":101,\"dp_rank\":1,\"kv_used_blocks\":40}");
        assertEquals(
                2, router.loadReports().of(LoadSource.EVENT_PLANE, LoadOutcome.UNKNOWN_WORKER));
    }

    @Test
    void theSourceIsClosedWithTheRouter() {
        start(true);
        router.close();
        assertTrue(closed.get());
        publish("{\"worker_id\":101,\"kv_used_blocks\":40}"); // late: no harm
    }
}
