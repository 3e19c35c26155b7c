package io.kvasir.prompt.chat;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;

import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

import java.io.UncheckedIOException;
import java.nio.file.Path;

class SimModelTest {
    @TempDir private Path dir;

    @Test
    void aFolderForTemporaryFilesThatIsNotThereIsNamedWithItsProperty() {
        final Path none = dir.resolve("none");
        final UncheckedIOException refused =
                assertThrows(UncheckedIOException.class, () -> SimModel.files(none));
        assertEquals(
                "cannot unpack the simulated model's tokenizer into "
                        + none
                        + " (java.io.tmpdir): there is no such folder",
                refused.getCause().getMessage());
    }
}
