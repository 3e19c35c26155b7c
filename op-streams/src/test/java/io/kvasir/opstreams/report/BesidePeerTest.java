package io.kvasir.opstreams.report;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.kvasir.opstreams.generate.SmallTrace;

import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;

class BesidePeerTest {
    @TempDir private Path dir;

    private final ByteArrayOutputStream out = new ByteArrayOutputStream();
    private final ByteArrayOutputStream err = new ByteArrayOutputStream();

    private int run(String peer, String... args) throws InterruptedException {
        return BesidePeer.run(
                List.of(args),
                peer,
                new PrintStream(out, true, StandardCharsets.UTF_8),
                new PrintStream(err, true, StandardCharsets.UTF_8));
    }

    private Path peer(String prints) throws IOException {
        final Path program = dir.resolve("peer");
        Files.writeString(program, "#!/bin/sh\n" + prints + "\n");
        assertTrue(program.toFile().setExecutable(true));
        return program;
    }

    @Tag("integration") // starts processes
    @Test
    void bothAreReplayedInTurnAndTheRatiosPrinted() throws IOException, InterruptedException {
        final Path stream = dir.resolve("small.kvops");
        SmallTrace.write(stream, false);
        final Path program =
                peer(
                        "echo \"$@\" >> "
                                + dir.resolve("calls")
                                + "\necho '{\"evblock_cpu_ns\":40.5,\"q_wall\":{\"mean\":9},"
                                + "\"q_nopreempt\":{\"n\":3,\"mean\":2000},\"mismatch\":0,"
                                + "\"heap_per_pair\":60.0}'");
        assertEquals(
                0,
                run(
                        program.toString(),
                        stream.toString(),
                        "--turns",
                        "2",
                        "--warm-up-seconds",
                        "0"),
                err.toString(StandardCharsets.UTF_8));
        final String printed = out.toString(StandardCharsets.UTF_8);
        assertTrue(printed.contains("small                  apply ns/block"), printed);
        assertTrue(printed.contains("40.5 (40.5-40.5)"), printed);
        assertTrue(printed.contains("2.00 (2.00-2.00)"), printed);
        assertTrue(printed.contains("60.0 (60.0-60.0)"), printed);
        assertEquals(
                List.of(
                        "mem smg-into --ops " + stream,
                        "replay smg-into --ops " + stream,
                        "replay smg-into --ops " + stream),
                Files.readAllLines(dir.resolve("calls")));
    }

    @Test
    void aPeerThatFailsOrPrintsSomethingElseIsAnError() throws IOException, InterruptedException {
        final Path stream = dir.resolve("small.kvops");
        SmallTrace.write(stream, false);
        assertEquals(
                3, run(peer("exit 7").toString(), stream.toString(), "--warm-up-seconds", "0"));
        assertEquals(
                3, run(peer("echo hello").toString(), stream.toString(), "--warm-up-seconds", "0"));
        final String said = err.toString(StandardCharsets.UTF_8);
        assertTrue(said.contains("ended with 7") && said.contains("but: hello"), said);
    }

    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            value = {
                "--turns 2 | 2 | no stream given",
                "x --turns | 2 | --turns needs a value",
                "x --turns 0 | 2 | --turns 0 is not positive",
                "x --turns many | 2 | --turns many is no number",
                "x --colour red | 2 | unknown option --colour",
                "x | 3 | set KVASIR_PEER or --peer",
                "x --peer no-such-file | 3 | no-such-file"
            })
    void whatCannotBeDoneIsSaid(String line, int exitCode, String words)
            throws InterruptedException {
        assertEquals(exitCode, run(null, line.split(" ", -1)));
        final String said = err.toString(StandardCharsets.UTF_8);
        assertTrue(said.contains(words), said);
    }
}
