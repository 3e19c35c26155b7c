package io.kvasir.gateway.config;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.kvasir.router.settings.Setting;
import io.kvasir.testsupport.Seeds;
import io.kvasir.testsupport.Trials;

import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.stream.Collectors;

/**
 * Random texts of every setting, given as a flag, as a variable, in a file and to a running
 * gateway: all take the same ones, to the same value, and a dump of it makes the same again.
 */
@Tag("trials")
class SettingWaysModelTest {
    /** Texts that are legal for some settings and not for others, in every spelling. */
    private static final String[] TEXTS = {
        "0",
        "1",
        "-1",
        "7",
        "007",
        "+7",
        "1_000",
        "2147483647",
        "2147483648",
        "4294967296",
        "9223372036854775807",
        "9223372036854775808",
        "1e3",
        "1e400",
        "-1e400",
        "NaN",
        "Infinity",
        "0.5",
        ".5",
        "5.",
        "1.0",
        "1e-320",
        "true",
        "false",
        "True",
        "on",
        "off",
        "yes",
        "null",
        "~",
        "5s",
        "5ms",
        "1,2",
        "a",
        "it's: #1",
        "a b",
        "é",
        "a\nb",
        "a\tb",
        "'",
        "\"",
        "\\",
        "- a",
        "{a: b}",
        "[a]",
        "&a",
        "*a",
        "!a",
        "%a",
        "@a",
        "`a`",
        "|",
        ">",
        "# a",
        "a #b",
        ".inf",
        ".nan",
        "0x10",
        "0o17",
        "1:30",
        "2001-01-01",
        "=",
        "<<",
        "http://h:1",
        "h:1",
        "tcp://h:5557",
        "nats://h:4222",
        "https://a.example",
        "zone:a",
        "10.0.0.0/8",
        "\uFEFFa",
        "\u0001",
        "\u007f",
        "\u0085a",
        "\u2028a",
        "😀",
        "a".repeat(4096),
        "none",
        "auto"
    };

    /** What no number may be written as. */
    private static final String[] NO_NUMBERS = {
        "٣", "１２", "0x1p3", "1f", "1d", "1D", "0x10", "_", "_1", "1_", "NaN", "1e400", "- 1", "५",
        "𝟙"
    };

    @TempDir private Path folder;
    private Random random;

    private interface Way {
        GatewayConfig.Builder give() throws IOException;
    }

    @Test
    void everyWayTakesTheSameTexts() throws IOException {
        final Random seeds = new Random(Seeds.next("ways of settings"));
        final int trials = Trials.of(20, 200);
        for (int trial = 0; trial < trials; trial++) {
            final long seed = seeds.nextLong();
            random = new Random(seed);
            trial("seed " + seed);
        }
    }

    @Test
    void noNumberIsReadFromATextThatIsNone() {
        for (Setting<?> setting : GatewaySettings.TABLE.rows()) {
            if (!List.of("N", "X", "S", "MS").contains(String.valueOf(setting.label()))) {
                continue;
            }
            for (String text : NO_NUMBERS) {
                final String refusal =
                        refusal(() -> GatewayConfig.builder().flag(setting, List.of(text)));
                assertNotNull(refusal, () -> setting + "=" + text);
                assertTrue(refusal.startsWith(setting + "="), refusal);
            }
        }
    }

    private static String liveRefusal(
            GatewayConfig config, Setting<?> setting, List<String> texts) {
        return refusal(
                () -> {
                    SettingLayers.of(config).with(null, Map.of(setting.name(), texts));
                    return null;
                });
    }

    private static String refusal(Way way) {
        try {
            way.give();
            return null;
        } catch (IllegalArgumentException e) {
            return e.getMessage();
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    private void trial(String where) throws IOException {
        final List<Setting<?>> rows = GatewaySettings.TABLE.rows();
        final Setting<?> setting = rows.get(random.nextInt(rows.size()));
        if (setting == GatewaySettings.MODELS || setting == GatewaySettings.WORKERS) {
            return;
        }
        final String text =
                random.nextInt(8) == 0 && !setting.printUsual().isEmpty()
                        ? setting.printUsual()
                        : TEXTS[random.nextInt(TEXTS.length)];
        final List<String> texts = List.of(text);
        final String of = where + ", " + setting + "=" + text + ": ";
        final String yaml =
                setting + ": " + (setting.isList() ? "[" + quoted(text) + "]" : quoted(text));
        final String flag = refusal(() -> GatewayConfig.builder().flag(setting, texts));
        final String file = refusal(() -> GatewayConfig.builder().file(write("one.yaml", yaml)));
        assertEquals(flag == null, file == null, of + flag + " / " + file);
        final boolean isWords = setting.isList() && text.strip().matches("(?Us).*\\s.*");
        if (!isWords && !text.isBlank() && text.equals(text.strip())) {
            final String variable =
                    random.nextInt(3) == 0 && !setting.aliases().isEmpty()
                            ? setting.formerVariables().getFirst()
                            : setting.variables().getFirst();
            final Map<String, String> environment = Map.of(variable, text);
            final String refusal = refusal(() -> GatewayConfig.builder().environment(environment));
            assertEquals(flag == null, refusal == null, of + flag + " / " + refusal);
        }
        if (setting.isLive()) {
            final GatewayConfig config =
                    GatewayConfig.builder().set(GatewaySettings.MODEL, "m").build();
            final String live = liveRefusal(config, setting, texts);
            assertEquals(flag == null, live == null, of + flag + " / " + live);
        }
        if (flag != null) {
            for (String words : new String[] {flag, file}) {
                assertTrue(words.contains(setting.name() + "="), of + words);
            }
            return;
        }
        final GatewayConfig before;
        try {
            final GatewayConfig.Builder builder = GatewayConfig.builder().flag(setting, texts);
            if (setting != GatewaySettings.MODEL) {
                builder.set(GatewaySettings.MODEL, "m");
            }
            before = builder.build();
        } catch (IllegalArgumentException e) {
            return; // by what other settings are
        }
        final String dump = ConfigDump.yaml(before);
        final GatewayConfig after;
        try {
            after = GatewayConfig.builder().file(write("again.yaml", dump)).build();
        } catch (IllegalArgumentException e) {
            throw new AssertionError(of + e.getMessage(), e);
        }
        for (Setting<?> row : rows) {
            if (before.get(row) instanceof Secret || row == GatewaySettings.TRUSTED_TOKENS) {
                continue; // left out of a dump
            }
            if (before.get(row) instanceof Path path) {
                assertEquals(
                        path.toAbsolutePath(), ((Path) after.get(row)).toAbsolutePath(), of + row);
            } else {
                assertEquals(before.get(row), after.get(row), of + row);
            }
        }
    }

    private Path write(String name, String yaml) throws IOException {
        return Files.writeString(folder.resolve(name), yaml);
    }

    private static String quoted(String text) {
        return text.codePoints()
                .mapToObj("\\U%08x"::formatted)
                .collect(Collectors.joining("", "\"", "\""));
    }
}
