package io.kvasir.chronicle;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.kvasir.router.spi.SavedWorker;
import io.kvasir.router.spi.StateStore;
import io.kvasir.router.spi.StateStoreContract;
import io.kvasir.router.spi.StateStoreProvider;
import io.kvasir.router.state.FileStateStore;

import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;

class ChronicleStateStoreTest extends StateStoreContract {
    @TempDir private Path temp;

    private Path folder() {
        return temp.resolve("state");
    }

    private Path shared() {
        return temp.resolve("shared");
    }

    @Override
    protected StateStore openAgain() throws IOException {
        return StateStoreProvider.openFirst(folder(), shared());
    }

    @Test
    void theImplementationIsFoundByAThreadOfAnyContext() throws IOException {
        final Thread thread = Thread.currentThread();
        final ClassLoader before = thread.getContextClassLoader();
        thread.setContextClassLoader(ClassLoader.getPlatformClassLoader());
        try (StateStore store = openAgain()) {
            assertEquals(ChronicleStateStore.class, store.getClass());
        } finally {
            thread.setContextClassLoader(before);
        }
    }

    private static SavedWorker worker(String name, int rank, long lastEvent) {
        return new SavedWorker(name, rank, "http://" + name + ":1", 77, 3, lastEvent, -lastEvent);
    }

    private static List<String> objects(HostState host) {
        return host.snapshots().stream()
                .map(e -> Path.of(e.store()).getFileName() + ":" + e.name() + ":" + e.bytes())
                .toList();
    }

    @Test
    void theSnapshotsAndWorkersOfTwoRoutersAreSeenByAnyProcess() throws IOException {
        try (ChronicleStateStore one = new ChronicleStateStore(folder(), shared());
                ChronicleStateStore other =
                        new ChronicleStateStore(temp.resolve("other"), shared());
                HostState host = new HostState(shared())) {
            assertTrue(one.lock() && other.lock());
            one.put("a", out -> out.write(new byte[1_000]));
            one.saved("a", List.of(worker("w1", 1, 5), worker("w1", 0, 6), worker("w2", 0, 7)));
            other.put("b", out -> out.write(1));
            other.saved("b", List.of(worker("w1", 0, 9)));
            assertEquals(List.of("other:b:1", "state:a:1000"), objects(host));
            assertEquals(
                    List.of(
                            worker("w1", 0, 9),
                            worker("w1", 0, 6),
                            worker("w1", 1, 5),
                            worker("w2", 0, 7)),
                    host.workers().stream().map(HostState.WorkerEntry::worker).toList());
            one.put("c", out -> out.write(1));
            one.saved("c", List.of(worker("w2", 0, 8)));
            one.delete("a");
            assertEquals(List.of("other:b:1", "state:c:1"), objects(host));
            assertEquals(
                    List.of("b: 9", "c: 8"),
                    host.workers().stream()
                            .map(e -> e.snapshot() + ": " + e.worker().lastEvent())
                            .toList());
            assertEquals(0, host.errors());
        }
    }

    @Test
    void whatIsNotShownAnyMoreIsShownByWhoTakesTheLock() throws IOException {
        Files.createDirectories(folder());
        try (FileStateStore files = new FileStateStore(folder())) {
            assertTrue(files.lock());
            files.put("a", out -> out.write(new byte[10]));
        }
        try (ChronicleStateStore store = new ChronicleStateStore(folder(), shared())) {
            assertEquals(List.of(), objects(store.host()));
            assertTrue(store.lock());
            assertEquals(List.of("state:a:10"), objects(store.host()));
        }
        try (FileStateStore files = new FileStateStore(folder())) {
            assertTrue(files.lock());
            files.delete("a");
        }
        try (ChronicleStateStore store = new ChronicleStateStore(folder(), shared())) {
            assertTrue(store.lock());
            assertEquals(List.of(), objects(store.host()));
        }
    }

    @Test
    void whatElseIsInTheFolderStopsNothing() throws IOException {
        Files.createDirectories(folder().resolve("lost+found"));
        Files.createDirectories(folder().resolve("backup"));
        Files.writeString(folder().resolve("Notes.txt"), "mine");
        try (ChronicleStateStore store = new ChronicleStateStore(folder(), shared())) {
            assertTrue(store.lock());
            store.put("a", out -> out.write(1));
            assertEquals(List.of("state:a:1"), objects(store.host()));
        }
    }

    @Test
    void namesTooLongToBeShownAndTenThousandWorkersDoNoHarm() throws IOException {
        try (ChronicleStateStore store = new ChronicleStateStore(folder(), shared())) {
            assertTrue(store.lock());
            store.put("a", out -> out.write(1));
            final List<SavedWorker> many = new ArrayList<>();
            for (int i = 0; i < 10_000; i++) {
                many.add(worker("worker-" + i, 0, i));
            }
            many.add(worker("n".repeat(10_000), 0, 1));
            store.saved("a", many);
            assertEquals(10_000, store.host().workers().size());
            assertEquals(1, store.host().errors());
        }
    }
}
