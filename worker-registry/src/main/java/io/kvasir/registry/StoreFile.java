package io.kvasir.registry;

import java.io.IOException;
import java.nio.file.Path;
import java.security.GeneralSecurityException;
import java.security.KeyStore;
import java.security.KeyStoreException;
import java.security.UnrecoverableKeyException;
import java.util.Collections;

/** Java key stores, PKCS #12 above all, that an operator has named. Stateless. */
public final class StoreFile {
    private static final String MARK =
            "; `keytool -importcert` marks them as trusted, `openssl pkcs12 -export -nokeys` only"
                    + " with `-jdktrust anyExtendedKeyUsage`";

    private StoreFile() {}

    /**
     * Reads a store of authorities.
     *
     * @param password empty for none
     * @param passwordOption what gives the password, for messages
     * @return a store with one trusted certificate at least; null where the file is no store
     * @throws IOException if it cannot be used; its message says why in words, to be put after the
     *     option and the file
     */
    public static KeyStore trustedOrNull(Path file, String password, String passwordOption)
            throws IOException, GeneralSecurityException {
        final KeyStore store = loadedOrNull(file, password, passwordOption);
        if (store == null || hasTrusted(store)) {
            return store;
        }
        throw new IOException(
                (password.isEmpty()
                                ? "it has no trusted certificate that can be read without a"
                                        + " password; give "
                                        + passwordOption
                                        + " if it has one"
                                : "it has no certificate that is marked as trusted")
                        + MARK);
    }

    /**
     * Reads a store of any kind.
     *
     * @param password empty for none: what cannot be read without it is left out, then
     * @param passwordOption what gives the password, for messages
     * @return null where the file is no store
     * @throws IOException if it cannot be used; its message says why in words, to be put after the
     *     option and the file
     */
    public static KeyStore loadedOrNull(Path file, String password, String passwordOption)
            throws IOException, GeneralSecurityException {
        ConfiguredFile.read(file); // says what is wrong, where KeyStore only says that something is
        try {
            return opened(file, password);
        } catch (KeyStoreException e) {
            return null;
        } catch (IOException e) {
            throw new IOException(
                    isWrongPassword(e)
                            ? passwordOption + " is not its password"
                            : "it is a key store that was cut or damaged",
                    e);
        }
    }

    /** An empty password may be one; else what needs none is read. */
    private static KeyStore opened(Path file, String password)
            throws IOException, GeneralSecurityException {
        try {
            return KeyStore.getInstance(file.toFile(), password.toCharArray());
        } catch (IOException e) {
            if (!password.isEmpty() || !isWrongPassword(e)) {
                throw e;
            }
            return KeyStore.getInstance(file.toFile(), (char[]) null);
        }
    }

    private static boolean isWrongPassword(IOException e) {
        return e.getCause() instanceof UnrecoverableKeyException;
    }

    private static boolean hasTrusted(KeyStore store) throws KeyStoreException {
        for (String alias : Collections.list(store.aliases())) {
            if (store.getCertificate(alias) != null) { // with its key or without
                return true;
            }
        }
        return false;
    }
}
