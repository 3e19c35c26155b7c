package io.kvasir.router.state;

import io.kvasir.core.memory.FolderProbe;
import io.kvasir.core.memory.LockFile;
import io.kvasir.router.spi.StateStore;

import org.agrona.CloseHelper;

import java.io.BufferedOutputStream;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.nio.channels.Channels;
import java.nio.channels.FileChannel;
import java.nio.file.FileSystemException;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.nio.file.StandardOpenOption;
import java.util.List;
import java.util.Set;
import java.util.function.Consumer;
import java.util.stream.Stream;
import java.util.zip.CRC32C;
import java.util.zip.CheckedInputStream;
import java.util.zip.CheckedOutputStream;

/**
 * Objects as files of a folder on a local disk. A file is written under another name, forced to the
 * disk, read back, renamed, and the folder is forced: whenever the process ends in between, the
 * folder has the old object or the new one. The lock is a locked file, which ends with the process.
 * Files and the folder are readable by their owner alone.
 */
public final class FileStateStore implements StateStore {
    /** What a put and a delete do, one after the other. */
    enum Step {
        /** The file with the other name is there, and empty. */
        CREATED,
        /** Some bytes of it are written. */
        WRITTEN,
        /** All bytes are on the disk. */
        FORCED,
        /** They have been read back. */
        VERIFIED,
        /** The file has its name. */
        RENAMED,
        /** And has it after a loss of power, too. */
        FOLDER_FORCED,
        /** A file is deleted. */
        DELETED
    }

    private static final String LOCK = ".lock";
    private static final String UNFINISHED = ".kvasir-unfinished";
    private static final int BUFFER_BYTES = 1 << 16;

    private final Path folder;
    private final Consumer<Step> steps;
    private LockFile lock; // null where it is not held
    private boolean closed;

    /**
     * Opens a store.
     *
     * @param folder made if it is not there
     * @throws IOException if it cannot be made
     */
    public FileStateStore(Path folder) throws IOException {
        this(folder, _ -> {});
    }

    /** With what is called after each step, for tests that end the process there. */
    FileStateStore(Path folder, Consumer<Step> steps) throws IOException {
        this.folder = folder;
        this.steps = steps;
        makeFolder();
    }

    private void makeFolder() throws IOException {
        if (!Files.isDirectory(folder)) {
            Files.createDirectories(folder, LockFile.ownersAlone(folder, "rwx------"));
        }
    }

    /**
     * Checks that a store of a folder can be opened and locked, and leaves all as it is. Whether
     * another has the lock is not asked.
     *
     * @throws IOException as opening and {@link #lock} do
     */
    public static void check(Path folder) throws IOException {
        FolderProbe.check(folder, LOCK);
    }

    @Override
    public synchronized boolean lock() throws IOException {
        if (closed || !takeLock()) {
            return false;
        }
        removeUnfinished();
        return true;
    }

    /** Takes the lock where it is free; where the folder was removed, it is made again first. */
    private boolean takeLock() throws IOException {
        final Path file = folder.resolve(LOCK);
        if (lock != null && lock.isOf(file)) {
            return true;
        }
        makeFolder();
        final LockFile taken = LockFile.takeOrNull(file);
        if (taken == null) {
            return false;
        }
        CloseHelper.close(lock); // of the file that was removed
        lock = taken;
        return true;
    }

    private void removeUnfinished() throws IOException {
        try (Stream<Path> files = Files.list(folder)) {
            for (Path file : files.filter(FileStateStore::isUnfinished).toList()) {
                if (Files.isRegularFile(file)) {
                    Files.delete(file);
                }
            }
        }
    }

    private static boolean isUnfinished(Path file) {
        return file.getFileName().toString().endsWith(UNFINISHED);
    }

    private void checkLocked() throws IOException {
        if (lock == null) {
            throw new IllegalStateException("the lock of " + folder + " is not held");
        }
        if (!takeLock()) {
            throw new IOException("the lock of " + folder + " was removed, and another has it now");
        }
    }

