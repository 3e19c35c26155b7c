package io.kvasir.gateway;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.fasterxml.jackson.databind.JsonNode;

import io.kvasir.gateway.config.EventPlaneKind;
import io.kvasir.gateway.config.GatewayConfig;
import io.kvasir.gateway.config.GatewaySettings;
import io.kvasir.gateway.config.WorkerConfig;
import io.kvasir.gateway.testing.Gateways;
import io.kvasir.gateway.testing.RelayedFleet;
import io.kvasir.nats.NatsAccess;
import io.kvasir.nats.events.EventSubjects;
import io.kvasir.nats.events.JetStreamEventTransport;
import io.kvasir.nats.events.NatsEventTransport;
import io.kvasir.nats.events.StreamForm;
import io.kvasir.pipeline.publish.ZmqKvEventPublisher;
import io.kvasir.pipeline.source.IndexState;
import io.kvasir.pipeline.source.ZmqConfig;
import io.kvasir.testsupport.Eventually;
import io.kvasir.testsupport.RunningNats;

import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;

import java.io.IOException;

/** Simulated engines whose events a relay carries over a real NATS server to a gateway. */
@Tag("integration") // starts a server
class EventPlaneGatewayTest {
    private static final int ENGINES = 2;
    private static final int PROMPTS = 40;
    private static final long FIRST_ID = -9; // beyond 63 bits

    @RegisterExtension final RunningNats nats = new RunningNats();

    private final RelayedFleet fleet = new RelayedFleet(5);

    @BeforeEach
    void startEngines() {
        for (int i = 0; i < ENGINES; i++) {
            fleet.add();
        }
    }

    @AfterEach
    void stop() {
        fleet.close();
    }

    private void relay(int engine, EventPlaneKind plane) throws IOException {
        final EventSubjects names = EventSubjects.kvEvents("dynamo", "backend", "generate");
        final NatsAccess access = NatsAccess.of(nats.url());
        fleet.relay(
                new ZmqKvEventPublisher(
                        fleet.events(engine),
                        ZmqConfig.defaults(),
                        FIRST_ID + engine,
                        plane == EventPlaneKind.NATS
                                ? new NatsEventTransport(access, names)
                                : new JetStreamEventTransport(access, names, StreamForm.EVENTS)));
    }

    private WorkerConfig worker(int engine) {
        return WorkerConfig.parse(
                fleet.engine(engine).url()
                        + ",name=w"
                        + engine
                        + ",event-worker="
                        + Long.toUnsignedString(FIRST_ID + engine));
    }

    private void start(EventPlaneKind plane, WorkerConfig... workers) throws InterruptedException {
        final GatewayConfig.Builder config = Gateways.config(workers);
        config.set(GatewaySettings.EVENT_PLANE, plane);
        config.set(GatewaySettings.NATS_URL, nats.url());
        fleet.start(config);
    }

    /** Blocks may arrive over a new connection before the plane has read all that it missed. */
    private JsonNode unknownWorkers() {
        try {
            return GatewayHttpTest.json(Gateways.get(fleet.gateway(), "/debug/workers"))
                    .at("/event_plane/unknown_workers");
        } catch (Exception e) {
            throw new IllegalStateException(e);
        }
    }

    @Test
    void whatEnginesHoldIsKnownFromAJetStream() throws Exception {
        relay(0, EventPlaneKind.JETSTREAM);
        relay(1, EventPlaneKind.JETSTREAM);
        start(EventPlaneKind.JETSTREAM, worker(0), worker(1));
        fleet.serve(PROMPTS);
        fleet.awaitTruth();
        final String metrics = Gateways.get(fleet.gateway(), "/metrics").body();
        assertTrue(metrics.contains("kvasir_event_plane_connected 1.0"), metrics);
        assertTrue(metrics.contains("kvasir_event_plane_streams 2.0"), metrics);
        assertTrue(
                metrics.contains("kvasir_event_plane_events_total{event=\"unknown-worker\"}"),
                metrics);
        assertTrue(metrics.contains("kvasir_event_plane_lag{waiting=\"transport\"}"), metrics);
    }

    @Test
    void aWorkerThatIsAddedLateIsKnownFromItsFirstEventAndUnknownOnesAreVisible() throws Exception {
        relay(0, EventPlaneKind.JETSTREAM);
        relay(1, EventPlaneKind.JETSTREAM);
        start(EventPlaneKind.JETSTREAM, worker(0));
        fleet.serve(PROMPTS);
        fleet.awaitTruth();
        Eventually.holds(
                "the worker that is not known is shown",
                () ->
                        unknownWorkers()
                                .at("/0/worker_id")
                                .asText()
                                .equals(Long.toUnsignedString(FIRST_ID + 1)));
        final String body =
                "{\"url\":\""
                        + fleet.engine(1).url()
                        + "\",\"name\":\"w1\",\"event-worker\":"
                        + Long.toUnsignedString(FIRST_ID + 1)
                        + "}";
        assertEquals(201, Gateways.workers(fleet.gateway(), "POST", "", body).statusCode());
        fleet.serve(PROMPTS);
        fleet.awaitTruth();
        assertTrue(fleet.gateway().router().status().planeOrNull().redelivered() > 0);
    }

    @Test
    void aRestartedGatewayKnowsAllAgainAndARestartedEngineNothing() throws Exception {
        relay(0, EventPlaneKind.JETSTREAM);
        relay(1, EventPlaneKind.JETSTREAM);
        start(EventPlaneKind.JETSTREAM, worker(0), worker(1));
        fleet.serve(PROMPTS);
        fleet.awaitTruth();
        fleet.gateway().close();
        start(EventPlaneKind.JETSTREAM, worker(0), worker(1));
        fleet.awaitTruth();
        fleet.relay(0).close(); // killed with its engine, which announces nothing for now
        fleet.engine(0).faults().restart();
        relay(0, EventPlaneKind.JETSTREAM);
        fleet.awaitTruth();
        fleet.serve(PROMPTS);
        fleet.awaitTruth();
    }

    @Test
    void nothingIsMissedWhileTheServerIsAway() throws Exception {
        relay(0, EventPlaneKind.JETSTREAM);
        relay(1, EventPlaneKind.JETSTREAM);
        start(EventPlaneKind.JETSTREAM, worker(0), worker(1));
        fleet.serve(PROMPTS);
        nats.server().stop();
        fleet.serve(PROMPTS);
        Eventually.holds(
                "it is seen",
                () ->
                        fleet.gateway().router().workers().stream()
                                        .anyMatch(w -> w.state() == IndexState.STALE)
                                || !fleet.gateway().router().status().planeOrNull().isConnected());
        nats.server().start();
        fleet.awaitTruth();
    }

    @Test
    void whatEnginesHoldIsKnownFromCoreNatsAsLongAsAGatewayListens() throws Exception {
        start(EventPlaneKind.NATS, worker(0), worker(1));
        Eventually.holds(
                "connected", () -> fleet.gateway().router().status().planeOrNull().isConnected());
        relay(0, EventPlaneKind.NATS);
        relay(1, EventPlaneKind.NATS);
        fleet.serve(PROMPTS);
        fleet.awaitTruth();
        fleet.gateway().close();
        start(EventPlaneKind.NATS, worker(0), worker(1));
        Eventually.holds(
                "connected", () -> fleet.gateway().router().status().planeOrNull().isConnected());
        fleet.serve(PROMPTS);
        fleet.awaitAny("it was joined late and says so", IndexState.DEGRADED);
    }
}
