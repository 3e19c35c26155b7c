package io.kvasir.core.memory;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.kvasir.core.memory.RecoverableMemory.Word;

import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

import java.io.IOException;
import java.nio.channels.FileChannel;
import java.nio.file.FileSystemException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.List;
import java.util.UUID;

/** A memory in a file: what of it is used by the next process. */
class RecoverableFileTest {
    private static final RecoverableMemory.Shape SHAPE =
            new RecoverableMemory.Shape(
                    1 << 16, new long[] {1 << 20}, List.of(new Word("size", 5)));
    private static final UUID BOOT = new UUID(3, 4);

    @TempDir Path folder;

    private static RecoverableFile.Opened open(Path file, RecoverableMemory.Shape shape)
            throws IOException {
        return RecoverableFile.open(file, shape, _ -> null, BOOT, 42);
    }

    private Path file() {
        return folder.resolve("state").resolve("memory");
    }

    private void makeWith(long value) throws IOException {
        try (RecoverableMemory memory = open(file(), SHAPE).memory()) {
            memory.area(0).putLong(64, value);
            memory.made();
        }
    }

    @Test
    void whatWasCommittedIsThereAgainAndWhatWasNotIsNot() throws IOException {
        try (RecoverableMemory memory = open(file(), SHAPE).memory()) {
            memory.made();
            memory.area(0).putLong(0, 1);
            memory.commit();
            memory.area(0).putLong(0, 2);
        }
        final RecoverableFile.Opened again = open(file(), SHAPE);
        try (RecoverableMemory memory = again.memory()) {
            assertNull(again.discardedOrNull());
            assertTrue(memory.isReopened());
            assertEquals(1, memory.area(0).getLong(0));
            assertEquals(1, memory.restoredLongs());
            assertEquals(42, memory.constant(0));
            assertTrue(memory.wasKilled());
        }
        try (RecoverableMemory memory = open(file(), SHAPE).memory()) {
            assertFalse(memory.wasKilled());
            assertEquals(1, memory.area(0).getLong(0));
        }
    }

    @Test
    void aFileOfAnotherShapeBootOrSeedIsReplacedByAnEmptyOneAndTheReasonIsNamed()
            throws IOException {
        makeWith(7);
        assertReplaced(
                open(
                        file(),
                        new RecoverableMemory.Shape(
                                1 << 16, new long[] {1 << 20}, List.of(new Word("size", 6)))),
                "settings: size 5 instead of 6");
        makeWith(7);
        assertReplaced(
                open(
                        file(),
                        new RecoverableMemory.Shape(
                                1 << 16, new long[] {1 << 21}, List.of(new Word("size", 5)))),
                "bytes");
        makeWith(7);
        assertReplaced(
                RecoverableFile.open(file(), SHAPE, _ -> null, new UUID(3, 5), 42), "restarted");
        makeWith(7);
        assertReplaced(
                RecoverableFile.open(
                        file(),
                        SHAPE,
                        left -> left.constant(0) == 42 ? "another seed" : null,
                        BOOT,
                        43),
                "another seed");
    }

    @Test
    void aFileThatIsCutShortOrEmptyOrAnotherOneIsReplaced() throws IOException {
        makeWith(7);
        for (long length : new long[] {SHAPE.length() - 4096, 4096, 100, 0}) {
            try (FileChannel channel = FileChannel.open(file(), StandardOpenOption.WRITE)) {
                channel.truncate(length);
            }
            assertReplaced(open(file(), SHAPE), "bytes");
        }
        Files.write(file(), new byte[1 << 13]);
        assertReplaced(open(file(), SHAPE), "no such memory");
    }

    private static void assertReplaced(RecoverableFile.Opened opened, String why) {
        try (RecoverableMemory memory = opened.memory()) {
            assertTrue(opened.discardedOrNull().contains(why), opened.discardedOrNull());
            assertFalse(memory.isReopened());
            assertEquals(0, memory.area(0).getLong(64));
        }
    }

    @Test
    void aFileHasOneOwnerAtATime() throws IOException {
        try (RecoverableMemory memory = open(file(), SHAPE).memory()) {
            memory.made();
            final IllegalStateException refused =
                    assertThrows(IllegalStateException.class, () -> open(file(), SHAPE));
            assertTrue(refused.getMessage().contains("another router"), refused.getMessage());
        }
        open(file(), SHAPE).memory().close();
    }

    @Test
    void aDiskWithoutRoomRefusesTheFileAndKeepsNothingOfIt() {
        final RecoverableMemory.Shape huge =
                new RecoverableMemory.Shape(
                        1 << 16, new long[] {1L << 52}, List.of(new Word("size", 5)));
        final FileSystemException refused =
                assertThrows(FileSystemException.class, () -> open(file(), huge));
        assertTrue(refused.getMessage().contains("no room on the disk"), refused.getMessage());
        assertFalse(Files.exists(file()));
    }

    @Test
    void theFileIsAsLongAsItWillEverBeAndItsOwnersAlone() throws IOException {
        makeWith(7);
        assertEquals(SHAPE.length(), Files.size(file()));
        assertEquals(
                "rw-------", PosixFilePermissions.toString(Files.getPosixFilePermissions(file())));
        assertEquals(
                "rwx------",
                PosixFilePermissions.toString(Files.getPosixFilePermissions(file().getParent())));
    }

    @Test
    void zerosAreWrittenWhereTheSystemCannotReserveThem() throws IOException {
        final Path zeros = folder.resolve("zeros");
        try (FileChannel channel =
                FileChannel.open(zeros, StandardOpenOption.CREATE_NEW, StandardOpenOption.WRITE)) {
            DiskSpace.writeZeros(channel, (3 << 20) + 5);
        }
        assertEquals((3 << 20) + 5, Files.size(zeros));
    }
}
