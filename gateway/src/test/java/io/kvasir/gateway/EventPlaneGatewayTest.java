package io.kvasir.gateway;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.fasterxml.jackson.databind.JsonNode;

import io.kvasir.gateway.config.EventPlaneKind;
import io.kvasir.gateway.config.GatewayConfig;
import io.kvasir.gateway.config.GatewaySettings;
import io.kvasir.gateway.config.WorkerConfig;
import io.kvasir.gateway.testing.Eventually;
import io.kvasir.gateway.testing.Gateways;
import io.kvasir.gateway.testing.IndexedBlocks;
import io.kvasir.nats.NatsAccess;
import io.kvasir.nats.events.EventSubjects;
import io.kvasir.nats.events.JetStreamEventTransport;
import io.kvasir.nats.events.NatsEventTransport;
import io.kvasir.nats.events.StreamForm;
import io.kvasir.pipeline.publish.ZmqKvEventPublisher;
import io.kvasir.pipeline.source.IndexState;
import io.kvasir.pipeline.source.SourceConfig;
import io.kvasir.pipeline.source.ZmqConfig;
import io.kvasir.router.Worker;
import io.kvasir.sim.SimConfig;
import io.kvasir.sim.SimEngine;
import io.kvasir.testsupport.RunningNats;

import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;

import java.io.IOException;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.Set;
import java.util.TreeSet;

/** Simulated engines whose events a relay carries over a real NATS server to a gateway. */
@Tag("integration") // starts a server
class EventPlaneGatewayTest {
    private static final int ENGINES = 2;
    private static final int PROMPTS = 40;
    private static final long FIRST_ID = -9; // beyond 63 bits

    @RegisterExtension final RunningNats nats = new RunningNats();

    private final Random random = new Random(5);
    private final List<SimEngine> engines = new ArrayList<>();
    private final List<ZmqKvEventPublisher> relays = new ArrayList<>();
    private GatewayServer gateway;

    @BeforeEach
    void startEngines() {
        for (int i = 0; i < ENGINES; i++) {
            engines.add(
                    SimEngine.start(
                            SimConfig.builder()
                                    .model("m")
                                    .blocks(300) // so few that some are evicted
                                    .prefillTokensPerSecond(1_000_000)
                                    .interTokenMillis(0.1)
                                    .build()));
        }
    }

    @AfterEach
    void stop() throws InterruptedException {
        if (gateway != null) {
            gateway.close();
        }
        relays.forEach(ZmqKvEventPublisher::close);
        engines.forEach(SimEngine::close);
    }

    private void relay(int engine, EventPlaneKind plane) throws IOException {
        final EventSubjects names = EventSubjects.kvEvents("dynamo", "backend", "generate");
        final NatsAccess access = NatsAccess.of(nats.url());
        relays.add(
                new ZmqKvEventPublisher(
                        SourceConfig.of("e", 0, 16, engines.get(engine).eventsEndpoint(0))
                                .withReplayEndpoint(engines.get(engine).replayEndpoint(0)),
                        ZmqConfig.defaults(),
                        FIRST_ID + engine,
                        plane == EventPlaneKind.NATS
                                ? new NatsEventTransport(access, names)
                                : new JetStreamEventTransport(access, names, StreamForm.EVENTS)));
    }

    private WorkerConfig worker(int engine) {
        return WorkerConfig.parse(
                engines.get(engine).url()
                        + ",name=w"
                        + engine
                        + ",event-worker="
                        + Long.toUnsignedString(FIRST_ID + engine));
    }

    private void start(EventPlaneKind plane, WorkerConfig... workers) throws InterruptedException {
        final GatewayConfig.Builder config = Gateways.config(workers);
        config.set(GatewaySettings.EVENT_PLANE, plane);
        config.set(GatewaySettings.NATS_URL, nats.url());
        gateway = Gateways.started(config);
    }

    private void serve() throws Exception {
        for (int i = 0; i < PROMPTS; i++) {
            final int[] prompt = new int[16 * (1 + random.nextInt(12)) + 3];
            final int shared = random.nextInt(4);
            for (int t = 0; t < prompt.length; t++) {
                prompt[t] = t < 64 ? 1_000 + shared : 1_000 + random.nextInt(50_000);
            }
            final String body =
                    "{\"model\":\"m\",\"max_tokens\":4,\"ignore_eos\":true,\"prompt\":"
                            + Arrays.toString(prompt)
                            + "}";
            assertEquals(200, Gateways.post(gateway, "/v1/completions", body).statusCode());
        }
    }

