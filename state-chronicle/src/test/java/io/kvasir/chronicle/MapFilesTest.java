package io.kvasir.chronicle;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

import java.io.IOException;
import java.nio.file.FileSystemException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.stream.Stream;

/** A map of more than the disk has room for, which Chronicle Map asks before it takes any of it. */
class MapFilesTest {
    private static final int VALUE_BYTES = 1 << 20;

    @TempDir Path folder;
    private MapLayout tooLarge;

    @BeforeEach
    void readTheRoom() throws IOException {
        final long entries = 2 * Files.getFileStore(folder).getUnallocatedSpace() / VALUE_BYTES + 1;
        tooLarge = new MapLayout("test", 1, entries, 8, VALUE_BYTES);
    }

    private List<String> maps() throws IOException {
        try (Stream<Path> all = Files.list(folder)) {
            return all.map(file -> file.getFileName().toString())
                    .filter(name -> !name.endsWith(".lock"))
                    .toList();
        }
    }

    @Test
    void nothingIsLeftOfAMapThatHasNoRoom() throws IOException {
        final MapFiles files = new MapFiles(folder, tooLarge);
        for (int i = 0; i < 2; i++) {
            final FileSystemException refused =
                    assertThrows(FileSystemException.class, () -> files.open(null));
            assertEquals(List.of(), maps());
            assertEquals(folder.resolve(tooLarge.prefix() + "0.map"), Path.of(refused.getFile()));
            final String expected =
                    "no room on the disk for "
                            + tooLarge.entries()
                            + " entries: bytes=[0-9]+ and a tenth of it, usable=[0-9]+";
            assertTrue(refused.getReason().matches(expected), refused.getReason());
        }
    }

    @Test
    void whatAKilledProcessHasLeftUnfinishedTakesNoRoomFromTheNextMap() throws IOException {
        final MapFiles files = new MapFiles(folder, tooLarge);
        Files.createFile(folder.resolve(tooLarge.prefix() + "0.map"));
        assertThrows(IOException.class, () -> files.open(null));
        assertEquals(List.of(), maps());
    }
}
