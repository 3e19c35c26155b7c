package io.kvasir.cli.commands;

import static org.junit.jupiter.api.Assertions.assertEquals;

import io.kvasir.cli.CommandRun;
import io.kvasir.cli.console.ExitCode;

import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

import java.util.List;

/** Each is refused before anything is done, by exit code 2 and one line that says which option. */
class WrongCommandLineTest {
    private static void assertRefused(String line, String message) {
        final List<String> words = List.of(line.split(" ", -1));
        final CommandRun run = CommandRun.of(words.toArray(String[]::new));
        assertEquals(ExitCode.USAGE, run.exitCode(), run.err());
        final List<String> lines = run.err().lines().toList();
        assertEquals(2, lines.size(), run.err());
        assertEquals(message, lines.getFirst().replaceFirst("^kvasir [a-z ]+: ", ""));
    }

    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            value = {
                "top --url http://127.0.0.1:1 --once --watch 1"
                        + " | --once and --watch 1: one of them",
                "top --url http://127.0.0.1:1 --watch 2.5 --once"
                        + " | --once and --watch 2.5: one of them",
            })
    void optionsThatContradictEachOther(String line, String message) {
        assertRefused(line, message);
    }
}
