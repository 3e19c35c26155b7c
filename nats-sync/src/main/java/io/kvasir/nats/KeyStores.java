package io.kvasir.nats;

import java.io.IOException;
import java.nio.file.Path;
import java.security.GeneralSecurityException;
import java.security.KeyStore;

import javax.net.ssl.KeyManagerFactory;
import javax.net.ssl.SSLContext;
import javax.net.ssl.TrustManagerFactory;

/** TLS by Java key stores. */
public final class KeyStores {
    private KeyStores() {}

    /**
     * Reads them.
     *
     * @param trusted with the certificates of the authorities that sign servers' ones; null for
     *     those of the JVM
     * @param own with the own certificate and key; null for none
     * @param password of both stores and of the key, empty for none
     * @return null where both are null
     * @throws IllegalArgumentException naming the file that cannot be used
     */
    public static SSLContext tlsOrNull(Path trusted, Path own, String password) {
        if (trusted == null && own == null) {
            return null;
        }
        final char[] secret = password.toCharArray();
        try {
            final KeyManagerFactory keys =
                    KeyManagerFactory.getInstance(KeyManagerFactory.getDefaultAlgorithm());
            keys.init(loaded(own, secret), secret);
            final TrustManagerFactory trust =
                    TrustManagerFactory.getInstance(TrustManagerFactory.getDefaultAlgorithm());
            trust.init(trusted == null ? null : loaded(trusted, secret));
            final SSLContext tls = SSLContext.getInstance("TLS");
            tls.init(keys.getKeyManagers(), trust.getTrustManagers(), null);
            return tls;
        } catch (GeneralSecurityException e) {
            throw new IllegalArgumentException(
                    "cannot use the key stores " + trusted + ", " + own + ": " + e.getMessage(), e);
        }
    }

    /** The store of a file; an empty one for null. */
    private static KeyStore loaded(Path file, char[] password) throws GeneralSecurityException {
        try {
            if (file != null) {
                return KeyStore.getInstance(file.toFile(), password);
            }
            final KeyStore none = KeyStore.getInstance(KeyStore.getDefaultType());
            none.load(null, null);
            return none;
        } catch (IOException | IllegalArgumentException e) { // illegal: no such file
            throw new IllegalArgumentException(
                    "cannot read the key store " + file + ": " + e.getMessage(), e);
        }
    }
}
