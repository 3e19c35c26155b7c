package io.kvasir.router;

import static org.junit.jupiter.api.Assertions.assertEquals;
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
    private static final List<Setting<Path>> FOLDERS =
            List.of(RouterSettings.STATE_DIR, RouterSettings.STATE_MAPPED_DIR);

    @TempDir Path temp;

    private static RouterConfig.Builder builder(Setting<Path> setting, Path folder) {
        return KvRouter.builder().blockSize(16).maxBlocks(1_024, 1_024).set(setting, folder);
    }

    private static void assertRefused(Path folder) {
        for (Setting<Path> setting : FOLDERS) {
            final UncheckedIOException refused =
                    assertThrows(
                            UncheckedIOException.class, () -> builder(setting, folder).build());
            final String said = refused.getMessage() + ": " + refused.getCause();
            assertTrue(said.contains(setting.name() + "=" + folder + " cannot be used"), said);
        }
    }

    @Test
    void aFileInPlaceOfTheFolderIsRefused() throws IOException {
        assertRefused(Files.createFile(temp.resolve("file")));
        assertRefused(temp.resolve("file").resolve("below"));
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
