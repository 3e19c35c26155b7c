package io.kvasir.core.memory;

import java.io.IOException;
import java.nio.file.AccessDeniedException;
import java.nio.file.FileSystemException;
import java.nio.file.Files;
import java.nio.file.LinkOption;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;

/**
 * Whether a file can be made in a folder, found out by doing so: what permissions say is not all,
 * as of {@code /proc} or a disk that is read-only. What is made is deleted again. Stateless.
 */
public final class FolderProbe {
    private FolderProbe() {}

    /**
     * Makes a folder as {@link Files#createDirectories} does where it is not there, and a file in
     * it, and deletes what was not there before.
     *
     * @param folder may be there, or not; nothing else in it is touched
     * @param name of a file that will be made or written there; a failure names it
     * @throws IOException of the kind and with the path that making them for good would have
     */
    public static void check(Path folder, String name) throws IOException {
        final List<Path> missing = missing(folder);
        try {
            if (!Files.isDirectory(folder)) {
                Files.createDirectories(folder, LockFile.ownersAlone(folder, "rwx------"));
            }
            checkFile(folder.resolve(name));
        } finally {
            for (Path made : missing) {
                delete(made);
            }
        }
    }

    /**
     * Checks that a file can be written, or made in its folder, and leaves it as it is.
     *
     * @throws IOException of the kind and with the path that opening it to write would have
     */
    public static void checkFile(Path file) throws IOException {
        if (Files.exists(file)) {
            if (!Files.isWritable(file)) {
                throw new AccessDeniedException(file.toString());
            }
            return;
        }
        try {
            Files.delete(Files.createTempFile(file.toAbsolutePath().getParent(), "", null));
        } catch (AccessDeniedException e) {
            throw named(new AccessDeniedException(file.toString()), e);
        } catch (NoSuchFileException e) {
            throw named(new NoSuchFileException(file.toString()), e);
        } catch (FileSystemException e) {
            throw named(new FileSystemException(file.toString(), null, e.getReason()), e);
        }
    }

    private static FileSystemException named(FileSystemException named, IOException cause) {
        named.initCause(cause);
        return named;
    }

    /** The folder and those above it that are not there, the deepest first. */
    private static List<Path> missing(Path folder) {
        final List<Path> missing = new ArrayList<>();
        for (Path path = folder.toAbsolutePath();
                path != null && Files.notExists(path, LinkOption.NOFOLLOW_LINKS);
                path = path.getParent()) {
            missing.add(path);
        }
        return missing;
    }

    private static void delete(Path made) {
        try {
            if (Files.isDirectory(made, LinkOption.NOFOLLOW_LINKS)) {
                Files.delete(made);
            }
        } catch (IOException e) {
            // another process has put something in it, and has it from now on
        }
    }
}
