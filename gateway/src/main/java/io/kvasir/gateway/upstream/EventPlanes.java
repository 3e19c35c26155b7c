package io.kvasir.gateway.upstream;

import io.kvasir.gateway.config.EventPlaneKind;
import io.kvasir.gateway.config.GatewayConfig;
import io.kvasir.gateway.config.GatewayException;
import io.kvasir.gateway.config.GatewaySettings;
import io.kvasir.nats.NatsAccess;
import io.kvasir.nats.events.EventSubjects;
import io.kvasir.nats.events.JetStreamEventSource;
import io.kvasir.nats.events.NatsEventSource;
import io.kvasir.nats.events.NatsLoadSource;
import io.kvasir.nats.events.PlaneSnapshots;
import io.kvasir.pipeline.source.EventPlane;
import io.kvasir.pipeline.source.LoadPlane;
import io.kvasir.pipeline.source.ZmqConfig;
import io.kvasir.pipeline.source.ZmqEventPlaneSource;
import io.kvasir.pipeline.source.ZmqLoadPlaneSource;

import java.util.List;
import java.util.function.Function;

/** What feeds the event planes of a gateway's routers. Stateless. */
final class EventPlanes {
    private EventPlanes() {}

    /**
     * What feeds the router of a pool; connects to nothing before it is called.
     *
     * @param snapshotsOrNull what its workers are restored from; null for nothing
     * @return null where {@link GatewaySettings#EVENT_PLANE} is off
     * @throws GatewayException if NATS cannot be reached by the settings, naming what is wrong
     */
    static Function<EventPlane, AutoCloseable> sourceOrNull(
            GatewayConfig config, WorkerPool pool, PlaneSnapshots snapshotsOrNull) {
        final EventPlaneKind kind = config.get(GatewaySettings.EVENT_PLANE);
        if (kind == EventPlaneKind.OFF) {
            return null;
        }
        final EventSubjects names = names(config, pool);
        final boolean recover = config.get(GatewaySettings.EVENT_RECOVERY);
        if (kind == EventPlaneKind.ZMQ) {
            final List<String> addresses = config.get(GatewaySettings.EVENT_PLANE_ADDRESSES);
            return plane ->
                    new ZmqEventPlaneSource(
                            addresses, names.zmqTopics(), ZmqConfig.defaults(), plane, recover);
        }
        try {
            final NatsAccess access = NatsAccesses.of(config);
            final int replicas = config.get(GatewaySettings.EVENT_STREAM_REPLICAS);
            return plane ->
                    kind == EventPlaneKind.NATS
                            ? new NatsEventSource(access, names, plane, recover)
                            : new JetStreamEventSource(
                                    access,
                                    names,
                                    replicas,
                                    null,
                                    plane,
                                    snapshotsOrNull == null ? null : snapshotsOrNull.start());
        } catch (IllegalArgumentException e) {
            throw new GatewayException("cannot take events from NATS: " + e.getMessage(), e);
        }
    }

    /**
     * What feeds the load reports of a pool's workers; connects to nothing before it is called.
     *
     * @return null where {@link GatewaySettings#EVENT_PLANE} is off
     * @throws GatewayException if NATS cannot be reached by the settings, naming what is wrong
     */
    static Function<LoadPlane, AutoCloseable> loadsOrNull(GatewayConfig config, WorkerPool pool) {
        final EventPlaneKind kind = config.get(GatewaySettings.EVENT_PLANE);
        if (kind == EventPlaneKind.OFF) {
            return null;
        }
        final EventSubjects names = names(config, pool);
        if (kind == EventPlaneKind.ZMQ) {
            final List<String> addresses = config.get(GatewaySettings.EVENT_PLANE_ADDRESSES);
            return plane ->
                    new ZmqLoadPlaneSource(
                            addresses,
                            names.about(EventSubjects.KV_METRICS).zmqTopics(),
                            ZmqConfig.defaults(),
                            plane);
        }
        try {
            final NatsAccess access = NatsAccesses.of(config);
            return plane -> new NatsLoadSource(access, names, plane);
        } catch (IllegalArgumentException e) {
            throw new GatewayException("cannot take load reports from NATS: " + e.getMessage(), e);
        }
    }

    /** Names of what the workers of a pool publish. */
    static EventSubjects names(GatewayConfig config, WorkerPool pool) {
        return EventSubjects.kvEvents(
                config.get(GatewaySettings.NATS_NAMESPACE),
                NatsAccesses.component(config, pool),
                config.get(GatewaySettings.NATS_ENDPOINT));
    }
}
