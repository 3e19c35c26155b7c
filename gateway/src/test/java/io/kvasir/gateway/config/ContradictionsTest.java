package io.kvasir.gateway.config;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.kvasir.gateway.testing.Gateways;
import io.kvasir.router.settings.WrongSettingsException;

import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;

/** Values that are in range and do not go together. */
class ContradictionsTest {
    @TempDir private Path dir;

    private static GatewayConfig.Builder of(String settings) {
        final GatewayConfig.Builder builder =
                GatewayConfig.builder().set(GatewaySettings.MODEL, "m");
        Gateways.set(builder, settings);
        return builder;
    }

    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            value = {
                "ttl-secs=9|approximate",
                "max-tree-size=9|approximate",
                "snapshot-threshold=9|event-plane=jetstream",
                "event-recovery=false|event-plane=nats or zmq",
                "event-recovery=false event-plane=jetstream|event-plane=nats or zmq",
                "prefill-mode=random|role=prefill",
                "split-min-tokens=9|split-mode=limits or cost",
                "split-harm-weight=9|split-mode=cost",
                "prefill-attempts=9|split-fallback=other-prefill",
                "session-affinity-mode=soft|session-affinity-ttl-secs",
                "max-sessions=9|session-affinity-ttl-secs",
                "replica-wire=json|replica-sync",
                "nats-url=nats://h:1|NATS",
                "discovery-etcd-user=u|discovery-etcd-endpoints",
                "discovery-kubernetes-port=p|discovery-kubernetes-selector",
                "workers-file-interval-ms=9|workers-file",
                "shadow-overlap-weight=1 decision-journal=0|decision-journal",
                "overlap-weight=0 approximate=true|an index",
                "overlap-weight=2 track-prefill-tokens=false|track-prefill-tokens",
                "active-decode-blocks-threshold=0.5 track-active-blocks=false|track-active-blocks",
                "kv-events=false event-plane=nats|kv-events",
                "index-memory-share=0.2 max-blocks=99|index-bytes",
                "retries=0 retry-backoff-ms=9|retries above 0",
                "trace-service-name=x|otlp-endpoint",
                "trace-resource-attributes=a=b|otlp-endpoint",
                "access-log-format=json|access-log",
                "http2=false http2-max-concurrent-streams=9|http2",
                "cors-max-age-secs=9|cors-origin",
                "worker-trust-store-password=p|worker-trust-store",
                "prompt-memo-entries=9|shared-memory-dir",
                "template-cache-bytes=9|trust-request-chat-template",
                "snapshot-interval-ms=9|state-dir"
            })
    void whatHasNoEffectIsAWarningThatNamesWhatIsNeeded(String settings, String needed) {
        final List<String> warnings = of(settings).build().warnings();
        assertTrue(
                warnings.stream()
                        .anyMatch(
                                text ->
                                        text.contains("no effect without")
                                                && text.contains(needed)),
                () -> settings + ": " + warnings);
    }

    @ParameterizedTest
    @ValueSource(
            strings = {
                "event-recovery=false event-plane=nats",
                "event-recovery=false event-plane=zmq event-plane-addresses=tcp://h:1"
            })
    void whatHasAnEffectIsNoWarning(String settings) {
        assertEquals(List.of(), of(settings).build().warnings());
    }

    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            value = {
                "track-prefill-tokens=false track-active-blocks=false|all workers cost the same",
                "overlap-weight=0 worker=http://h:1,events=tcp://h:2|events of workers are not",
                "retry-backoff-ms=9000 retry-backoff-max-ms=9|which bounds it"
            })
    void whatHardlyIsWantedIsAWarning(String settings, String words) {
        final List<String> warnings = of(settings).build().warnings();
        assertTrue(
                warnings.stream().anyMatch(text -> text.contains(words)),
                () -> settings + ": " + warnings);
    }

    @Test
    void whatIsSetToItsDefaultIsNone() throws IOException {
        assertEquals(List.of(), of("").build().warnings());
        assertEquals(List.of(), of("ttl-secs=120 split-min-ratio=0").build().warnings());
        assertEquals(List.of(), of("ttl-secs=9 approximate=true").build().warnings());
        assertEquals(List.of(), of("ttl-secs=9 kv-events=false").build().warnings());
    }

    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            value = {
                "single-flight=wait overlap-weight=0|single-flight=wait, and no index",
                "busy-ttft-ms=1000 track-prefill-tokens=false|busy-ttft-ms=1000 with",
                "queue-threshold=1 track-prefill-tokens=false|queue-threshold=1",
                "engine-waiting-threshold=9 busy-lease-ms=9|engine-load=true",
                "engine-waiting-threshold=9 engine-load=true|set busy-lease-ms",
                "event-reconnect-ms=99 event-reconnect-max-ms=9|event-reconnect-max-ms=9",
                "single-flight=wait prefill-overlap-weight=0|the prefill pool, with",
                "serve-model=name=n,single-flight=wait,prefix-index=off|single-flight=wait",
                "serve-model=name=n,hash-seed=5 event-plane=nats|hash-seed",
            })
    void whatNoRouterCanBeMadeOfIsAnErrorOfThePoolThatMayHaveIt(String settings, String words) {
        final WrongSettingsException wrong =
                assertThrows(WrongSettingsException.class, () -> of(settings).build());
        assertEquals(1, wrong.getMessage().lines().count(), wrong.getMessage());
        assertTrue(wrong.getMessage().contains(words), wrong.getMessage());
    }

    @Test
    void allThatCannotWorkIsSaidAtOnce() {
        final WrongSettingsException wrong =
                assertThrows(
                        WrongSettingsException.class,
                        () ->
                                of("admin-host=0.0.0.0 cors-credentials=true cors-origin=*"
                                                + " reset-states=true event-reconnect-ms=99"
                                                + " event-reconnect-max-ms=9 replica-sync=true"
                                                + " replica-lease-ms=100 worker=http://h:1,model=x")
                                        .build());
        final List<String> lines = wrong.getMessage().lines().toList();
        assertEquals(6, lines.size(), wrong.getMessage());
        for (String part :
                List.of(
                        "admin-host=0.0.0.0",
                        "cors-credentials",
                        "reset-states",
                        "model=x",
                        "event-reconnect-max-ms=9",
                        "replica-lease-ms=100")) {
            assertTrue(wrong.getMessage().contains(part), wrong.getMessage());
        }
    }

    @Test
    void allThatNoRouterCanBeMadeOfIsSaidAtOnce() throws IOException {
        final String wrong =
                """
                model: m
                worker: ["http://127.0.0.1:1"]
                reset-states: true
                single-flight: wait
                overlap-weight: 0
                """;
        assertSays(wrong, List.of("reset-states", "single-flight=wait"));
        assertSays(
                wrong
                        + """
                        busy-ttft-ms: 5
                        queue-threshold: 1
                        track-prefill-tokens: false
                        event-reconnect-ms: 99
                        event-reconnect-max-ms: 9
                        engine-waiting-threshold: 9
                        """,
                List.of(
                        "reset-states",
                        "single-flight=wait",
                        "busy-ttft-ms=5 with",
                        "queue-threshold=1",
                        "event-reconnect-max-ms=9",
                        "engine-load=true",
                        "set busy-lease-ms"));
    }

    @Test
    void allThatIsWrongWithWorkersAndEventsIsSaidAtOnce() throws IOException {
        assertSays(
                """
                model: m
                worker: ["http://h:1", "http://h:1", "http://h:2,model=x", "http://h:3,model=y"]
                reset-states: true
                event-plane-addresses: ["tcp://h:1"]
                engine-load: true
                engine-load-ttl-ms: 100
                engine-load-interval-ms: 200
                """,
                List.of(
                        "two workers are named 'h:1'",
                        "model=x",
                        "model=y",
                        "reset-states",
                        "event-plane-addresses without",
                        "engine-load-interval-ms=200"));
    }

    @Test
    void eachWrongElementOfAListIsSaidWithItsLine() throws IOException {
        final String file =
                """
                model: m
                worker:
                  - "http://x,events=foo"
                  - "http://y,role=zz"
                  - url: http://z
                    evnts: a
                cors-origin:
                  - "bad"
                  - "https://good.example"
                  - "bad2"
                serve-model:
                  - name: a
                    mode: fast
                  - name: b
                    mode: slow
                """;
        assertSays(
                file,
                List.of(
                        "yaml:3: worker 'http://x,events=foo'",
                        "yaml:4: worker 'http://y,role=zz'",
                        "yaml:6: unknown key 'evnts'",
                        "yaml:8: cors-origin=bad ",
                        "yaml:10: cors-origin=bad2 ",
                        "yaml:13: mode=fast",
                        "yaml:15: mode=slow"));
    }

    /** Each of them in a line of its own, and nothing else. */
    private void assertSays(String yaml, List<String> parts) throws IOException {
        final Path file = Files.writeString(dir.resolve("gateway.yaml"), yaml);
        final WrongSettingsException wrong =
                assertThrows(
                        WrongSettingsException.class,
                        () -> GatewayConfig.builder().file(file).build());
        final List<String> lines = wrong.getMessage().lines().toList();
        for (String part : parts) {
            assertEquals(
                    1, lines.stream().filter(line -> line.contains(part)).count(), part + lines);
        }
        assertEquals(parts.size(), lines.size(), wrong.getMessage());
    }

    @Test
    void allWrongLinesOfAFileAreSaidAtOnce() throws IOException {
        final Path file = dir.resolve("gateway.yaml");
        Files.writeString(file, "model: m\nmodle: x\nretries: -1\nmode: fast\nport: 1\n");
        final WrongSettingsException wrong =
                assertThrows(
                        WrongSettingsException.class, () -> GatewayConfig.builder().file(file));
        assertEquals(3, wrong.getMessage().lines().count(), wrong.getMessage());
        for (String part : List.of("yaml:2: unknown", "yaml:3: retries=-1", "yaml:4: mode=fast")) {
            assertTrue(wrong.getMessage().contains(part), wrong.getMessage());
        }
    }
}
