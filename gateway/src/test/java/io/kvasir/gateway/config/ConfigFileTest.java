package io.kvasir.gateway.config;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.kvasir.gateway.GatewayServer;
import io.kvasir.router.policy.RoutingMode;
import io.kvasir.router.settings.RouterSettings;
import io.kvasir.router.settings.Setting;

import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.Map;

class ConfigFileTest {
    @TempDir private Path folder;

    @Test
    void aFileThatIsNestedTooDeepIsRefusedWithLineAndLimit() throws Exception {
        final Path file = write("model: m\nworkers: " + "[".repeat(300_000));
        final IllegalArgumentException refused =
                assertThrows(IllegalArgumentException.class, () -> read(file));
        assertEquals(
                file + ":2:109 is not YAML: it is nested more than 100 deep", refused.getMessage());
    }

    @Test
    void readsEveryKey() throws Exception {
        final GatewayConfig config =
                read(
                        write(
                                """
                                host: 127.0.0.1
                                port: 9000
                                model: tiny
                                lora-adapters: [fr, de]
                                tokenizer: models/tiny
                                block-size: 32
                                workers:
                                  - http://h:1,events=tcp://h:5557
                                  - url: http://h:2
                                    name: second
                                    dp: 2
                                    removals: physical
                                mode: round-robin
                                overlap-weight: 1.5
                                temperature: 0.25
                                seed: -7
                                max-workers: 8
                                max-blocks: 1_000
                                max-held-blocks: 3000
                                index-bytes: 70_000
                                approximate: true
                                ttl-secs: 17
                                max-tree-size: 2000
                                prune-target-ratio: 0.75
                                max-active-requests: 99
                                max-body-bytes: 1000000
                                inject-include-usage: false
                                retries: 0
                                connect-timeout-ms: 11
                                upstream-idle-timeout-ms: 12
                                client-idle-timeout-ms: 13
                                health-interval-ms: 14
                                booking-timeout-ms: 16
                                drain-timeout-ms: 0
                                decision-log-size: 15
                                """));
        final List<WorkerConfig> workers = config.get(GatewaySettings.WORKERS);
        assertEquals(2, workers.size());
        assertEquals("tcp://h:5557", workers.get(0).events());
        assertEquals("second", workers.get(1).name());
        assertEquals(2, workers.get(1).dataParallelSize());
        assertEquals(List.of("fr", "de"), config.get(GatewaySettings.LORA));
        assertEquals(folder.resolve("models/tiny"), config.get(GatewaySettings.TOKENIZER));
        assertEquals(RoutingMode.ROUND_ROBIN, config.get(RouterSettings.MODE));
        assertEquals(-7L, config.get(RouterSettings.SEED));
        assertEquals(1000, config.get(RouterSettings.MAX_BLOCKS));
        assertEquals(Duration.ofSeconds(17), config.get(RouterSettings.TTL));
        assertFalse(config.get(GatewaySettings.INCLUDE_USAGE));
        assertEquals(Duration.ofMillis(11), config.get(GatewaySettings.CONNECT_TIMEOUT));
        assertEquals(
                folder.resolve("kvasir.yaml") + ":18",
                config.settings().origin(RouterSettings.MAX_BLOCKS));
    }

    @Test
    void environmentAndFlagsOverrideTheFile() throws Exception {
        final Setting<Integer> port = GatewaySettings.PORT;
        final Path file = write("model: m\nport: 1\nretries: 1\nlora: [a, b]");
        final GatewayConfig config =
                GatewayConfig.builder()
                        .flag(port, List.of("3"))
                        .environment(
                                Map.of(
                                        "KVASIR_PORT", "2",
                                        "KVASIR_RETRIES", "2",
                                        "KVASIR_WORKER", "http://h:1,name=x http://h:2"))
                        .file(file)
                        .build();
        assertEquals(3, config.get(port));
        assertEquals(2, config.get(GatewaySettings.RETRIES));
        assertEquals("KVASIR_RETRIES", config.settings().origin(GatewaySettings.RETRIES));
        assertEquals(2, config.get(GatewaySettings.WORKERS).size());
        assertEquals(List.of("a", "b"), config.get(GatewaySettings.LORA));
    }

    @Test
    void aServiceLinkOfKubernetesIsNoPort() {
        final GatewayConfig config =
                GatewayConfig.builder()
                        .set(GatewaySettings.MODEL, "m")
                        .environment(
                                Map.of(
                                        "KVASIR_PORT", "tcp://10.0.0.1:8000",
                                        "KVASIR_ADMIN_PORT", "tcp://10.0.0.2:7"))
                        .build();
        assertEquals(8000, config.get(GatewaySettings.PORT));
        assertEquals(9000, config.adminPort());
    }

