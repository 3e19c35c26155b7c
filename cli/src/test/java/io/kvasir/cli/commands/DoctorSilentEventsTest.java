package io.kvasir.cli.commands;

import static io.kvasir.cli.commands.DoctorRuns.BLOCK;
import static io.kvasir.cli.commands.DoctorRuns.assertFailed;
import static io.kvasir.cli.commands.DoctorRuns.assertOfSilence;
import static io.kvasir.cli.commands.DoctorRuns.assertResult;
import static io.kvasir.cli.commands.DoctorRuns.checks;
import static io.kvasir.cli.commands.DoctorRuns.engine;
import static io.kvasir.cli.commands.DoctorRuns.spec;

import static org.junit.jupiter.api.Assertions.assertEquals;

import com.fasterxml.jackson.databind.JsonNode;

import io.kvasir.cli.CommandRun;
import io.kvasir.sim.SimEngine;
import io.kvasir.sim.config.SimConfig;

import org.junit.jupiter.api.Order;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.parallel.Execution;
import org.junit.jupiter.api.parallel.ExecutionMode;

import java.net.InetAddress;
import java.net.ServerSocket;
import java.util.Map;

/** An engine whose events do not come. */
@Order(0) // waits longest: begins before all others
@Execution(ExecutionMode.CONCURRENT) // each waits for what does not come
class DoctorSilentEventsTest {
    @Test
    void withoutEventsTheEventsAndAllThatNeedsThemIsNamed() throws Exception {
        try (SimEngine engine = engine(SimConfig.builder().eventsPort(-1));
                ServerSocket silent = new ServerSocket(0, 9, InetAddress.getLoopbackAddress())) {
            final String events = "tcp://127.0.0.1:" + silent.getLocalPort();
            assertOfSilence(
                    DoctorSilentEventsTest::assertNoEvents,
                    engine.url() + ",events=" + events,
                    "--tokenizer=sim",
                    "--json");
        }
    }

    private static void assertNoEvents(CommandRun run) {
        assertEquals(1, run.exitCode(), run.err());
        final Map<String, JsonNode> checks = checks(run);
        assertFailed("events arrive", "none", "enable_kv_cache_events", checks);
        assertResult("SKIP", "events are numbered", checks);
        assertResult("SKIP", "hash chain", checks);
        assertResult("SKIP", "replay", checks);
        assertResult("PASS", "model", checks);
    }

    @Test
    void whereOnlyTheReplayAnswersTheAddressAndTheTopicAreNamed() throws Exception {
        try (SimEngine engine = engine(SimConfig.builder().blockSize(BLOCK))) {
            assertOfSilence(
                    run -> assertAnotherTopic(engine.eventsEndpoint(0), run),
                    spec(engine) + ",topic=another",
                    "--tokenizer=sim",
                    "--json");
        }
    }

    private static void assertAnotherTopic(String events, CommandRun run) {
        assertEquals(1, run.exitCode(), run.err());
        final Map<String, JsonNode> checks = checks(run);
        assertFailed("events arrive", events, "topic=another", checks);
        assertFailed("events arrive", "the replay answers", events, checks);
        assertResult("SKIP", "hash chain", checks);
        assertResult("PASS", "replay", checks);
    }

    @Test
    void withoutAConnectionForEventsTheReplayIsNotTested() throws Exception {
        try (SimEngine engine = engine(SimConfig.builder().blockSize(BLOCK));
                ServerSocket silent = new ServerSocket(0, 9, InetAddress.getLoopbackAddress())) {
            final String events = "tcp://127.0.0.1:" + silent.getLocalPort();
            assertOfSilence(
                    DoctorSilentEventsTest::assertNoConnection,
                    engine.url() + ",events=" + events + ",replay=" + engine.replayEndpoint(0),
                    "--tokenizer=sim",
                    "--json");
        }
    }

    private static void assertNoConnection(CommandRun run) {
        assertEquals(1, run.exitCode(), run.err());
        final Map<String, JsonNode> checks = checks(run);
        assertFailed("events arrive", "no connection for events", "events=", checks);
        assertResult("SKIP", "replay", checks);
        assertEquals("no events connection", checks.get("replay").path("seen").asText());
    }
}
