package io.kvasir.core.memory;

import java.io.Closeable;
import java.io.IOException;
import java.nio.channels.FileChannel;
import java.nio.channels.OverlappingFileLockException;
import java.nio.file.FileAlreadyExistsException;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.nio.file.attribute.BasicFileAttributes;
import java.nio.file.attribute.FileAttribute;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;

/**
 * A file that one owner at a time has locked, in any process; the lock ends with its owner, however
 * that ends. The file stays.
 *
 * <p>POSIX has locks of processes: closing any channel of a locked file ends the lock that the
 * process has of it. So the file is one of its own beside what it protects, and one that has an
 * owner in this process is not opened a second time.
 *
 * @see <a href="https://pubs.opengroup.org/onlinepubs/9799919799/functions/fcntl.html">fcntl</a>
 */
public final class LockFile implements Closeable {
    private static final Set<Object> OWNED = ConcurrentHashMap.newKeySet(); // of this process

    private final Object key;
    private final FileChannel channel;
    private boolean closed; // guarded by this

    private LockFile(Object key, FileChannel channel) {
        this.key = key;
        this.channel = channel;
    }

    /**
     * Locks a file, which is made where there is none; others of the machine cannot read it.
     *
     * @return null if another owner has it, in this process or another
     * @throws IOException if it can be neither opened nor made
     */
    public static LockFile takeOrNull(Path file) throws IOException {
        make(file);
        final Object key = keyOf(file);
        if (!OWNED.add(key)) {
            return null;
        }
        LockFile taken = null;
        try {
            taken = lockedOrNull(key, file);
            return taken;
        } finally {
            if (taken == null) {
                OWNED.remove(key);
            }
        }
    }

    private static void make(Path file) throws IOException {
        try {
            Files.createFile(file, ownersAlone(file, "rw-------"));
        } catch (FileAlreadyExistsException e) {
            // as after the first time
        }
    }

    /** The same for all names of a file. */
    private static Object keyOf(Path file) throws IOException {
        final Object key = Files.readAttributes(file, BasicFileAttributes.class).fileKey();
        return key == null ? file.toRealPath() : key;
    }

    private static LockFile lockedOrNull(Object key, Path file) throws IOException {
        final FileChannel channel = FileChannel.open(file, StandardOpenOption.WRITE);
        boolean locked = false;
        try {
            locked = channel.tryLock() != null;
        } catch (OverlappingFileLockException e) {
            return null; // its owner has loaded this class once more
        } finally {
            if (!locked) {
                channel.close();
            }
        }
        return locked ? new LockFile(key, channel) : null;
    }

    /**
     * Whether a path names the locked file still: it may have been removed, or made anew.
     *
     * @throws IOException if that cannot be found out
     */
    public boolean isOf(Path file) throws IOException {
        try {
            return keyOf(file).equals(key);
        } catch (NoSuchFileException e) {
            return false;
        }
    }

    /**
     * Permissions of a file or folder that is made.
     *
     * @param place where it is made
     * @param permissions as {@code ls} writes them
     * @return none where the file system has no such permissions
     */
    public static FileAttribute<?>[] ownersAlone(Path place, String permissions) {
        return place.getFileSystem().supportedFileAttributeViews().contains("posix")
                ? new FileAttribute<?>[] {
                    PosixFilePermissions.asFileAttribute(
                            PosixFilePermissions.fromString(permissions))
                }
                : new FileAttribute<?>[0];
    }

    /** Gives the lock back. A second call does nothing. */
    @Override
    public synchronized void close() throws IOException {
        if (closed) {
            return;
        }
        closed = true;
        try {
            channel.close();
        } finally {
            OWNED.remove(key); // from here on it may be the next owner's
        }
    }
}
