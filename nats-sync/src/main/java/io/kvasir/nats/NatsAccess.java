package io.kvasir.nats;

import io.nats.client.Nats;
import io.nats.client.Options;

import java.nio.file.Path;
import java.time.Duration;

import javax.net.ssl.SSLContext;

/**
 * How NATS is reached.
 *
 * @param servers such as {@code nats://nats:4222} or {@code tls://…}; several with commas between
 * @param credentials file of a user's JWT and seed; null for none
 * @param tls for {@code tls://} servers; null for the JVM's own
 * @param timeout of each request, at least 100 ms
 */
public record NatsAccess(String servers, Path credentials, SSLContext tls, Duration timeout) {
    private static final Duration RECONNECT_WAIT = Duration.ofMillis(200);
    private static final int FOR_EVER = -1;

    /**
     * Checks the values.
     *
     * @throws IllegalArgumentException naming the one that cannot be
     */
    public NatsAccess {
        if (servers.isBlank()) {
            throw new IllegalArgumentException("no NATS server is named");
        }
        if (timeout.toMillis() < 100) {
            throw new IllegalArgumentException("timeout=" + timeout + ", at least 100 ms");
        }
    }

    /** Without credentials, requests of at most 2 s. */
    public static NatsAccess of(String servers) {
        return new NatsAccess(servers, null, null, Duration.ofSeconds(2));
    }

    /** Options of a connection that comes back by itself. */
    Options.Builder options(String name) {
        final Options.Builder options =
                Options.builder()
                        .server(servers)
                        .connectionName(name)
                        .connectionTimeout(timeout)
                        .maxReconnects(FOR_EVER)
                        .reconnectWait(RECONNECT_WAIT);
        if (credentials != null) {
            options.authHandler(Nats.credentials(credentials.toString()));
        }
        if (tls != null) {
            options.sslContext(tls);
        }
        return options;
    }
}
