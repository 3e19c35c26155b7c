package io.kvasir.gateway.config;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.function.Executable;
import org.junit.jupiter.api.io.TempDir;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;

class SecretFileTest {
    @TempDir private Path dir;

    private Path file(String text) throws IOException {
        return Files.writeString(dir.resolve("secrets"), text);
    }

    private static List<String> tokens(Path file) {
        return SecretFile.tokens("some-file", file).stream()
                .map(line -> line.secret().value())
                .toList();
    }

    private static String refusal(Path file, Executable call) {
        final String message = assertThrows(GatewayException.class, call).getMessage();
        assertTrue(message.startsWith("some-file " + file + ": "), message);
        assertFalse(message.contains("Exception"), message);
        assertFalse(message.contains("abc"), message);
        return message;
    }

    private static String refusal(Path file) {
        return refusal(file, () -> SecretFile.tokens("some-file", file));
    }

    @Test
    void eachLineIsATokenButCommentsAndBlankOnes() throws Exception {
        final Path file = file("\ufeffone\r\n\n # of a team\n\ttwo \n#\nth#ree\u00e9");
        assertEquals(List.of("one", "two", "th#ree\u00e9"), tokens(file));
        final SecretFile.Line second = SecretFile.tokens("some-file", file).get(1);
        assertEquals("some-file " + file + ", line 4", second.from());
        assertFalse(second.toString().contains("two"), second.toString());
        assertEquals("one", SecretFile.token("some-file", file).secret().value());
    }

    @Test
    void aPasswordMayBeginAsACommentDoes() throws Exception {
        final Path file = file("\ufeff\n#secret\nother\n");
        assertEquals("#secret", SecretFile.password("some-file", file).value());
    }

    @Test
    void whatIsWrongIsSaidWithoutATokenOfTheFile() throws Exception {
        assertTrue(refusal(dir.resolve("missing")).contains("there is no such file"));
        assertTrue(refusal(dir).contains("it is a folder"));
        assertTrue(refusal(file("")).contains("it is empty"));
        assertTrue(refusal(file("\ufeff")).contains("no token"));
        assertTrue(refusal(file("# abc\n \n")).contains("no token"));
        final Path blank = file(" \n");
        assertTrue(
                refusal(blank, () -> SecretFile.password("some-file", blank))
                        .contains("no password"));
        final Path latin = dir.resolve("latin");
        Files.write(latin, "one\nabc\u00e9\n".getBytes(StandardCharsets.ISO_8859_1));
        assertTrue(refusal(latin).contains("line 2 is no UTF-8"));
        Files.write(latin, "\ufeffabc\n".getBytes(StandardCharsets.UTF_16LE));
        assertTrue(refusal(latin).contains("line 1 is no UTF-8"));
    }
}
