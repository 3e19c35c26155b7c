package io.kvasir.cli.commands;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.fasterxml.jackson.databind.JsonNode;

import io.kvasir.cli.CommandRun;
import io.kvasir.cli.KvasirProcess;
import io.kvasir.cli.console.Json;
import io.kvasir.cli.console.Terminal;
import io.kvasir.core.counters.CountersFile;
import io.kvasir.sim.SimEngine;
import io.kvasir.sim.config.SimConfig;
import io.kvasir.testsupport.Eventually;

import org.junit.jupiter.api.Order;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

import java.io.IOException;
import java.io.OutputStream;
import java.io.PrintStream;
import java.io.PrintWriter;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.time.Clock;
import java.util.List;

@Order(1) // takes long: begins first, beside the others
class StatCommandTest {
    private static final long LONG_AGO_MS = 1_000_000;
    private static final long LATER_THAN_NOW_MS = 1L << 50; // the clock has gone back since

    @TempDir private Path folder;

    private CommandRun stat(String... more) {
        return CommandRun.of(words(more));
    }

    private String[] words(String... more) {
        final String[] words = new String[more.length + 3];
        words[0] = "stat";
        words[1] = "--dir";
        words[2] = folder.toString();
        System.arraycopy(more, 0, words, 3, more.length);
        return words;
    }

    private CountersFile counters(long nowMs) {
        final CountersFile file = CountersFile.create(folder, 8, 1 << 16, nowMs);
        file.set(file.allocate("refused: index-full", 7, nowMs), 1_234_567);
        file.set(file.allocate("worker a\u001b[2J/0: active requests", 8, nowMs), 3);
        file.errors().record(new IllegalStateException("made up by the test"), nowMs);
        return file;
    }

    @Test
    void countersOfARunningRouterAreALineEach() {
        try (CountersFile _ = counters(Clock.systemUTC().millis())) {
            final CommandRun run = stat();
            assertEquals(0, run.exitCode(), run.err());
            assertTrue(run.out().startsWith("process " + ProcessHandle.current().pid() + ","));
            assertTrue(run.out().contains(": running, values of "), run.out());
            assertTrue(run.out().contains("    0:            1,234,567 - refused: index-full\n"));
            assertTrue(run.out().contains("3 - worker a?[2J/0: active requests\n"), run.out());
            assertTrue(run.out().endsWith("1 distinct errors (--errors)\n"), run.out());
            assertFalse(run.out().contains("\u001b"));
        }
    }

    @Test
    void aTextSelectsCountersAndErrorsAreShownWhenAskedFor() {
        try (CountersFile _ = counters(Clock.systemUTC().millis())) {
            final String some = stat("active").out();
            assertTrue(some.contains("active requests"), some);
            assertFalse(some.contains("index-full"), some);
            final String errors = stat("--errors").out();
            assertTrue(errors.contains("1 times, from 20"), errors);
            assertTrue(
                    errors.contains("java.lang.IllegalStateException: made up by the test\n\tat "),
                    errors);
        }
    }

    @Test
    void oneJsonObjectHasAllOfIt() throws Exception {
        try (CountersFile _ = counters(LONG_AGO_MS)) {
            final CommandRun run = stat("--json");
            assertEquals(1, run.exitCode());
            final JsonNode read = Json.MAPPER.readTree(run.out());
            assertEquals(LONG_AGO_MS, read.get("started_ms").asLong());
            assertFalse(read.get("ended").asBoolean());
            assertEquals(7, read.get("counters").get(0).get("type").asInt());
            assertEquals(1_234_567, read.get("counters").get(0).get("value").asLong());
            assertEquals(1, read.get("errors").get(0).get("count").asInt());
        }
    }

    @ParameterizedTest
    @ValueSource(longs = {LONG_AGO_MS, LATER_THAN_NOW_MS})
    void aRouterThatHasEndedOrIsStuckGivesOne(long writtenMs) {
        final CountersFile file = counters(writtenMs);
        assertTrue(stat().out().contains(": sets no values any more, "));
        assertEquals(1, stat().exitCode());
        file.close();
        assertTrue(stat().out().contains(": ended, "));
        assertEquals(1, stat().exitCode());
    }

    @Test
    void itEndsOnceItsOutputTakesNoMore() {
        final OutputStream closed =
                new OutputStream() {
                    @Override
                    public void write(int b) throws IOException {
                        throw new IOException("Broken pipe");
                    }
                };
        try (CountersFile _ = counters(Clock.systemUTC().millis())) {
            for (String form : List.of("--json", "--errors")) {
                final PrintWriter out =
                        Terminal.writer(new PrintStream(closed, true, StandardCharsets.UTF_8));
                final CommandRun run =
                        CommandRun.into(out, words("--watch=0.01", "--count=50", form));
                assertEquals(3, run.exitCode(), run.err());
                assertTrue(run.err().startsWith("kvasir stat: standard output "), run.err());
            }
        }
    }

    @Test
    void aFolderWithoutCountersIsSaidInOneLine() {
        final CommandRun run = stat();
        assertEquals(3, run.exitCode());
        assertTrue(run.err().startsWith("kvasir stat: no such file: " + folder), run.err());
        assertEquals(2, stat("--watch", "-1").exitCode());
    }

    @Tag("integration") // starts a JVM
    @Test
    void anotherProcessIsSeenWhileItServesAndAfterItHasEnded() throws Exception {
        try (SimEngine engine = SimEngine.start(SimConfig.builder().build())) {
            try (KvasirProcess serve =
                    new KvasirProcess(
                            "serve",
                            "--model=kvasir-sim",
                            "--port=0",
                            "--admin-port=0",
                            "--lame-duck-ms=50",
                            "--counters-dir=" + folder,
                            "--worker=" + engine.url() + ",name=one")) {
                serve.await(line -> line.startsWith("worker one/0 "));
                // a process without a core sets no values for a while
                Eventually.until("values", () -> stat().exitCode() == 0);
                final CommandRun running = stat();
                assertTrue(running.out().contains("active-requests limit"), running.out());
                assertTrue(running.out().contains("worker one/0: active requests"), running.out());
                assertTrue(running.out().contains("0 distinct errors"), running.out());
                final CommandRun second =
                        CommandRun.of(
                                "serve",
                                "--model=kvasir-sim",
                                "--port=0",
                                "--admin-port=0",
                                "--worker=" + engine.url(),
                                "--counters-dir=" + folder);
                assertEquals(3, second.exitCode());
                assertTrue(second.err().contains("another router keeps"), second.err());
                assertTrue(second.err().contains("its own counters-dir"), second.err());
                assertEquals(0, serve.terminate());
            }
            final CommandRun ended = stat();
            assertEquals(1, ended.exitCode());
            assertTrue(ended.out().contains(": ended, "), ended.out());
            assertTrue(ended.out().contains("worker one/0: active requests"), ended.out());
        }
    }
}