    private Path file(String name) {
        if (StateStore.checkName(name).endsWith(UNFINISHED)) {
            throw new IllegalArgumentException(
                    "no name of an object: " + name + " ends with " + UNFINISHED);
        }
        return folder.resolve(name);
    }

    @Override
    public synchronized void put(String name, Content content) throws IOException {
        final Path file = file(name);
        checkLocked();
        final Path unfinished = folder.resolve(name + UNFINISHED);
        try {
            final long crc = write(unfinished, content);
            verify(unfinished, crc);
            steps.accept(Step.VERIFIED);
            Files.move(unfinished, file, StandardCopyOption.ATOMIC_MOVE);
            steps.accept(Step.RENAMED);
            forceFolder();
            steps.accept(Step.FOLDER_FORCED);
        } finally {
            Files.deleteIfExists(unfinished);
        }
    }

    private long write(Path unfinished, Content content) throws IOException {
        Files.deleteIfExists(unfinished);
        try (FileChannel channel =
                FileChannel.open(
                        unfinished,
                        Set.of(StandardOpenOption.CREATE_NEW, StandardOpenOption.WRITE),
                        LockFile.ownersAlone(folder, "rw-------"))) {
            steps.accept(Step.CREATED);
            final CheckedOutputStream checked =
                    new CheckedOutputStream(
                            new SteppedOutput(Channels.newOutputStream(channel)), new CRC32C());
            final OutputStream out = new BufferedOutputStream(checked, BUFFER_BYTES);
            content.writeTo(out);
            out.flush();
            channel.force(true);
            steps.accept(Step.FORCED);
            return checked.getChecksum().getValue();
        }
    }

    /** Says when bytes have been written. */
    private final class SteppedOutput extends OutputStream {
        private final OutputStream out;

        SteppedOutput(OutputStream out) {
            this.out = out;
        }

        @Override
        public void write(int b) throws IOException {
            write(new byte[] {(byte) b}, 0, 1);
        }

        @Override
        public void write(byte[] bytes, int offset, int length) throws IOException {
            out.write(bytes, offset, length);
            steps.accept(Step.WRITTEN);
        }
    }

    private static void verify(Path file, long written) throws IOException {
        try (CheckedInputStream in =
                new CheckedInputStream(Files.newInputStream(file), new CRC32C())) {
            in.transferTo(OutputStream.nullOutputStream());
            if (in.getChecksum().getValue() != written) {
                throw new FileSystemException(
                        file.toString(), null, "other bytes were read than had been written");
            }
        }
    }

    private void forceFolder() throws IOException {
        try (FileChannel channel = FileChannel.open(folder, StandardOpenOption.READ)) {
            channel.force(true);
        }
    }

    @Override
    public InputStream get(String name, long offset) throws IOException {
        final Path file = file(name);
        if (offset < 0) {
            throw new IllegalArgumentException("offset is negative: " + offset);
        }
        try {
            final FileChannel channel = FileChannel.open(file, StandardOpenOption.READ);
            return Channels.newInputStream(channel.position(offset));
        } catch (NoSuchFileException e) {
            return null;
        }
    }

    @Override
    public List<String> list() throws IOException {
        try (Stream<Path> files = Files.list(folder)) {
            return files.filter(file -> !isUnfinished(file) && Files.isRegularFile(file))
                    .map(file -> file.getFileName().toString())
                    .filter(StateStore::isName)
                    .sorted()
                    .toList();
        } catch (NoSuchFileException e) {
            return List.of(); // removed: the next put makes it again
        }
    }

    @Override
    public synchronized void delete(String name) throws IOException {
        final Path file = file(name);
        checkLocked();
        Files.deleteIfExists(file);
        steps.accept(Step.DELETED);
        forceFolder();
    }

    @Override
    public synchronized void close() {
        closed = true;
        CloseHelper.close(lock);
        lock = null;
    }

    @Override
    public String toString() {
        return folder.toString();
    }
}
