package io.kvasir.gateway.upstream;

import io.kvasir.gateway.config.EtcdAccess;
import io.kvasir.gateway.config.GatewayConfig;
import io.kvasir.gateway.config.GatewaySettings;
import io.kvasir.registry.LeasedStore;
import io.kvasir.registry.etcd.EtcdOptions;
import io.kvasir.registry.etcd.EtcdStore;

import java.time.Duration;

/** How a gateway reaches etcd, for whatever it uses it. Stateless. */
public final class EtcdStores {
    private static final String SETTINGS = "discovery-etcd-";

    private EtcdStores() {}

    /**
     * By the settings that begin with {@code discovery-etcd-}; connects to nothing. Each connection
     * and login goes by what the files have then.
     *
     * @param ttl how long a key outlives its last renewal
     * @param prefix of all keys
     * @throws IllegalArgumentException if a file cannot be read or a value cannot be
     */
    public static LeasedStore open(GatewayConfig config, Duration ttl, String prefix) {
        return new EtcdStore(options(config, ttl), prefix);
    }

    /**
     * Reads the files of {@link #open}, where members of etcd are named.
     *
     * @throws IllegalArgumentException if one cannot be read or a value cannot be
     */
    public static void check(GatewayConfig config) {
        if (!config.get(GatewaySettings.DISCOVERY_ETCD_ENDPOINTS).isEmpty()) {
            options(config, config.get(GatewaySettings.DISCOVERY_TTL));
        }
    }

    private static EtcdOptions options(GatewayConfig config, Duration ttl) {
        return new EtcdAccess(
                        SETTINGS,
                        config.get(GatewaySettings.DISCOVERY_ETCD_ENDPOINTS),
                        config.get(GatewaySettings.DISCOVERY_ETCD_USER),
                        config.get(GatewaySettings.DISCOVERY_ETCD_PASSWORD_FILE),
                        config.get(GatewaySettings.DISCOVERY_ETCD_TRUST_STORE))
                .options(ttl);
    }
}
