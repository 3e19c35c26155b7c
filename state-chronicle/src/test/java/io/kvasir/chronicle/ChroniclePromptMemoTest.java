package io.kvasir.chronicle;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import io.kvasir.prompt.memo.MemoView;
import io.kvasir.prompt.memo.PromptMemo;
import io.kvasir.prompt.memo.PromptMemoConfig;
import io.kvasir.prompt.memo.PromptMemoCounts;
import io.kvasir.prompt.memo.PromptMemoProvider;
import io.kvasir.testsupport.Eventually;

import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.nio.file.attribute.PosixFilePermissions;
import java.nio.file.attribute.UserPrincipal;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.atomic.AtomicLong;
import java.util.stream.Stream;

class ChroniclePromptMemoTest {
    private static final Duration HOUR = Duration.ofHours(1);

    @TempDir private Path temp;
    private final AtomicLong nowMs = new AtomicLong(1_000_000);
    private final List<PromptMemo> opened = new ArrayList<>();

    private Path folder() {
        return temp.resolve("memory");
    }

    private ChroniclePromptMemo open(int entries) throws IOException {
        final ChroniclePromptMemo memo =
                new ChroniclePromptMemo(
                        new PromptMemoConfig(folder(), entries, HOUR),
                        () -> Instant.ofEpochMilli(nowMs.get()));
        opened.add(memo);
        return memo;
    }

    @AfterEach
    void close() {
        opened.forEach(PromptMemo::close);
    }

    private static byte[] key(int number) {
        return MemoView.sha256().digest(ByteBuffer.allocate(4).putInt(0, number).array());
    }

    private static int[] tokens(int number, int count) {
        final int[] tokens = new int[count];
        Arrays.setAll(tokens, i -> number * 31 + i);
        return tokens;
    }

    private List<Path> files(String suffix) throws IOException {
        try (Stream<Path> all = Files.list(folder())) {
            return all.filter(f -> f.toString().endsWith(suffix)).sorted().toList();
        }
    }

    @Test
    void sectionsOfEveryLengthComeBackAsTheyWerePut() throws IOException {
        final ChroniclePromptMemo memo = open(1_000);
        for (int count : new int[] {0, 1, 999, 1_000, 1_001, 2_000, 12_345}) {
            assertNull(memo.get(key(count)));
            memo.put(key(count), tokens(count, count));
            assertArrayEquals(tokens(count, count), memo.get(key(count)), count + " tokens");
        }
        assertEquals(new PromptMemoCounts(7, 7, 0, 0), memo.counts());
    }

    @Test
    void aFullMemoKeepsWhatIsNewerAndNeverMoreThanItsSize() throws IOException {
        final int entries = 64;
        final ChroniclePromptMemo memo = open(entries);
        for (int i = 0; i < 10_000; i++) {
            nowMs.incrementAndGet();
            memo.put(key(i), tokens(i, 10));
            assertArrayEquals(tokens(i, 10), memo.get(key(i)), "the newest");
        }
        int held = 0;
        for (int i = 0; i < 10_000; i++) {
            final int[] found = memo.get(key(i));
            if (found != null) {
                held++;
                assertArrayEquals(tokens(i, 10), found);
                assertTrue(i > 9_000, i + " is older than what gave way");
            }
        }
        assertTrue(held <= entries && held > entries / 2, held + " held");
        assertTrue(memo.counts().evictions() >= 10_000 - 2 * entries, memo.counts()::toString);
        assertEquals(0, memo.counts().errors());
    }

    @Test
    void aSectionThatIsLargerThanTheMemoIsNotKept() throws IOException {
        final ChroniclePromptMemo memo = open(2);
        memo.put(key(1), tokens(1, 2_001));
        assertNull(memo.get(key(1)));
        assertEquals(1, memo.counts().errors());
    }

