package io.kvasir.router.state;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.kvasir.router.spi.StateStore;
import io.kvasir.router.spi.StateStoreContract;

import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import java.util.stream.Stream;

class FileStateStoreTest extends StateStoreContract {
    @TempDir private Path temp;

    private Path folder() {
        return temp.resolve("state/of-a-router");
    }

    @Override
    protected StateStore openAgain() throws IOException {
        return new FileStateStore(folder());
    }

    @Override
    protected boolean removeAll() throws IOException {
        try (Stream<Path> files = Files.list(folder())) {
            for (Path file : files.toList()) {
                Files.delete(file);
            }
            Files.delete(folder());
        } catch (NoSuchFileException e) {
            // removed before
        }
        return true;
    }

    @Test
    void aFolderThatWasRemovedIsMadeAgainByTheNextPut() throws IOException {
        try (StateStore store = openAgain();
                StateStore other = openAgain()) {
            store.lock();
            store.put("a", out -> out.write(1));
            removeAll();
            store.put("b", out -> out.write(2));
            assertEquals(List.of("b"), other.list());
            assertFalse(other.lock());
        }
    }

    @Test
    void aLockThatAnotherHasTakenMeanwhileIsNotUsed() throws IOException {
        try (StateStore store = openAgain()) {
            store.lock();
            removeAll();
            try (StateStore other = openAgain()) {
                assertTrue(other.lock());
                assertEquals(
                        "the lock of " + folder() + " was removed, and another has it now",
                        assertThrows(IOException.class, () -> store.put("a", out -> out.write(1)))
                                .getMessage());
                assertFalse(store.lock());
            }
            store.put("a", out -> out.write(1));
        }
    }

    @Test
    void aPutTakesItsStepsInOrder() throws IOException {
        final List<FileStateStore.Step> steps = new ArrayList<>();
        try (FileStateStore store = new FileStateStore(folder(), steps::add)) {
            store.lock();
            store.put("a", out -> out.write(new byte[100]));
            store.delete("a");
        }
        assertEquals(List.of(FileStateStore.Step.values()), steps);
    }

    @Test
    void bytesThatAreReadBackOtherwiseAreNotPut() throws IOException {
        final Path file = folder().resolve("a.kvasir-unfinished");
        final FileStateStore store =
                new FileStateStore(
                        folder(),
                        step -> {
                            if (step == FileStateStore.Step.FORCED) {
                                try {
                                    Files.write(file, new byte[] {1, 2, 4});
                                } catch (IOException e) {
                                    throw new IllegalStateException(e);
                                }
                            }
                        });
        store.lock();
        assertThrows(
                IOException.class, () -> store.put("a", out -> out.write(new byte[] {1, 2, 3})));
        assertEquals(List.of(), store.list());
        store.close();
    }

    @Test
    void whatIsNoObjectIsNotListed() throws IOException {
        Files.createDirectories(folder().resolve("lost+found"));
        Files.createDirectories(folder().resolve("backup"));
        Files.writeString(folder().resolve("Notes.txt"), "mine");
        try (StateStore store = openAgain()) {
            assertTrue(store.lock());
            store.put("a", out -> out.write(1));
            assertEquals(List.of("a"), store.list());
        }
    }

    @Test
    void itsOwnerAloneReadsIt() throws IOException {
        try (FileStateStore store = new FileStateStore(folder())) {
            store.lock();
            store.put("a", out -> out.write(1));
            assertEquals(
                    "rwx------",
                    PosixFilePermissions.toString(Files.getPosixFilePermissions(folder())));
            assertEquals(
                    "rw-------",
                    PosixFilePermissions.toString(
                            Files.getPosixFilePermissions(folder().resolve("a"))));
        }
    }

    @Test
    void whatAnEarlierProcessHasNotFinishedIsRemovedAndFilesOfOthersStay() throws IOException {
        Files.createDirectories(folder());
        Files.writeString(folder().resolve("a.kvasir-unfinished"), "half");
        Files.writeString(folder().resolve("readme"), "mine");
        Files.writeString(folder().resolve("report.tmp"), "mine");
        Files.createDirectories(folder().resolve("b.kvasir-unfinished").resolve("c"));
        try (FileStateStore store = new FileStateStore(folder())) {
            assertEquals(Set.of("readme", "report.tmp"), Set.copyOf(store.list()));
            assertTrue(store.lock());
        }
        assertTrue(Files.exists(folder().resolve("report.tmp")));
        assertTrue(Files.notExists(folder().resolve("a.kvasir-unfinished")));
        assertTrue(Files.exists(folder().resolve("readme")));
    }
}
