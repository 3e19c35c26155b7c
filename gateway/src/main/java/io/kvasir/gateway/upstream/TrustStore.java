package io.kvasir.gateway.upstream;

import io.kvasir.gateway.config.GatewayConfig;
import io.kvasir.gateway.config.GatewayException;
import io.kvasir.gateway.config.GatewaySettings;
import io.kvasir.gateway.config.Secret;
import io.kvasir.registry.Authorities;

import org.eclipse.jetty.util.ssl.SslContextFactory;

import java.io.IOException;
import java.io.InputStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.GeneralSecurityException;
import java.security.KeyStore;

/**
 * What the certificates of {@code https://} workers are checked against, which can be read again.
 * Thread-safe.
 */
public final class TrustStore {
    private static final String PEM = "-----BEGIN CERTIFICATE-----";

    private final Path fileOrNull;
    private final Secret passwordOrNull;
    private final SslContextFactory.Client tls = new SslContextFactory.Client();

    /**
     * Reads the file.
     *
     * @throws GatewayException if it cannot be used
     */
    public TrustStore(GatewayConfig config) {
        fileOrNull = config.get(GatewaySettings.WORKER_TRUST_STORE);
        passwordOrNull = config.get(GatewaySettings.WORKER_TRUST_STORE_PASSWORD);
        if (fileOrNull != null) {
            tls.setTrustStore(read());
        }
    }

    /** TLS towards workers: names are checked too. */
    public SslContextFactory.Client client() {
        return tls;
    }

    /**
     * Reads the file again, for connections that are opened from now on; if that fails, what it had
     * before stays.
     *
     * @throws GatewayException if it cannot be used
     */
    public void reload() {
        if (fileOrNull == null) {
            return;
        }
        final KeyStore now = read();
        try {
            tls.reload(it -> it.setTrustStore(now));
        } catch (Exception e) {
            throw unusable(e);
        }
    }

    private KeyStore read() {
        try {
            return load(fileOrNull, passwordOrNull);
        } catch (IOException | GeneralSecurityException e) {
            throw unusable(e);
        }
    }

    private GatewayException unusable(Exception e) {
        return new GatewayException(
                "cannot read worker-trust-store "
                        + fileOrNull
                        + ": "
                        + e.getMessage()
                        + "; it must be PEM, or PKCS12 with worker-trust-store-password",
                e);
    }

    private static KeyStore load(Path file, Secret passwordOrNull)
            throws IOException, GeneralSecurityException {
        if (isPem(file)) {
            return Authorities.certificates(file);
        }
        final KeyStore store = KeyStore.getInstance("PKCS12");
        try (InputStream in = Files.newInputStream(file)) {
            store.load(in, passwordOrNull == null ? null : passwordOrNull.value().toCharArray());
        }
        if (store.size() == 0) {
            throw new IOException("it has no certificate");
        }
        return store;
    }

    private static boolean isPem(Path file) throws IOException {
        return new String(Files.readAllBytes(file), StandardCharsets.ISO_8859_1).contains(PEM);
    }
}
