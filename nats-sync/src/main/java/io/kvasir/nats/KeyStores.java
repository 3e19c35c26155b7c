package io.kvasir.nats;

import io.kvasir.registry.FailureText;
import io.kvasir.registry.FollowedTls;
import io.kvasir.registry.StoreFile;

import java.io.IOException;
import java.nio.file.Path;
import java.security.GeneralSecurityException;
import java.security.KeyStore;
import java.security.UnrecoverableKeyException;
import java.util.Collections;
import java.util.List;
import java.util.Objects;
import java.util.function.Consumer;
import java.util.stream.Stream;

import javax.net.ssl.KeyManager;
import javax.net.ssl.KeyManagerFactory;
import javax.net.ssl.SSLContext;
import javax.net.ssl.TrustManager;
import javax.net.ssl.TrustManagerFactory;

/** TLS by Java key stores. */
public final class KeyStores {
    /** What gives the password, in messages; the variable that commands read it from. */
    public static final String PASSWORD = "KVASIR_NATS_STORE_PASSWORD";

    private KeyStores() {}

    /**
     * Reads them.
     *
     * @param trusted with the certificates of the authorities that sign servers' ones; null for
     *     those of the JVM
     * @param own with the own certificate and key; null for none
     * @param password of both stores and of the key, empty for none
     * @return null where both are null
     * @throws IllegalArgumentException with {@code trust-store} or {@code key-store}, the file and
     *     what is wrong, where it cannot be used
     */
    public static SSLContext tlsOrNull(Path trusted, Path own, String password) {
        if (trusted == null && own == null) {
            return null;
        }
        try {
            final SSLContext tls = SSLContext.getInstance("TLS");
            tls.init(
                    own == null ? null : keys(own, password),
                    trusted == null ? null : authorities(trusted, password),
                    null);
            return tls;
        } catch (GeneralSecurityException e) {
            throw new IllegalStateException("this JVM has no TLS", e);
        }
    }

    /**
     * The same by what the files have when a connection is opened: they may change.
     *
     * @param trusted as above
     * @param own as above
     * @param password as above; of changed files, too
     * @param problem gets option, file and what is wrong, once for each change after which a file
     *     cannot be used; connections go by what was read before, then. By any thread
     * @return null where both are null
     * @throws IllegalArgumentException as above, for the files of now
     */
    public static SSLContext followedOrNull(
            Path trusted, Path own, String password, Consumer<String> problem) {
        final List<Path> files = Stream.of(trusted, own).filter(Objects::nonNull).toList();
        return files.isEmpty()
                ? null
                : FollowedTls.of(files, () -> tlsOrNull(trusted, own, password), problem);
    }

    private static TrustManager[] authorities(Path file, String password) {
        try {
            final KeyStore store = StoreFile.trustedOrNull(file, password, PASSWORD);
            final TrustManagerFactory trust =
                    TrustManagerFactory.getInstance(TrustManagerFactory.getDefaultAlgorithm());
            trust.init(checked(store));
            return trust.getTrustManagers();
        } catch (IOException | GeneralSecurityException e) {
            throw unusable("trust-store", file, FailureText.of(e), e);
        }
    }

    private static KeyManager[] keys(Path file, String password) {
        try {
            final KeyStore store = checked(StoreFile.loadedOrNull(file, password, PASSWORD));
            if (!hasKey(store)) {
                throw new IOException("it has no key");
            }
            final KeyManagerFactory keys =
                    KeyManagerFactory.getInstance(KeyManagerFactory.getDefaultAlgorithm());
            keys.init(store, password.toCharArray());
            return keys.getKeyManagers();
        } catch (UnrecoverableKeyException e) {
            throw unusable(
                    "key-store", file, PASSWORD + " is not the password of the key in it", e);
        } catch (IOException | GeneralSecurityException e) {
            throw unusable("key-store", file, FailureText.of(e), e);
        }
    }

    private static KeyStore checked(KeyStore storeOrNull) throws IOException {
        if (storeOrNull == null) {
            throw new IOException(
                    "it is no Java key store; `keytool -importcert` makes one of PEM");
        }
        return storeOrNull;
    }

    private static boolean hasKey(KeyStore store) throws GeneralSecurityException {
        for (String alias : Collections.list(store.aliases())) {
            if (store.isKeyEntry(alias)) {
                return true;
            }
        }
        return false;
    }

    private static IllegalArgumentException unusable(
            String option, Path file, String what, Exception cause) {
        return new IllegalArgumentException(option + " " + file + ": " + what, cause);
    }
}
