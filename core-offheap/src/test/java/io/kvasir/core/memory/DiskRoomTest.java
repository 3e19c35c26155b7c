package io.kvasir.core.memory;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;

import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

import java.io.IOException;
import java.nio.file.FileSystemException;
import java.nio.file.Files;
import java.nio.file.Path;

class DiskRoomTest {
    @TempDir Path dir;

    private static void assertRefused(String reason, DiskRoom room, Path file, long length) {
        final FileSystemException refused =
                assertThrows(FileSystemException.class, () -> room.take(file, length));
        assertEquals(file.toString(), refused.getFile());
        assertEquals(reason, refused.getReason());
    }

    @Test
    void filesTakeRoomFromThoseAfterThem() throws IOException {
        final DiskRoom room = new DiskRoom(_ -> 1_000);
        final Path file = dir.resolve("not/there/yet");
        room.take(file, 600);
        assertRefused("no room on the disk: bytes=401, usable=400", room, file, 401);
        room.take(file, 400);
        assertRefused("no room on the disk: bytes=1, usable=0", room, file, 1);
    }

    @Test
    void filesThatAreReplacedGiveTheirRoom() throws IOException {
        final DiskRoom room = new DiskRoom(_ -> 1_000);
        final Path old = Files.write(dir.resolve("old"), new byte[500]);
        room.take(old, 1_400, old, dir.resolve("none"));
        assertRefused("no room on the disk: bytes=101, usable=100", room, old, 101);
    }

    @Test
    void theDisksOfTheMachineSayWhatMakingTheFileSays() {
        final Path file = dir.resolve("file");
        final long length = Long.MAX_VALUE / 2;
        final String of = "[0-9]+"; // others use the disk
        assertEquals(
                assertThrows(FileSystemException.class, () -> MappedFile.create(file, length))
                        .getMessage()
                        .replaceAll("usable=" + of, ""),
                assertThrows(FileSystemException.class, () -> new DiskRoom().take(file, length))
                        .getMessage()
                        .replaceAll("usable=" + of, ""));
    }
}
