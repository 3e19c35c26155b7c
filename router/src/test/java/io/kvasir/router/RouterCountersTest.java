package io.kvasir.router;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.kvasir.core.counters.CountersFile;
import io.kvasir.core.counters.CountersReader;
import io.kvasir.core.memory.OffHeap;
import io.kvasir.router.settings.RouterSettings;
import io.kvasir.testsupport.Eventually;

import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.atomic.AtomicLong;

class RouterCountersTest {
    private static final int MAX_WORKERS = 300;

    @TempDir private Path folder;

    private static RouterConfig.Builder withoutCounters() {
        return KvRouter.builder()
                .blockSize(4)
                .maxWorkers(MAX_WORKERS)
                .maxBlocks(1_000, 1_000)
                .maxActiveRequests(16)
                .tickedBy(() -> 0);
    }

    private RouterConfig.Builder builder() {
        return withoutCounters().set(RouterSettings.COUNTERS_DIR, folder);
    }

    private Map<String, Long> read() throws IOException {
        final Map<String, Long> values = new TreeMap<>();
        try (CountersReader reader = CountersReader.open(folder)) {
            reader.counters(
                    (counter, type, label, value) -> assertNull(values.put(label, value), label));
        }
        return values;
    }

    @Test
    void theFileSaysWhatTheStatusSays() throws Exception {
        try (KvRouter router = builder().build()) {
            router.addWorker(WorkerSpec.of(1, "one", "http://one"));
            final RouteRequest request =
                    router.newRequest().tokens(new int[] {1, 2, 3, 4, 5, 6, 7, 8}, 8);
            try (Lease _ = router.reserve(request, new Decision())) {
                Eventually.holds(
                        () ->
                                router.status().usages().getLast().used()
                                        == 1); // written to the table
                router.tick(1);
                final Map<String, Long> values = read();
                final RouterStatus status = router.status();
                for (RouterStatus.Usage usage : status.usages()) {
                    assertEquals(usage.limit(), values.get(usage.resource() + " limit"));
                }
                status.refusals()
                        .byCause()
                        .forEach((cause, n) -> assertEquals(n, values.get("refused: " + cause)));
                assertEquals(1, values.get("active-requests used"));
                assertEquals(0, values.get("failures"));
                assertEquals(1, values.get("worker one/0: active requests"));
                assertEquals(2, values.get("worker one/0: active blocks"));
                assertEquals(8, values.get("worker one/0: prefill tokens"));
            }
        }
    }

    @Test
    void workersComeAndGoAndNoneIsLeftOut() throws Exception {
        try (KvRouter router = builder().build()) {
            router.tick(1);
            assertFalse(hasWorker(read(), "w0"));
            final List<Worker> workers = new ArrayList<>();
            for (int i = 0; i < MAX_WORKERS; i++) {
                workers.add(router.addWorker(WorkerSpec.of(i, "w" + i, "http://w" + i)));
            }
            router.tick(2);
            router.tick(3); // 256 in turn
            final Map<String, Long> values = read();
            for (int i = 0; i < MAX_WORKERS; i++) {
                assertTrue(hasWorker(values, "w" + i), "w" + i);
            }
            router.removeWorker(workers.get(7));
            router.tick(4);
            assertFalse(hasWorker(read(), "w7"));
            assertTrue(hasWorker(read(), "w8"));
        }
    }

    private static boolean hasWorker(Map<String, Long> values, String name) {
        return values.keySet().stream()
                .anyMatch(label -> label.startsWith("worker " + name + "/0: "));
    }

    @Test
    void aWorkerThatFindsNoRoomIsCountedOnceThereIsSome() throws Exception {
        final AtomicLong nowMs = new AtomicLong(1_000);
        try (KvRouter router = withoutCounters().build()) {
            final List<Worker> present = new ArrayList<>();
            present.add(router.addWorker(WorkerSpec.of(1, "one", "http://one")));
            final Worker two = router.addWorker(WorkerSpec.of(2, "two", "http://two"));
            final int ofRouter = 43;
            try (RouterCounters counters =
                    new RouterCounters(
                            CountersFile.create(folder, ofRouter + 10 + 3, 1 << 10, nowMs.get()),
                            router::status,
                            () -> present,
                            nowMs::get)) {
                assertEquals(10, countersOf("one"));
                present.set(0, two);
                counters.write(); // those of the first are not free for a second
                assertEquals(0, countersOf("one"));
                assertEquals(3, countersOf("two"));
                nowMs.addAndGet(1_000);
                counters.write();
                assertEquals(10, countersOf("two"));
            }
        }
    }

    private long countersOf(String name) throws IOException {
        return read().keySet().stream()
                .filter(label -> label.startsWith("worker " + name + "/0: "))
                .count();
    }

    @Test
    void theLastValuesStayWhenTheRouterHasEnded() throws Exception {
        final KvRouter router = builder().build();
        router.addWorker(WorkerSpec.of(1, "one", "http://one"));
        router.close();
        router.tick(2); // does nothing
        try (CountersReader reader = CountersReader.open(folder)) {
            assertTrue(reader.isClosed());
        }
        assertNotNull(read().get("worker one/0: active requests"));
        builder().build().close();
    }

    @Test
    void aFolderInUseOrNoFolderIsRefusedAndNothingIsKept() throws Exception {
        FormerRouters.awaitEnd();
        final long before = OffHeap.allocatedBytes();
        try (KvRouter _ = builder().build()) {
            final long one = OffHeap.allocatedBytes();
            final IllegalStateException refused =
                    assertThrows(IllegalStateException.class, () -> builder().build());
            assertTrue(refused.getMessage().contains(folder.toString()), refused.getMessage());
            Eventually.holds(() -> OffHeap.allocatedBytes() == one);
        }
        final Path file = Files.writeString(folder.resolve("file"), "no folder");
        assertThrows(
                UncheckedIOException.class,
                () -> builder().set(RouterSettings.COUNTERS_DIR, file).build());
        Eventually.holds(() -> OffHeap.allocatedBytes() == before);
    }
}
