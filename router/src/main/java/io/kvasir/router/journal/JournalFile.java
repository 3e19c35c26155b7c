package io.kvasir.router.journal;

import io.kvasir.core.memory.DiskRoom;
import io.kvasir.core.memory.FolderProbe;
import io.kvasir.core.memory.LockFile;
import io.kvasir.core.memory.MappedFile;
import io.kvasir.core.memory.OffHeap;

import java.io.IOException;
import java.nio.channels.FileChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.nio.file.StandardOpenOption;
import java.nio.file.attribute.FileAttribute;

/**
 * Journals in files, which stay when the router ends or dies: {@value #FILE} in a folder of the
 * router's own, and that of the run before as {@value #PREVIOUS}.
 */
public final class JournalFile {
    /** The file that a router writes. */
    public static final String FILE = "decisions.kvj";

    /** The file of the run before. */
    public static final String PREVIOUS = "decisions.previous.kvj";

    private static final String NEW_FILE = FILE + ".new";
    private static final String LOCK_FILE = FILE + ".lock";

    private JournalFile() {}

    /**
     * Makes the journal of a folder, and takes the folder for this process.
     *
     * @param folder is made where there is none
     * @param records decisions to keep
     * @param candidates to list of each
     * @param blockSize tokens per block
     * @param nowMs milliseconds since the epoch
     * @throws IllegalStateException if another router has the folder
     * @throws IOException if it cannot be written to
     */
    public static DecisionJournal create(
            Path folder, int records, int candidates, int blockSize, long nowMs)
            throws IOException {
        DecisionJournal.check(records, candidates);
        if (!Files.isDirectory(folder)) {
            Files.createDirectories(folder, LockFile.ownersAlone(folder, "rwx------"));
        }
        final LockFile lock = LockFile.takeOrNull(folder.resolve(LOCK_FILE));
        if (lock == null) {
            throw new IllegalStateException(
                    "another router keeps its decisions in "
                            + folder
                            + "; give each router its own decision-journal-dir");
        }
        try {
            return new DecisionJournal(file(folder, records, candidates, blockSize, nowMs), lock);
        } catch (Throwable t) {
            lock.close();
            throw t;
        }
    }

    /**
     * Checks that the journal of a folder can be made, and leaves all as it is. Whether another
     * router has the folder is not asked.
     *
     * @param room counts what the journal would take
     * @throws IOException as {@link #create} does
     */
    public static void check(Path folder, int records, int candidates, DiskRoom room)
            throws IOException {
        FolderProbe.check(folder, LOCK_FILE);
        final Path made = folder.resolve(NEW_FILE);
        room.take(
                made,
                JournalDescriptor.length(records, candidates),
                made,
                folder.resolve(PREVIOUS));
    }

    private static OffHeap file(Path folder, int records, int candidates, int blockSize, long nowMs)
            throws IOException {
        final Path made = folder.resolve(NEW_FILE);
        Files.deleteIfExists(made);
        final OffHeap memory = make(made, folder.resolve(PREVIOUS), records, candidates);
        try {
            DecisionJournal.writeHeader(memory, records, candidates, blockSize, nowMs);
            final Path file = folder.resolve(FILE);
            if (Files.exists(file)) {
                move(file, folder.resolve(PREVIOUS));
            }
            move(made, file);
            return memory;
        } catch (Throwable t) {
            memory.close();
            Files.deleteIfExists(made);
            throw t;
        }
    }

    /** Where there is room for two files and not for three, the oldest one gives way first. */
    private static OffHeap make(Path made, Path oldest, int records, int candidates)
            throws IOException {
        final long length = JournalDescriptor.length(records, candidates);
        final FileAttribute<?>[] attributes = LockFile.ownersAlone(made, "rw-------");
        try {
            return MappedFile.create(made, length, attributes);
        } catch (IOException e) {
            new DiskRoom().take(made, length, oldest); // else it would give way for nothing
            if (!Files.deleteIfExists(oldest)) {
                throw e;
            }
            return MappedFile.create(made, length, attributes);
        }
    }

    private static void move(Path from, Path to) throws IOException {
        Files.move(from, to, StandardCopyOption.ATOMIC_MOVE, StandardCopyOption.REPLACE_EXISTING);
    }

    /**
     * Opens a journal to read it, while it is written or after its router has ended.
     *
     * @param path the file, or the folder that has one
     * @throws IOException if there is none, or it is no journal of this version, or damaged
     */
    public static DecisionJournal open(Path path) throws IOException {
        final Path file = Files.isDirectory(path) ? path.resolve(FILE) : path;
        try (FileChannel channel = FileChannel.open(file, StandardOpenOption.READ)) {
            final long size = channel.size();
            if (size < JournalDescriptor.HEADER_LENGTH) {
                throw new IOException(file + " is no decision journal: " + size + " bytes");
            }
            final OffHeap memory = OffHeap.map(channel, FileChannel.MapMode.READ_ONLY, size);
            try {
                check(file, memory);
                return new DecisionJournal(memory, null);
            } catch (Throwable t) {
                memory.close();
                throw t;
            }
        }
    }

    private static void check(Path file, OffHeap memory) throws IOException {
        if (memory.getLongAcquire(JournalDescriptor.MAGIC_OFFSET) != JournalDescriptor.MAGIC) {
            throw new IOException(file + " is no decision journal");
        }
        final long version = memory.getLong(JournalDescriptor.VERSION_OFFSET);
        if (version != JournalDescriptor.VERSION) {
            throw new IOException(
                    file
                            + " is a decision journal of version "
                            + version
                            + ", this program reads "
                            + JournalDescriptor.VERSION);
        }
        final long records = memory.getLong(JournalDescriptor.RECORDS_OFFSET);
        final long candidates = memory.getLong(JournalDescriptor.CANDIDATES_OFFSET);
        final long blockSize = memory.getLong(JournalDescriptor.BLOCK_SIZE_OFFSET);
        if (records < 1
                || records > DecisionJournal.MAX_RECORDS
                || candidates < 1
                || candidates > JournalRecord.MAX_CANDIDATES
                || blockSize < 1
                || blockSize > Integer.MAX_VALUE
                || memory.length() != JournalDescriptor.length((int) records, (int) candidates)) {
            throw new IOException(
                    file
                            + " is damaged: records="
                            + records
                            + ", candidates="
                            + candidates
                            + ", block size="
                            + blockSize
                            + ", bytes="
                            + memory.length());
        }
    }
}
