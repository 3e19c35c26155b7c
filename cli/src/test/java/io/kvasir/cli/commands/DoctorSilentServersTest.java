package io.kvasir.cli.commands;

import static io.kvasir.cli.commands.DoctorRuns.assertFailed;
import static io.kvasir.cli.commands.DoctorRuns.assertOfSilence;
import static io.kvasir.cli.commands.DoctorRuns.assertResult;
import static io.kvasir.cli.commands.DoctorRuns.checks;
import static io.kvasir.cli.commands.DoctorRuns.configuration;
import static io.kvasir.cli.commands.DoctorRuns.engine;
import static io.kvasir.cli.commands.DoctorRuns.store;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;

import com.fasterxml.jackson.databind.JsonNode;

import io.kvasir.cli.CommandRun;
import io.kvasir.cli.console.Json;
import io.kvasir.sim.SimEngine;
import io.kvasir.sim.config.SimConfig;

import org.junit.jupiter.api.Order;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

import java.net.InetAddress;
import java.net.ServerSocket;
import java.nio.file.Path;

/** Servers that take connections and say nothing. */
@Order(1) // takes long: begins first, beside the others
class DoctorSilentServersTest {
    @Test
    void aReplaySocketThatIsDeadIsFound() throws Exception {
        try (SimEngine engine = engine(SimConfig.builder());
                ServerSocket silent = new ServerSocket(0, 9, InetAddress.getLoopbackAddress())) {
            assertOfSilence(
                    run -> {
                        assertEquals(1, run.exitCode(), run.err());
                        assertFailed("replay", "", "replay_endpoint", checks(run));
                    },
                    engine.url()
                            + ",events="
                            + engine.eventsEndpoint(0)
                            + ",replay=tcp://127.0.0.1:"
                            + silent.getLocalPort(),
                    "--json");
        }
    }

    @Test
    void storesThatAreDeadOrSilentAreNamedAndTheRestIsTested(@TempDir Path folder)
            throws Exception {
        try (SimEngine engine = engine(SimConfig.builder().eventsPort(-1));
                ServerSocket silent = new ServerSocket(0, 9, InetAddress.getLoopbackAddress())) {
            final String file =
                    configuration(
                            folder,
                            "model: kvasir-sim\nblock-size: 16\nworkers:\n  - url: "
                                    + engine.url()
                                    + "\ndiscovery-nats-bucket: b\nnats-url:"
                                    + " nats://user:secret@127.0.0.1:1\n"
                                    + "discovery-etcd-endpoints: [http://127.0.0.1:"
                                    + silent.getLocalPort()
                                    + "]\n");
            assertOfSilence(DoctorSilentServersTest::assertNamesStores, file, "--json");
        }
    }

    private static void assertNamesStores(CommandRun run) {
        assertEquals(1, run.exitCode(), run.err());
        assertFailed("reachable", "127.0.0.1:1", "check its address", store(0, run));
        assertFailed("reachable", "no answer", "check its address", store(1, run));
        assertEquals(1, store(1, run).size());
        assertResult("PASS", "reachable", checks(run));
        final JsonNode stores = Json.parse(run.out()).path("stores");
        assertEquals("nats", stores.path(0).path("store").asText());
        assertEquals("nats://127.0.0.1:1 bucket b", stores.path(0).path("url").asText());
        assertFalse(run.out().contains("secret"), run.out());
    }
}
