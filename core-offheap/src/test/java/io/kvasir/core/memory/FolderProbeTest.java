package io.kvasir.core.memory;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

import java.io.IOException;
import java.nio.file.FileAlreadyExistsException;
import java.nio.file.FileSystemException;
import java.nio.file.Files;
import java.nio.file.LinkOption;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.util.List;
import java.util.stream.Stream;

class FolderProbeTest {
    @TempDir Path dir;

    private List<Path> files() throws IOException {
        try (Stream<Path> all = Files.walk(dir)) {
            return all.filter(path -> !path.equals(dir)).sorted().toList();
        }
    }

    @Test
    void whatCanBeMadeIsNotThereAfterwards() throws IOException {
        FolderProbe.check(dir, "lock");
        FolderProbe.check(dir.resolve("a"), "lock");
        FolderProbe.check(dir.resolve("a/b/c"), "lock");
        FolderProbe.checkFile(dir.resolve("log"));
        assertEquals(List.of(), files());
    }

    @Test
    void whatIsThereStaysAsItIs() throws IOException {
        final Path folder = Files.createDirectory(dir.resolve("a"));
        final Path lock = Files.writeString(folder.resolve("lock"), "held");
        FolderProbe.check(folder, "lock");
        FolderProbe.check(folder.resolve("b"), "lock");
        assertEquals(List.of(folder, lock), files());
        assertEquals("held", Files.readString(lock));
    }

    @Test
    void whatMakingItWouldSayIsSaid() throws IOException {
        final Path file = Files.createFile(dir.resolve("file"));
        assertSaysWhatMakingSays(file, FileAlreadyExistsException.class);
        assertSaysWhatMakingSays(file.resolve("below"), FileSystemException.class);
        final Path nowhere = Files.createSymbolicLink(dir.resolve("link"), dir.resolve("none"));
        assertSaysWhatMakingSays(nowhere, FileAlreadyExistsException.class);
        assertTrue(Files.exists(nowhere, LinkOption.NOFOLLOW_LINKS), "it was there before");
        assertEquals(List.of(file, nowhere), files());
    }

    @Test
    void aFileSystemThatTakesNoFolderIsFoundWhateverItsPermissionsSay() {
        assumeTrue(Files.isWritable(Path.of("/proc")), "the kernel asks for permission first");
        assertSaysWhatMakingSays(Path.of("/proc/kvasir"), NoSuchFileException.class);
    }

    private static void assertSaysWhatMakingSays(
            Path folder, Class<? extends FileSystemException> kind) {
        final FileSystemException made = assertThrows(kind, () -> Files.createDirectories(folder));
        final FileSystemException said =
                assertThrows(kind, () -> FolderProbe.check(folder, "lock"));
        assertEquals(made.getMessage(), said.getMessage());
    }

    @Test
    void aFileThatCannotBeMadeIsNamedAndNotTheOneThatWasTried() {
        final Path file = dir.resolve("missing").resolve("log");
        final NoSuchFileException refused =
                assertThrows(NoSuchFileException.class, () -> FolderProbe.checkFile(file));
        assertEquals(file.toString(), refused.getFile());
    }
}
