package io.kvasir.router;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.jupiter.api.Assumptions.assumeFalse;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import io.kvasir.router.settings.RouterSettings;
import io.kvasir.router.settings.Setting;
import io.kvasir.router.spi.StateStore;

import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.List;

/** Folders that a router cannot keep its state in: its start fails and says which and why. */
class StateFolderTest {
    private static final List<Setting<Path>> FOLDERS = RouterSettings.FOLDERS;

    @TempDir Path temp;

    private static RouterConfig.Builder builder(Setting<Path> setting, Path folder) {
        return KvRouter.builder().blockSize(16).maxBlocks(1_024, 1_024).set(setting, folder);
    }

    private static void assertRefused(Path folder) {
        for (Setting<Path> setting : FOLDERS) {
            final UncheckedIOException refused =
                    assertThrows(
                            UncheckedIOException.class, () -> builder(setting, folder).build());
            final String said = refused.getMessage();
            final String what = setting.name() + "=" + folder + " cannot be used: ";
            assertTrue(said.startsWith(what), said);
            final String why = said.substring(what.length());
            assertTrue(why.contains(": ") && !why.endsWith(": "), said); // a file, and its reason
            assertFalse(why.contains("Exception"), said);
            assertNotNull(refused.getCause());
        }
    }

    @Test
    void aFileInPlaceOfTheFolderIsRefused() throws IOException {
        assertRefused(Files.createFile(temp.resolve("file")));
        assertRefused(temp.resolve("file").resolve("below"));
    }

    @Test
    void theReasonIsInWords() throws IOException {
        final Path file = Files.createFile(temp.resolve("file"));
        for (Setting<Path> setting : FOLDERS) {
            final RouterConfig.Builder builder = builder(setting, file);
            assertEquals(
                    setting
                            + "="
                            + file
                            + " cannot be used: "
                            + file
                            + ": it is there already, and"
                            + " is no folder",
                    assertThrows(UncheckedIOException.class, builder::build).getMessage());
        }
    }

    @Test
    void aFileSystemThatIsReadOnlyIsRefused() {
        final Path folder = Path.of("/sys/kernel");
        assumeTrue(Files.isDirectory(folder), "no such file system here");
        assertRefused(folder);
        assertRefused(folder.resolve("made"));
    }

    @Test
    void aFolderThatOnlyOthersMayWriteToIsRefused() throws IOException {
        assumeFalse("root".equals(System.getProperty("user.name")), "nothing is closed to root");
        final Path folder = Files.createDirectory(temp.resolve("theirs"));
        Files.setPosixFilePermissions(folder, PosixFilePermissions.fromString("r-xr-xrwx"));
        assertRefused(folder);
    }

    @Test
    void aFolderThatIsRefusedOnceMayBeUsedLater() throws IOException {
        final Path folder = Files.createFile(temp.resolve("state"));
        assertRefused(folder);
        Files.delete(folder);
        for (Setting<Path> setting : FOLDERS) {
            builder(setting, folder).build().close();
        }
    }

    /** One that is only closed. */
    private static final class UnusedStore implements StateStore {
        int closed;

        @Override
        public boolean lock() {
            throw new AssertionError("no router was made");
        }

        @Override
        public void put(String name, Content content) {
            throw new AssertionError("no router was made");
        }

        @Override
        public InputStream get(String name, long offset) {
            throw new AssertionError("no router was made");
        }

        @Override
        public List<String> list() {
            throw new AssertionError("no router was made");
        }

        @Override
        public void delete(String name) {
            throw new AssertionError("no router was made");
        }

        @Override
        public void close() {
            closed++;
        }
    }

    /** One that cannot be locked. */
    private static class UnlockedStore implements StateStore {
        private final IOException whyOrNull;

        UnlockedStore(IOException whyOrNull) {
            this.whyOrNull = whyOrNull;
        }

        @Override
        public boolean lock() throws IOException {
            if (whyOrNull != null) {
                throw whyOrNull;
            }
            return false;
        }

        @Override
        public void put(String name, Content content) {
            throw new AssertionError("there is no lock");
        }

        @Override
        public InputStream get(String name, long offset) {
            throw new AssertionError("there is no lock");
        }

        @Override
        public List<String> list() {
            throw new AssertionError("there is no lock");
        }

        @Override
        public void delete(String name) {
            throw new AssertionError("there is no lock");
        }

        @Override
        public void close() {
            throw new IllegalStateException("not closed");
        }
    }

    private static String refused(Class<? extends Exception> how, StateStore store) {
        final RouterConfig.Builder builder =
                KvRouter.builder().blockSize(16).maxBlocks(1_024, 1_024).stateStore(store);
        return assertThrows(how, builder::build).getMessage();
    }

    @Test
    void aStoreThatIsGivenIsNamedByWhatItSaysOfItself() {
        final Class<? extends Exception> io = UncheckedIOException.class;
        assertEquals(
                "the given StateStore cannot be used: no disk",
                refused(io, new UnlockedStore(new IOException("no disk"))));
        assertEquals(
                "the given StateStore cannot be used: it failed without a reason",
                refused(io, new UnlockedStore(new IOException())));
        assertEquals(
                "another router keeps its state in the given StateStore; give each router its own",
                refused(IllegalStateException.class, new UnlockedStore(null)));
        final StateStore named =
                new UnlockedStore(new IOException("no disk")) {
                    @Override
                    public String toString() {
                        return "bucket b";
                    }
                };
        assertEquals("bucket b cannot be used: no disk", refused(io, named));
    }

    @Test
    void aStoreIsClosedWhereItsRouterCannotBeMade() {
        final UnusedStore store = new UnusedStore();
        final RouterConfig.Builder builder =
                KvRouter.builder().set("prefix-index", "off").stateStore(store);
        assertThrows(IllegalArgumentException.class, builder::check);
        assertEquals(0, store.closed, "none is made");
        assertThrows(IllegalArgumentException.class, builder::build);
        assertEquals(1, store.closed);
    }
}
