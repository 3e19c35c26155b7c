package io.kvasir.gateway.upstream;

import io.kvasir.gateway.config.EventPlaneKind;
import io.kvasir.gateway.config.GatewayConfig;
import io.kvasir.gateway.config.GatewayException;
import io.kvasir.gateway.config.GatewaySettings;
import io.kvasir.gateway.config.SnapshotLockKind;
import io.kvasir.nats.NatsAccess;
import io.kvasir.nats.NatsStore;
import io.kvasir.nats.events.EventSubjects;
import io.kvasir.nats.events.PlaneSnapshotConfig;
import io.kvasir.nats.events.PlaneSnapshots;
import io.kvasir.nats.state.NatsStateStore;
import io.kvasir.registry.LeaseLock;
import io.kvasir.registry.LeasedStore;
import io.kvasir.router.settings.RouterSettings;

import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

import java.io.IOException;
import java.time.Duration;

/** Snapshots of the event planes of a gateway's routers, shared with other gateways. Stateless. */
final class SharedSnapshots {
    private static final Logger LOG = LoggerFactory.getLogger(SharedSnapshots.class);
    private static final String LOCKS = "kvasir-locks";
    private static final String ETCD_LOCKS = "/kvasir/locks/";
    private static final Duration LOCK_TTL = Duration.ofSeconds(10);

    private SharedSnapshots() {}

    /**
     * Opens those of a pool, and reads what there is.
     *
     * @return null where none are shared
     * @throws GatewayException if the settings do not allow it, or {@link
     *     GatewaySettings#RESET_STATES} fails
     */
    static PlaneSnapshots openOrNull(GatewayConfig config, WorkerPool pool) {
        final long threshold = config.get(GatewaySettings.SNAPSHOT_THRESHOLD);
        if (threshold == PlaneSnapshotConfig.NEVER
                || config.get(GatewaySettings.EVENT_PLANE) != EventPlaneKind.JETSTREAM) {
            return null;
        }
        try {
            final NatsAccess access = NatsAccesses.of(config);
            final EventSubjects names = EventPlanes.names(config, pool);
            return PlaneSnapshots.open(
                    access,
                    names,
                    new NatsStateStore(
                            access,
                            names.bucket(),
                            new LeaseLock(locks(config, access), names.bucket(), LOG::warn)),
                    new PlaneSnapshotConfig(
                            threshold,
                            config.get(RouterSettings.BLOCK_SIZE),
                            config.get(GatewaySettings.EVENT_STREAM_REPLICAS),
                            config.get(GatewaySettings.RESET_STATES)));
        } catch (IOException | IllegalArgumentException e) {
            throw new GatewayException("no shared snapshots: " + e.getMessage(), e);
        }
    }

    private static LeasedStore locks(GatewayConfig config, NatsAccess access) {
        return config.get(GatewaySettings.SNAPSHOT_LOCK) == SnapshotLockKind.NATS
                ? new NatsStore(access, LOCKS, LOCK_TTL)
                : EtcdStores.open(config, LOCK_TTL, ETCD_LOCKS);
    }
}
