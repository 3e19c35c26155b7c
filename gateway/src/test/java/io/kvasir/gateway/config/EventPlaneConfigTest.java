package io.kvasir.gateway.config;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.kvasir.router.settings.RouterSettings;

import org.junit.jupiter.api.Test;

import java.util.List;

/** What does not go together with an event plane, or without one. */
class EventPlaneConfigTest {
    private static GatewayConfig.Builder config(EventPlaneKind plane) {
        return GatewayConfig.builder()
                .set(GatewaySettings.MODEL, "m")
                .set(GatewaySettings.EVENT_PLANE, plane)
                .worker(WorkerConfig.parse("http://h:1,event-worker=7"));
    }

    private static GatewayConfig.Builder zmq(String... addresses) {
        return config(EventPlaneKind.ZMQ)
                .set(GatewaySettings.EVENT_PLANE_ADDRESSES, List.of(addresses));
    }

    @Test
    void aPlaneOverZmqNeedsAddressesThatCanBeConnectedTo() {
        assertTrue(refusal(zmq()).contains("event-plane-addresses: 0 addresses"));
        assertTrue(refusal(zmq("tcp://*:1")).contains("event-plane-addresses: "));
        assertTrue(refusal(zmq("tcp://h:1", "tcp://h:1")).contains("tcp://h:1"));
        assertEquals(EventPlaneKind.ZMQ, zmq("tcp://h:1").build().get(GatewaySettings.EVENT_PLANE));
    }

    @Test
    void addressesWithoutAPlaneOverZmqAreRefused() {
        final String message =
                refusal(
                        config(EventPlaneKind.NATS)
                                .set(GatewaySettings.EVENT_PLANE_ADDRESSES, List.of("tcp://h:1")));
        assertTrue(message.contains("event-plane-addresses without event-plane=zmq"), message);
    }

    private static String refusal(GatewayConfig.Builder builder) {
        return assertThrows(IllegalArgumentException.class, builder::build).getMessage();
    }

    @Test
    void aWorkerOfAPlaneThatIsOffIsRefused() {
        final String message = refusal(config(EventPlaneKind.OFF));
        assertTrue(message.contains("event-plane is off"), message);
    }

    @Test
    void hashesOfASeedOfOnesOwnDoNotFitPublicOnes() {
        for (EventPlaneKind kind :
                new EventPlaneKind[] {EventPlaneKind.NATS, EventPlaneKind.JETSTREAM}) {
            final String message = refusal(config(kind).set(RouterSettings.HASH_SEED, 5L));
            assertTrue(message.contains("hash-seed=1337"), message);
            final GatewayConfig fits = config(kind).set(RouterSettings.HASH_SEED, 1337L).build();
            assertEquals(kind, fits.get(GatewaySettings.EVENT_PLANE));
        }
    }

    @Test
    void aResetOfWhatIsNotThereIsRefused() {
        for (GatewayConfig.Builder builder :
                List.of(
                        config(EventPlaneKind.NATS),
                        config(EventPlaneKind.JETSTREAM)
                                .set(GatewaySettings.SNAPSHOT_THRESHOLD, 0L))) {
            final String message = refusal(builder.set(GatewaySettings.RESET_STATES, true));
            assertTrue(message.contains("nothing to be reset"), message);
        }
        assertTrue(
                config(EventPlaneKind.JETSTREAM)
                        .set(GatewaySettings.RESET_STATES, true)
                        .build()
                        .get(GatewaySettings.RESET_STATES));
    }

    @Test
    void withoutEventsWhatIsSetForAPlaneIsLeftAlone() {
        final GatewayConfig zmq = zmq("tcp://h:1").set(GatewaySettings.KV_EVENTS, false).build();
        assertEquals(EventPlaneKind.OFF, zmq.get(GatewaySettings.EVENT_PLANE));
        assertTrue(
                zmq.warnings()
                        .contains(
                                "event-plane, event-plane-addresses have no effect without"
                                        + " kv-events on"),
                zmq.warnings().toString());
        final GatewayConfig reset =
                config(EventPlaneKind.JETSTREAM)
                        .set(GatewaySettings.RESET_STATES, true)
                        .set(GatewaySettings.KV_EVENTS, false)
                        .build();
        assertTrue(
                reset.warnings()
                        .contains("event-plane, reset-states have no effect without kv-events on"),
                reset.warnings().toString());
    }
}
