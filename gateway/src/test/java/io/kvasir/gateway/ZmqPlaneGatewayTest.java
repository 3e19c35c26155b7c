package io.kvasir.gateway;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.kvasir.gateway.config.EventPlaneKind;
import io.kvasir.gateway.config.GatewayConfig;
import io.kvasir.gateway.config.GatewaySettings;
import io.kvasir.gateway.config.WorkerConfig;
import io.kvasir.gateway.testing.Eventually;
import io.kvasir.gateway.testing.Gateways;
import io.kvasir.gateway.testing.IndexedBlocks;
import io.kvasir.pipeline.publish.LocalIndexer;
import io.kvasir.pipeline.publish.ZmqEventPlaneTransport;
import io.kvasir.pipeline.publish.ZmqKvEventPublisher;
import io.kvasir.pipeline.source.IndexState;
import io.kvasir.pipeline.source.SourceConfig;
import io.kvasir.pipeline.source.ZmqConfig;
import io.kvasir.router.Worker;
import io.kvasir.sim.SimConfig;
import io.kvasir.sim.SimEngine;

import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

import java.io.IOException;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.Set;
import java.util.TreeSet;

/**
 * Simulated engines whose events a relay each carries over ZMQ to a gateway, without any server.
 */
class ZmqPlaneGatewayTest {
    private static final int PROMPTS = 20;

    private final Random random = new Random(6);
    private final List<SimEngine> engines = new ArrayList<>();
    private final List<ZmqKvEventPublisher> relays = new ArrayList<>();
    private final List<String> addresses = new ArrayList<>();
    private GatewayServer gateway;

    @AfterEach
    void stop() throws InterruptedException {
        if (gateway != null) {
            gateway.close();
        }
        relays.forEach(ZmqKvEventPublisher::close);
        engines.forEach(SimEngine::close);
    }

    private WorkerConfig engine(int number) throws IOException {
        final SimEngine engine =
                SimEngine.start(
                        SimConfig.builder()
                                .model("m")
                                .blocks(300) // so few that some are evicted
                                .prefillTokensPerSecond(1_000_000)
                                .interTokenMillis(0.1)
                                .build());
        engines.add(engine);
        relay(number, "tcp://127.0.0.1:0");
        return WorkerConfig.parse(engine.url() + ",name=w" + number + ",event-worker=" + number);
    }

    private void relay(int number, String address) throws IOException {
        final ZmqEventPlaneTransport transport = new ZmqEventPlaneTransport(address, "kv-events");
        final LocalIndexer indexer = new LocalIndexer(number, 0, transport.publisherId());
        transport.answerBy(indexer);
        addresses.add(transport.endpoint());
        relays.add(
                new ZmqKvEventPublisher(
                        SourceConfig.of("e", 0, 16, engines.get(number).eventsEndpoint(0))
                                .withReplayEndpoint(engines.get(number).replayEndpoint(0)),
                        ZmqConfig.defaults(),
                        transport,
                        indexer));
    }

    private void start(WorkerConfig... workers) throws InterruptedException {
        final GatewayConfig.Builder config = Gateways.config(workers);
        config.set(GatewaySettings.EVENT_PLANE, EventPlaneKind.ZMQ);
        config.set(GatewaySettings.EVENT_PLANE_ADDRESSES, List.copyOf(addresses));
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
    void whatEnginesHoldIsKnownAlsoToAGatewayThatComesLateAndAfterARelayWasAway() throws Exception {
        final WorkerConfig first = engine(0);
        final WorkerConfig second = engine(1);
        start(first, second);
        serve();
        awaitTruth();
        final String metrics = Gateways.get(gateway, "/metrics").body();
        assertTrue(metrics.contains("kvasir_event_plane_connected 1.0"), metrics);

        gateway.close();
        start(first, second); // nothing more is announced
        awaitTruth();

        relays.get(0).close();
        Eventually.holds(
                "its relay is missed",
                () ->
                        gateway.router().workers().stream()
                                .anyMatch(worker -> worker.state() == IndexState.STALE));
        serve();
        relay(0, addresses.get(0));
        awaitTruth();
    }
}