    @Test
    void whatIsOldIsAbsentAndGivesWayWithoutAnEviction() throws IOException {
        final ChroniclePromptMemo memo = open(1);
        memo.put(key(1), tokens(1, 5));
        nowMs.addAndGet(HOUR.toMillis() - 1);
        assertArrayEquals(tokens(1, 5), memo.get(key(1)));
        nowMs.addAndGet(1);
        assertNull(memo.get(key(1)));
        memo.put(key(2), tokens(2, 5));
        assertArrayEquals(tokens(2, 5), memo.get(key(2)));
        nowMs.addAndGet(-2 * HOUR.toMillis()); // a clock that was set back makes nothing old
        assertArrayEquals(tokens(2, 5), memo.get(key(2)));
        assertEquals(0, memo.counts().evictions());
    }

    /** Keys that somebody has found for one cell differ somewhere else. */
    @Test
    void keysThatShareBothCellsAreNotTakenForOneAnother() throws IOException {
        final ChroniclePromptMemo memo = open(1_000);
        final byte[] one = key(1);
        for (int at = 16; at < PromptMemo.KEY_BYTES; at++) {
            final byte[] other = one.clone();
            other[at] ^= 1;
            memo.put(other, tokens(at, 10));
            assertNull(memo.get(one));
            assertArrayEquals(tokens(at, 10), memo.get(other));
        }
        memo.put(one, tokens(1, 10));
        assertArrayEquals(tokens(1, 10), memo.get(one));
    }

    @Test
    void whatOneHasPutAnotherFindsAndClosingTwiceIsClosingOnce() throws IOException {
        final ChroniclePromptMemo one = open(100);
        final ChroniclePromptMemo other = open(100);
        one.put(key(1), tokens(1, 3_000));
        assertArrayEquals(tokens(1, 3_000), other.get(key(1)));
        one.close();
        one.close();
        assertNull(one.get(key(1)));
        one.put(key(1), tokens(1, 10));
        assertArrayEquals(tokens(1, 3_000), other.get(key(1)));
        final ChroniclePromptMemo later = open(100);
        assertArrayEquals(tokens(1, 3_000), later.get(key(1)));
    }

    @Test
    void sizesApartShareNothing() throws IOException {
        open(100).put(key(1), tokens(1, 10));
        assertNull(open(200).get(key(1)));
    }

    @Test
    void filesAreReadableByTheirOwnerAlone() throws IOException {
        open(100).put(key(1), tokens(1, 10));
        assertEquals(
                "rwx------",
                PosixFilePermissions.toString(Files.getPosixFilePermissions(folder())));
        for (Path file : files("")) {
            assertEquals(
                    "rw-------",
                    PosixFilePermissions.toString(Files.getPosixFilePermissions(file)),
                    file.toString());
        }
    }

    @Test
    void aFolderThatOthersMayReadIsRefused() throws IOException {
        Files.createDirectories(folder());
        Files.setPosixFilePermissions(folder(), PosixFilePermissions.fromString("rwxr-x---"));
        final IOException refusal = assertThrows(IOException.class, () -> open(100));
        assertTrue(refusal.getMessage().contains("chmod 700"), refusal::getMessage);
    }

    private static void giveAway(Path file) throws IOException {
        final UserPrincipal other =
                file.getFileSystem()
                        .getUserPrincipalLookupService()
                        .lookupPrincipalByName("nobody");
        try {
            Files.setOwner(file, other);
        } catch (IOException e) {
            assumeTrue(false, "skipped: only root can give files away");
        }
    }

    @Test
    void anotherUsersFolderIsRefusedAndAnotherUsersFileIsNotRead() throws IOException {
        open(100).put(key(1), tokens(1, 10));
        final Path file = files(".map").getFirst();
        giveAway(file);
        assertNull(open(100).get(key(1)));
        assertNotEquals(List.of(file), files(".map"));
        giveAway(folder());
        final IOException refusal = assertThrows(IOException.class, () -> open(100));
        assertTrue(refusal.getMessage().contains("belongs to"), refusal::getMessage);
    }

    private void damage(Path file, long offset, byte[] bytes) throws IOException {
        try (FileChannel channel = FileChannel.open(file, StandardOpenOption.WRITE)) {
            channel.write(ByteBuffer.wrap(bytes), offset);
        }
    }