    /** Blocks may arrive over a new connection before the plane has read all that it missed. */
    private JsonNode unknownWorkers() {
        try {
            return GatewayHttpTest.json(Gateways.get(gateway, "/debug/workers"))
                    .at("/event_plane/unknown_workers");
        } catch (Exception e) {
            throw new IllegalStateException(e);
        }
    }

    private void awaitTruth() throws InterruptedException {
        Eventually.holds(
                "the index holds what the engines hold, and every worker's state is EXACT",
                () -> IndexedBlocks.of(gateway.router()).equals(truth()) && isExact());
    }

    private boolean isExact() {
        return gateway.router().workers().stream()
                .allMatch(worker -> worker.state() == IndexState.EXACT);
    }

    private Map<String, Set<Long>> truth() {
        final Map<String, Set<Long>> truth = new HashMap<>();
        for (Worker worker : gateway.router().workers()) {
            final int engine = worker.name().charAt(1) - '0';
            truth.put(worker.name(), new TreeSet<>(engines.get(engine).heldBlocks(0).keySet()));
        }
        return truth;
    }

    @Test
    void whatEnginesHoldIsKnownFromAJetStream() throws Exception {
        relay(0, EventPlaneKind.JETSTREAM);
        relay(1, EventPlaneKind.JETSTREAM);
        start(EventPlaneKind.JETSTREAM, worker(0), worker(1));
        serve();
        awaitTruth();
        final String metrics = Gateways.get(gateway, "/metrics").body();
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
        serve();
        awaitTruth();
        Eventually.holds(
                "the worker that is not known is shown",
                () ->
                        unknownWorkers()
                                .at("/0/worker_id")
                                .asText()
                                .equals(Long.toUnsignedString(FIRST_ID + 1)));
        final String body =
                "{\"url\":\""
                        + engines.get(1).url()
                        + "\",\"name\":\"w1\",\"event-worker\":"
                        + Long.toUnsignedString(FIRST_ID + 1)
                        + "}";
        assertEquals(201, Gateways.workers(gateway, "POST", "", body).statusCode());
        serve();
        awaitTruth();
        assertTrue(gateway.router().status().planeOrNull().redelivered() > 0);
    }

    @Test
    void aRestartedGatewayKnowsAllAgainAndARestartedEngineNothing() throws Exception {
        relay(0, EventPlaneKind.JETSTREAM);
        relay(1, EventPlaneKind.JETSTREAM);
        start(EventPlaneKind.JETSTREAM, worker(0), worker(1));
        serve();
        awaitTruth();
        gateway.close();
        start(EventPlaneKind.JETSTREAM, worker(0), worker(1));
        awaitTruth();
        relays.get(0).close(); // killed with its engine, which announces nothing for now
        engines.get(0).faults().restart();
        relay(0, EventPlaneKind.JETSTREAM);
        awaitTruth();
        serve();
        awaitTruth();
    }

    @Test
    void nothingIsMissedWhileTheServerIsAway() throws Exception {
        relay(0, EventPlaneKind.JETSTREAM);
        relay(1, EventPlaneKind.JETSTREAM);
        start(EventPlaneKind.JETSTREAM, worker(0), worker(1));
        serve();
        nats.server().stop();
        serve();
        Eventually.holds(
                "it is seen",
                () ->
                        gateway.router().workers().stream()
                                        .anyMatch(w -> w.state() == IndexState.STALE)
                                || !gateway.router().status().planeOrNull().isConnected());
        nats.server().start();
        awaitTruth();
    }

    @Test
    void whatEnginesHoldIsKnownFromCoreNatsAsLongAsSomebodyListens() throws Exception {
        start(EventPlaneKind.NATS, worker(0), worker(1));
        Eventually.holds("connected", () -> gateway.router().status().planeOrNull().isConnected());
        relay(0, EventPlaneKind.NATS);
        relay(1, EventPlaneKind.NATS);
        serve();
        awaitTruth();
        gateway.close();
        start(EventPlaneKind.NATS, worker(0), worker(1));
        Eventually.holds("connected", () -> gateway.router().status().planeOrNull().isConnected());
        serve();
        Eventually.holds(
                "it was joined late and says so",
                () ->
                        gateway.router().workers().stream()
                                .anyMatch(w -> w.state() == IndexState.DEGRADED));
    }
}
