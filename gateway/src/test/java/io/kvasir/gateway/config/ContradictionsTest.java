package io.kvasir.gateway.config;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.kvasir.gateway.testing.Gateways;
import io.kvasir.router.settings.RouterSettings;
import io.kvasir.router.settings.Setting;
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
import java.util.Set;
import java.util.stream.Collectors;

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
                "http://h:1,name=a http://h:1/,name=b|the workers a and b have the same url",
                "http://h:1,name=a,events=tcp://e:5557 http://h:2,name=b,events=tcp://e:5557"
                        + "|a and b follow the same events, of tcp://e:5557",
                "http://h:1,name=a,dp=3,events=tcp://e:5557 http://h:2,name=b,events=tcp://e:5559"
                        + "|a and b follow the same events, of tcp://e:5559",
                "http://h:1,name=a,events=tcp://e:5,topic=kv http://h:2,name=b,events=tcp://e:5"
                        + "|a and b follow the same events, of tcp://e:5:",
                "http://h:1,name=a,events=tcp://e:5,topic=kv1 http://h:2,name=b,events=tcp://e:5,"
                        + "topic=kv2|",
                "http://h:1,name=a,dp=2,events=tcp://e:5 http://h:2,name=b,events=tcp://e:7|",
                "http://h:1,name=a http://h:1/x,name=b http://g:1,name=c http://h:2,name=d|",
            })
    void workersWithAnAddressInCommonAreAWarning(String workers, String words) {
        final GatewayConfig.Builder builder = of("port=0");
        for (String flag : workers.split(" ", -1)) {
            builder.worker(WorkerConfig.parse(flag));
        }
        final List<String> warnings =
                builder.build().warnings().stream()
                        .filter(text -> text.startsWith("the workers "))
                        .toList();
        assertEquals(words == null ? 0 : 1, warnings.size(), warnings::toString);
        assertTrue(words == null || warnings.getFirst().contains(words), warnings::toString);
    }

    @Test
    void anAddressMayBeOfAWorkerOfEachModel() {
        final String flag = "http://h:1,events=tcp://e:5,name=%s,model=%s";
        final List<String> warnings =
                SharedAddresses.warnings(
                        List.of(
                                WorkerConfig.parse(flag.formatted("a", "m")),
                                WorkerConfig.parse(flag.formatted("b", "n"))));
        assertEquals(List.of(), warnings);
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
                "snapshot-interval-ms=9|state-dir",
                "hash-load-factor=2|mode=consistent-hash",
                "temperature=1 mode=round-robin|mode=kv",
                "temperature=1 mode=random prefill-mode=direct"
                        + " worker=http://h:1,role=prefill|mode=kv",
                "hot-prefix-discount=1 selection-policy=logits|selection-policy=linear",
                "hot-prefix-discount=1 selection-policy=prefill-time|selection-policy=linear",
                "hot-prefix-discount=1 mode=random|mode=kv",
                "session-affinity-ttl-secs=9 mode=direct|a mode other than direct",
                "session-affinity-ttl-secs=9 mode=consistent-hash|a mode other than direct",
                "session-header=x|session-affinity-ttl-secs above 0 or mode=consistent-hash",
                "lora-interval-ms=999|lora-mode=preferred or required",
                "queue-policy=wspt|queue-threshold, queue-prefill-tokens or single-flight",
                "queue-max-requests=9|queue-threshold",
                "queue-max-tokens=9|queue-threshold",
                "queue-max-wait-ms=9|queue-threshold",
                "queue-aging-ms=9 single-flight=draw|queue-threshold",
                "single-flight-tokens=9|single-flight=draw or wait",
                "single-flight-wait-ms=9|single-flight=draw or wait",
                "single-flight-prompts=9|single-flight=draw or wait",
                "engine-load-ttl-ms=9000|engine-load on",
                "engine-load-interval-ms=9|engine-load on",
                "shared-cache-multiplier=0.5 prefix-index=off|an index",
                "shared-cache-multiplier=0.5 kv-events=false|kv-events on",
                "prediction-check=off prefix-index=off|an index",
                "degraded-credit=0.1 kv-events=false prediction-check=off|a prediction-check",
                "index-full=refuse prefix-index=off|an index",
                "event-wait=busy-spin kv-events=false|kv-events on",
                "event-pollers=2 overlap-weight=0|an index",
                "stale-decay-ms=9 kv-events=false|kv-events on",
                "snapshot-waiting-messages=9|state-dir or event-plane=jetstream",
                "discovery-namespace=x|discovery-nats-bucket, discovery-etcd-endpoints",
                "discovery-ttl-ms=9000 discovery-kubernetes-selector=a=b|discovery-nats-bucket",
                "template-max-steps=9000|a tokenizer",
                "trust-request-chat-template=true|a tokenizer",
                "prompt-memo-ttl-ms=9 shared-memory-dir=d|a tokenizer",
                "prompt-memo-ttl-ms=9 prompt-memo-entries=0|prompt-memo-entries above 0",
                "shared-memory-dir=d|a tokenizer and prompt-memo-entries above 0, or state-dir",
                "serve-model=name=n,mode=kv temperature=1 mode=random"
                        + " serve-model=name=o,mode=random hash-load-factor=2|mode=consistent-hash"
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
                "event-recovery=false event-plane=zmq event-plane-addresses=tcp://h:1",
                "temperature=1",
                "temperature=1 mode=random worker=http://h:1,role=prefill nixl-library=x",
                "nixl-library=x",
                "temperature=1 mode=random serve-model=name=n,mode=kv",
                "hash-load-factor=2 mode=consistent-hash session-header=x",
                "hash-load-factor=2 serve-model=name=n,mode=consistent-hash",
                "session-affinity-ttl-secs=9 session-header=x mode=random",
                "hot-prefix-discount=1 degraded-credit=0.1 index-full=refuse",
                "degraded-credit=0.1 kv-events=false",
                "queue-policy=wspt queue-aging-ms=9 queue-max-requests=9 queue-threshold=1",
                "queue-policy=wspt queue-max-tokens=9 queue-prefill-tokens=0",
                "queue-max-wait-ms=9 single-flight=wait single-flight-tokens=9",
                "single-flight-wait-ms=9 single-flight=draw",
                "engine-load=true engine-load-ttl-ms=9000 engine-load-interval-ms=9",
                "lora-mode=preferred lora-interval-ms=999",
                "shared-cache-multiplier=0.5 event-wait=busy-spin overlap-weight=0 prefix-index=on",
                "discovery-nats-bucket=b discovery-namespace=x discovery-ttl-ms=9000"
                        + " nixl-library=x",
                "tokenizer=sim template-max-steps=9000 shared-memory-dir=d prompt-memo-entries=9",
                "shared-memory-dir=d state-dir=s snapshot-waiting-messages=9"
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

    /** These have an effect whatever the others are, or are refused beside others. */
    private static final Set<Setting<?>> OF_THEIR_OWN =
            Set.of(
                    GatewaySettings.MODEL,
                    GatewaySettings.MODELS,
                    GatewaySettings.WORKERS,
                    GatewaySettings.WORKERS_FILE,
                    GatewaySettings.KV_EVENTS,
                    GatewaySettings.DISCOVERY_NATS_BUCKET,
                    GatewaySettings.DISCOVERY_ETCD_ENDPOINTS,
                    GatewaySettings.DISCOVERY_KUBERNETES_SELECTOR,
                    GatewaySettings.DISCOVERY_KUBERNETES_RESOURCES,
                    GatewaySettings.LORA,
                    GatewaySettings.TOKENIZER,
                    GatewaySettings.NIXL_LIBRARY, // mostly a variable of the host
                    GatewaySettings.HOST,
                    GatewaySettings.PORT,
                    GatewaySettings.HTTP2,
                    GatewaySettings.ADMIN_HOST,
                    GatewaySettings.ADMIN_PORT,
                    GatewaySettings.ADMIN_TOKEN,
                    GatewaySettings.ADMIN_TOKEN_FILE,
                    GatewaySettings.TRUSTED_TOKENS,
                    GatewaySettings.TRUSTED_TOKEN_FILE,
                    GatewaySettings.TRUSTED_NETWORKS,
                    GatewaySettings.TENANT_HEADER,
                    GatewaySettings.WORKER_KEY,
                    GatewaySettings.WORKER_KEY_FILE,
                    GatewaySettings.WORKER_TRUST_STORE,
                    GatewaySettings.UPSTREAM_HTTP2,
                    GatewaySettings.INCLUDE_USAGE,
                    GatewaySettings.MAX_BODY_BYTES,
                    GatewaySettings.MAX_BODY_BYTES_IN_FLIGHT,
                    GatewaySettings.GZIP_MIN_BYTES,
                    GatewaySettings.GZIP_STREAMS,
                    GatewaySettings.CORS_ORIGINS,
                    GatewaySettings.PROMPT_THREADS,
                    GatewaySettings.PROMPT_QUEUE,
                    GatewaySettings.RETRIES,
                    GatewaySettings.CONNECT_TIMEOUT,
                    GatewaySettings.FIRST_BYTE_TIMEOUT,
                    GatewaySettings.STREAM_IDLE_TIMEOUT,
                    GatewaySettings.ANSWER_TIMEOUT,
                    GatewaySettings.CLIENT_IDLE_TIMEOUT,
                    GatewaySettings.MAX_CONNECTIONS,
                    GatewaySettings.MAX_CONNECTIONS_PER_CLIENT,
                    GatewaySettings.MAX_HEAD_BYTES,
                    GatewaySettings.HEAD_TIMEOUT,
                    GatewaySettings.BODY_TIMEOUT,
                    GatewaySettings.BODY_MIN_RATE,
                    GatewaySettings.HEALTH_INTERVAL,
                    GatewaySettings.HEALTH_TIMEOUT,
                    GatewaySettings.HEALTH_FAULTS,
                    GatewaySettings.HEALTH_SUCCESSES,
                    GatewaySettings.BREAKER_FAULTS,
                    GatewaySettings.BREAKER_FAULT_PERCENT,
                    GatewaySettings.BREAKER_WINDOW,
                    GatewaySettings.BREAKER_HOLD,
                    GatewaySettings.BREAKER_SUCCESSES,
                    GatewaySettings.PANIC_PERCENT,
                    GatewaySettings.WARM_UP,
                    GatewaySettings.DRAIN_TIMEOUT,
                    GatewaySettings.LAME_DUCK,
                    GatewaySettings.DECISION_LOG_SIZE,
                    GatewaySettings.ACCESS_LOG,
                    GatewaySettings.OTLP_ENDPOINT,
                    GatewaySettings.LOG_FORMAT,
                    GatewaySettings.LOG_LEVEL,
                    GatewaySettings.REPLICA_SYNC,
                    RouterSettings.BLOCK_SIZE,
                    RouterSettings.MODE,
                    RouterSettings.LORA_MODE,
                    RouterSettings.SELECTION_POLICY,
                    RouterSettings.PREFIX_INDEX,
                    RouterSettings.SEED,
                    RouterSettings.HASH_SEED,
                    RouterSettings.MAX_WORKERS,
                    RouterSettings.MAX_ACTIVE_REQUESTS,
                    RouterSettings.MAX_BLOCKS_PER_REQUEST,
                    RouterSettings.TRACK_ACTIVE_BLOCKS,
                    RouterSettings.TRACK_PREFILL_TOKENS,
                    RouterSettings.BUSY_TTFT,
                    RouterSettings.ENGINE_LOAD,
                    RouterSettings.BUSY_LEASE,
                    RouterSettings.ENGINE_WAITING_LIMIT,
                    RouterSettings.ENGINE_USAGE_LIMIT,
                    RouterSettings.QUEUE_THRESHOLD,
                    RouterSettings.QUEUE_PREFILL_TOKENS,
                    RouterSettings.SINGLE_FLIGHT,
                    RouterSettings.BOOKING_WAIT,
                    RouterSettings.BOOKING_TIMEOUT,
                    RouterSettings.COUNTERS_DIR,
                    RouterSettings.DECISION_JOURNAL);

    @Test
    void eachSettingHasAnEffectOfItsOwnOrIsAmongThoseThatNeedOthers() {
        final Set<Setting<?>> needing =
                SettingNeed.all().flatMap(need -> need.rows().stream()).collect(Collectors.toSet());
        for (Setting<?> row : GatewaySettings.TABLE.rows()) {
            assertTrue(
                    needing.contains(row) != OF_THEIR_OWN.contains(row),
                    row + ": add it to RouterNeeds, GatewayNeeds or this list; to one of them");
        }
    }

    @ParameterizedTest
    @ValueSource(
            strings = {
                "",
                "kv-events=false",
                "kv-events=false overlap-weight=0",
                "kv-events=false event-plane=nats",
                "prefix-index=off mode=random",
                "serve-model=name=n,mode=random"
            })
    void aDumpSaysNoMoreThanWhatItIsOf(String settings) throws IOException {
        final GatewayConfig config = of(settings).build();
        final Path file = Files.writeString(dir.resolve("dump.yaml"), ConfigDump.yaml(config));
        final List<String> before = config.warnings();
        for (String warning : GatewayConfig.builder().file(file).build().warnings()) {
            assertTrue(before.contains(warning), () -> warning + " beside " + before);
        }
    }

    @Test
    void whatNeedsAnIndexHasTheOneOfTheStart() {
        final String rows = "event-wait=busy-spin index-full=refuse degraded-credit=0.1";
        final GatewayConfig started = of(rows).build();
        final GatewayConfig changed = of(rows + " overlap-weight=0").build();
        assertEquals(List.of(), changed.warningsSince(started));
        assertEquals(2, changed.warnings().size(), changed.warnings().toString());
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

    @ParameterizedTest
    @ValueSource(
            strings = {
                "port=9000 admin-port=9000",
                "port=9000 admin-port=9000 host=localhost",
                "port=9000 admin-port=9000 host=::",
                "port=9000 admin-port=9000 host=127.0.0.2 admin-host=0.0.0.0 admin-token=t",
            })
    void onePortForClientsAndOperatorsIsAnError(String settings) {
        final WrongSettingsException wrong =
                assertThrows(WrongSettingsException.class, () -> of(settings).build());
        assertTrue(wrong.getMessage().startsWith("admin-port=9000 is"), wrong.getMessage());
    }

    @ParameterizedTest
    @ValueSource(
            strings = {
                "port=0 admin-port=0",
                "port=9000 admin-port=9001",
                "port=9000 admin-port=9000 host=127.0.0.2",
            })
    void portsOfTheirOwnAreNone(String settings) {
        assertEquals(List.of(), of(settings).build().warnings());
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
