package io.kvasir.cli.console;

import java.io.IOException;
import java.nio.file.DirectoryNotEmptyException;
import java.nio.file.DirectoryStream;
import java.nio.file.Files;
import java.nio.file.Path;

/**
 * A folder of files that only one command needs. It goes when it is closed, and when the JVM is
 * asked to end before. Thread-safe.
 */
public final class TemporaryFolder implements AutoCloseable {
    private static final int ATTEMPTS = 10;

    private final Path path;

    /**
     * Makes an empty one among the temporary files of the JVM.
     *
     * @param prefix its name begins with it
     * @throws IOException if that cannot be done
     */
    public TemporaryFolder(String prefix) throws IOException {
        path = Files.createTempDirectory(prefix);
        var _ = Shutdown.of(this::end);
    }

    /** Where it is; without folders in it. */
    public Path path() {
        return path;
    }

    /** What works with it goes on until the JVM has ended, and may add a file meanwhile. */
    private void end() {
        for (int attempt = 0; attempt < ATTEMPTS; attempt++) {
            try {
                close();
                return;
            } catch (DirectoryNotEmptyException _) {
                // a file came after the others were deleted
            } catch (IOException _) {
                return; // the JVM ends, and has said what matters
            }
        }
    }

    /**
     * Deletes it with all files in it.
     *
     * @throws IOException if one of them cannot be deleted
     */
    @Override
    public synchronized void close() throws IOException {
        if (!Files.exists(path)) {
            return;
        }
        try (DirectoryStream<Path> files = Files.newDirectoryStream(path)) {
            for (Path file : files) {
                Files.deleteIfExists(file);
            }
        }
        Files.deleteIfExists(path);
    }
}
