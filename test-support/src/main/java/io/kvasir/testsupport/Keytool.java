package io.kvasir.testsupport;

import java.io.IOException;
import java.io.OutputStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.GeneralSecurityException;
import java.security.KeyStore;
import java.util.ArrayList;
import java.util.Base64;
import java.util.List;

import javax.net.ssl.KeyManager;
import javax.net.ssl.KeyManagerFactory;
import javax.net.ssl.SSLContext;

/** Keys and certificates of tests, in stores of one entry that the JDK's keytool makes. */
public final class Keytool {
    /** Of all its stores. */
    public static final String PASSWORD = "changeit";

    private static final String ENTRY = "k";

    /**
     * Short runs: by default a store is sealed with 10,000 rounds of a hash, at each reading, and
     * the JVM compiles for a long life.
     */
    private static final List<String> QUICK =
            List.of(
                    "-J-XX:TieredStopAtLevel=1",
                    "-J-XX:+UseSerialGC",
                    "-J-Dkeystore.pkcs12.macIterationCount=1",
                    "-J-Dkeystore.pkcs12.keyPbeIterationCount=1",
                    "-J-Dkeystore.pkcs12.certPbeIterationCount=1");

    private Keytool() {}

    /**
     * Makes a key with a certificate that it has signed itself.
     *
     * @param store file that gets both
     * @param name common name of the certificate
     * @param host that it is for, such as {@code ip:127.0.0.1}
     * @return the certificate as PEM
     */
    public static String certificate(Path store, String name, String host)
            throws IOException, InterruptedException, GeneralSecurityException {
        final String dname = "CN=" + name;
        final String san = "san=" + host;
        run(store, "-genkeypair", "-keyalg", "EC", "-dname", dname, "-ext", san);
        return pem("CERTIFICATE", read(store).getCertificate(ENTRY).getEncoded());
    }

    /** The key of a store as PEM. */
    public static String key(Path store) throws IOException, GeneralSecurityException {
        return pem("PRIVATE KEY", read(store).getKey(ENTRY, PASSWORD.toCharArray()).getEncoded());
    }

    /** Writes a store with the certificate of another one, without its key. */
    public static void trust(Path store, Path to) throws IOException, GeneralSecurityException {
        final KeyStore trusted = trusting(store);
        try (OutputStream file = Files.newOutputStream(to)) {
            trusted.store(file, PASSWORD.toCharArray());
        }
    }

    /** The certificate of a store, without its key. */
    public static KeyStore trusting(Path store) throws IOException, GeneralSecurityException {
        final KeyStore trusted = KeyStore.getInstance("PKCS12");
        trusted.load(null, null);
        trusted.setCertificateEntry(ENTRY, read(store).getCertificate(ENTRY));
        return trusted;
    }

    /** TLS of a server that has the key of a store. */
    public static SSLContext server(Path store) throws IOException, GeneralSecurityException {
        final SSLContext tls = SSLContext.getInstance("TLS");
        tls.init(keys(store), null, null);
        return tls;
    }

    /** The key of a store, for one side of a connection. */
    public static KeyManager[] keys(Path store) throws IOException, GeneralSecurityException {
        final KeyManagerFactory keys =
                KeyManagerFactory.getInstance(KeyManagerFactory.getDefaultAlgorithm());
        keys.init(read(store), PASSWORD.toCharArray());
        return keys.getKeyManagers();
    }

    private static KeyStore read(Path store) throws IOException, GeneralSecurityException {
        return KeyStore.getInstance(store.toFile(), PASSWORD.toCharArray());
    }

    private static String pem(String kind, byte[] encoded) {
        return "-----BEGIN %s-----\n%s\n-----END %1$s-----\n"
                .formatted(kind, Base64.getMimeEncoder().encodeToString(encoded));
    }

    private static void run(Path store, String... args) throws IOException, InterruptedException {
        final List<String> command = new ArrayList<>();
        command.add(Path.of(System.getProperty("java.home"), "bin", "keytool").toString());
        command.addAll(QUICK);
        command.addAll(List.of(args));
        command.addAll(List.of("-alias", ENTRY, "-keystore", store.toString()));
        command.addAll(List.of("-storetype", "PKCS12", "-storepass", PASSWORD));
        final Process process = new ProcessBuilder(command).start();
        final String out =
                new String(process.getInputStream().readAllBytes(), StandardCharsets.US_ASCII);
        if (process.waitFor() != 0) {
            throw new IllegalStateException(out);
        }
    }
}
