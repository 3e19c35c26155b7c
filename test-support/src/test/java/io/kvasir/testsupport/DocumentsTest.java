package io.kvasir.testsupport;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.condition.DisabledIfSystemProperty;
import org.junit.jupiter.api.io.TempDir;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;

@DisabledIfSystemProperty(
        named = "kvasir.documents",
        matches = "write",
        disabledReason = "documents are written, not compared")
class DocumentsTest {
    @TempDir private Path folder;

    @Test
    void aPageThatIsAsExpectedPasses() throws IOException {
        final Path page = page("one\n<!-- m -->\ntwo\n<!-- m end -->\nthree\n");
        Documents.check(page, Files.readString(page));
        Documents.checkPart(page, "m", "two\n");
    }

    @Test
    void theFirstLineThatIsNotThereIsNamed() throws IOException {
        final Path page = page("<!-- m -->\none\ntwo\n<!-- m end -->\n");
        final AssertionError error =
                assertThrows(
                        AssertionError.class, () -> Documents.checkPart(page, "m", "one\ntwice\n"));
        assertTrue(error.getMessage().contains("\"twice\""), error.getMessage());
        assertEquals("<!-- m -->\none\ntwo\n<!-- m end -->\n", Files.readString(page));
    }

    @Test
    void aPartThatIsMissingOrInsideOutIsAnError() throws IOException {
        final Path none = page("one\n");
        assertThrows(AssertionError.class, () -> Documents.checkPart(none, "m", ""));
        final Path inverted = page("<!-- m end -->\n<!-- m -->\n");
        assertThrows(AssertionError.class, () -> Documents.checkPart(inverted, "m", ""));
    }

    @Test
    void aFileThatDoesNotExistIsEmpty() throws IOException {
        Documents.check(folder.resolve("none"), "");
        assertThrows(AssertionError.class, () -> Documents.check(folder.resolve("none"), "line\n"));
    }

    private Path page(String text) throws IOException {
        return Files.writeString(folder.resolve("page.md"), text);
    }
}
