package io.kvasir.cli.commands;

import static io.kvasir.cli.commands.DoctorRuns.BLOCK;
import static io.kvasir.cli.commands.DoctorRuns.assertFailed;
import static io.kvasir.cli.commands.DoctorRuns.assertOfSilence;
import static io.kvasir.cli.commands.DoctorRuns.assertResult;
import static io.kvasir.cli.commands.DoctorRuns.checks;
import static io.kvasir.cli.commands.DoctorRuns.engine;

import static org.junit.jupiter.api.Assertions.assertEquals;

import com.fasterxml.jackson.databind.JsonNode;

import io.kvasir.cli.CommandRun;
import io.kvasir.cli.RawServer;
import io.kvasir.cli.console.Json;
import io.kvasir.pipeline.publish.EngineEventPublisher;
import io.kvasir.sim.SimEngine;
import io.kvasir.sim.config.SimConfig;

import org.junit.jupiter.api.Order;
import org.junit.jupiter.api.Test;

import java.util.Arrays;
import java.util.Map;
import java.util.concurrent.atomic.AtomicLong;

/** An engine that names its blocks in another way. */
@Order(1) // takes long: begins first, beside the others
class DoctorSeedTest {
    /** Its events have the prompt's tokens, with an adapter that seeds their hashes. */
    @Test
    void hashesOfAnotherSeedAreFound() throws Exception {
        final AtomicLong names = new AtomicLong();
        try (SimEngine engine = engine(SimConfig.builder().eventsPort(-1));
                EngineEventPublisher events =
                        new EngineEventPublisher(
                                "tcp://127.0.0.1:0", "tcp://127.0.0.1:0", "", 0, BLOCK);
                RawServer server =
                        new RawServer(
                                (line, body) -> {
                                    if (line.endsWith("/v1/completions")) {
                                        publish(body, names, events);
                                    }
                                    return RawServer.forwarded(engine.url(), "", line, body);
                                })) {
            assertOfSilence(
                    DoctorSeedTest::assertNoHashIsFound,
                    server.url()
                            + ",events="
                            + events.endpoint()
                            + ",replay="
                            + events.replayEndpoint(),
                    "--json");
        }
    }

    private static void assertNoHashIsFound(CommandRun run) {
        assertEquals(1, run.exitCode(), run.err());
        final Map<String, JsonNode> checks = checks(run);
        assertFailed("hash chain", "0 blocks; stored ", "kvasir hash", checks);
        assertResult("PASS", "events arrive", checks);
        assertResult("PASS", "block size", checks);
        assertResult("PASS", "replay", checks);
    }

    private static void publish(byte[] body, AtomicLong names, EngineEventPublisher events)
            throws Exception {
        final int[] tokens =
                Json.MAPPER.convertValue(Json.MAPPER.readTree(body).path("prompt"), int[].class);
        final int blocks = tokens.length / BLOCK;
        final long[] hashes = new long[blocks];
        Arrays.setAll(hashes, _ -> names.incrementAndGet());
        events.publishStored(Arrays.copyOf(tokens, blocks * BLOCK), hashes, null, "adapter");
    }
}
