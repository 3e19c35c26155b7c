package io.kvasir.registry;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

import java.io.IOException;
import java.io.InputStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Base64;
import java.util.List;

import javax.net.ssl.SSLContext;

/** Files of authorities; {@code authority.pem} was made by OpenSSL. */
class AuthoritiesTest {
    @TempDir private Path dir;

    private String pem;

    static byte[] resource(String name) throws IOException {
        try (InputStream in = AuthoritiesTest.class.getResourceAsStream(name)) {
            return in.readAllBytes();
        }
    }

    @BeforeEach
    void read() throws IOException {
        pem = new String(resource("authority.pem"), StandardCharsets.US_ASCII);
    }

    private Path file(String text) throws IOException {
        return Files.writeString(dir.resolve("ca"), text);
    }

    private static String refusal(Path file) {
        final String message =
                assertThrows(
                                IllegalArgumentException.class,
                                () -> Authorities.tlsOrNull("some-option", file))
                        .getMessage();
        assertTrue(message.startsWith("some-option " + file + ": "), message);
        assertFalse(message.contains("Exception"), message);
        return message;
    }

    @Test
    void withoutAFileThereIsNone() {
        assertNull(Authorities.tlsOrNull("some-option", null));
    }

    @Test
    void certificatesAreReadWhateverIsBetweenThem() throws Exception {
        final String text =
                "- a comment\nCertificate:\n    Data:\n" + pem + "\n\n--- next\n" + pem + "\n";
        assertEquals(2, Authorities.certificates(file(text)).size());
        assertEquals(2, Authorities.certificates(file(text.replace("\n", "\r\n"))).size());
        final String der = pem.replaceAll("-----.*-----", "");
        Files.write(dir.resolve("der"), Base64.getMimeDecoder().decode(der));
        assertEquals(1, Authorities.certificates(dir.resolve("der")).size());
        assertNotNull(Authorities.tlsOrNull("some-option", dir.resolve("der")));
    }

    @Test
    void aFileThatWasCutIsRefusedWhereverThatWas() throws Exception {
        assertEquals(2, Authorities.certificates(file(pem + pem)).size());
        for (int length = 1; length < pem.stripTrailing().length(); length++) {
            final String message = refusal(file(pem + pem.substring(0, length)));
            assertTrue(message.contains("certificate 2"), length + ": " + message);
            assertTrue(message.contains("cut"), length + ": " + message);
        }
        assertTrue(refusal(file(pem.substring(0, 300))).contains("certificate 1"));
    }

    @Test
    void aCertificateWithoutItsEndBeforeAnotherIsRefused() throws Exception {
        final String half = pem.substring(0, pem.indexOf("-----END"));
        assertTrue(refusal(file(half + pem)).contains("certificate 1"));
        final String endless = pem.substring(pem.indexOf('\n') + 1);
        assertTrue(refusal(file(pem + endless)).contains("without its beginning"));
    }

    @Test
    void whatIsWrongIsSaid() throws Exception {
        assertTrue(refusal(dir.resolve("missing")).contains("there is no such file"));
        assertTrue(refusal(dir).contains("it is a folder"));
        assertTrue(refusal(file("")).contains("it is empty"));
        assertTrue(refusal(file("no certificate")).contains("no certificate"));
        final String damaged = pem.replace("\nM", "\nN");
        assertTrue(refusal(file(damaged)).contains("no certificate"));
    }

    @Test
    void whatIsFollowedIsRefusedAtFirstAndLaterNamedOnceForEachChange() throws Exception {
        final List<String> problems = new ArrayList<>();
        assertNull(Authorities.followedOrNull("some-option", null, problems::add));
        final Path missing = dir.resolve("missing");
        assertThrows(
                IllegalArgumentException.class,
                () -> Authorities.followedOrNull("some-option", missing, problems::add));
        final SSLContext followed =
                Authorities.followedOrNull("some-option", file(pem), problems::add);
        final Path file = dir.resolve("ca");
        final List<String> said = new ArrayList<>();
        for (String text : List.of(pem, "x", "x", "", pem + pem, "x")) {
            file(text);
            assertNotNull(followed.createSSLEngine("h", 1));
            said.add(problems.size() + " after " + text.length());
        }
        Files.delete(file);
        assertNotNull(followed.getSocketFactory());
        assertNotNull(followed.getSocketFactory());
        final int one = pem.length();
        assertEquals(
                List.of(
                        "0 after " + one,
                        "1 after 1",
                        "1 after 1",
                        "2 after 0",
                        "2 after " + 2 * one,
                        "3 after 1"),
                said);
        assertEquals(4, problems.size());
        assertTrue(
                problems.getLast().startsWith("some-option " + file + ": there is no such file"),
                problems::getLast);
    }
}
