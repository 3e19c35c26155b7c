package io.kvasir.router.journal;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import io.kvasir.core.memory.OffHeap;
import io.kvasir.pipeline.source.IndexState;
import io.kvasir.router.FormerRouters;
import io.kvasir.testsupport.ChildJvm;
import io.kvasir.testsupport.Cores;
import io.kvasir.testsupport.Seeds;

import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.Timeout.ThreadMode;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicLong;
import java.util.stream.Stream;

class DecisionJournalTest {
    private static final int BLOCK_SIZE = 16;

    @TempDir Path folder;

    /** A record whose every number follows from one. */
    private static void fill(JournalRecord record, long n, int candidates) {
        record.begin(n, -n, JournalRecord.shortText("mode " + n), n / 2.0, n / 4.0);
        record.id("request-" + n);
        record.prompt((int) n, (int) n / BLOCK_SIZE, n % 2 == 0, (int) n % 100);
        for (int i = 0; i < candidates; i++) {
            record.add(
                    JournalRecord.name("worker " + (n + i)),
                    i,
                    IndexState.ofNumberOrNull(n % 5),
                    (double) (n + i),
                    n + 0.5,
                    n + 2,
                    (int) n + 3,
                    (int) n + 4,
                    n + 5,
                    (double) (n + 6),
                    n + 7 + i);
        }
        record.fleet(candidates, candidates + 1, n - 1.5);
    }

    private static void assertHolds(JournalRecord record, long n, int candidates) {
        assertEquals(n, record.timeMs());
        assertEquals(-n, record.configVersion());
        assertEquals("mode " + n, record.mode());
        assertEquals(n / 2.0, record.weight());
        assertEquals(n / 4.0, record.temperature());
        assertEquals("request-" + n, record.id());
        assertEquals((int) n, record.tokens());
        assertEquals((int) n / BLOCK_SIZE, record.blocks());
        assertEquals(n % 2 == 0, record.prefills());
        assertEquals((int) n % 100, record.predictedCachedTokens());
        assertEquals(candidates, record.candidates());
        assertEquals(candidates + 1, record.workers());
        assertEquals("", record.refusal());
        assertEquals(candidates, record.listed());
        assertEquals(1.5, record.regret());
        for (int i = 0; i < candidates; i++) {
            assertEquals("worker " + (n + i), record.worker(i));
            assertEquals(i, record.dpRank(i));
            assertEquals(IndexState.ofNumberOrNull(n % 5), record.indexStateOrNull(i));
            assertEquals((double) (n + i), record.cost(i));
            assertEquals(n + 0.5, record.prefillBlocks(i));
            assertEquals(n + 2, record.decodeBlocks(i));
            assertEquals((int) n + 3, record.overlapBlocks(i));
            assertEquals((int) n + 4, record.activePrefixBlocks(i));
            assertEquals(n + 5, record.activeRequests(i));
            assertEquals((double) (n + 6), record.addedBlocks(i));
            assertEquals(n + 7 + i, record.eventSequence(i));
        }
    }

    @ParameterizedTest
    @ValueSource(ints = {1, 2, 7, 100})
    void theLastDecisionsAreThereAndNoOthers(int records) {
        try (DecisionJournal journal = DecisionJournal.inMemory(records, 4, BLOCK_SIZE)) {
            final JournalRecord record = journal.newRecord();
            assertEquals(0, journal.end());
            assertFalse(journal.read(0, record));
            assertEquals(DecisionJournal.NONE, journal.find("request-0", journal.end(), record));
            for (int n = 0; n < 3 * records + 1; n++) {
                fill(record, n, 1 + n % 4);
                assertEquals(n, journal.append(record));
                assertEquals(n, record.number());
            }
            final long end = journal.end();
            assertEquals(3L * records + 1, end);
            for (long n = -2; n < end + 3; n++) {
                final boolean kept = n >= end - records && n < end;
                assertEquals(kept, journal.read(n, record), "decision " + n);
                if (kept) {
                    assertHolds(record, n, (int) (1 + n % 4));
                    assertEquals(n, journal.find("request-" + n, end, record));
                    assertEquals(DecisionJournal.NONE, journal.find("request-" + n, n, record));
                } else if (n >= 0) {
                    assertEquals(DecisionJournal.NONE, journal.find("request-" + n, end, record));
                }
            }
            assertEquals(0, journal.dropped());
        }
    }

