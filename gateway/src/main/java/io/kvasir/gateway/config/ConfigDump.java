package io.kvasir.gateway.config;

import io.kvasir.router.settings.Setting;
import io.kvasir.router.settings.Settings;

import java.util.List;
import java.util.regex.Pattern;
import java.util.stream.Collectors;

/**
 * Writes all settings of a gateway as a file that makes the same one, each that is no default with
 * where it is from. Tokens and passwords are left out, and said to be.
 */
public final class ConfigDump {
    private static final Pattern PLAIN = Pattern.compile("[A-Za-z0-9_./-]+");

    /** What YAML does not take as it is, or takes as a space. */
    private static final Pattern UNPRINTED =
            Pattern.compile("[\\p{Cc}\\u2028\\u2029\\uFEFF\\uFFFE\\uFFFF]");

    private ConfigDump() {}

    /**
     * Writes the settings.
     *
     * @param config what is in effect
     * @return YAML, as {@code serve --config} reads it
     */
    public static String yaml(GatewayConfig config) {
        final Settings settings = config.settings();
        return settings.table().rows().stream()
                .map(setting -> line(settings, setting))
                .collect(Collectors.joining());
    }

    private static String line(Settings settings, Setting<?> setting) {
        final String origin =
                settings.source(setting) == Settings.Source.DEFAULT
                        ? ""
                        : " # " + settings.origin(setting);
        if (isSecret(settings.get(setting))) {
            return "# " + setting.name() + ": ***" + origin + "\n";
        }
        final List<String> texts =
                texts(settings, setting).stream()
                        .map(text -> ConfigFile.fromAnyFolder(setting, text))
                        .toList();
        if (setting.isList()) {
            return setting.name()
                    + ":"
                    + (texts.isEmpty() ? " []" : "")
                    + origin
                    + "\n"
                    + texts.stream()
                            .map(text -> "- " + quoted(text) + "\n")
                            .collect(Collectors.joining());
        }
        return texts.isEmpty() || texts.getFirst().isEmpty()
                ? "# " + setting.name() + ": " + setting.label() + "\n"
                : setting.name() + ": " + quoted(texts.getFirst()) + origin + "\n";
    }

    /** A value as texts, without tokens and passwords. */
    public static List<String> shown(Settings settings, Setting<?> setting) {
        return isSecret(settings.get(setting))
                ? List.of("***")
                : texts(settings, setting).stream().map(Setting::withoutPasswords).toList();
    }

    /** Lists as they are written, other values in their one spelling. */
    private static List<String> texts(Settings settings, Setting<?> setting) {
        return setting.isList() ? settings.texts(setting) : settings.printed(setting);
    }

    private static boolean isSecret(Object value) {
        return value instanceof List<?> all
                ? all.stream().anyMatch(ConfigDump::isSecret)
                : value instanceof Secret secret && !secret.value().isEmpty();
    }

    private static String quoted(String text) {
        final String shown = Setting.withoutPasswords(text);
        if (PLAIN.matcher(shown).matches()) {
            return shown;
        }
        return UNPRINTED.matcher(shown).find()
                ? "\"" + escaped(shown) + "\""
                : "'" + shown.replace("'", "''") + "'";
    }

    private static String escaped(String text) {
        return UNPRINTED
                .matcher(text.replace("\\", "\\\\").replace("\"", "\\\""))
                .replaceAll(c -> "\\\\u%04x".formatted((int) c.group().charAt(0)));
    }
}
