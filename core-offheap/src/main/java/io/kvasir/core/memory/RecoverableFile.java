package io.kvasir.core.memory;

import java.io.IOException;
import java.nio.channels.FileChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.UUID;
import java.util.function.Function;

/**
 * A {@link RecoverableMemory} in a mapped file of a folder, which one process at a time has. What
 * cannot be used again is replaced by an empty one.
 *
 * <p>All blocks of the file are on the disk before it is mapped: a store into a mapped page that
 * has no room on the disk would end the process. Folder and file are their owner's alone.
 */
public final class RecoverableFile {
    private static final Path BOOT_ID = Path.of("/proc/sys/kernel/random/boot_id");
    private static final String LOCK_SUFFIX = ".lock";

    private RecoverableFile() {}

    /**
     * What was opened.
     *
     * @param memory closed by the caller; where it is new, {@link RecoverableMemory#made} is to be
     *     called when it is as it should be after a restart
     * @param discardedOrNull why what was there was not used; null if nothing was, or it is used
     */
    public record Opened(RecoverableMemory memory, String discardedOrNull) {}

    /**
     * Opens a file, or makes it.
     *
     * @param file in a folder that is made if it is not there; a lock file is kept beside it
     * @param shape sizes, and what must be as it was
     * @param check says what is wrong with what a file has that is there; null if nothing
     * @param constants of a new file
     * @throws IllegalStateException if another process, or another part of this one, has the file
     * @throws IOException if it cannot be made: the disk has no room for it
     */
    public static Opened open(
            Path file,
            RecoverableMemory.Shape shape,
            Function<RecoverableMemory, String> check,
            long... constants)
            throws IOException {
        return open(file, shape, check, boot(), constants);
    }

    /**
     * Checks that a file can be opened or made, and leaves all as it is. Whether another process
     * has it is not asked.
     *
     * @param room counts what a new file would take
     * @throws IOException as {@link #open} does
     */
    public static void check(Path file, RecoverableMemory.Shape shape, DiskRoom room)
            throws IOException {
        FolderProbe.check(
                file.toAbsolutePath().getParent(), lockFile(file).getFileName().toString());
        room.take(file, shape.length(), file); // one that cannot be used again is deleted first
    }

    /** The same in a life of the operating system, for tests. */
    static Opened open(
            Path file,
            RecoverableMemory.Shape shape,
            Function<RecoverableMemory, String> check,
            UUID boot,
            long... constants)
            throws IOException {
        final Path folder = file.toAbsolutePath().getParent();
        if (!Files.isDirectory(folder)) {
            Files.createDirectories(folder, LockFile.ownersAlone(folder, "rwx------"));
        }
        final LockFile lock = lock(file);
        try {
            final Opened opened = openLocked(file, shape, check, boot, constants);
            opened.memory.lockedBy(lock);
            return opened;
        } catch (Throwable t) {
            lock.close();
            throw t;
        }
    }

    private static Opened openLocked(
            Path file,
            RecoverableMemory.Shape shape,
            Function<RecoverableMemory, String> check,
            UUID boot,
            long[] constants)
            throws IOException {
        String problem = null;
        if (Files.exists(file)) {
            try (FileChannel channel = channel(file)) {
                final long length = channel.size();
                if (length < RecoverableDescriptor.PAGE) {
                    problem = "it has " + length + " bytes";
                } else {
                    final OffHeap whole =
                            OffHeap.map(
                                    channel,
                                    FileChannel.MapMode.READ_WRITE,
                                    Math.min(length, shape.length()));
                    problem = RecoverableMemory.problem(whole, length, shape, boot);
                    RecoverableMemory memory = null;
                    if (problem == null) {
                        memory = RecoverableMemory.reopen(whole, shape);
                        problem =
                                memory == null
                                        ? "what had not been finished cannot be taken back"
                                        : check.apply(memory);
                    }
                    if (problem == null) {
                        return new Opened(memory, null);
                    }
                    whole.close();
                }
            }
            Files.delete(file); // others may read it still
        }
        return new Opened(make(file, shape, boot, constants), problem);
    }

    private static RecoverableMemory make(
            Path file, RecoverableMemory.Shape shape, UUID boot, long[] constants)
            throws IOException {
        final OffHeap whole =
                MappedFile.create(file, shape.length(), LockFile.ownersAlone(file, "rw-------"));
        try {
            return RecoverableMemory.create(whole, shape, boot, constants);
        } catch (Throwable t) {
            Files.deleteIfExists(file); // and the room that it has
            throw t;
        }
    }

    private static Path lockFile(Path file) {
        return file.resolveSibling(file.getFileName() + LOCK_SUFFIX);
    }

    private static FileChannel channel(Path file) throws IOException {
        return FileChannel.open(file, StandardOpenOption.READ, StandardOpenOption.WRITE);
    }

    private static LockFile lock(Path file) throws IOException {
        final LockFile lock = LockFile.takeOrNull(lockFile(file));
        if (lock == null) {
            throw new IllegalStateException(
                    "another router has " + file + " open; give each router a folder of its own");
        }
        return lock;
    }

    private static UUID boot() {
        try {
            return UUID.fromString(Files.readString(BOOT_ID).strip());
        } catch (IOException | IllegalArgumentException e) {
            return RecoverableMemory.NO_BOOT; // not Linux
        }
    }
}
