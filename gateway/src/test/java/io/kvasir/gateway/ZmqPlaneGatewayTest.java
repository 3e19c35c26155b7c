package io.kvasir.gateway;

import static org.junit.jupiter.api.Assertions.assertTrue;

import io.kvasir.gateway.config.EventPlaneKind;
import io.kvasir.gateway.config.GatewayConfig;
import io.kvasir.gateway.config.GatewaySettings;
import io.kvasir.gateway.config.WorkerConfig;
import io.kvasir.gateway.testing.Gateways;
import io.kvasir.gateway.testing.RelayedFleet;
import io.kvasir.pipeline.publish.LocalIndexer;
import io.kvasir.pipeline.publish.ZmqEventPlaneTransport;
import io.kvasir.pipeline.publish.ZmqKvEventPublisher;
import io.kvasir.pipeline.source.IndexState;
import io.kvasir.pipeline.source.ZmqConfig;
import io.kvasir.sim.SimEngine;

import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

import java.io.IOException;
import java.util.ArrayList;
import java.util.List;

/**
 * Simulated engines whose events a relay each carries over ZMQ to a gateway, without any server.
 */
class ZmqPlaneGatewayTest {
    private static final int PROMPTS = 20;

    private final RelayedFleet fleet = new RelayedFleet(6);
    private final List<String> addresses = new ArrayList<>();

    @AfterEach
    void stop() {
        fleet.close();
    }

    private WorkerConfig engine(int number) throws IOException {
        final SimEngine engine = fleet.add();
        relay(number, "tcp://127.0.0.1:0");
        return WorkerConfig.parse(engine.url() + ",name=w" + number + ",event-worker=" + number);
    }

    private void relay(int number, String address) throws IOException {
        final ZmqEventPlaneTransport transport = new ZmqEventPlaneTransport(address, "kv-events");
        final LocalIndexer indexer = new LocalIndexer(number, 0, transport.publisherId());
        transport.answerBy(indexer);
        addresses.add(transport.endpoint());
        fleet.relay(
                new ZmqKvEventPublisher(
                        fleet.events(number), ZmqConfig.defaults(), transport, indexer));
    }

    private void start(WorkerConfig... workers) throws InterruptedException {
        final GatewayConfig.Builder config = Gateways.config(workers);
        config.set(GatewaySettings.EVENT_PLANE, EventPlaneKind.ZMQ);
        config.set(GatewaySettings.EVENT_PLANE_ADDRESSES, List.copyOf(addresses));
        fleet.start(config);
    }

    @Test
    void whatEnginesHoldIsKnownAlsoToAGatewayThatComesLateAndAfterARelayWasAway() throws Exception {
        final WorkerConfig first = engine(0);
        final WorkerConfig second = engine(1);
        start(first, second);
        fleet.serve(PROMPTS);
        fleet.awaitTruth();
        final String metrics = Gateways.get(fleet.gateway(), "/metrics").body();
        assertTrue(metrics.contains("kvasir_event_plane_connected 1.0"), metrics);

        fleet.gateway().close();
        start(first, second); // nothing more is announced
        fleet.awaitTruth();

        fleet.relay(0).close();
        fleet.awaitAny("its relay is missed", IndexState.STALE);
        fleet.serve(PROMPTS);
        relay(0, addresses.get(0));
        fleet.awaitTruth();
    }
}
