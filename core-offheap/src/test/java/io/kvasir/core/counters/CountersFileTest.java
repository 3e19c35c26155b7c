package io.kvasir.core.counters;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.kvasir.core.memory.OffHeap;
import io.kvasir.testsupport.ChildJvm;
import io.kvasir.testsupport.Seeds;

import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;

class CountersFileTest {
    private static final int COUNTERS = 3;
    private static final int ERRORS = 1 << 18;
    private static final long START = 1_000_000;
    private static final long MUCH_LATER = START + 60_000;

    @TempDir private Path folder;

    private CountersFile create() {
        return CountersFile.create(folder, COUNTERS, ERRORS, START);
    }

    /** Lines of number, type, label and value. */
    private static List<String> counters(CountersReader reader) {
        final List<String> lines = new ArrayList<>();
        reader.counters(
                (id, type, label, value) -> lines.add(id + " " + type + " " + label + "=" + value));
        return lines;
    }

    /** Lines of count, times and first line. */
    private static List<String> errors(CountersReader reader) {
        final List<String> lines = new ArrayList<>();
        reader.errors(
                (count, firstMs, lastMs, text) ->
                        lines.add(
                                count
                                        + " "
                                        + firstMs
                                        + " "
                                        + lastMs
                                        + " "
                                        + text.lines().findFirst().orElse("")));
        return lines;
    }

    private List<String> counters() throws IOException {
        try (CountersReader reader = CountersReader.open(folder)) {
            return counters(reader);
        }
    }

    @Test
    void readersSeeValuesWhileTheyChange() throws Exception {
        final CountersFile file = create();
        try (CountersReader reader = CountersReader.open(folder)) {
            assertEquals(List.of(), counters(reader));
            final int blocks = file.allocate("blocks held: größer", 7, START);
            file.set(blocks, Long.MAX_VALUE);
            final int more = file.allocate("", -1, START);
            file.set(more, -5);
            assertEquals(
                    List.of("0 7 blocks held: größer=" + Long.MAX_VALUE, "1 -1 =-5"),
                    counters(reader));
            file.set(blocks, 3);
            assertEquals("0 7 blocks held: größer=3", counters(reader).getFirst());
            file.written(START + 5);
            assertEquals(START + 5, reader.writtenMs());
            assertEquals(START, reader.startedMs());
            assertEquals(ProcessHandle.current().pid(), reader.processId());
            assertFalse(reader.isClosed());
            file.close();
            assertTrue(reader.isClosed());
            assertEquals("0 7 blocks held: größer=3", counters(reader).getFirst());
        }
    }

    @Test
    void aFreedCounterIsReusedAfterASecondAndNoneIsGivenBeyondTheRoom() throws Exception {
        try (CountersFile file = create()) {
            final int first = file.allocate("a", 0, START);
            file.allocate("b", 0, START);
            file.allocate("c", 0, START);
            assertEquals(CountersFile.NONE, file.allocate("d", 0, START));
            file.set(first, 9);
            file.free(first, START);
            assertEquals(List.of("1 0 b=0", "2 0 c=0"), counters());
            assertEquals(CountersFile.NONE, file.allocate("d", 0, START + 999));
            assertEquals(first, file.allocate("d", 0, START + 1_000));
            assertEquals(List.of("0 0 d=0", "1 0 b=0", "2 0 c=0"), counters());
            assertEquals(CountersFile.NONE, file.allocate("e", 0, MUCH_LATER));
        }
    }

    @ParameterizedTest
    @ValueSource(strings = {"x", "ü", "漢", "𝄞"})
    void aLongLabelIsCutBetweenCharacters(String character) throws Exception {
        final String label = "a" + character.repeat(400);
        try (CountersFile file = create()) {
            file.allocate(label, 0, START);
            final String read = counters().getFirst();
            final String kept = read.substring("0 0 ".length(), read.length() - "=0".length());
            assertTrue(label.startsWith(kept), kept);
            final int bytes = kept.getBytes(StandardCharsets.UTF_8).length;
            assertTrue(bytes <= 380 && bytes > 376, bytes + " bytes");
        }
    }

