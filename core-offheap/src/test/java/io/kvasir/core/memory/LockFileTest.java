package io.kvasir.core.memory;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;

import io.kvasir.testsupport.ChildJvm;

import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;

class LockFileTest {
    @TempDir Path folder;

    /** Says whether it gets the lock. */
    static final class Child {
        private Child() {}

        public static void main(String[] arguments) throws IOException {
            try (LockFile lock = LockFile.takeOrNull(Path.of(arguments[0]))) {
                System.out.print(lock == null ? "refused" : "taken");
            }
        }
    }

    private static String ofAnotherProcess(Path file) throws Exception {
        return ChildJvm.run(ChildJvm.unchecked(), Child.class, file.toString());
    }

    @Test
    void anotherOwnerOfThisProcessThatIsRefusedTakesNothingFromTheFirst() throws Exception {
        final Path file = folder.resolve("lock");
        final Path link = Files.createSymbolicLink(folder.resolve("link"), folder);
        try (LockFile first = LockFile.takeOrNull(file)) {
            assertNotNull(first);
            assertNull(LockFile.takeOrNull(file));
            assertNull(LockFile.takeOrNull(link.resolve("lock")));
            assertEquals("refused", ofAnotherProcess(file));
        }
        assertEquals("taken", ofAnotherProcess(file));
    }

    @Test
    void aSecondCloseTakesNothingFromTheNextOwner() throws IOException {
        final Path file = folder.resolve("lock");
        final LockFile first = LockFile.takeOrNull(file);
        first.close();
        try (LockFile next = LockFile.takeOrNull(file)) {
            assertNotNull(next);
            first.close();
            assertNull(LockFile.takeOrNull(file));
        }
    }

    @Test
    void whatCannotBeLockedMayBeLater() throws IOException {
        final Path file = Files.createDirectory(folder.resolve("lock"));
        assertThrows(IOException.class, () -> LockFile.takeOrNull(file));
        Files.delete(file);
        try (LockFile lock = LockFile.takeOrNull(file)) {
            assertNotNull(lock);
        }
    }
}
