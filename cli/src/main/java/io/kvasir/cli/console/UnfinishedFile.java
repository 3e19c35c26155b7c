package io.kvasir.cli.console;

import java.io.IOException;
import java.nio.file.AccessDeniedException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;

/**
 * A file that is to be whole or not there: it is written beside its target and takes the target's
 * name when it is finished. One that is not goes when it is closed, and when the JVM is asked to
 * end before; what had the name stays. A target that is no file, as a pipe, or whose folder takes
 * no further file, is written itself. Thread-safe.
 */
public final class UnfinishedFile implements AutoCloseable {
    private final Path target;
    private final Path path;
    private final boolean beside;
    private boolean closed;

    /**
     * Makes no file yet.
     *
     * @param target the file to make or overwrite; where it is a link, the one that it leads to
     * @throws IOException if that cannot be written
     */
    public UnfinishedFile(Path target) throws IOException {
        final boolean exists = Files.exists(target);
        this.target = exists ? target.toRealPath() : target.toAbsolutePath();
        if (exists && !Files.isWritable(target)) {
            throw new AccessDeniedException(target.toString());
        }
        this.beside =
                !exists
                        || (Files.isRegularFile(target)
                                && Files.isWritable(this.target.getParent()));
        this.path =
                beside
                        ? this.target.resolveSibling(
                                this.target.getFileName()
                                        + ".unfinished-"
                                        + ProcessHandle.current().pid())
                        : target;
        if (beside) {
            var _ = Shutdown.of(this::end);
        }
    }

    /** What is to be written; it may be written several times. */
    public Path path() {
        return path;
    }

    /**
     * Gives it its name.
     *
     * @throws IOException if that cannot be done
     */
    public synchronized void finish() throws IOException {
        if (!closed && beside) {
            Files.move(
                    path,
                    target,
                    StandardCopyOption.ATOMIC_MOVE,
                    StandardCopyOption.REPLACE_EXISTING);
        }
        closed = true;
    }

    private void end() {
        try {
            close();
        } catch (IOException _) {
            // the JVM ends, and has said what matters
        }
    }

    /**
     * Deletes it unless it is finished.
     *
     * @throws IOException if it cannot be deleted
     */
    @Override
    public synchronized void close() throws IOException {
        if (!closed && beside) {
            Files.deleteIfExists(path);
        }
        closed = true;
    }
}
