package io.kvasir.cli;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.kvasir.cli.console.Terminal;
import io.kvasir.opstreams.kvops.ReplayMode;

import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

import picocli.CommandLine;
import picocli.CommandLine.Model.OptionSpec;

import java.io.IOException;
import java.io.OutputStream;
import java.io.PrintStream;
import java.io.PrintWriter;
import java.io.Writer;
import java.nio.file.NoSuchFileException;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Deque;
import java.util.List;
import java.util.Locale;

class KvasirTest {
    @Test
    void helpNamesEveryCommandAndTheExitCodes() {
        final CommandRun run = CommandRun.of("--help");
        assertEquals(0, run.exitCode());
        for (String command : Kvasir.commandLine().getSubcommands().keySet()) {
            assertTrue(run.out().contains("  " + command + " "), command + " in " + run.out());
        }
        assertTrue(run.out().contains("Exit codes:"), run.out());
    }

    @ParameterizedTest
    @CsvSource({"help, --help", "help hash, hash --help", "help bench kvops, bench kvops --help"})
    void helpIsAWordAsWell(String asWord, String asOption) {
        final CommandRun run = CommandRun.of(asWord.split(" ", -1));
        assertEquals(0, run.exitCode(), run.err());
        assertEquals(CommandRun.of(asOption.split(" ", -1)).out(), run.out());
    }

    @Test
    void helpIsAsWideAsTheTerminalAndAHundredCharactersWithoutOne() {
        for (CommandLine command : Kvasir.commandLine().getSubcommands().values()) {
            assertTrue(command.isUsageHelpAutoWidth(), command.getCommandName());
            assertEquals(100, command.getUsageHelpWidth(), command.getCommandName());
        }
    }

    @Test
    void everyCommandHasAPurposeExamplesAndExitCodesInItsHelp() {
        for (CommandLine command : Kvasir.commandLine().getSubcommands().values()) {
            final CommandRun run = CommandRun.of(command.getCommandName(), "--help");
            assertEquals(0, run.exitCode());
            assertTrue(run.out().contains("Example"), run.out());
            assertTrue(run.out().contains("Exit codes:"), run.out());
            assertTrue(run.out().contains("--debug"), run.out());
        }
    }

    @Test
    void everyTextOfAnOptionIsWholeAndPointsNowhere() {
        final List<String> wrong = new ArrayList<>();
        final Deque<CommandLine> left = new ArrayDeque<>(List.of(Kvasir.commandLine()));
        while (!left.isEmpty()) {
            final CommandLine command = left.remove();
            left.addAll(command.getSubcommands().values());
            for (OptionSpec option : command.getCommandSpec().options()) {
                final String text = String.join(" ", option.description()).strip();
                if (!text.endsWith(".")
                        || text.contains("as above")) { // options are sorted by name
                    wrong.add(
                            command.getCommandSpec().qualifiedName()
                                    + " "
                                    + option.longestName()
                                    + ": "
                                    + text);
                }
            }
        }
        assertEquals(List.of(), wrong);
    }

    @Test
    void theHelpOfAReplayExplainsEveryMode() {
        final String help = CommandRun.of("bench", "kvops", "--help").out();
        for (ReplayMode mode : ReplayMode.values()) {
            assertTrue(help.contains("\n  " + mode.label() + "  "), mode + " in " + help);
        }
    }

    @Test
    void aDefaultThatIsAWordIsInLowerCase() {
        final Deque<CommandLine> open = new ArrayDeque<>(List.of(Kvasir.commandLine()));
        while (!open.isEmpty()) {
            final CommandLine command = open.pop();
            open.addAll(command.getSubcommands().values());
            for (OptionSpec option : command.getCommandSpec().options()) {
                if (option.type().isEnum() && option.defaultValue() != null) {
                    assertEquals(
                            option.defaultValue().toLowerCase(Locale.ROOT),
                            option.defaultValue(),
                            option.longestName());
                }
            }
        }
    }

    @Test
    void versionNamesTheProgramAndItsJava() {
        final CommandRun run = CommandRun.of("--version");
        assertEquals(0, run.exitCode());
        assertTrue(run.out().startsWith("kvasir "), run.out());
        assertTrue(run.out().contains("Java 25"), run.out());
    }