    @Test
    void aFolderHasOneWriterAtATime() throws Exception {
        final CountersFile first = create();
        first.allocate("first", 0, START);
        final IllegalStateException refused =
                assertThrows(IllegalStateException.class, this::create);
        assertTrue(refused.getMessage().contains(folder.toString()), refused.getMessage());
        try (CountersReader former = CountersReader.open(folder)) {
            first.close();
            first.close();
            try (CountersFile second = create()) {
                second.allocate("second", 0, START);
                assertEquals(List.of("0 0 second=0"), counters());
                assertEquals(List.of("0 0 first=0"), counters(former));
            }
        }
    }

    @Test
    void whatADeadWriterHasSetIsReadAndItsFolderIsFree() throws Exception {
        ChildJvm.run(ChildJvm.unchecked(), DyingCountersWriter.class, folder.toString());
        try (CountersReader reader = CountersReader.open(folder)) {
            assertFalse(reader.isClosed());
            assertEquals(List.of("0 1 last words=42"), counters(reader));
            assertEquals(
                    List.of("1 1000 1000 java.lang.IllegalStateException: why it died"),
                    errors(reader));
        }
        create().close();
    }

    @Test
    void errorsOfOneKindAreCounted() throws Exception {
        final CountersFile file = create();
        try (CountersReader reader = CountersReader.open(folder)) {
            for (int i = 0; i < 3; i++) {
                assertTrue(file.errors().record(failure("one", null), START + i));
            }
            assertTrue(file.errors().record(failure("two", null), START + 7));
            assertTrue(file.errors().record(failure("one", failure("cause", null)), START + 8));
            assertEquals(
                    List.of(
                            "3 1000000 1000002 java.io.IOException: one",
                            "1 1000007 1000007 java.io.IOException: two",
                            "1 1000008 1000008 java.io.IOException: one"),
                    errors(reader));
            file.close();
            assertFalse(file.errors().record(failure("late", null), START));
            assertEquals(3, errors(reader).size());
        }
    }

    private static IOException failure(String message, Throwable cause) {
        final IOException failure = new IOException(message);
        if (cause != null) {
            failure.initCause(cause);
        }
        return failure;
    }

    @Test
    void causesThatFormACircleEnd() throws Exception {
        final IOException cause = failure("cause", null);
        final IOException error = failure("error", cause);
        cause.initCause(error);
        try (CountersFile file = create();
                CountersReader reader = CountersReader.open(folder)) {
            assertTrue(file.errors().record(error, START));
            assertTrue(file.errors().record(error, START));
            assertTrue(errors(reader).getFirst().startsWith("2 "));
        }
    }

    @Test
    void manyKindsFillTheRoomAndNoMore() throws Exception {
        try (CountersFile file = create();
                CountersReader reader = CountersReader.open(folder)) {
            final IOException first = failure("first", null);
            assertTrue(file.errors().record(first, START));
            int kept = 1;
            while (file.errors().record(failure("kind " + kept, null), START)) {
                kept++;
            }
            assertTrue(kept > 0 && kept < ERRORS / 30, kept + " kinds");
            assertEquals(kept, errors(reader).size());
            assertFalse(file.errors().record(failure("x".repeat(ERRORS), null), START));
            assertTrue(file.errors().record(first, START), "known, needs no room");
            assertTrue(errors(reader).getFirst().startsWith("2 "));
        }
    }

    @Test
    void threadsRecordAtOnce() throws Exception {
        try (CountersFile file = create();
                CountersReader reader = CountersReader.open(folder)) {
            try (ExecutorService threads = Executors.newVirtualThreadPerTaskExecutor()) {
                for (int i = 0; i < 8; i++) {
                    threads.execute(
                            () -> {
                                for (int n = 0; n < 1_000; n++) {
                                    file.errors().record(failure("same", null), START);
                                }
                            });
                }
            }
            assertEquals(
                    8_000,
                    errors(reader).stream()
                            .mapToInt(
                                    line -> Integer.parseInt(line.substring(0, line.indexOf(' '))))
                            .sum());
        }
    }

