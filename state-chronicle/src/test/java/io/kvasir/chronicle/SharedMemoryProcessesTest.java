package io.kvasir.chronicle;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.kvasir.testsupport.ChildJvm;

import net.openhft.chronicle.map.ExternalMapQueryContext;

import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.stream.Stream;

/** Two processes with one memo, one of which may be killed at the worst moment. */
@Tag("integration") // starts JVMs
class SharedMemoryProcessesTest {
    @TempDir private Path temp;
    private Process child;

    @AfterEach
    void end() {
        if (child != null) {
            child.destroyForcibly();
        }
    }

    private Path folder() {
        return temp.resolve("memory");
    }

    private static List<String> flags() {
        final List<String> flags = new ArrayList<>(JvmFlags.all());
        flags.add("--sun-misc-unsafe-memory-access=allow");
        flags.add("-ea");
        flags.add("-Xmx256m");
        return flags;
    }

    private void start(String what) throws IOException {
        final List<String> command = new ArrayList<>();
        command.add(Path.of(System.getProperty("java.home"), "bin", "java").toString());
        command.addAll(flags());
        command.addAll(
                List.of(
                        "-cp",
                        System.getProperty("java.class.path"),
                        MemoProcess.class.getName(),
                        folder().toString(),
                        what));
        child = new ProcessBuilder(command).redirectError(ProcessBuilder.Redirect.INHERIT).start();
    }

    private void startHolding(String mode) throws IOException {
        start(mode);
        final var out = child.inputReader(StandardCharsets.UTF_8);
        String line = out.readLine();
        while (line != null && !line.equals("held")) {
            line = out.readLine();
        }
        assertEquals("held", line, "the other process has ended");
    }

    private void kill() throws InterruptedException {
        child.destroyForcibly();
        assertTrue(child.waitFor(1, TimeUnit.MINUTES));
    }

    private List<Path> maps() throws IOException {
        try (Stream<Path> all = Files.list(folder())) {
            return all.filter(f -> f.toString().endsWith(".map")).toList();
        }
    }

    @Test
    void twoProcessesAtOnceReadWhatWasPutAndNothingElse() throws Exception {
        try (ChroniclePromptMemo memo = new ChroniclePromptMemo(MemoProcess.config(folder()))) {
            start("put");
            int wrong = 0;
            int round = 0;
            while (child.isAlive()) {
                wrong += MemoProcess.wrong(memo, round++ % 10 * 1_000, 1_000);
            }
            assertEquals(0, wrong, memo.counts()::toString);
            final String said =
                    new String(child.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
            assertTrue(said.contains("wrong 0\n"), said);
            assertEquals(0, child.exitValue(), said);
        }
        final String later = ChildJvm.run(flags(), MemoProcess.class, folder().toString(), "put");
        assertTrue(later.contains("wrong 0\n"), later);
        assertTrue(later.matches("(?s).*right ([1-9][0-9]*) of \\1\n.*"), later);
        assertEquals(1, maps().size());
    }

    /** Chronicle Map by itself would wait a minute in each call, and for ever in all of them. */
    @ParameterizedTest
    @ValueSource(strings = {"hold-read", "hold-update", "hold-write"})
    void aProcessThatIsKilledWithALockStopsNobody(String mode) throws Exception {
        try (ChroniclePromptMemo memo = new ChroniclePromptMemo(MemoProcess.config(folder()));
                ChroniclePromptMemo other = new ChroniclePromptMemo(MemoProcess.config(folder()))) {
            final List<Path> before = maps();
            assertEquals(1, before.size());
            startHolding(mode);
            kill();
            assertStillLocked();
            final long startNs = System.nanoTime();
            while (maps().equals(before)) {
                assertTrue(System.nanoTime() - startNs < TimeUnit.MINUTES.toNanos(1), "gave up");
                assertEquals(0, MemoProcess.wrong(memo, 0, 1_000));
            }
            assertTrue(memo.counts().errors() > 0);
            awaitUse(memo);
            awaitUse(other);
            assertEquals(1, maps().size());
            assertNotEquals(before, maps());
        }
    }

    /** The check is checked: the death of the process has not freed its lock. */
    private void assertStillLocked() throws Exception {
        final var map =
                new MapFiles(folder(), ChroniclePromptMemo.layout(MemoProcess.ENTRIES))
                        .open(null)
                        .map();
        try (map;
                ExternalMapQueryContext<byte[], byte[], ?> context =
                        map.queryContext(MemoProcess.CELL)) {
            assertFalse(
                    context.updateLock().tryLock()
                            && context.writeLock().tryLock(100, TimeUnit.MILLISECONDS));
        }
    }

    private static void awaitUse(ChroniclePromptMemo memo) {
        final long startNs = System.nanoTime();
        boolean whole = false;
        while (!whole) {
            assertTrue(System.nanoTime() - startNs < TimeUnit.MINUTES.toNanos(1), "gave up");
            final long errors = memo.counts().errors();
            int found = 0;
            for (int i = 0; i < 2_000; i++) { // some parts of one section share both cells
                memo.put(MemoProcess.key(i), MemoProcess.tokens(i));
                found += memo.get(MemoProcess.key(i)) == null ? 0 : 1;
            }
            whole = found > 1_900 && memo.counts().errors() == errors;
        }
    }

    @Test
    void withoutTheFlagsOpeningSaysWhichAreMissing() throws Exception {
        final String said = ChildJvm.run(List.of("-ea"), Flagless.class, folder().toString());
        assertTrue(said.contains("--add-opens=java.base/java.lang=ALL-UNNAMED"), said);
        assertTrue(said.contains("--shared-memory-dir"), said);
    }

    /** Opens a memo in a JVM without flags. */
    static final class Flagless {
        private Flagless() {}

        public static void main(String[] args) {
            try (ChroniclePromptMemo memo =
                    new ChroniclePromptMemo(MemoProcess.config(Path.of(args[0])))) {
                System.out.println("opened " + memo.counts());
            } catch (IOException e) {
                System.out.println(e.getMessage());
            }
        }
    }
}
