package io.kvasir.nats;

import io.kvasir.testsupport.Keytool;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.GeneralSecurityException;

/** A key and a certificate that it has signed itself, as key stores and as PEM. */
final class TestKeys {
    static final String PASSWORD = Keytool.PASSWORD;

    private final Path folder;
    private final String name;

    private TestKeys(Path folder, String name) {
        this.folder = folder;
        this.name = name;
    }

    /** Makes them for the host 127.0.0.1, in files that begin with a name. */
    static TestKeys make(Path folder, String name)
            throws IOException, InterruptedException, GeneralSecurityException {
        return make(folder, name, "ip:127.0.0.1");
    }

    /** The same for another host, such as {@code dns:other.example}. */
    static TestKeys make(Path folder, String name, String host)
            throws IOException, InterruptedException, GeneralSecurityException {
        final TestKeys keys = new TestKeys(folder, name);
        Files.writeString(keys.certificate(), Keytool.certificate(keys.keyStore(), name, host));
        Files.writeString(keys.key(), Keytool.key(keys.keyStore()));
        Keytool.trust(keys.keyStore(), keys.trustStore());
        return keys;
    }

    /** The key, as PEM. */
    Path key() {
        return folder.resolve(name + "-key.pem");
    }

    /** The certificate, as PEM. */
    Path certificate() {
        return folder.resolve(name + "-cert.pem");
    }

    /** Both, as PKCS #12. */
    Path keyStore() {
        return folder.resolve(name + "-keys.p12");
    }

    /** The certificate alone, as PKCS #12. */
    Path trustStore() {
        return folder.resolve(name + "-trust.p12");
    }
}
