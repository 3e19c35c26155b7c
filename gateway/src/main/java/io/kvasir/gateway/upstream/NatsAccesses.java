package io.kvasir.gateway.upstream;

import io.kvasir.gateway.config.GatewayConfig;
import io.kvasir.gateway.config.GatewaySettings;
import io.kvasir.nats.NatsAccess;
import io.kvasir.registry.Authorities;

import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

import java.time.Duration;

/** How a gateway reaches NATS, for whatever it uses it. */
public final class NatsAccesses {
    private static final Logger LOG = LoggerFactory.getLogger(NatsAccesses.class);
    private static final Duration TIMEOUT = Duration.ofSeconds(5);

    private static final String PREFILL_SUFFIX = "-prefill";

    private NatsAccesses() {}

    /** The component of a pool's workers, in subjects of NATS. */
    static String component(GatewayConfig config, WorkerPool pool) {
        final String component = config.get(GatewaySettings.NATS_COMPONENT);
        return pool == WorkerPool.MAIN ? component : component + PREFILL_SUFFIX;
    }

    /**
     * Reads the files of {@link #of}, where NATS is used.
     *
     * @throws IllegalArgumentException naming the file that cannot be read
     */
    public static void check(GatewayConfig config) {
        if (config.usesNats()) {
            of(config);
        }
    }

    /**
     * By the settings that begin with {@code nats-}; connects to nothing. Each connection goes by
     * what the files have when it is opened.
     *
     * @throws IllegalArgumentException naming the file that cannot be read
     */
    public static NatsAccess of(GatewayConfig config) {
        return new NatsAccess(
                config.get(GatewaySettings.NATS_URL),
                config.get(GatewaySettings.NATS_CREDENTIALS),
                Authorities.followedOrNull(
                        GatewaySettings.NATS_TRUST_STORE.name(),
                        config.get(GatewaySettings.NATS_TRUST_STORE),
                        problem -> LOG.warn("{}; what was read before stays", problem)),
                TIMEOUT);
    }
}
