package io.kvasir.nixl.loopback;

import io.kvasir.nixl.transport.KvTransportException;
import io.kvasir.nixl.transport.KvTransportException.Kind;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.nio.channels.FileChannel;
import java.nio.channels.FileChannel.MapMode;
import java.nio.file.DirectoryStream;
import java.nio.file.Files;
import java.nio.file.LinkOption;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.nio.file.attribute.FileAttribute;
import java.nio.file.attribute.PosixFilePermissions;
import java.nio.file.attribute.UserPrincipal;
import java.util.Set;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/**
 * The folder that processes share memory in. A file's name says whose it is, so that what a killed
 * process has left can be deleted by the next process: {@code kvasir-<pid>-<start>-<instance>},
 * then {@code .inbox} or {@code -<number>.memory}.
 */
final class SharedFolder {
    /** Files begin with a header of this length, so that memory begins on a page. */
    static final int PAGE = 4096;

    private static final Pattern NAME =
            Pattern.compile("kvasir-(\\d{1,18})-(\\d{1,18})-[0-9a-f]+(?:\\.inbox|-\\d+\\.memory)");

    private static final Path MEMORY_FILES = Path.of("/dev/shm");

    private final Path path;

    private SharedFolder(Path path) {
        this.path = path;
    }

    /** The default folder: one for each user, since others must not write into it. */
    static Path usual() {
        final Path parent =
                Files.isWritable(MEMORY_FILES)
                        ? MEMORY_FILES
                        : Path.of(System.getProperty("java.io.tmpdir"));
        return parent.resolve("kvasir-" + user());
    }

    private static String user() {
        try {
            return Files.getAttribute(Path.of("/proc/self"), "unix:uid").toString();
        } catch (IOException | UnsupportedOperationException | IllegalArgumentException e) {
            return System.getProperty("user.name");
        }
    }

    /**
     * Opens a folder and deletes what processes that are gone have left in it.
     *
     * @throws KvTransportException if it cannot be made, or is another user's
     */
    static SharedFolder open(Path path) {
        try {
            Files.createDirectories(path.getParent() == null ? path : path.getParent());
            if (!Files.isDirectory(path, LinkOption.NOFOLLOW_LINKS)) {
                Files.createDirectory(path, permissions(path, "rwx------"));
            }
            final Path real = path.toRealPath();
            refuseAnotherUsers(real);
            final SharedFolder folder = new SharedFolder(real);
            folder.sweep();
            return folder;
        } catch (IOException e) {
            throw new KvTransportException(
                    Kind.FAILED, "folder " + path + " cannot be used: " + e, e);
        }
    }

    private static void refuseAnotherUsers(Path path) throws IOException {
        final Path own = Path.of("/proc/self");
        final UserPrincipal owner = Files.getOwner(path);
        if (Files.exists(own) && !owner.equals(Files.getOwner(own))) {
            throw new KvTransportException(
                    Kind.FAILED,
                    "folder "
                            + path
                            + " is of user "
                            + owner
                            + ", which could change what is copied; set another"
                            + " LoopbackConfig.folder");
        }
    }

    private static FileAttribute<?>[] permissions(Path path, String permissions) {
        final Set<String> views = path.getFileSystem().supportedFileAttributeViews();
        return views.contains("posix")
                ? new FileAttribute<?>[] {
                    PosixFilePermissions.asFileAttribute(
                            PosixFilePermissions.fromString(permissions))
                }
                : new FileAttribute<?>[0];
    }

    Path path() {
        return path;
    }

    /**
     * Makes a file of zeros and maps it.
     *
     * @param bytes length, header included
     * @throws KvTransportException {@code CAPACITY} if the file system has not that much left
     */
    MemorySegment create(String name, long bytes, Arena arena) {
        final Path file = path.resolve(name);
        try {
            final long usable = Files.getFileStore(path).getUsableSpace();
            if (bytes > usable) {
                throw new KvTransportException(
                        Kind.CAPACITY,
                        "folder "
                                + path
                                + " has "
                                + usable
                                + " bytes left, wanted "
                                + bytes
                                + "; make its file system larger or set LoopbackConfig.folder");
            }
            try (FileChannel channel =
                    FileChannel.open(
                            file,
                            Set.of(
                                    StandardOpenOption.CREATE_NEW,
                                    StandardOpenOption.READ,
                                    StandardOpenOption.WRITE),
                            permissions(path, "rw-------"))) {
                return channel.map(MapMode.READ_WRITE, 0, bytes, arena);
            } catch (IOException | RuntimeException e) {
                delete(name);
                throw e;
            }
        } catch (IOException e) {
            throw new KvTransportException(Kind.FAILED, file + " cannot be made: " + e, e);
        }
    }

    /**
     * Maps another process's file.
     *
     * @throws KvTransportException {@code PEER_LOST} if it is gone, {@code BAD_METADATA} if it is
     *     too short or no file
     */
    MemorySegment map(String name, Arena arena) {
        final Path file = path.resolve(name);
        if (!Files.isRegularFile(file, LinkOption.NOFOLLOW_LINKS)) {
            throw new KvTransportException(
                    Kind.PEER_LOST, "the peer is gone: there is no file " + file);
        }
        try (FileChannel channel =
                FileChannel.open(
                        file,
                        StandardOpenOption.READ,
                        StandardOpenOption.WRITE,
                        LinkOption.NOFOLLOW_LINKS)) {
            final long bytes = channel.size();
            if (bytes < PAGE) {
                throw new KvTransportException(
                        Kind.BAD_METADATA, file + " is too short: " + bytes + " bytes");
            }
            return channel.map(MapMode.READ_WRITE, 0, bytes, arena);
        } catch (NoSuchFileException e) {
            throw new KvTransportException(
                    Kind.PEER_LOST, "the peer is gone: there is no file " + file, e);
        } catch (IOException e) {
            throw new KvTransportException(Kind.FAILED, file + " cannot be mapped: " + e, e);
        }
    }

    void delete(String name) {
        try {
            Files.deleteIfExists(path.resolve(name));
        } catch (IOException e) {
            throw new UncheckedIOException(path.resolve(name) + " cannot be deleted", e);
        }
    }

    /** Deletes files of processes that are gone. */
    private void sweep() throws IOException {
        try (DirectoryStream<Path> files = Files.newDirectoryStream(path, "kvasir-*")) {
            for (Path file : files) {
                final Matcher name = NAME.matcher(file.getFileName().toString());
                if (name.matches()
                        && !HostProcess.lives(
                                Long.parseLong(name.group(1)), Long.parseLong(name.group(2)))) {
                    Files.deleteIfExists(file);
                }
            }
        }
    }
}
