package io.kvasir.cli;

import picocli.CommandLine;
import picocli.CommandLine.Model.ArgSpec;
import picocli.CommandLine.TypeConversionException;

import java.util.Arrays;
import java.util.Locale;
import java.util.stream.Collectors;

/** Values of options that are one of a few words: in lower case, as in documents and results. */
final class LowerCaseValues {
    private LowerCaseValues() {}

    /** Has a command and those below it read and list them so; other cases are read, too. */
    static void register(CommandLine command) {
        for (ArgSpec option : command.getCommandSpec().args()) {
            if (option.type().isEnum()) {
                register(command, option.type());
            }
        }
        command.getSubcommands().values().forEach(LowerCaseValues::register);
    }

    private static <K> void register(CommandLine command, Class<K> type) {
        command.registerConverter(type, text -> parse(type, text));
    }

    private static <K> K parse(Class<K> type, String text) {
        for (K value : type.getEnumConstants()) {
            if (spelling(value).equalsIgnoreCase(text)) {
                return value;
            }
        }
        throw new TypeConversionException(
                "'"
                        + text
                        + "' is none of: "
                        + Arrays.stream(type.getEnumConstants())
                                .map(LowerCaseValues::spelling)
                                .collect(Collectors.joining(", ")));
    }

    private static String spelling(Object value) {
        return value.toString().toLowerCase(Locale.ROOT);
    }
}
