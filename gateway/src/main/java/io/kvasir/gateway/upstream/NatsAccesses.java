package io.kvasir.gateway.upstream;

import io.kvasir.gateway.config.GatewayConfig;
import io.kvasir.gateway.config.GatewaySettings;
import io.kvasir.nats.NatsAccess;

import java.time.Duration;

/** How a gateway reaches NATS, for whatever it uses it. */
public final class NatsAccesses {
    private static final Duration TIMEOUT = Duration.ofSeconds(5);

    private NatsAccesses() {}

    /**
     * By the settings that begin with {@code nats-}; connects to nothing.
     *
     * @throws IllegalArgumentException naming the file that cannot be read
     */
    public static NatsAccess of(GatewayConfig config) {
        return new NatsAccess(
                config.get(GatewaySettings.NATS_URL),
                config.get(GatewaySettings.NATS_CREDENTIALS),
                Authorities.tlsOrNull(config.get(GatewaySettings.NATS_TRUST_STORE)),
                TIMEOUT);
    }
}
