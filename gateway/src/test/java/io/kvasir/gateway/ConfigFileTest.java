package io.kvasir.gateway;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.kvasir.router.RoutingMode;

import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;

class ConfigFileTest {
    @TempDir private Path folder;

    @Test
    void readsEveryKey() throws Exception {
        final GatewayConfig config =
                GatewayConfig.fromYaml(
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
        assertEquals("127.0.0.1", config.host());
        assertEquals(9000, config.port());
        assertEquals("tiny", config.model());
        assertEquals(List.of("fr", "de"), config.loraAdapters());
        assertEquals(folder.resolve("models/tiny"), config.tokenizer());
        assertEquals(32, config.blockSize());
        assertEquals(2, config.workers().size());
        assertEquals("tcp://h:5557", config.workers().get(0).events());
        assertEquals("second", config.workers().get(1).name());
        assertEquals(2, config.workers().get(1).dataParallelSize());
        assertEquals(RoutingMode.ROUND_ROBIN, config.mode());
        assertEquals(1.5, config.overlapWeight());
        assertEquals(0.25, config.temperature());
        assertEquals(-7L, config.seed());
        assertEquals(8, config.maxWorkers());
        assertEquals(1000, config.maxBlocks());
        assertEquals(3000, config.maxHeldBlocks());
        assertEquals(70_000, config.indexBytes());
        assertTrue(config.approximate());
        assertEquals(Duration.ofSeconds(17), config.ttl());
        assertEquals(2000, config.maxTreeSize());
        assertEquals(0.75, config.pruneTargetRatio());
        assertEquals(99, config.maxActiveRequests());
        assertEquals(1_000_000, config.maxBodyBytes());
        assertFalse(config.injectIncludeUsage());
        assertEquals(0, config.retries());
        assertEquals(Duration.ofMillis(11), config.connectTimeout());
        assertEquals(Duration.ofMillis(12), config.upstreamIdleTimeout());
        assertEquals(Duration.ofMillis(13), config.clientIdleTimeout());
        assertEquals(Duration.ofMillis(14), config.healthInterval());
        assertEquals(Duration.ofMillis(16), config.bookingTimeout());
        assertEquals(Duration.ZERO, config.drainTimeout());
        assertEquals(15, config.decisionLogSize());
        assertEquals(config, config.toBuilder().build());
    }

    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            value = {
                "'model: m\n"
                        + "blok-size: 3'          | :2: unknown key 'blok-size'; known keys: [host,"
                        + " port",
                "'model: m\nmodel: n'              | :2: key 'model' is given twice",
                "'model: m\nport: high'            | :2: 'high' is not a whole number",
                "'model: m\nport: 70000'           | :2: 70000 is not in 0..65535",
                "'model: m\nmode: fast'            | :2: mode: unknown routing mode 'fast'",
                "'model: m\ninject-include-usage: maybe' | :2: 'maybe' must be true or false",
                "'model: m\nbooking-timeout-ms: -1' | :2: -1 is not in 0..2147483647",
                "'model: m\ntemperature: -1'       | :2: -1 must be finite and not negative",
                "'model: m\nworkers: http://h:1'   | :2: workers must be a list",
                "'workers:\n- url: http://h\n  evnts: x' | :3: unknown key 'evnts'; known",
                "'workers:\n- http://h:1,dp=x'     | :2: worker 'http://h:1,dp=x': dp=x must be",
                "'workers:\n- http://h:1\n- http://h:1' | model is not set",
                "'model: m\nworkers:\n- http://h:1\n- http://h:1' | two workers are named 'h:1'",
                "'model: m\nindex-bytes: 1000'     | index-bytes=1000 is out of range",
                "'model: m\nmax-tree-size: 2_000_000_000' | max-tree-size=2000000000 is not in 1..",
                "'model: m\nprune-target-ratio: 0' | prune-target-ratio=0.0 must be above 0",
                "'- a'                             | :1: a mapping of keys is needed",
                "'model: [m'                       | is not YAML",
                "''                                | is empty",
            })
    void complaintsNameFileAndLine(String yaml, String message) throws IOException {
        final Path file = write(yaml);
        final IllegalArgumentException e =
                assertThrows(IllegalArgumentException.class, () -> GatewayConfig.fromYaml(file));
        assertTrue(e.getMessage().contains(message), e.getMessage());
        if (message.startsWith(":")) {
            assertTrue(e.getMessage().startsWith(file.toString()), e.getMessage());
        }
    }

    private Path write(String yaml) throws IOException {
        return Files.writeString(folder.resolve("kvasir.yaml"), yaml);
    }
}
