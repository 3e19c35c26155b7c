package io.kvasir.gateway.upstream;

import io.kvasir.gateway.config.GatewayConfig;
import io.kvasir.gateway.config.GatewayException;
import io.kvasir.gateway.config.GatewaySettings;
import io.kvasir.nats.replica.NatsReplicaConfig;
import io.kvasir.nats.replica.NatsReplicaLink;
import io.kvasir.router.replica.ReplicaLink;
import io.kvasir.router.settings.RouterSettings;

import java.util.Objects;

/** Links of a gateway's routers to those of other gateways over the same workers. Stateless. */
final class ReplicaLinks {
    private ReplicaLinks() {}

    /**
     * A link for the router of a pool, not yet connected.
     *
     * @return null where {@link GatewaySettings#REPLICA_SYNC} is off
     * @throws GatewayException if NATS cannot be reached by the settings, naming what is wrong
     */
    static ReplicaLink openOrNull(GatewayConfig config, WorkerPool pool) {
        if (!config.get(GatewaySettings.REPLICA_SYNC)) {
            return null;
        }
        try {
            return new NatsReplicaLink(
                    new NatsReplicaConfig(
                            NatsAccesses.of(config),
                            config.get(GatewaySettings.NATS_NAMESPACE),
                            config.replicaComponent(pool == WorkerPool.PREFILL),
                            Objects.requireNonNullElse(
                                    config.get(GatewaySettings.NATS_ENDPOINT), ""),
                            config.get(GatewaySettings.REPLICA_WIRE),
                            config.get(RouterSettings.BLOCK_SIZE)));
        } catch (IllegalArgumentException e) {
            throw new GatewayException("cannot sync replicas over NATS: " + e.getMessage(), e);
        }
    }
}
