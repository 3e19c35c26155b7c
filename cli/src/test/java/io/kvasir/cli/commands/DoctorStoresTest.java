package io.kvasir.cli.commands;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.jupiter.api.Assumptions.abort;

import com.fasterxml.jackson.databind.JsonNode;

import io.kvasir.cli.CommandRun;
import io.kvasir.cli.console.Json;
import io.kvasir.nats.NatsAccess;
import io.kvasir.nats.NatsStore;
import io.kvasir.registry.InstanceId;
import io.kvasir.registry.LeasedStore;
import io.kvasir.registry.Registration;
import io.kvasir.registry.etcd.EtcdOptions;
import io.kvasir.registry.etcd.EtcdStore;
import io.kvasir.sim.SimEngine;
import io.kvasir.sim.config.SimConfig;
import io.kvasir.testsupport.EtcdServer;
import io.kvasir.testsupport.NatsServer;
import io.kvasir.testsupport.RunningNats;

import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

import java.io.IOException;
import java.net.URI;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;

/** What {@code kvasir doctor} says of workers that are registered in real servers. */
@Tag("integration") // starts servers
class DoctorStoresTest {
    private static final Duration TTL = Duration.ofMinutes(10);
    private static final String MODEL = "model: kvasir-sim\nblock-size: 16\n";

    @TempDir Path folder;

    private CommandRun doctor(String config) throws IOException {
        final Path file = Files.writeString(folder.resolve("gateway.yaml"), MODEL + config);
        return CommandRun.of("doctor", file.toString(), "--json", "--timeout-s=60");
    }

    private static Registration registration(String namespace, String name, String model, URI url) {
        return Registration.builder(
                        new InstanceId(namespace, "backend", "generate", name), model, url)
                .generation(1)
                .build();
    }

    private static void put(LeasedStore store, Registration registration) {
        final long revision =
                store.put(registration.id().key(), registration.encode(), LeasedStore.ABSENT);
        assertTrue(revision > 0, registration.id().key());
    }

    /** A line each: store, check, result, what was seen. */
    private static List<String> lines(CommandRun run) {
        final List<String> lines = new ArrayList<>();
        for (JsonNode store : Json.parse(run.out()).path("stores")) {
            for (JsonNode check : store.path("checks")) {
                lines.add(
                        store.path("store").asText()
                                + " "
                                + check.path("check").asText()
                                + " "
                                + check.path("result").asText()
                                + " "
                                + check.path("seen").asText());
            }
        }
        return lines;
    }

    private void holdsAndTests(LeasedStore store, String kind, String config) throws Exception {
        final CommandRun empty = doctor(config);
        assertEquals(1, empty.exitCode(), empty.err());
        assertEquals(
                List.of(kind + " reachable PASS it has answered", kind + " workers FAIL none"),
                lines(empty));
        final URI away = URI.create("http://127.0.0.1:1");
        put(store, registration("other", "far", "kvasir-sim", away));
        put(store, registration("prod", "foreign", "another", away));
        assertEquals(kind + " workers FAIL none", lines(doctor(config)).getLast());
        final String bad = "prod/backend/generate/bad";
        store.put(bad, "{\"version\":1,".getBytes(StandardCharsets.UTF_8), LeasedStore.ABSENT);
        final CommandRun malformed = doctor(config);
        assertEquals(3, lines(malformed).size(), malformed.out());
        assertTrue(
                lines(malformed).get(1).startsWith(kind + " registration FAIL key " + bad + ": "),
                malformed.out());
        assertEquals(kind + " workers FAIL none", lines(malformed).getLast());
        try (SimEngine engine = SimEngine.start(SimConfig.builder().eventsPort(-1).build())) {
            put(store, registration("prod", "a", "kvasir-sim", engine.url()));
            put(store, registration("prod", "dead", "kvasir-sim", away));
            final CommandRun both = doctor(config);
            assertEquals(1, both.exitCode(), both.err());
            assertEquals(kind + " workers PASS 2: a, dead", lines(both).getLast());
            final JsonNode engines = Json.parse(both.out()).path("engines");
            assertEquals("a", engines.path(0).path("engine").asText());
            assertFalse(engines.path(0).toString().contains("FAIL"), both.out());
            assertTrue(engines.path(0).toString().contains("cached tokens"), both.out());
            assertTrue(engines.path(1).toString().contains("FAIL"), both.out());
        }
    }

    @Test
    void registrationsInNatsAreListedTestedAndNamedWhereTheyAreMalformed() throws Exception {
        try (NatsServer nats = RunningNats.started(Files.createDirectory(folder.resolve("nats")));
                NatsStore store = new NatsStore(NatsAccess.of(nats.url()), NatsStore.BUCKET, TTL)) {
            holdsAndTests(
                    store,
                    "nats",
                    "discovery-namespace: prod\ndiscovery-nats-bucket: "
                            + NatsStore.BUCKET
                            + "\nnats-url: "
                            + nats.url()
                            + "\n");
        }
    }

    @Test
    void registrationsInEtcdAreListedTestedAndNamedWhereTheyAreMalformed() throws Exception {
        try (EtcdServer etcd = startedEtcd();
                EtcdStore store =
                        new EtcdStore(
                                EtcdOptions.of(List.of(etcd.uri()), TTL, Duration.ofMinutes(1)),
                                EtcdStore.PREFIX)) {
            holdsAndTests(
                    store,
                    "etcd",
                    "discovery-namespace: prod\ndiscovery-etcd-endpoints: [" + etcd.uri() + "]\n");
        }
    }

    private EtcdServer startedEtcd() throws InterruptedException {
        try {
            final EtcdServer etcd =
                    EtcdServer.in(
                            EtcdServer.program(), Files.createDirectory(folder.resolve("etcd")));
            etcd.start();
            return etcd;
        } catch (IOException e) {
            return abort("skipped: no etcd: " + e.getMessage());
        }
    }
}
