package io.kvasir.cli;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;

import io.kvasir.testsupport.Documents;

import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

import picocli.CommandLine;
import picocli.CommandLine.Model.OptionSpec;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import java.util.regex.Pattern;
import java.util.stream.Stream;

/** {@code docs/cli.md} has every command, and in its section every option of it. */
class CommandPageTest {
    private static final Path PAGE = Documents.file("docs/cli.md");
    private static final Pattern SECTIONS = Pattern.compile("(?m)^## ");

    /** Of all commands; the page has them once. */
    private static final Set<String> COMMON = Set.of("--help", "--debug");

    static Stream<CommandLine> commands() {
        return Kvasir.commandLine().getSubcommands().values().stream();
    }

    @ParameterizedTest
    @MethodSource("commands")
    void aCommandsSectionNamesItsOptions(CommandLine command) throws IOException {
        final String section = section(command.getCommandName());
        final List<String> missing = new ArrayList<>();
        collectMissing(command, section, missing);
        assertEquals(List.of(), missing);
    }

    private static void collectMissing(CommandLine command, String section, List<String> missing) {
        for (OptionSpec option : command.getCommandSpec().options()) {
            final String name = option.longestName();
            if (!option.hidden() && !COMMON.contains(name) && !names(section, name)) {
                missing.add(command.getCommandName() + " " + name);
            }
        }
        command.getSubcommands().values().forEach(each -> collectMissing(each, section, missing));
    }

    /** Whether a text has the whole name, or that of a switch with {@code [no-]} before it. */
    private static boolean names(String text, String option) {
        final String tail = Pattern.quote(option.replaceFirst("^--(no-)?", ""));
        return Pattern.compile("--(no-|\\[no-\\])?" + tail + "(?![a-z0-9-])").matcher(text).find();
    }

    private static String section(String command) throws IOException {
        final StringBuilder found = new StringBuilder();
        for (String section : SECTIONS.split(Files.readString(PAGE), -1)) {
            final String title = section.lines().findFirst().orElseThrow();
            if (List.of(title.split(", ", -1)).contains(command)) {
                found.append(section);
            }
        }
        assertFalse(found.isEmpty(), () -> "no section for " + command);
        return found.toString();
    }

    @Test
    void thePageListsTheOptionsOfSimulatedEngines() throws IOException {
        final StringBuilder table = new StringBuilder("| Option | Meaning |\n|---|---|\n");
        final CommandLine sim = Kvasir.commandLine().getSubcommands().get("sim");
        for (OptionSpec option : sim.getCommandSpec().options()) {
            if (!COMMON.contains(option.longestName())) {
                table.append("| `").append(option.longestName());
                if (option.arity().max() > 0) {
                    table.append(' ').append(option.paramLabel());
                }
                table.append("` | ").append(meaning(option)).append(" |\n");
            }
        }
        Documents.checkPart(PAGE, "sim", table.toString());
    }

    private static String meaning(OptionSpec option) {
        return String.join(" ", option.description())
                .replace("${DEFAULT-VALUE}", String.valueOf(option.defaultValueString(true)))
                .replace("|", "\\|");
    }
}
