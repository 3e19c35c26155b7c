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

/** What the certificates of {@code https://} workers are checked against. */
public final class TrustStore {
    private static final String PEM = "-----BEGIN CERTIFICATE-----";

    private TrustStore() {}

    /**
     * TLS towards workers: names are checked too.
     *
     * @throws GatewayException if the store cannot be read
     */
    public static SslContextFactory.Client client(GatewayConfig config) {
        final SslContextFactory.Client tls = new SslContextFactory.Client();
        final Path file = config.get(GatewaySettings.WORKER_TRUST_STORE);
        if (file != null) {
            try {
                tls.setTrustStore(
                        load(file, config.get(GatewaySettings.WORKER_TRUST_STORE_PASSWORD)));
            } catch (IOException | GeneralSecurityException e) {
                throw new GatewayException(
                        "cannot read worker-trust-store "
                                + file
                                + ": "
                                + e.getMessage()
                                + "; it must be PEM, or PKCS12 with worker-trust-store-password",
                        e);
            }
        }
        return tls;
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
