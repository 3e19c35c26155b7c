package io.kvasir.registry;

import java.io.IOException;
import java.io.InputStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.GeneralSecurityException;
import java.security.KeyStore;
import java.security.cert.Certificate;
import java.security.cert.CertificateFactory;

import javax.net.ssl.SSLContext;
import javax.net.ssl.TrustManagerFactory;

/** TLS towards a server whose certificate certain authorities have signed. */
public final class Authorities {
    private Authorities() {}

    /**
     * Reads their certificates.
     *
     * @param pem null for the JVM's own authorities
     * @return null for those
     * @throws IllegalArgumentException naming the file that cannot be read
     */
    public static SSLContext tlsOrNull(Path pem) {
        if (pem == null) {
            return null;
        }
        try {
            return tls(pem);
        } catch (IOException | GeneralSecurityException e) {
            throw new IllegalArgumentException(
                    "cannot read the authorities of " + pem + ": " + e.getMessage(), e);
        }
    }

    private static SSLContext tls(Path pem) throws IOException, GeneralSecurityException {
        final TrustManagerFactory trust =
                TrustManagerFactory.getInstance(TrustManagerFactory.getDefaultAlgorithm());
        trust.init(certificates(pem));
        final SSLContext tls = SSLContext.getInstance("TLS");
        tls.init(null, trust.getTrustManagers(), null);
        return tls;
    }

    /**
     * The certificates of a PEM file, each to be trusted.
     *
     * @throws IOException if it cannot be read or has none
     */
    public static KeyStore certificates(Path pem) throws IOException, GeneralSecurityException {
        final KeyStore store = KeyStore.getInstance("PKCS12");
        store.load(null, null);
        try (InputStream in = Files.newInputStream(pem)) {
            for (Certificate each :
                    CertificateFactory.getInstance("X.509").generateCertificates(in)) {
                store.setCertificateEntry("ca-" + store.size(), each);
            }
        }
        if (store.size() == 0) {
            throw new IOException("it has no certificate");
        }
        return store;
    }
}
