package io.kvasir.cli.commands;

import io.kvasir.gateway.config.GatewayConfig;
import io.kvasir.gateway.config.GatewaySettings;
import io.kvasir.router.settings.Setting;
import io.kvasir.router.settings.WrongSettingsException;

import picocli.CommandLine.IModelTransformer;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Model.OptionSpec;
import picocli.CommandLine.ParseResult;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.stream.Collectors;

/** Options of a command made of {@link GatewaySettings}; former names are hidden in its help. */
final class SettingOptions implements IModelTransformer {
    @Override
    public CommandSpec transform(CommandSpec command) {
        for (Setting<?> setting : GatewaySettings.TABLE.rows()) {
            command.addOption(option(setting, setting.name(), false));
            for (String alias : setting.aliases()) {
                command.addOption(option(setting, alias, true));
            }
        }
        return command;
    }

    private static OptionSpec option(Setting<?> setting, String name, boolean hidden) {
        final OptionSpec.Builder option =
                OptionSpec.builder("--" + name)
                        .hidden(hidden)
                        .description(description(setting).replace("%", "%%"));
        if (setting.label() == null) {
            return option.type(Boolean.class).negatable(true).build();
        }
        option.paramLabel(setting.label()).arity("1");
        return (setting.isList()
                        ? option.type(List.class).auxiliaryTypes(String.class)
                        : option.type(String.class))
                .build();
    }

    private static String description(Setting<?> setting) {
        final String usual = setting.printUsual();
        return setting.doc()
                + (setting.isList() ? " Repeatable." : "")
                + (usual.isEmpty() ? "" : " Default: " + usual + ".");
    }

    /**
     * Sets what the command line says.
     *
     * @throws WrongSettingsException if values are wrong, or two names of one setting have others
     */
    static void apply(ParseResult parsed, GatewayConfig.Builder config) {
        final List<String> problems = new ArrayList<>();
        final Map<Setting<?>, OptionSpec> given = new HashMap<>();
        for (OptionSpec option : new LinkedHashSet<>(parsed.matchedOptions())) { // of lists again
            final String name = option.longestName().substring("--".length());
            if (GatewaySettings.TABLE.has(name)) {
                try {
                    final Setting<?> setting = GatewaySettings.TABLE.named(name);
                    final OptionSpec other = given.putIfAbsent(setting, option);
                    if (other == null) {
                        config.flag(setting, texts(option));
                    } else {
                        checkSame(setting, other, option);
                    }
                } catch (IllegalArgumentException e) {
                    problems.add(e.getMessage());
                }
            }
        }
        WrongSettingsException.throwIfAny(problems);
    }

    private static List<String> texts(OptionSpec option) {
        final Object value = option.getValue();
        return value instanceof List<?> all
                ? all.stream().map(String::valueOf).toList()
                : List.of(value.toString());
    }

    private static void checkSame(Setting<?> setting, OptionSpec one, OptionSpec other) {
        if (!texts(one).equals(texts(other))) {
            throw new IllegalArgumentException(
                    written(setting, one)
                            + " and "
                            + written(setting, other)
                            + " are names of one option and differ; give --"
                            + setting.name()
                            + " alone");
        }
    }

    /** An option with its values, as it may stand in a message. */
    private static String written(Setting<?> setting, OptionSpec option) {
        final String name = option.longestName();
        if (setting.label() == null) {
            return option.<Boolean>getValue() ? name : name.replaceFirst("^--", "--no-");
        }
        return texts(option).stream()
                .map(text -> name + " " + Setting.withoutPasswords(text))
                .collect(Collectors.joining(" "));
    }
}
