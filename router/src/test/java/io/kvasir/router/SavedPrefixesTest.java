package io.kvasir.router;

import static org.junit.jupiter.api.Assertions.assertEquals;

import io.kvasir.pipeline.source.IndexCause;
import io.kvasir.pipeline.source.IndexState;
import io.kvasir.pipeline.source.SourceConfig;
import io.kvasir.pipeline.source.StreamStart;
import io.kvasir.router.settings.RouterSettings;
import io.kvasir.router.state.MemoryStateStore;
import io.kvasir.router.state.WorkerSnapshots;
import io.kvasir.testsupport.Eventually;

import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

import java.io.IOException;
import java.io.InputStream;
import java.io.SequenceInputStream;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.List;

/** What was saved of workers that do not come again at once. */
class SavedPrefixesTest {
    private static final int BLOCK = 16;
    private static final int MAX_WORKERS = 3;
    private static final long TAKEN_MS = 1_700_000_000_000L;
    private static final long KEPT_MS = WorkerSnapshots.FOLLOWED.toMillis();
    private static final int[] PROMPT = new int[8 * BLOCK];

    private static final int[] OTHER_PROMPT = new int[8 * BLOCK];

    static {
        Arrays.setAll(PROMPT, i -> 1_000 + i);
        Arrays.setAll(OTHER_PROMPT, i -> 5_000 + i);
    }

    private final MemoryStateStore.Memory memory = new MemoryStateStore.Memory();

    private static RouterConfig.Builder builder() {
        return KvRouter.builder()
                .blockSize(BLOCK)
                .maxWorkers(MAX_WORKERS)
                .maxBlocks(4_096, 8_192)
                .set(RouterSettings.HASH_SEED, 7L);
    }

    /** A worker whose engine cannot be reached; its messages are delivered by hand. */
    private static WorkerSpec spec(String name) {
        return new WorkerSpec(
                0, name, "http://w", 0, SourceConfig.of(name, 0, BLOCK, "tcp://127.0.0.1:1"));
    }

    private static Worker add(KvRouter router, String name, int blocks) {
        final Worker worker = router.addWorker(spec(name));
        router.openDirect(worker, EngineMessages.source(name, BLOCK))
                .onMessage(0, EngineMessages.stored(PROMPT, blocks, BLOCK, 0));
        Eventually.holds("the event", worker::ready);
        return worker;
    }

    private SavedPrefixes open() throws IOException {
        return new SavedPrefixes(new MemoryStateStore(memory), BLOCK, MAX_WORKERS, 7L, 7L);
    }

    private static void save(SavedPrefixes saved, KvRouter router, long takenMs)
            throws IOException {
        saved.save(router.workers(), router.indexPipeline(), null, takenMs);
    }

    /** Saves workers with as many blocks as their number, one a name. */
    private void saveFirst(String... names) throws IOException {
        try (KvRouter router = builder().build();
                SavedPrefixes saved = open()) {
            for (int i = 0; i < names.length; i++) {
                add(router, names[i], i + 1);
            }
            save(saved, router, TAKEN_MS);
        }
    }

    /** How many blocks of a worker are restored; -1 where nothing is saved of it. */
    private static long restored(SavedPrefixes saved, String name) {
        try (KvRouter router = builder().build()) {
            final StreamStart start =
                    saved.restore(
                            new WorkerRegistry.NamedRank(name, 0),
                            0,
                            router.indexPipeline(),
                            router.index());
            return start == null ? -1 : router.index().heldBlocks(0);
        }
    }

    @Test
    void aWorkerThatComesAfterManyRestartsHasItsBlocks(@TempDir Path folder) throws Exception {
        final RouterConfig.Builder builder = builder().set(RouterSettings.STATE_DIR, folder);
        try (KvRouter router = builder.build()) {
            add(router, "a", 3);
            add(router, "b", 5);
        }
        for (int i = 0; i < 4; i++) {
            try (KvRouter router = builder.build()) {
                assertEquals(3, router.addWorker(spec("a")).indexedBlocks(), "restart " + i);
            }
        }
        try (KvRouter router = builder.build()) {
            assertEquals(5, router.addWorker(spec("b")).indexedBlocks());
        }
    }

    @Test
    void aWorkerThatComesAfterManySavesHasItsBlocks() throws Exception {
        saveFirst("a", "b");
        try (KvRouter router = builder().build();
                SavedPrefixes saved = open()) {
            add(router, "c", 4);
            for (int i = 1; i <= 5; i++) {
                save(saved, router, TAKEN_MS + i);
            }
            assertEquals(1, restored(saved, "a"));
            assertEquals(-1, restored(saved, "a"), "once");
            save(saved, router, TAKEN_MS + 6);
            save(saved, router, TAKEN_MS + 7);
            assertEquals(2, restored(saved, "b"));
        }
        try (SavedPrefixes saved = open()) {
            assertEquals(2, restored(saved, "b"), "as of the last save");
            assertEquals(-1, restored(saved, "a"));
        }
    }

