package io.kvasir.cli;

import static org.junit.jupiter.api.Assertions.assertEquals;

import io.kvasir.gateway.config.GatewayConfig;
import io.kvasir.gateway.config.GatewaySettings;
import io.kvasir.router.settings.Setting;
import io.kvasir.testsupport.Documents;

import org.junit.jupiter.api.Test;

import java.io.IOException;
import java.nio.file.Path;
import java.util.Map;

/** The documents list what {@link GatewaySettings} has. See {@link Documents}. */
class SettingDocumentsTest {
    private static final Path PAGE = Documents.file("docs/cli.md");
    private static final Path EXAMPLE = Documents.file("docs/operations/kvasir.yaml");

    /** Values for the example where there is no default that can be written. */
    @SuppressWarnings("StringConcatToTextBlock") // the indentation counts
    private static final Map<Setting<?>, String> SHOWN =
            Map.of(
                    GatewaySettings.MODEL,
                    " my-model",
                    GatewaySettings.WORKERS,
                    "\n"
                        + "  - http://10.0.0.1:8000,events=tcp://10.0.0.1:5557,replay=tcp://10.0.0.1:5558\n"
                        + "  - url: http://10.0.0.2:8000\n"
                        + "    name: second\n"
                        + "    dp: 2\n"
                        + "    events: tcp://10.0.0.2:5557");

    /** Settings that a file best names by another name of theirs. */
    private static final Map<Setting<?>, String> IN_FILES =
            Map.of(GatewaySettings.WORKERS, "workers", GatewaySettings.MODELS, "models");

    @Test
    void thePageListsEverySetting() throws IOException {
        Documents.checkPart(PAGE, "settings", table());
    }

    @Test
    void theExampleHasEveryDefaultAndLoads() throws IOException {
        Documents.check(EXAMPLE, example());
        final GatewayConfig config = GatewayConfig.builder().file(EXAMPLE).build();
        for (Setting<?> setting : GatewaySettings.TABLE.rows()) {
            if (!SHOWN.containsKey(setting)) {
                assertEquals(setting.usual(), config.get(setting), setting.name());
            }
        }
    }

    private static String table() {
        final StringBuilder out = new StringBuilder();
        out.append("| Option | Default | Range | Meaning |\n|---|---|---|---|\n");
        for (Setting<?> s : GatewaySettings.TABLE.rows()) {
            out.append("| `--").append(s.label() == null ? "[no-]" : "").append(s.name());
            out.append(s.label() == null ? "" : " " + s.label()).append("` | ");
            out.append(s.printUsual()).append(" | ").append(s.range()).append(" | ");
            out.append(s.doc().replace("|", "\\|"));
            out.append(s.isLive() ? " *Live.*" : "");
            s.aliases().forEach(alias -> out.append(" Also `--").append(alias).append("`."));
            s.variables().stream()
                    .skip(1)
                    .forEach(variable -> out.append(" Also `").append(variable).append("`."));
            out.append(" |\n");
        }
        return out.toString();
    }

    private static String example() {
        final StringBuilder out = new StringBuilder();
        out.append("# kvasir serve --config kvasir.yaml\n");
        out.append("# Every setting with its default; leave out what you do not change.\n");
        for (Setting<?> s : GatewaySettings.TABLE.rows()) {
            final String name = IN_FILES.getOrDefault(s, s.name());
            out.append("\n# ").append(s.doc()).append(" Range: ").append(s.range()).append(".\n");
            if (SHOWN.containsKey(s)) {
                out.append(name).append(':').append(SHOWN.get(s)).append('\n');
            } else if (s.isList()) {
                out.append(name).append(": []\n");
            } else if (s.printUsual().isEmpty()) {
                out.append("# ").append(name).append(": ").append(s.label()).append('\n');
            } else {
                out.append(name).append(": ").append(s.printUsual()).append('\n');
            }
        }
        return out.toString();
    }
}
