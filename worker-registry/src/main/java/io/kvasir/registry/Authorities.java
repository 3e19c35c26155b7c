package io.kvasir.registry;

import java.io.ByteArrayInputStream;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.security.GeneralSecurityException;
import java.security.KeyStore;
import java.security.cert.Certificate;
import java.security.cert.CertificateException;
import java.security.cert.CertificateFactory;
import java.util.Collection;
import java.util.List;
import java.util.function.Consumer;

import javax.net.ssl.SSLContext;
import javax.net.ssl.TrustManagerFactory;

/** TLS towards a server whose certificate certain authorities have signed. */
public final class Authorities {
    private Authorities() {}

    /**
     * Reads their certificates.
     *
     * @param option what names the file, for messages
     * @param fileOrNull PEM or DER; null for the JVM's own authorities
     * @return null for those
     * @throws IllegalArgumentException with option, file and what is wrong, where the file cannot
     *     be used
     */
    public static SSLContext tlsOrNull(String option, Path fileOrNull) {
        if (fileOrNull == null) {
            return null;
        }
        try {
            return tls(certificates(fileOrNull));
        } catch (IOException | GeneralSecurityException e) {
            throw new IllegalArgumentException(
                    option
                            + " "
                            + fileOrNull
                            + ": "
                            + FailureText.of(e)
                            + "; it must have certificates of authorities as PEM",
                    e);
        }
    }

    /**
     * The same by what the file has when a connection is opened: it may change.
     *
     * @param option what names the file, for messages
     * @param fileOrNull PEM or DER; null for the JVM's own authorities
     * @param problem gets option, file and what is wrong, once for each change after which the file
     *     cannot be used; connections go by what it had before, then. By any thread
     * @return null for those of the JVM
     * @throws IllegalArgumentException with option, file and what is wrong, where the file cannot
     *     be used now
     */
    public static SSLContext followedOrNull(
            String option, Path fileOrNull, Consumer<String> problem) {
        return fileOrNull == null
                ? null
                : FollowedTls.of(List.of(fileOrNull), () -> tlsOrNull(option, fileOrNull), problem);
    }

    private static SSLContext tls(KeyStore trusted) throws GeneralSecurityException {
        final TrustManagerFactory trust =
                TrustManagerFactory.getInstance(TrustManagerFactory.getDefaultAlgorithm());
        trust.init(trusted);
        final SSLContext tls = SSLContext.getInstance("TLS");
        tls.init(null, trust.getTrustManagers(), null);
        return tls;
    }

    /**
     * The certificates of a file of PEM, or the one of a file of DER, each to be trusted.
     *
     * @throws IOException if it cannot be used; its message says why in words, to be put after the
     *     option and the file
     */
    public static KeyStore certificates(Path file) throws IOException, GeneralSecurityException {
        final byte[] bytes = ConfiguredFile.read(file);
        PemBlocks.check(new String(bytes, StandardCharsets.ISO_8859_1));
        final KeyStore store = KeyStore.getInstance("PKCS12");
        store.load(null, null);
        for (Certificate each : parsed(bytes)) {
            store.setCertificateEntry("ca-" + store.size(), each);
        }
        if (store.size() == 0) {
            throw new IOException("it has no certificate");
        }
        return store;
    }

    private static Collection<? extends Certificate> parsed(byte[] bytes)
            throws IOException, GeneralSecurityException {
        final CertificateFactory factory = CertificateFactory.getInstance("X.509");
        try {
            return factory.generateCertificates(new ByteArrayInputStream(bytes));
        } catch (CertificateException e) {
            throw new IOException("it has no certificate, or one that is damaged", e);
        }
    }
}