    @Test
    void aWorkerThatHasNotComeForAnHourIsSavedNoMore() throws Exception {
        saveFirst("a");
        try (KvRouter router = builder().build()) {
            add(router, "c", 4);
            try (SavedPrefixes saved = open()) {
                save(saved, router, TAKEN_MS + KEPT_MS - 1);
            }
            try (SavedPrefixes saved = open()) {
                save(saved, router, TAKEN_MS + KEPT_MS - 1);
                save(saved, router, TAKEN_MS + KEPT_MS);
            }
            try (SavedPrefixes saved = open()) {
                save(saved, router, TAKEN_MS + KEPT_MS);
                assertEquals(-1, restored(saved, "a"));
            }
        }
    }

    @Test
    void aSnapshotHasNoMoreWorkersThanTheRouter() throws Exception {
        saveFirst("a", "b");
        saveFirst("x");
        try (KvRouter router = builder().build()) {
            add(router, "c", 4);
            add(router, "d", 4);
            try (SavedPrefixes saved = open()) {
                save(saved, router, TAKEN_MS + 1);
                save(saved, router, TAKEN_MS + 2);
            }
        }
        try (SavedPrefixes saved = open()) {
            final List<Long> blocks =
                    List.of(restored(saved, "a"), restored(saved, "b"), restored(saved, "x"));
            assertEquals(2, blocks.stream().filter(count -> count < 0).count(), blocks::toString);
        }
    }

    @Test
    void whatCannotBeReadCostsItsWorkerAlone() throws Exception {
        saveFirst("a");
        final MemoryStateStore store = new MemoryStateStore(memory);
        try (KvRouter router = builder().build();
                SavedPrefixes saved = new SavedPrefixes(store, BLOCK, MAX_WORKERS, 7L, 7L)) {
            add(router, "c", 4);
            store.put(store.list().getFirst(), out -> out.write(new byte[50]));
            save(saved, router, TAKEN_MS + 1);
            assertEquals(-1, restored(saved, "a"));
        }
        try (SavedPrefixes saved = open()) {
            assertEquals(4, restored(saved, "c"));
        }
    }

    @Test
    void aSnapshotThatTheDiskCannotReadIsDoneWithout() throws Exception {
        saveFirst("a");
        saveFirst("b");
        final MemoryStateStore store =
                new MemoryStateStore(memory) {
                    @Override
                    public InputStream get(String name, long offset) {
                        final InputStream in = super.get(name, offset);
                        return name.equals(list().getLast())
                                ? new SequenceInputStream(in, new BadSector())
                                : in;
                    }
                };
        try (SavedPrefixes saved = new SavedPrefixes(store, BLOCK, MAX_WORKERS, 7L, 7L)) {
            assertEquals(1, restored(saved, "a"), "of the snapshot before");
            assertEquals(-1, restored(saved, "b"));
        }
    }

    /** Bytes that cannot be read. */
    private static final class BadSector extends InputStream {
        @Override
        public int read() throws IOException {
            throw new IOException("Input/output error");
        }

        @Override
        public int read(byte[] bytes, int from, int length) throws IOException {
            return read();
        }
    }

    @Test
    void aWorkerThatIsThereIsNotSavedTwice() throws Exception {
        saveFirst("a", "b");
        try (KvRouter router = builder().build();
                SavedPrefixes saved = open()) {
            add(router, "a", 6);
            save(saved, router, TAKEN_MS + 1);
        }
        try (SavedPrefixes saved = open()) {
            assertEquals(6, restored(saved, "a"));
            assertEquals(2, restored(saved, "b"));
        }
    }

    @Test
    void whatOthersTakeBeforeAWorkersFirstMessageIsMissingAtOnce() throws Exception {
        final RouterConfig.Builder builder = builder().maxBlocks(10, 10);
        try (KvRouter router = builder.build();
                SavedPrefixes saved = open()) {
            add(router, "a", 8);
            save(saved, router, TAKEN_MS);
        }
        try (KvRouter router = builder.build();
                SavedPrefixes saved = open()) {
            final Worker a = router.addWorker(spec("a"));
            final StreamStart start =
                    saved.restore(
                            new WorkerRegistry.NamedRank("a", 0),
                            a.slot(),
                            router.indexPipeline(),
                            router.index());
            router.openDirect(a, EngineMessages.source("a", BLOCK), start).onCaughtUp();
            assertEquals(IndexState.EXACT, a.state());
            router.openDirect(router.addWorker(spec("b")), EngineMessages.source("b", BLOCK))
                    .onMessage(0, EngineMessages.stored(OTHER_PROMPT, 4, BLOCK, 100));
            Eventually.holds("the eviction", () -> a.indexedBlocks() < 8);
            Eventually.holds("the news of it", () -> a.state() == IndexState.DEGRADED);
            assertEquals(IndexCause.INDEX_FULL, a.cause());
        }
    }
}
