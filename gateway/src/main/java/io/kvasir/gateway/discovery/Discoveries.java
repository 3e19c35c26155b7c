package io.kvasir.gateway.discovery;

import io.kvasir.gateway.config.BearerTokens;
import io.kvasir.gateway.config.GatewayConfig;
import io.kvasir.gateway.config.GatewayException;
import io.kvasir.gateway.config.GatewaySettings;
import io.kvasir.gateway.upstream.Authorities;
import io.kvasir.gateway.upstream.Discovery;
import io.kvasir.gateway.upstream.NatsAccesses;
import io.kvasir.nats.NatsStore;
import io.kvasir.registry.LeasedStore;
import io.kvasir.registry.etcd.EtcdOptions;
import io.kvasir.registry.etcd.EtcdStore;

import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;

/** The sources of this package that a configuration names. */
public final class Discoveries {
    private static final Duration TIMEOUT = Duration.ofSeconds(5);

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
            if (config.get(GatewaySettings.DISCOVERY_KUBERNETES_SELECTOR) != null) {
                all.add(KubernetesDiscovery.of(config));
            }
        } catch (IllegalArgumentException e) {
            throw new GatewayException("cannot discover workers: " + e.getMessage(), e);
        }
        return all;
    }

    private static Discovery registrations(GatewayConfig config, LeasedStore store) {
        return new RegistryDiscovery(
                store,
                config.get(GatewaySettings.DISCOVERY_NAMESPACE),
                config.get(GatewaySettings.MODEL));
    }

    private static LeasedStore nats(GatewayConfig config) {
        return new NatsStore(
                NatsAccesses.of(config),
                config.get(GatewaySettings.DISCOVERY_NATS_BUCKET),
                config.get(GatewaySettings.DISCOVERY_TTL));
    }

    private static LeasedStore etcd(GatewayConfig config) {
        final String user = config.get(GatewaySettings.DISCOVERY_ETCD_USER);
        final Path password = config.get(GatewaySettings.DISCOVERY_ETCD_PASSWORD_FILE);
        if ((user == null) != (password == null)) {
            throw new IllegalArgumentException(
                    "discovery-etcd-user and discovery-etcd-password-file go together");
        }
        return new EtcdStore(
                new EtcdOptions(
                        config.get(GatewaySettings.DISCOVERY_ETCD_ENDPOINTS),
                        config.get(GatewaySettings.DISCOVERY_TTL),
                        TIMEOUT,
                        user == null
                                ? null
                                : new EtcdOptions.Login(
                                        user, BearerTokens.lines(password).getFirst()),
                        Authorities.tlsOrNull(
                                config.get(GatewaySettings.DISCOVERY_ETCD_TRUST_STORE))),
                config.get(GatewaySettings.DISCOVERY_ETCD_PREFIX));
    }
}
