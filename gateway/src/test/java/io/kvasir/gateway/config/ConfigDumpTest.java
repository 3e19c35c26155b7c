package io.kvasir.gateway.config;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.kvasir.router.policy.RoutingMode;
import io.kvasir.router.settings.RouterSettings;
import io.kvasir.router.settings.Setting;
import io.kvasir.router.settings.WrongSettingsException;

import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;

class ConfigDumpTest {
    @TempDir private Path folder;

    private GatewayConfig read(String name, String yaml) throws IOException {
        return GatewayConfig.builder().file(Files.writeString(folder.resolve(name), yaml)).build();
    }

    @Test
    void whatWasDumpedMakesTheSameGateway() throws IOException {
        final GatewayConfig before =
                GatewayConfig.builder()
                        .file(
                                Files.writeString(
                                        folder.resolve("kvasir.yaml"),
                                        """
                                        model: "it's: #1"
                                        tokenizer: models/tiny
                                        lora: [fr, de]
                                        workers:
                                          - http://h:1,events=tcp://h:5557
                                          - url: http://h:2
                                            name: second
                                            dp: 2
                                            labels: zone:a;rack:7
                                        models:
                                          - name: other
                                            block-size: 32
                                            lora: [it]
                                        mode: power_of_two
                                        ttl-secs: 17
                                        cors-origin: ["https://a.example"]
                                        max-blocks: 1_000
                                        """))
                        .environment(Map.of("DYN_ROUTER_TEMPERATURE", "0.5"))
                        .flag(GatewaySettings.PORT, List.of("0"))
                        .build();
        final String yaml = ConfigDump.yaml(before);
        final GatewayConfig after = read("again.yaml", yaml);
        for (Setting<?> setting : GatewaySettings.TABLE.rows()) {
            if (setting != GatewaySettings.MODELS) {
                assertEquals(before.get(setting), after.get(setting), setting + " in\n" + yaml);
            }
        }
        assertEquals(RoutingMode.POWER_OF_TWO, after.get(RouterSettings.MODE));
        assertEquals(2, after.models().size());
        final GatewayConfig other = after.models().get(1);
        assertEquals("other", other.get(GatewaySettings.MODEL));
        assertEquals(32, other.get(RouterSettings.BLOCK_SIZE));
        assertEquals(List.of("it"), other.get(GatewaySettings.LORA));
        assertTrue(yaml.contains("temperature: 0.5 # DYN_ROUTER_TEMPERATURE\n"), yaml);
        assertTrue(yaml.contains("port: 0 # --port\n"), yaml);
        assertTrue(yaml.contains("ttl-secs: 17 # " + folder.resolve("kvasir.yaml") + ":"), yaml);
        assertTrue(yaml.contains("\nretries: 2\n"), yaml);
    }

    @Test
    void noTokenAndNoPasswordIsWritten() throws IOException {
        final String yaml =
                ConfigDump.yaml(
                        read(
                                "kvasir.yaml",
                                """
                                model: m
                                workers: ["http://user:SECRET@h:1"]
                                nats-url: nats://user:SECRET@n:4222
                                admin-token: SECRET
                                trusted-token: [SECRET, SECRET2]
                                """));
        assertFalse(yaml.contains("SECRET"), yaml);
        assertTrue(yaml.contains("# admin-token: *** # "), yaml);
        assertTrue(yaml.contains("# trusted-token: *** # "), yaml);
        assertTrue(yaml.contains("- 'http://***@h:1'\n"), yaml);
    }

    @ParameterizedTest
    @ValueSource(
            strings = {
                "workers: [http://user:SECRET@h:1]",
                "nats-url: nats://user:SECRET@n:4222",
                "otlp-endpoint: http://user:SECRET@h:1"
            })
    void whatWasLeftOutIsMissedWhereADumpIsRead(String line) throws IOException {
        final String yaml = ConfigDump.yaml(read("kvasir.yaml", "model: m\n" + line));
        final Exception missed =
                assertThrows(WrongSettingsException.class, () -> read("again.yaml", yaml));
        assertTrue(missed.getMessage().contains("has *** where a user"), missed.getMessage());
    }

    @ParameterizedTest
    @ValueSource(
            strings = {
                "user:SECRET@n:4222",
                "SECRET@n:4222",
                "a:4222, user:SECRET@n:4222",
                "user:SECRET@n:4222,http://x",
                "nats://user:SEC/SECRET@n:4222"
            })
    void theCredentialsOfAnAddressWithoutASchemeAreHiddenToo(String url) throws IOException {
        String shown;
        try {
            shown = ConfigDump.yaml(read("kvasir.yaml", "model: m\nnats-url: '" + url + "'"));
            assertTrue(shown.contains("nats-url: 'nats://"), shown);
        } catch (WrongSettingsException e) {
            shown = e.getMessage();
        }
        assertFalse(shown.contains("SECRET"), shown);
    }
}