    @Test
    void theSimulatedModelIsAWordInFilesToo() throws Exception {
        final GatewayConfig config = read(write("model: m\ntokenizer: sim"));
        assertEquals(Path.of("sim"), config.get(GatewaySettings.TOKENIZER));
        try (GatewayServer gateway =
                GatewayServer.start(
                        GatewayConfig.builder()
                                .file(write("model: m\ntokenizer: sim\nhost: 127.0.0.1\nport: 0"))
                                .build())) {
            assertTrue(gateway.port() > 0);
        }
    }

    @SuppressWarnings("StringConcatToTextBlock") // one line for each case
    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            value = {
                "'model: m\nblok-size: 3' | :2: unknown setting 'blok-size'; the nearest is"
                        + " 'block-size'",
                "'model: m\nmodel: n'              | :2: 'model' is given twice",
                "'lora: [m]\nlora-adapters: [n]'   | :2: 'lora' and 'lora-adapters' are names of"
                        + " one setting; give 'lora' alone",
                "'router-ttl: 4\nrouter-ttl-secs: 5' | :2: 'router-ttl' and 'router-ttl-secs' are"
                        + " names of one setting; give 'ttl-secs' alone",
                "'model: m\nport: high'            | :2: port=high is not a number",
                "'model: m\n"
                    + "port: 70000'           | :2: port=70000 is out of range; range: 0..65535",
                "'model: m\nport: [1]'             | :2: a single value is needed",
                "'model: \"\\ud83d\"'              | :1: half of a surrogate pair is no character",
                "'model: m\nmode: fast'            | :2: mode=fast is none of: kv, round-robin",
                "'model: m\ninject-include-usage: maybe' | :2: include-usage=maybe must be true",
                "'model: m\nbooking-timeout-ms: -1' | :2: booking-timeout-ms=-1 is out of range",
                "'model: m\ntemperature: -1'       | :2: temperature=-1 is out of range",
                "'model: m\nworkers: http://h:1'   | :2: a list is needed",
                "'workers:\n- url: http://h\n  evnts: x' | :3: unknown key 'evnts'; known",
                "'workers:\n"
                        + "- http://h:2\n"
                        + "- http://h:1,dp=x' | :3: worker 'http://h:1,dp=x': dp=x must be",
                "'workers:\n- http://h:1\n- http://h:1' | model is not set",
                "'model: m\nworkers:\n- http://h:1\n- http://h:1' | two workers are named 'h:1'",
                "'model: m\n"
                    + "max-workers: 1\n"
                    + "workers:\n"
                    + "- http://h:1,dp=2,events=tcp://h:1' | 2 workers (dp ranks counted) exceed"
                    + " max-workers=1",
                "'model: m\nindex-bytes: 1000'     | index-bytes=1000 is out of range",
                "'- a'                             | :1: a mapping of keys is needed",
                "'model: [m'                       | is not YAML",
                "''                                | is empty",
            })
    void complaintsNameFileAndLine(String yaml, String message) throws IOException {
        final Path file = write(yaml);
        final IllegalArgumentException e =
                assertThrows(IllegalArgumentException.class, () -> read(file));
        assertTrue(e.getMessage().contains(message), e.getMessage());
        if (message.startsWith(":")) {
            assertTrue(e.getMessage().startsWith(file.toString()), e.getMessage());
        }
    }

    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            value = {
                "'model: [m'           | ':1:10 is not YAML: '",
                "'model: m\n\tx: 1'    | ':2:1 is not YAML: '",
                "'model: \"m'          | ':1:10 is not YAML: '",
                "'model: m\n- a\nb: %' | ':2:1 is not YAML: '",
                "'model: *m'           | ':1:8 is not YAML: '",
                "'model: \u0001'       | ':1:8 is not YAML: U+0001 is not allowed'",
                "'é: 😀\n😀: a\u0001' | ':2:5 is not YAML: U+0001 is not allowed'",
                "'a: b\n---\nc: d'     | ':2:1 is not YAML: '"
            })
    void whatIsNoYamlIsSaidInOneLine(String yaml, String message) throws IOException {
        final Path file = write(yaml);
        final IllegalArgumentException e =
                assertThrows(IllegalArgumentException.class, () -> read(file));
        assertTrue(e.getMessage().startsWith(file + message), e.getMessage());
        assertEquals(1, e.getMessage().lines().count(), e.getMessage());
        final byte[] content = yaml.getBytes(StandardCharsets.UTF_8);
        assertEquals(
                e.getMessage(),
                assertThrows(
                                IllegalArgumentException.class,
                                () -> ConfigFile.workers(file, content, "m"))
                        .getMessage());
    }

    private static GatewayConfig read(Path file) throws IOException {
        return GatewayConfig.builder().file(file).build();
    }

    private Path write(String yaml) throws IOException {
        return Files.writeString(folder.resolve("kvasir.yaml"), yaml);
    }
}