    @Test
    void whatComesOfADecisionIsAddedAsLongAsItIsKept() {
        try (DecisionJournal journal = DecisionJournal.inMemory(2, 1, BLOCK_SIZE)) {
            final JournalRecord record = journal.newRecord();
            for (int n = 0; n < 3; n++) {
                fill(record, n, 1);
                journal.append(record);
                assertEquals(JournalRecord.UNKNOWN, record.engineCachedTokens());
                assertEquals(JournalRecord.UNKNOWN, record.firstTokenNs());
            }
            journal.engineCachedTokens(2, 48);
            journal.firstToken(2, 5_000);
            journal.firstToken(0, 7); // overwritten
            journal.firstToken(99, 7); // not made yet
            journal.firstToken(DecisionJournal.NONE, 7);
            assertTrue(journal.read(2, record));
            assertHolds(record, 2, 1);
            assertEquals(48, record.engineCachedTokens());
            assertEquals(5_000, record.firstTokenNs());
            assertTrue(journal.read(1, record));
            assertEquals(JournalRecord.UNKNOWN, record.firstTokenNs());
        }
    }

    @Test
    void idsOfAnyLengthAndLetterAreFound() {
        final List<String> ids =
                List.of(
                        "",
                        "a",
                        "x".repeat(JournalRecord.MAX_ID_LENGTH),
                        "x".repeat(JournalRecord.MAX_ID_LENGTH) + "1",
                        "x".repeat(JournalRecord.MAX_ID_LENGTH) + "2",
                        "x".repeat(100_000),
                        "gr\u00fc\u00dfe",
                        "\ud83d\ude00",
                        "nul\u0000nul");
        try (DecisionJournal journal = DecisionJournal.inMemory(32, 1, BLOCK_SIZE)) {
            final JournalRecord record = journal.newRecord();
            for (String id : ids) {
                fill(record, 1, 1);
                record.id(id);
                journal.append(record);
            }
            fill(record, 1, 1);
            record.id(null);
            journal.append(record);
            for (int i = 0; i < ids.size(); i++) {
                assertEquals(i, journal.find(ids.get(i), journal.end(), record), "id " + i);
            }
            assertEquals(DecisionJournal.NONE, journal.find("b", journal.end(), record));
            assertTrue(journal.read(6, record));
            assertEquals("gr??e", record.id());
            assertTrue(journal.read(ids.size(), record));
            assertEquals("", record.id());
        }
    }

    @Test
    @Timeout(value = 60, threadMode = ThreadMode.SEPARATE_THREAD)
    void numbersBeyondTheEndAreNotLookedThrough() {
        final DecisionJournal journal = DecisionJournal.inMemory(4, 1, BLOCK_SIZE);
        final JournalRecord record = journal.newRecord();
        for (long before : new long[] {Long.MIN_VALUE, -1, 0, Long.MAX_VALUE}) {
            assertEquals(DecisionJournal.NONE, journal.find("request-2", before, record));
        }
        for (int n = 0; n < 3; n++) {
            fill(record, n, 1);
            journal.append(record);
        }
        assertEquals(2, journal.find("request-2", Long.MAX_VALUE, record));
        assertEquals(2, journal.find("request-2", 3, record));
        assertEquals(DecisionJournal.NONE, journal.find("request-2", 2, record));
        assertEquals(DecisionJournal.NONE, journal.find("request-2", Long.MIN_VALUE, record));
        assertEquals(DecisionJournal.NONE, journal.find("request-9", Long.MAX_VALUE, record));
        journal.close();
        assertEquals(DecisionJournal.NONE, journal.find("request-2", Long.MAX_VALUE, record));
    }

    @Test
    void longNamesAreCutBetweenCharacters() {
        final JournalRecord record = new JournalRecord(1);
        for (int length = 40; length < 60; length++) {
            final String name = "a".repeat(length % 4) + "\ud83d\ude00".repeat(20);
            fill(record, 1, 0);
            record.add(JournalRecord.name(name), 0, IndexState.EXACT, 0, 0, 0, 0, 0, 0, 0, 0);
            assertTrue(name.startsWith(record.worker(0)), record.worker(0));
            assertTrue(record.worker(0).length() > 20);
        }
    }

