package io.kvasir.testsupport;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.security.GeneralSecurityException;
import java.security.KeyStore;
import java.util.ArrayList;
import java.util.List;

import javax.net.ssl.KeyManagerFactory;
import javax.net.ssl.SSLContext;

/** The JDK's keytool, on stores of one entry. */
public final class Keytool {
    /** Of all its stores. */
    public static final String PASSWORD = "changeit";

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
            throws IOException, InterruptedException {
        final String dname = "CN=" + name;
        final String san = "san=" + host;
        run(store, "-genkeypair", "-keyalg", "EC", "-dname", dname, "-ext", san);
        return run(store, "-exportcert", "-rfc");
    }

    /** TLS of a server that has the key of a store. */
    public static SSLContext server(Path store) throws IOException, GeneralSecurityException {
        final KeyManagerFactory keys =
                KeyManagerFactory.getInstance(KeyManagerFactory.getDefaultAlgorithm());
        keys.init(
                KeyStore.getInstance(store.toFile(), PASSWORD.toCharArray()),
                PASSWORD.toCharArray());
        final SSLContext tls = SSLContext.getInstance("TLS");
        tls.init(keys.getKeyManagers(), null, null);
        return tls;
    }

    /**
     * Runs it.
     *
     * @param store file of PKCS #12, with an entry {@code k}
     * @param args command and options but for those of the store
     * @return what it has printed
     * @throws IllegalStateException with that, if it fails
     */
    public static String run(Path store, String... args) throws IOException, InterruptedException {
        final List<String> command = new ArrayList<>();
        command.add(Path.of(System.getProperty("java.home"), "bin", "keytool").toString());
        command.addAll(QUICK);
        command.addAll(List.of(args));
        command.addAll(List.of("-alias", "k", "-keystore", store.toString()));
        command.addAll(List.of("-storetype", "PKCS12", "-storepass", PASSWORD));
        final Process process = new ProcessBuilder(command).start();
        final String out =
                new String(process.getInputStream().readAllBytes(), StandardCharsets.US_ASCII);
        if (process.waitFor() != 0) {
            throw new IllegalStateException(out);
        }
        return out;
    }
}
