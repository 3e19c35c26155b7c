package io.kvasir.gateway.discovery;

import io.kvasir.gateway.config.EventPlaneKind;
import io.kvasir.gateway.config.GatewayConfig;
import io.kvasir.gateway.config.GatewayException;
import io.kvasir.gateway.config.GatewaySettings;
import io.kvasir.gateway.upstream.Discovery;
import io.kvasir.gateway.upstream.EtcdStores;
import io.kvasir.gateway.upstream.NatsAccesses;
import io.kvasir.nats.NatsStore;
import io.kvasir.registry.LeasedStore;

import java.util.ArrayList;
import java.util.List;
import java.util.stream.Collectors;

/** The sources of this package that a configuration names. */
public final class Discoveries {
    private Discoveries() {}

    /**
     * Makes them; nothing is connected to yet.
     *
     * @throws GatewayException if a file cannot be read or a value cannot be
     */
    public static List<Discovery> of(GatewayConfig config) {
        final List<Discovery> all = new ArrayList<>();
        try {
            if (config.get(GatewaySettings.DISCOVERY_NATS_BUCKET) != null) {
                all.add(registrations(config, nats(config)));
            }
            if (!config.get(GatewaySettings.DISCOVERY_ETCD_ENDPOINTS).isEmpty()) {
                all.add(registrations(config, etcd(config)));
            }
            if (isInKubernetes(config)) {
                all.add(KubernetesDiscovery.of(config));
            }
        } catch (IllegalArgumentException e) {
            throw refusal(e);
        }
        return all;
    }

    /**
     * Checks that Kubernetes can be asked where a configuration says so, and asks nothing. NATS and
     * etcd have checks of their own.
     *
     * @throws GatewayException as {@link #of} does
     */
    public static void checkKubernetes(GatewayConfig config) {
        if (isInKubernetes(config)) {
            try {
                KubernetesDiscovery.of(config).close();
            } catch (IllegalArgumentException e) {
                throw refusal(e);
            }
        }
    }

    private static boolean isInKubernetes(GatewayConfig config) {
        return config.get(GatewaySettings.DISCOVERY_KUBERNETES_SELECTOR) != null
                || config.get(GatewaySettings.DISCOVERY_KUBERNETES_RESOURCES);
    }

    private static GatewayException refusal(IllegalArgumentException cause) {
        return new GatewayException("cannot discover workers: " + cause.getMessage(), cause);
    }

    private static Discovery registrations(GatewayConfig config, LeasedStore store) {
        return new RegistryDiscovery(
                store,
                config.get(GatewaySettings.DISCOVERY_NAMESPACE),
                config.models().stream()
                        .map(model -> model.get(GatewaySettings.MODEL))
                        .collect(Collectors.toSet()),
                config.get(GatewaySettings.EVENT_PLANE) != EventPlaneKind.OFF);
    }

    private static LeasedStore nats(GatewayConfig config) {
        return new NatsStore(
                NatsAccesses.of(config),
                config.get(GatewaySettings.DISCOVERY_NATS_BUCKET),
                config.get(GatewaySettings.DISCOVERY_TTL));
    }

    private static LeasedStore etcd(GatewayConfig config) {
        return EtcdStores.open(
                config,
                config.get(GatewaySettings.DISCOVERY_TTL),
                config.get(GatewaySettings.DISCOVERY_ETCD_PREFIX));
    }
}