    @Test
    void sizesAreChecked() {
        for (int records : new int[] {-1, 0, DecisionJournal.MAX_RECORDS + 1}) {
            assertThrows(
                    IllegalArgumentException.class,
                    () -> DecisionJournal.inMemory(records, 1, BLOCK_SIZE));
        }
        for (int candidates : new int[] {-1, 0, JournalRecord.MAX_CANDIDATES + 1}) {
            assertThrows(IllegalArgumentException.class, () -> new JournalRecord(candidates));
            assertThrows(
                    IllegalArgumentException.class,
                    () -> DecisionJournal.inMemory(1, candidates, BLOCK_SIZE));
        }
        final JournalRecord one = new JournalRecord(1);
        fill(one, 1, 1);
        assertThrows(IllegalStateException.class, () -> fill(one, 1, 2));
        try (DecisionJournal journal = DecisionJournal.inMemory(1, 2, BLOCK_SIZE)) {
            assertThrows(IllegalArgumentException.class, () -> journal.read(0, one));
            assertThrows(IllegalArgumentException.class, () -> journal.append(one));
            assertEquals(0, journal.end());
        }
    }

    /**
     * Writers a round apart meet at the same places; every record that is read is of one of them.
     */
    @ParameterizedTest
    @ValueSource(ints = {1, 3, 64})
    void noReaderSeesHalfOfARecord(int records) throws Exception {
        final long each = 2_000;
        final AtomicLong kept = new AtomicLong();
        final AtomicBoolean over = new AtomicBoolean();
        try (DecisionJournal journal = DecisionJournal.inMemory(records, 3, BLOCK_SIZE);
                ExecutorService threads = Executors.newFixedThreadPool(5)) {
            final List<Future<?>> writers = new ArrayList<>();
            for (int t = 0; t < 3; t++) {
                final long first = 10_000_000L * (t + 1);
                writers.add(
                        threads.submit(
                                () -> {
                                    final JournalRecord record = journal.newRecord();
                                    for (long n = first; n < first + each; n++) {
                                        fill(record, n, (int) (1 + n % 3));
                                        final long number = journal.append(record);
                                        kept.addAndGet(number < 0 ? 0 : 1);
                                        journal.firstToken(number, n);
                                    }
                                }));
            }
            final List<Future<?>> readers = new ArrayList<>();
            for (int t = 0; t < 2; t++) {
                readers.add(
                        threads.submit(
                                () -> {
                                    final JournalRecord record = journal.newRecord();
                                    while (!over.get()) {
                                        for (long n = journal.end() - 1, i = 0; i < records; i++) {
                                            if (journal.read(n - i, record)) {
                                                assertWhole(record);
                                            }
                                        }
                                    }
                                }));
            }
            for (Future<?> writer : writers) {
                writer.get();
            }
            over.set(true);
            for (Future<?> reader : readers) {
                reader.get();
            }
            assertEquals(3 * each, journal.end());
            assertEquals(3 * each, kept.get() + journal.dropped());
            assertNotEquals(0, kept.get());
            final JournalRecord record = journal.newRecord();
            for (long n = journal.end() - records; n < journal.end(); n++) {
                if (journal.read(n, record)) {
                    assertWhole(record);
                }
            }
        }
    }

    @Test
    void anAdditionIsKeptWhereAnotherOneIsUnderWay() throws Exception {
        final OffHeap memory = OffHeap.allocate(JournalDescriptor.length(1, 1));
        DecisionJournal.writeHeader(memory, 1, 1, BLOCK_SIZE, 0);
        try (DecisionJournal journal = new DecisionJournal(memory, null)) {
            final JournalRecord record = journal.newRecord();
            fill(record, 0, 1);
            final long number = journal.append(record);
            memory.putLongRelease(
                    JournalDescriptor.HEADER_LENGTH, JournalDescriptor.writing(number));
            final Thread second = Thread.ofPlatform().start(() -> journal.firstToken(number, 7));
            second.join(20); // it waits; one that gives up ends
            memory.putLongRelease(
                    JournalDescriptor.HEADER_LENGTH, JournalDescriptor.written(number));
            second.join();
            assertTrue(journal.read(number, record));
            assertEquals(7, record.firstTokenNs());
        }
    }

