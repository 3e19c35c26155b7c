package io.kvasir.chronicle;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import static java.nio.file.StandardCopyOption.REPLACE_EXISTING;

import io.kvasir.testsupport.Eventually;

import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.stream.Stream;

/** A map's locks, which another map of the same file holds as another process does. */
class SharedMapTest {
    private static final byte[] KEY = {1};
    private static final byte[] VALUE = {2};

    @TempDir Path folder;

    private static SharedMap open(Path folder) throws IOException {
        return new SharedMap(folder, new MapLayout("test", 1, 16, 8, 8));
    }

    /** A call that is refused, as another process holds the lock until then. */
    private static void beRefused(SharedMap map, SharedMap other) throws InterruptedException {
        final CountDownLatch held = new CountDownLatch(1);
        final CountDownLatch refused = new CountDownLatch(1);
        final Thread holder =
                Thread.ofPlatform()
                        .start(
                                () ->
                                        other.update(
                                                KEY,
                                                _ -> {
                                                    held.countDown();
                                                    awaitQuietly(refused);
                                                    return VALUE;
                                                }));
        held.await();
        assertFalse(map.update(KEY, _ -> VALUE));
        refused.countDown();
        holder.join();
    }

    private static void awaitQuietly(CountDownLatch latch) {
        try {
            latch.await();
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
    }

    @Test
    void twoCallsThatMeetAHeldLockWithNoneBetweenFindNoDeadOne() throws Exception {
        try (SharedMap map = open(folder);
                SharedMap other = open(folder)) {
            final Path file = map.fileOrNull();
            for (int i = 0; i < 3; i++) {
                beRefused(map, other);
                TimeUnit.MILLISECONDS.sleep(1_100);
                assertEquals(file, map.fileOrNull());
            }
            assertEquals(3, map.errors());
            assertTrue(map.update(KEY, old -> old));
            assertArrayEquals(VALUE, map.get(KEY));
            assertEquals(file, map.fileOrNull());
        }
    }

    @Test
    void aFileOfTheSameNameThatReplacedOneIsAnother(@TempDir Path elsewhere) throws Exception {
        final byte[] next = {3};
        try (SharedMap map = open(folder)) {
            assertTrue(map.update(KEY, _ -> VALUE));
            final Path file = map.fileOrNull();
            try (SharedMap other = open(elsewhere)) { // as after all files were deleted by hand
                assertTrue(other.update(KEY, _ -> next));
            }
            try (Stream<Path> all = Files.list(elsewhere)) {
                for (Path each : all.toList()) {
                    Files.move(each, folder.resolve(each.getFileName()), REPLACE_EXISTING);
                }
            }
            Eventually.holds("it is seen", () -> Arrays.equals(next, map.get(KEY)));
            assertEquals(file, map.fileOrNull(), "the new one stays");
        }
    }
}
