package io.kvasir.registry;

import java.io.IOException;
import java.nio.file.AccessDeniedException;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;

/** Files that an operator has named. Stateless. */
public final class ConfiguredFile {
    private ConfiguredFile() {}

    /**
     * Reads all of it.
     *
     * @return one byte at least
     * @throws IOException if it cannot be read or is empty; its message says why in words, to be
     *     put after the option and the file
     */
    public static byte[] read(Path file) throws IOException {
        if (Files.isDirectory(file)) {
            throw new IOException("it is a folder");
        }
        final byte[] bytes;
        try {
            bytes = Files.readAllBytes(file);
        } catch (NoSuchFileException | AccessDeniedException e) {
            throw new IOException(FailureText.of(e), e);
        }
        if (bytes.length == 0) {
            throw new IOException("it is empty");
        }
        return bytes;
    }
}
