package io.kvasir.gateway.upstream;

import io.kvasir.gateway.config.GatewayConfig;
import io.kvasir.gateway.config.GatewayException;
import io.kvasir.gateway.config.GatewaySettings;
import io.kvasir.gateway.config.Secret;
import io.kvasir.registry.Authorities;
import io.kvasir.registry.FailureText;
import io.kvasir.registry.StoreFile;

import org.eclipse.jetty.util.ssl.SslContextFactory;

import java.io.IOException;
import java.nio.file.Path;
import java.security.GeneralSecurityException;
import java.security.KeyStore;

/**
 * What the certificates of {@code https://} workers are checked against, which can be read again.
 * Thread-safe.
 */
public final class TrustStore {
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
            final KeyStore store =
                    StoreFile.trustedOrNull(
                            fileOrNull,
                            passwordOrNull == null ? "" : passwordOrNull.value(),
                            GatewaySettings.WORKER_TRUST_STORE_PASSWORD.name());
            return store == null ? Authorities.certificates(fileOrNull) : store;
        } catch (IOException | GeneralSecurityException e) {
            throw unusable(e);
        }
    }

    private GatewayException unusable(Exception e) {
        return new GatewayException(
                GatewaySettings.WORKER_TRUST_STORE.name()
                        + " "
                        + fileOrNull
                        + ": "
                        + FailureText.of(e)
                        + "; it must have certificates of authorities, as PEM, or PKCS12 with "
                        + GatewaySettings.WORKER_TRUST_STORE_PASSWORD.name(),
                e);
    }
}
