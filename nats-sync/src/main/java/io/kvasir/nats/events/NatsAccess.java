package io.kvasir.nats.events;

import io.nats.client.ConnectionListener;
import io.nats.client.ErrorListener;
import io.nats.client.Nats;
import io.nats.client.Options;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.Objects;

/**
 * Where NATS is and how one is let in.
 *
 * @param servers addresses with commas between; {@code tls://} in front of one wants TLS
 * @param credentials file of a user's JWT and key; null for none
 * @param trustStore Java key store with the certificates of those who sign servers' ones; null for
 *     those of the JVM
 * @param keyStore Java key store with our own certificate; null for none
 * @param storePassword of both stores, empty for none
 * @param timeout of connecting and of each request, at least 100 ms
 */
public record NatsAccess(
        String servers,
        Path credentials,
        Path trustStore,
        Path keyStore,
        String storePassword,
        Duration timeout) {
    private static final Duration RECONNECT_WAIT = Duration.ofMillis(200);
    private static final int FOR_EVER = -1;
    private static final Duration PING = Duration.ofSeconds(5);

    /**
     * Checks the values.
     *
     * @throws IllegalArgumentException naming the one that cannot be
     */
    public NatsAccess {
        Objects.requireNonNull(servers, "servers");
        Objects.requireNonNull(storePassword, "storePassword");
        if (timeout.toMillis() < 100) {
            throw new IllegalArgumentException("timeout=" + timeout + ", at least 100 ms");
        }
        requireFile("credentials", credentials);
        requireFile("trustStore", trustStore);
        requireFile("keyStore", keyStore);
    }

    private static void requireFile(String name, Path file) {
        if (file != null && !Files.isReadable(file)) {
            throw new IllegalArgumentException(name + "=" + file + ": no file that can be read");
        }
    }

    /** Without credentials and stores; 2 s for each request. */
    public static NatsAccess of(String servers) {
        return new NatsAccess(servers, null, null, null, "", Duration.ofSeconds(2));
    }

    /** The same with a file of credentials. */
    public NatsAccess withCredentials(Path file) {
        return new NatsAccess(servers, file, trustStore, keyStore, storePassword, timeout);
    }

    /** The same over TLS with stores of certificates, either of which may be null. */
    public NatsAccess withStores(Path trusted, Path own, String password) {
        return new NatsAccess(servers, credentials, trusted, own, password, timeout);
    }

    /**
     * Connects once; later the connection is made again by itself, for ever.
     *
     * @throws IOException if it cannot be made now, naming the servers
     */
    io.nats.client.Connection connect(
            String name, ConnectionListener listener, ErrorListener errors)
            throws IOException, InterruptedException {
        final Options.Builder options =
                Options.builder()
                        .servers(servers.split(",", -1))
                        .connectionName(name)
                        .connectionTimeout(timeout)
                        .maxReconnects(FOR_EVER)
                        .reconnectWait(RECONNECT_WAIT)
                        .pingInterval(PING)
                        .connectionListener(listener)
                        .errorListener(errors);
        if (credentials != null) {
            options.authHandler(Nats.credentials(credentials.toString()));
        }
        if (trustStore != null) {
            options.truststorePath(trustStore.toString());
            options.truststorePassword(storePassword.toCharArray());
        }
        if (keyStore != null) {
            options.keystorePath(keyStore.toString());
            options.keystorePassword(storePassword.toCharArray());
        }
        try {
            return Nats.connect(options.build());
        } catch (IOException e) {
            throw new IOException(servers + ": " + e.getMessage(), e);
        }
    }
}
