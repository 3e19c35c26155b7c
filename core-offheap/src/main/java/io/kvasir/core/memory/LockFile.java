package io.kvasir.core.memory;

import java.io.Closeable;
import java.io.IOException;
import java.nio.channels.FileChannel;
import java.nio.channels.OverlappingFileLockException;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.nio.file.attribute.FileAttribute;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.Set;

/**
 * A file that one owner at a time has locked, in any process; the lock ends with its owner, however
 * that ends. The file stays. It is one of its own beside what it protects: closing any channel of a
 * locked file would end the lock of it.
 */
public final class LockFile implements Closeable {
    private final FileChannel channel;

    private LockFile(FileChannel channel) {
        this.channel = channel;
    }

    /**
     * Locks a file, which is made where there is none; others of the machine cannot read it.
     *
     * @return null if another owner has it, in this process or another
     * @throws IOException if it can be neither opened nor made
     */
    public static LockFile takeOrNull(Path file) throws IOException {
        final FileChannel channel =
                FileChannel.open(
                        file,
                        Set.of(StandardOpenOption.CREATE, StandardOpenOption.WRITE),
                        ownersAlone(file, "rw-------"));
        try {
            if (channel.tryLock() != null) {
                return new LockFile(channel);
            }
        } catch (OverlappingFileLockException e) {
            channel.close(); // of another in this process
            return null;
        } catch (Throwable t) {
            channel.close();
            throw t;
        }
        channel.close();
        return null;
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

    @Override
    public void close() throws IOException {
        channel.close();
    }
}
