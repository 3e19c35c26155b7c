package io.kvasir.router;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import io.kvasir.core.memory.DiskRoom;
import io.kvasir.router.settings.RouterSettings;
import io.kvasir.router.settings.Setting;

import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;

class RouterFoldersTest {
    private static final DiskRoom FULL = new DiskRoom(_ -> 1_000);

    @TempDir Path dir;

    private static RouterConfig.Builder builder() {
        return KvRouter.builder().blockSize(16).maxBlocks(1_024, 1_024);
    }

    private static RouterConfig.Builder all(Path folder) {
        final RouterConfig.Builder builder = builder();
        RouterSettings.FOLDERS.forEach(setting -> builder.set(setting, folder));
        return builder;
    }

    private static void assertSaidAsAtTheStart(Path folder) {
        for (Setting<Path> setting : RouterSettings.FOLDERS) {
            final RouterConfig.Builder builder = builder().set(setting, folder);
            final String atStart =
                    assertThrows(UncheckedIOException.class, builder::build).getMessage();
            assertEquals(
                    List.of(atStart), new RouterFolders().problems(builder.config().settings()));
        }
        assertEquals(4, new RouterFolders().problems(all(folder).config().settings()).size());
    }

    @Test
    void whatTheStartWouldSayIsSaid() throws IOException {
        final Path file = Files.createFile(dir.resolve("file"));
        assertSaidAsAtTheStart(file);
        assertSaidAsAtTheStart(file.resolve("below"));
    }

    @Test
    void aFileSystemThatTakesNoFoldersIsSaid() {
        final Path folder = Path.of("/sys/kernel");
        assumeTrue(Files.isDirectory(folder), "no such file system here");
        assertSaidAsAtTheStart(folder);
        assertSaidAsAtTheStart(folder.resolve("made"));
        assertSaidAsAtTheStart(Path.of("/proc/kvasir"));
    }

    @Test
    void nothingIsLeftOfAFolderThatIsGood() {
        final Path folder = dir.resolve("a/b");
        final RouterConfig.Builder builder = all(folder);
        assertEquals(List.of(), new RouterFolders().problems(builder.config().settings()));
        assertFalse(Files.exists(folder.getParent()));
    }

    @Test
    void theFoldersOfARouterThatRunsAreGood() throws IOException {
        for (Setting<Path> setting : RouterSettings.FOLDERS) {
            final RouterConfig.Builder builder =
                    builder().set(setting, dir.resolve(setting.name()));
            try (KvRouter router = builder.build()) {
                assertEquals(
                        List.of(), new RouterFolders().problems(router.settings()), setting.name());
            }
        }
    }

    @Test
    void aDiskWithoutRoomForTheFilesIsSaid() {
        final List<String> said = new RouterFolders(FULL).problems(all(dir).config().settings());
        assertEquals(3, said.size(), said.toString()); // how long snapshots get is not known
        assertNoRoom("counters-dir", "kvasir.counters.new", said.get(0));
        assertNoRoom("decision-journal-dir", "decisions.kvj.new", said.get(1));
        assertNoRoom("state-mapped-dir", "prefixes.index", said.get(2));
    }

    private void assertNoRoom(String setting, String file, String said) {
        assertTrue(
                said.startsWith(
                        setting
                                + "="
                                + dir
                                + " cannot be used: "
                                + dir.resolve(file)
                                + ": no room on the disk: bytes="),
                said);
        assertTrue(said.endsWith(", usable=1000"), said);
    }

    @Test
    void theFilesThatAreCountedAreAsLongAsThoseThatAreMade() throws IOException {
        for (Setting<Path> setting : RouterSettings.FOLDERS) {
            if (setting.equals(RouterSettings.STATE_DIR)) {
                continue;
            }
            final RouterConfig.Builder builder =
                    builder().set(setting, dir.resolve(setting.name()));
            final String said =
                    new RouterFolders(FULL).problems(builder.config().settings()).getFirst();
            builder.build().close();
            final String name = said.replaceFirst(".*/([^:/]+): no room.*", "$1");
            final Path made = dir.resolve(setting.name()).resolve(name.replace(".new", ""));
            assertTrue(said.contains("bytes=" + Files.size(made) + ","), made + ": " + said);
        }
    }

    @Test
    void foldersThatAreNotUsedAreNotAskedFor() throws IOException {
        final Path file = Files.createFile(dir.resolve("file"));
        final RouterConfig.Builder unused =
                all(file)
                        .set(RouterSettings.DECISION_JOURNAL, 0)
                        .set(RouterSettings.OVERLAP_WEIGHT, 0.0);
        final List<String> said = new RouterFolders().problems(unused.config().settings());
        assertEquals(1, said.size(), said.toString());
        assertTrue(said.getFirst().startsWith("counters-dir="), said.toString());
    }
}
