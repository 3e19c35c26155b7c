package io.kvasir.cli;

import io.kvasir.cli.console.Terminal;
import io.kvasir.router.settings.NearestName;

import picocli.CommandLine;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.ParameterException;
import picocli.CommandLine.UnmatchedArgumentException;

import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.stream.Collectors;
import java.util.stream.Stream;

/** Names the options and commands of a command line that there are not, each with the nearest. */
final class UnknownWords {
    private UnknownWords() {}

    /**
     * What is wrong with a command line, in a line. Values of unknown options are left out: they
     * may be secrets, and are no mistakes.
     */
    static String problem(ParameterException e) {
        final CommandLine command = e.getCommandLine();
        final List<String> unmatched =
                e instanceof UnmatchedArgumentException unknown
                        ? unknown.getUnmatched()
                        : command.getUnmatchedArguments();
        if (unmatched.isEmpty()) {
            return e.getMessage();
        }
        final Map<String, CommandLine> commands = command.getSubcommands();
        final String first = unmatched.getFirst();
        if (!commands.isEmpty() && !isOption(first)) {
            return unknown("command", first, NearestName.nearOrNull(first, commands.keySet()));
        }
        final String options =
                unmatched.stream()
                        .filter(UnknownWords::isOption)
                        .map(word -> word.split("=", 2)[0])
                        .map(name -> unknown("option", name, nearestOrNull(name, command)))
                        .collect(Collectors.joining("; "));
        return options.isEmpty() ? e.getMessage() : options;
    }

    private static boolean isOption(String word) {
        return word.length() > 1 && word.startsWith("-");
    }

    private static String unknown(String what, String name, String nearestOrNull) {
        return "unknown "
                + what
                + " '"
                + Terminal.printable(name)
                + "'"
                + (nearestOrNull == null ? "" : "; the nearest is '" + nearestOrNull + "'");
    }

    private static String nearestOrNull(String name, CommandLine command) {
        final CommandSpec spec = command.getCommandSpec();
        final Map<String, String> known = new LinkedHashMap<>();
        Stream.of(spec.optionsMap(), spec.negatedOptionsMap())
                .flatMap(options -> options.keySet().stream())
                .forEach(each -> known.put(withoutDashes(each), each));
        final String near = NearestName.nearOrNull(withoutDashes(name), known.keySet());
        return near == null ? null : known.get(near);
    }

    private static String withoutDashes(String option) {
        int at = 0;
        while (at < option.length() && option.charAt(at) == '-') {
            at++;
        }
        return option.substring(at);
    }
}
