package io.kvasir.registry;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

import java.io.ByteArrayInputStream;
import java.io.IOException;
import java.io.OutputStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.KeyStore;
import java.security.cert.Certificate;
import java.security.cert.CertificateFactory;
import java.util.Arrays;

/**
 * Java key stores. {@code unmarked.p12} and {@code unmarked-open.p12} were made by {@code openssl
 * pkcs12 -export -nokeys}, with and without the password "changeit".
 */
class StoreFileTest {
    private static final String PASSWORD = "changeit";

    @TempDir private Path dir;

    private Path store(String type) throws Exception {
        return store(type, PASSWORD);
    }

    private Path store(String type, String password) throws Exception {
        final KeyStore store = KeyStore.getInstance(type);
        store.load(null, null);
        final Certificate authority =
                CertificateFactory.getInstance("X.509")
                        .generateCertificate(
                                new ByteArrayInputStream(
                                        AuthoritiesTest.resource("authority.pem")));
        store.setCertificateEntry("ca", authority);
        final Path file = dir.resolve("store." + type);
        try (OutputStream out = Files.newOutputStream(file)) {
            store.store(out, password.toCharArray());
        }
        return file;
    }

    private static KeyStore trusted(Path file, String password) throws Exception {
        return StoreFile.trustedOrNull(file, password, "some-password");
    }

    private static String refusal(Path file, String password) {
        final String message =
                assertThrows(IOException.class, () -> trusted(file, password)).getMessage();
        assertFalse(message.contains("Exception"), message);
        return message;
    }

    @ParameterizedTest
    @ValueSource(strings = {"PKCS12", "JKS"})
    void isReadWithItsPassword(String type) throws Exception {
        final Path file = store(type);
        assertEquals(1, trusted(file, PASSWORD).size());
        assertTrue(refusal(file, "wrong").contains("some-password is not its password"));
    }

    @Test
    void thatNeedsAPasswordIsNotTakenForAnEmptyOne() throws Exception {
        assertTrue(refusal(store("PKCS12"), "").contains("give some-password"));
    }

    @Test
    void mayBeSealedWithAnEmptyPassword() throws Exception {
        assertEquals(1, trusted(store("PKCS12", ""), "").size());
    }

    @Test
    void ofOpensslWithoutMarksIsRefusedWithWhatToDo() throws Exception {
        final Path file = dir.resolve("openssl.p12");
        Files.write(file, AuthoritiesTest.resource("unmarked.p12"));
        assertTrue(refusal(file, "").contains("give some-password"));
        assertTrue(refusal(file, PASSWORD).contains("-jdktrust anyExtendedKeyUsage"));
        Files.write(file, AuthoritiesTest.resource("unmarked-open.p12"));
        assertTrue(refusal(file, "").contains("-jdktrust anyExtendedKeyUsage"));
    }

    @Test
    void thatWasCutIsRefused() throws Exception {
        final Path file = store("PKCS12");
        final byte[] all = Files.readAllBytes(file);
        Files.write(file, Arrays.copyOf(all, all.length / 2));
        assertTrue(refusal(file, PASSWORD).contains("damaged"));
    }

    @Test
    void whatIsNoneIsNull() throws Exception {
        final Path file = Files.write(dir.resolve("ca"), AuthoritiesTest.resource("authority.pem"));
        assertNull(trusted(file, ""));
        Files.writeString(file, "x");
        assertNull(trusted(file, PASSWORD));
        assertTrue(refusal(dir.resolve("missing"), "").contains("there is no such file"));
        Files.writeString(file, "");
        assertTrue(refusal(file, "").contains("it is empty"));
    }
}