    @ParameterizedTest
    @ValueSource(strings = {"", "hsah", "hash --tokens 1", "hash --block-size x --tokens 1"})
    void aWrongCommandLineIsOneLineAndAPointerToTheHelp(String line) {
        final CommandRun run = CommandRun.of(line.isEmpty() ? new String[0] : line.split(" ", -1));
        assertEquals(2, run.exitCode());
        assertTrue(run.err().startsWith("kvasir"), run.err());
        assertTrue(run.err().contains("--help"), run.err());
        assertFalse(run.err().contains("\tat "), run.err());
    }

    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            value = {
                "serve --prot 3              | kvasir serve: unknown option '--prot'; the nearest"
                        + " is '--port'",
                "serve --qeue-threshold=1    | kvasir serve: unknown option '--qeue-threshold'; the"
                        + " nearest is '--queue-threshold'",
                "serve --no-kv-event         | kvasir serve: unknown option '--no-kv-event'; the"
                        + " nearest is '--no-kv-events'",
                "serve --router-tll 5        | kvasir serve: unknown option '--router-tll'; the"
                        + " nearest is '--router-ttl'",
                "serve --prot 3 --xyzzy s3c  | kvasir serve: unknown option '--prot'; the nearest"
                        + " is '--port'; unknown option '--xyzzy'",
                "register --ulr http://h     | kvasir register: unknown option '--ulr'; the nearest"
                        + " is '--url'",
                "top -x                      | kvasir top: unknown option '-x'",
                "top extra                   | kvasir top: Unmatched argument at index 1: 'extra'",
                "--deubg serve               | kvasir: unknown option '--deubg'; the nearest is"
                        + " '--debug'",
                "srve --port 3               | kvasir: unknown command 'srve'; the nearest is"
                        + " 'serve'",
                "nosuch                      | kvasir: unknown command 'nosuch'",
                "bench kvop                  | kvasir bench: unknown command 'kvop'; the nearest is"
                        + " 'kvops'"
            })
    void anUnknownOptionOrCommandIsNamedWithTheNearestIfOneIsNear(String line, String problem) {
        final CommandRun run = CommandRun.of(line.split(" ", -1));
        assertEquals(2, run.exitCode());
        assertEquals(problem, run.err().lines().findFirst().orElseThrow());
        assertEquals(2, run.err().lines().count(), run.err());
    }

    @Test
    void anErrorIsOneLineWithoutDebugAndHasATraceWithIt() {
        final String[] missing = {"hash", "--block-size", "4", "--tokens-file", "no/such.file"};
        final CommandRun plain = CommandRun.of(missing);
        assertEquals(3, plain.exitCode());
        final String line = "kvasir hash: --tokens-file no/such.file: there is no such file";
        assertTrue(plain.err().startsWith(line), plain.err());
        assertFalse(plain.err().contains("    at "), plain.err());

        final String[] debug = Arrays.copyOf(missing, missing.length + 1);
        debug[missing.length] = "--debug";
        final CommandRun traced = CommandRun.of(debug);
        assertEquals(3, traced.exitCode());
        assertTrue(traced.err().contains(NoSuchFileException.class.getName()), traced.err());
        assertTrue(traced.err().contains("    at "), traced.err());
    }

    @ParameterizedTest
    @ValueSource(
            strings = {
                "hash --block-size 4 --tokens 1,2,3,4",
                "hash --block-size 4 --tokens 1,2,3,4 --json",
                "hash --help",
                "serve --model m --worker http://127.0.0.1:1 --check-config",
                "serve --model m --worker http://127.0.0.1:1 --dump-config",
                "--version"
            })
    void resultsThatCannotBeWrittenAreAnError(String line) {
        final PrintStream full =
                new PrintStream(
                        new OutputStream() {
                            @Override
                            public void write(int b) throws IOException {
                                throw new IOException("No space left on device");
                            }
                        });
        final CommandRun run = CommandRun.into(Terminal.writer(full), line.split(" ", -1));
        assertEquals(3, run.exitCode());
        assertTrue(run.err().contains(": standard output takes no more: "), run.err());
        assertEquals(1, run.err().lines().count(), run.err());
    }

    @Test
    void aCommandThatFailedAnywaySaysWhy() {
        final PrintWriter failed =
                new PrintWriter(Writer.nullWriter()) {
                    @Override
                    public boolean checkError() {
                        return true;
                    }
                };
        for (String line :
                new String[] {"hash --block-size 4 --tokens-file no/such.file", "hsah"}) {
            final CommandRun run = CommandRun.into(failed, line.split(" ", -1));
            assertFalse(run.err().contains("standard output"), run.err());
        }
    }
}