    private static void assertWhole(JournalRecord record) {
        final long n = record.timeMs();
        assertHolds(record, n, (int) (1 + n % 3));
        assertTrue(
                record.firstTokenNs() == n || record.firstTokenNs() == JournalRecord.UNKNOWN,
                () -> record.firstTokenNs() + " of " + n);
    }

    @Test
    void aJournalMayBeClosedWithCallersInside() throws Exception {
        FormerRouters.awaitEnd();
        final long before = OffHeap.allocatedBytes();
        for (int round = 0; round < 20; round++) {
            try (ExecutorService threads = Executors.newFixedThreadPool(2)) {
                final DecisionJournal journal = DecisionJournal.inMemory(8, 2, BLOCK_SIZE);
                final List<Future<?>> callers = new ArrayList<>();
                for (int t = 0; t < 2; t++) {
                    callers.add(
                            threads.submit(
                                    () -> {
                                        final JournalRecord record = journal.newRecord();
                                        fill(record, 5, 2);
                                        while (journal.append(record) != DecisionJournal.NONE
                                                || journal.end() > 0) {
                                            journal.find("request-4", journal.end(), record);
                                        }
                                    }));
                }
                while (journal.end() < 1_000) {
                    Cores.giveWay();
                }
                journal.close();
                journal.close();
                for (Future<?> caller : callers) {
                    caller.get();
                }
                final JournalRecord record = journal.newRecord();
                assertFalse(journal.read(1, record));
                assertEquals(0, journal.end());
                assertEquals(0, journal.dropped());
                journal.firstToken(1, 1);
            }
        }
        assertEquals(before, OffHeap.allocatedBytes());
    }

    @Test
    void aFileIsReadWhileItIsWrittenAndAfterwards() throws IOException {
        final DecisionJournal journal = JournalFile.create(folder, 10, 3, BLOCK_SIZE, 77);
        try (journal;
                DecisionJournal reader = JournalFile.open(folder)) {
            assertEquals(10, reader.records());
            assertEquals(3, reader.candidates());
            assertEquals(BLOCK_SIZE, reader.blockSize());
            final JournalRecord record = journal.newRecord();
            final JournalRecord read = reader.newRecord();
            for (int n = 0; n < 25; n++) {
                fill(record, n, 1 + n % 3);
                journal.append(record);
                assertTrue(reader.read(n, read));
                assertHolds(read, n, 1 + n % 3);
            }
            final String said =
                    assertThrows(
                                    IllegalStateException.class,
                                    () -> JournalFile.create(folder, 10, 3, BLOCK_SIZE, 78))
                            .getMessage();
            assertEquals(
                    "another router keeps its decisions in "
                            + folder
                            + "; give each router its own decision-journal-dir",
                    said);
        }
        try (DecisionJournal reader = JournalFile.open(folder.resolve(JournalFile.FILE))) {
            final JournalRecord read = reader.newRecord();
            assertEquals(25, reader.end());
            assertEquals(24, reader.find("request-24", reader.end(), read));
        }
        if (Files.getFileStore(folder).supportsFileAttributeView("posix")) {
            assertEquals(
                    "rw-------",
                    PosixFilePermissions.toString(
                            Files.getPosixFilePermissions(folder.resolve(JournalFile.FILE))));
        }
    }

    @Test
    void theFileOfTheRunBeforeIsKept() throws IOException {
        for (int run = 1; run <= 3; run++) {
            try (DecisionJournal journal = JournalFile.create(folder, 10, 1, BLOCK_SIZE, run)) {
                final JournalRecord record = journal.newRecord();
                for (int n = 0; n < run; n++) {
                    fill(record, n, 1);
                    journal.append(record);
                }
            }
        }
        try (DecisionJournal now = JournalFile.open(folder);
                DecisionJournal before = JournalFile.open(folder.resolve(JournalFile.PREVIOUS))) {
            assertEquals(3, now.end());
            assertEquals(2, before.end());
        }
    }

    /** Its room would not be enough either. */
    @Test
    void theFileOfTheRunBeforeStaysWhereTheDiskHasNoRoomEvenWithoutIt() throws IOException {
        final int most = DecisionJournal.MAX_RECORDS;
        final int candidates = JournalRecord.MAX_CANDIDATES;
        assumeTrue(
                Files.getFileStore(folder).getUsableSpace()
                        < JournalDescriptor.length(most, candidates) - (1L << 20),
                "the disk has room for the largest journal");
        JournalFile.create(folder, 10, 1, BLOCK_SIZE, 1).close();
        JournalFile.create(folder, 10, 1, BLOCK_SIZE, 2).close();
        assertThrows(
                IOException.class,
                () -> JournalFile.create(folder, most, candidates, BLOCK_SIZE, 3));
        JournalFile.open(folder).close();
        JournalFile.open(folder.resolve(JournalFile.PREVIOUS)).close();
        assertFalse(Files.exists(folder.resolve(JournalFile.FILE + ".new")));
    }

