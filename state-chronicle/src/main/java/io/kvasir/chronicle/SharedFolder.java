package io.kvasir.chronicle;

import io.kvasir.core.memory.LockFile;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.LinkOption;
import java.nio.file.Path;
import java.nio.file.attribute.FileAttribute;
import java.nio.file.attribute.PosixFilePermission;
import java.nio.file.attribute.PosixFilePermissions;
import java.nio.file.attribute.UserPrincipal;
import java.util.Set;
import java.util.concurrent.TimeUnit;

/**
 * A folder that belongs to one user alone: what others could have written there is not mapped.
 * POSIX file systems only. Stateless but for the path.
 */
final class SharedFolder {
    private static final Set<PosixFilePermission> OWNER_ALL =
            PosixFilePermissions.fromString("rwx------");
    private static final long LOCK_WAIT_NS = TimeUnit.SECONDS.toNanos(10);
    private static final long POLL_MS = 10;

    private final Path path;
    private final UserPrincipal owner;

    /**
     * Makes the folder if it is not there.
     *
     * @throws IOException if it is another user's, or others may read it
     */
    SharedFolder(Path path) throws IOException {
        this.path = path;
        if (!Files.isDirectory(path)) {
            Files.createDirectories(path, PosixFilePermissions.asFileAttribute(OWNER_ALL));
        }
        final Path probe = Files.createTempFile(path, "owner", null);
        try {
            owner = Files.getOwner(probe, LinkOption.NOFOLLOW_LINKS);
        } finally {
            Files.deleteIfExists(probe);
        }
        if (!isOwn(path)) {
            throw new IOException(
                    path
                            + " belongs to "
                            + Files.getOwner(path)
                            + ", not to "
                            + owner
                            + ", who runs this process; name another folder");
        }
        if (!OWNER_ALL.containsAll(Files.getPosixFilePermissions(path))) {
            throw new IOException(
                    path + " may be read by others than its owner; chmod 700 " + path);
        }
    }

    /** A file in it. */
    Path file(String name) {
        return path.resolve(name);
    }

    /** Whether a file, not a link, is this user's own. */
    boolean isOwn(Path file) throws IOException {
        return owner.equals(Files.getOwner(file, LinkOption.NOFOLLOW_LINKS));
    }

    /** Attributes of a new file that its owner alone may read. */
    static FileAttribute<?> ownerOnly() {
        return PosixFilePermissions.asFileAttribute(PosixFilePermissions.fromString("rw-------"));
    }

    /** Another process holds the lock for so long that it may be stopped. */
    static final class BusyException extends IOException {
        private static final long serialVersionUID = 1;

        BusyException(Path lock) {
            super(
                    lock
                            + " is locked by another process for more than "
                            + TimeUnit.NANOSECONDS.toSeconds(LOCK_WAIT_NS)
                            + " s; is one stopped?");
        }
    }

    /** An action under the folder's lock. */
    interface Action<T> {
        T run() throws IOException;
    }

    /**
     * Runs something that one process and thread at a time may do. The lock ends with its process.
     *
     * @throws BusyException if the lock is held by another for 10 s
     */
    <T> T exclusively(String lockName, Action<T> action) throws IOException {
        final long startNs = System.nanoTime();
        while (true) {
            try (LockFile lock = LockFile.takeOrNull(file(lockName))) {
                if (lock != null) {
                    return action.run();
                }
            }
            if (System.nanoTime() - startNs > LOCK_WAIT_NS) {
                throw new BusyException(file(lockName));
            }
            try {
                Thread.sleep(POLL_MS);
            } catch (InterruptedException e) {
                Thread.currentThread().interrupt();
                throw new IOException("interrupted while waiting for " + file(lockName), e);
            }
        }
    }

    @Override
    public String toString() {
        return path.toString();
    }
}
