package io.kvasir.cli;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.kvasir.core.memory.OffHeap;

import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.parallel.Isolated;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/** Commands for which there is no memory. */
@Isolated // what it limits is the process's
class RefusedMemoryTest {
    private static final String LIMIT = "kvasir.memory.limit";

    @BeforeEach
    void limit() {
        System.setProperty(LIMIT, Long.toString(OffHeap.allocatedBytes()));
    }

    @AfterEach
    void free() {
        System.clearProperty(LIMIT);
    }

    @ParameterizedTest
    @ValueSource(strings = {"slots", "select"})
    void memoryThatIsRefusedIsOneLine(String command) {
        final CommandRun run = CommandRun.of(command, "--port=0");
        assertEquals(3, run.exitCode(), run.err());
        assertEquals(1, run.err().lines().count(), run.err());
        assertTrue(run.err().startsWith("kvasir " + command + ": no memory: "), run.err());
        assertTrue(run.err().contains(LIMIT), run.err());
    }

    @ParameterizedTest
    @ValueSource(strings = {"12q", "10MB", ""})
    void aLimitThatIsNoNumberIsFoundByTheCheckOfAConfiguration(String limit) {
        System.setProperty(LIMIT, limit);
        final CommandRun run =
                CommandRun.of("serve", "--model=m", "--worker=http://h:1", "--check-config");
        assertEquals(3, run.exitCode(), run.err());
        assertTrue(run.err().contains(LIMIT + "=" + limit + " is no number"), run.err());
    }

    @ParameterizedTest
    @CsvSource({"1000000000, 3", "1200000000, 0"})
    void indexesThatDoNotFitTogetherAreFoundByTheCheckOfAConfiguration(String limit, int exitCode) {
        System.setProperty(LIMIT, limit);
        final CommandRun run =
                CommandRun.of(
                        "serve",
                        "--model=m",
                        "--worker=http://h:1",
                        "--serve-model=name=n",
                        "--index-bytes=600000000",
                        "--check-config");
        assertEquals(exitCode, run.exitCode(), run.err());
        assertEquals(
                exitCode != 0,
                run.err().contains("the indexes of 2 models may grow to 1200000000 bytes together"),
                run.err());
    }

    @Test
    void aThreadThatIsRefusedIsNoMatterOfSizes() {
        final String said =
                Kvasir.oneLine(
                        new OutOfMemoryError(
                                "unable to create native thread: possibly out of memory or"
                                        + " process/resource limits reached"));
        assertEquals(
                "unable to create native thread: possibly out of memory or process/resource limits"
                        + " reached; raise the limit of threads of this user (ulimit -u) or of the"
                        + " container (pids)",
                said);
        assertEquals(said, Kvasir.oneLine(new OutOfMemoryError(said)));
    }

    @Test
    void itHasATraceWithDebug() {
        final CommandRun run = CommandRun.of("slots", "--port=0", "--debug");
        assertEquals(3, run.exitCode(), run.err());
        assertTrue(run.err().contains(OutOfMemoryError.class.getName()), run.err());
        assertTrue(run.err().contains("    at " + OffHeap.class.getName()), run.err());
    }
}