    @Test
    void nothingIsLeftOfAFileThatCouldNotTakeItsName() throws IOException {
        JournalFile.create(folder, 10, 1, BLOCK_SIZE, 1).close();
        Files.createDirectories(folder.resolve(JournalFile.PREVIOUS).resolve("in the way"));
        assertThrows(IOException.class, () -> JournalFile.create(folder, 10, 1, BLOCK_SIZE, 2));
        try (Stream<Path> files = Files.list(folder)) {
            assertEquals(3, files.count(), "the file, its lock, what is in the way");
        }
        JournalFile.open(folder).close();
    }

    /** Appends until it is killed. */
    static final class Appender {
        private Appender() {}

        public static void main(String[] arguments) throws IOException {
            final DecisionJournal journal =
                    JournalFile.create(Path.of(arguments[0]), 16, 3, BLOCK_SIZE, 1);
            final JournalRecord record = journal.newRecord();
            for (long n = 0; n < 50_000; n++) {
                fill(record, n, (int) (1 + n % 3));
                journal.append(record);
            }
            Runtime.getRuntime().halt(0); // as it is, nothing is closed
        }
    }

    @Test
    void whatAProcessHasWrittenThatEndsAtOnceIsThere() throws Exception {
        ChildJvm.run(ChildJvm.unchecked(), Appender.class, folder.toString());
        try (DecisionJournal reader = JournalFile.open(folder)) {
            assertEquals(50_000, reader.end());
            final JournalRecord record = reader.newRecord();
            for (long n = 50_000 - 16; n < 50_000; n++) {
                assertTrue(reader.read(n, record));
                assertHolds(record, n, (int) (1 + n % 3));
            }
        }
        JournalFile.create(folder, 1, 1, BLOCK_SIZE, 2).close(); // its lock has ended with it
    }

    @Test
    void aDamagedFileIsRefusedOrReadWithoutACrash() throws IOException {
        final Random random = new Random(Seeds.next("DecisionJournalTest"));
        try (DecisionJournal journal = JournalFile.create(folder, 4, 2, BLOCK_SIZE, 1)) {
            final JournalRecord record = journal.newRecord();
            for (int n = 0; n < 9; n++) {
                fill(record, n, 2);
                journal.append(record);
            }
        }
        final byte[] good = Files.readAllBytes(folder.resolve(JournalFile.FILE));
        final Path damaged = folder.resolve("damaged.kvj");
        for (int round = 0; round < 400; round++) {
            final byte[] bytes = good.clone();
            for (int i = random.nextInt(4); i >= 0; i--) {
                final int at = 8 * random.nextInt(bytes.length / 8);
                ByteBuffer.wrap(bytes)
                        .putLong(at, random.nextBoolean() ? random.nextLong() : random.nextInt(9));
            }
            Files.write(damaged, bytes);
            try (DecisionJournal reader = JournalFile.open(damaged)) {
                final JournalRecord record = reader.newRecord();
                final long end = Math.clamp(reader.end(), 0, 20);
                for (long n = 0; n < end; n++) {
                    if (reader.read(n, record)) {
                        record.id();
                        record.regret();
                        for (int i = 0; i < record.listed(); i++) {
                            record.worker(i);
                        }
                    }
                }
            } catch (IOException e) {
                assertTrue(e.getMessage().contains("damaged.kvj"), e.getMessage());
            }
        }
        for (int length : new int[] {0, 1, 127, 128, good.length - 1, good.length - 8}) {
            Files.write(damaged, java.util.Arrays.copyOf(good, length));
            assertThrows(IOException.class, () -> JournalFile.open(damaged), "bytes " + length);
        }
        assertThrows(IOException.class, () -> JournalFile.open(folder.resolve("none")));
        assertArrayEquals(good, Files.readAllBytes(folder.resolve(JournalFile.FILE)));
    }
}