    @Test
    void agronaReadsTheSections() throws Exception {
        try (CountersFile file = create()) {
            final int freed = file.allocate("gone", 1, START);
            file.set(file.allocate("blocks", 5, START), 77);
            file.free(freed, START);
            file.errors().record(failure("one", null), START);
            file.errors().record(failure("two", null), START + 1);
            final String read =
                    ChildJvm.run(
                            List.of(
                                    "--add-exports=java.base/jdk.internal.misc=ALL-UNNAMED",
                                    "--add-opens=java.base/sun.nio.ch=ALL-UNNAMED"),
                            AgronaReadsCounters.class,
                            folder.resolve(CountersFile.FILE).toString());
            assertEquals(
                    List.of(
                            "1 5 blocks=77",
                            "1 1000000 1000000 java.io.IOException: one",
                            "1 1000001 1000001 java.io.IOException: two"),
                    read.lines().toList());
        }
    }

    @Test
    void whatIsNoFileOfCountersIsRefused() throws Exception {
        assertThrows(IOException.class, this::counters);
        final Path path = folder.resolve(CountersFile.FILE);
        for (int length : new int[] {0, 1, 127, 128, 10_000}) {
            Files.write(path, new byte[length]);
            assertThrows(IOException.class, this::counters, length + " bytes");
        }
    }

    @Test
    void aDamagedFileIsRefusedOrReadWithoutACrash() throws Exception {
        damage(400);
    }

    @Tag("integration") // takes seconds
    @Test
    void aFileThatIsDamagedInManyWaysIsRefusedOrReadWithoutACrash() throws Exception {
        damage(5_000);
    }

    private void damage(int rounds) throws Exception {
        try (CountersFile file = create()) {
            file.allocate("a", 0, START);
            file.errors().record(failure("one", null), START);
        }
        final Path path = folder.resolve(CountersFile.FILE);
        final byte[] whole = Files.readAllBytes(path);
        final Random random = new Random(Seeds.next("damaged counters"));
        for (int round = 0; round < rounds; round++) {
            final byte[] damaged = whole.clone();
            for (int n = random.nextInt(1, 6); n > 0; n--) {
                damaged[random.nextBoolean() ? random.nextInt(200) : random.nextInt(whole.length)] =
                        (byte) random.nextInt();
            }
            Files.write(path, damaged);
            try (CountersReader reader = CountersReader.open(folder)) {
                counters(reader);
                errors(reader);
            } catch (IOException e) {
                assertTrue(e.getMessage().contains(path.toString()), e.getMessage());
            }
        }
    }

    @Test
    void nothingIsLeftOfAFileThatCouldNotBeMade() throws Exception {
        Files.createDirectories(folder.resolve(CountersFile.FILE).resolve("in the way"));
        final UncheckedIOException e = assertThrows(UncheckedIOException.class, this::create);
        assertTrue(e.getMessage().contains("counters-dir=" + folder), e.getMessage());
        assertFalse(Files.exists(folder.resolve("kvasir.counters.new")));
    }

    @Test
    void memoryIsGivenBack() throws Exception {
        final long before = OffHeap.allocatedBytes();
        try (CountersFile _ = create();
                CountersReader _ = CountersReader.open(folder)) {
            assertTrue(OffHeap.allocatedBytes() > before);
        }
        assertThrows(
                UncheckedIOException.class,
                () -> CountersFile.create(folder.resolve(CountersFile.FILE), 1, ERRORS, START));
        assertEquals(before, OffHeap.allocatedBytes());
    }

    @ParameterizedTest
    @ValueSource(ints = {0, -1, 1_000_001})
    void anImpossibleNumberOfCountersIsRefused(int counters) {
        final IllegalArgumentException refused =
                assertThrows(
                        IllegalArgumentException.class,
                        () -> CountersFile.create(folder, counters, ERRORS, START));
        assertTrue(refused.getMessage().contains("counters=" + counters), refused.getMessage());
    }
}