    @Test
    void aFileWithADamagedHeaderGivesWayToANewOne() throws IOException {
        for (long offset : new long[] {0, 8, 30, 200}) {
            final ChroniclePromptMemo memo = open(100);
            memo.put(key(1), tokens(1, 10));
            memo.close();
            damage(files(".map").getFirst(), offset, new byte[] {-1, -2, -3, -4, -5, -6, -7, -8});
            final ChroniclePromptMemo next = open(100);
            assertNull(next.get(key(1)));
            next.put(key(1), tokens(1, 10));
            assertArrayEquals(tokens(1, 10), next.get(key(1)));
            assertEquals(1, files(".map").size());
            next.close();
        }
    }

    @Test
    void aFileThatIsCutOffOrWasNotFinishedGivesWayToANewOne() throws IOException {
        for (String kind : List.of("empty", "cut", "unfinished", "other version")) {
            final ChroniclePromptMemo memo = open(100);
            memo.put(key(1), tokens(1, 10));
            memo.close();
            final Path file = files(".map").getFirst();
            final Path complete = file.resolveSibling(file.getFileName() + ".ok");
            switch (kind) {
                case "empty" -> truncate(file, 0);
                case "cut" -> truncate(file, Files.size(file) / 2);
                case "unfinished" -> Files.delete(complete);
                default ->
                        Files.writeString(
                                complete,
                                Files.readString(complete).replace("version=1", "version=2"));
            }
            final ChroniclePromptMemo next = open(100);
            assertNull(next.get(key(1)), kind);
            assertEquals(0, next.counts().errors(), kind);
            next.close();
        }
    }

    private static void truncate(Path file, long bytes) throws IOException {
        try (FileChannel channel = FileChannel.open(file, StandardOpenOption.WRITE)) {
            channel.truncate(bytes);
        }
    }

    @Test
    void anEntryWithOtherBytesIsAbsentAndCounted() throws IOException {
        final ChroniclePromptMemo memo = open(100);
        memo.put(key(1), tokens(1, 10));
        final Path file = files(".map").getFirst();
        final byte[] all = Files.readAllBytes(file);
        final byte[] key = key(1);
        int at = -1;
        for (int i = 0; i + key.length <= all.length && at < 0; i++) {
            if (Arrays.equals(all, i, i + key.length, key, 0, key.length)) {
                at = i;
            }
        }
        assertTrue(at > 0, "the entry is in the file");
        damage(file, at + MemoEntry.TOKENS_OFFSET + 3, new byte[] {1});
        assertNull(memo.get(key(1)));
        assertEquals(1, memo.counts().errors());
        memo.put(key(1), tokens(1, 10));
        assertArrayEquals(tokens(1, 10), memo.get(key(1)));
        assertEquals(0, memo.counts().evictions(), "nothing was lost");
    }

    @Test
    void aFileThatIsDeletedMeanwhileIsFollowedByANewOne() throws IOException {
        final ChroniclePromptMemo memo = open(100);
        memo.put(key(1), tokens(1, 10));
        for (Path file : files("")) {
            Files.delete(file);
        }
        Eventually.holds(() -> memo.get(key(1)) == null);
        Eventually.holds(
                () -> {
                    memo.put(key(2), tokens(2, 10));
                    return memo.get(key(2)) != null;
                });
        assertEquals(1, files(".map").size());
        assertArrayEquals(tokens(2, 10), open(100).get(key(2)));
    }

    @Test
    void theImplementationIsFoundByItsSeam() throws IOException {
        assertFound();
    }

    private void assertFound() throws IOException {
        final PromptMemo memo =
                PromptMemoProvider.openFirst(new PromptMemoConfig(folder(), 10, HOUR));
        opened.add(memo);
        assertEquals(ChroniclePromptMemo.class, memo.getClass());
    }

    @Test
    void theImplementationIsFoundByAThreadOfAnyContext() throws IOException {
        final Thread thread = Thread.currentThread();
        final ClassLoader before = thread.getContextClassLoader();
        thread.setContextClassLoader(ClassLoader.getPlatformClassLoader());
        try {
            assertFound();
        } finally {
            thread.setContextClassLoader(before);
        }
    }

    @Test
    void theFlagsOfThisJvmAreThoseThatAreAskedFor() {
        assertEquals(List.of(), JvmFlags.missing());
        assertEquals(9, JvmFlags.all().size());
    }
}
