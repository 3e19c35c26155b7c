package io.kvasir.gateway.testing;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;

/** A file that gets new content in one step: no reader sees a part of it. */
public final class ReplacedFile {
    private ReplacedFile() {}

    public static void write(Path file, String text) throws IOException {
        final Path whole = Files.writeString(file.resolveSibling(file.getFileName() + "~"), text);
        Files.move(whole, file, StandardCopyOption.ATOMIC_MOVE);
    }
}
