package io.kvasir.core.counters;

import io.kvasir.core.memory.DiskRoom;
import io.kvasir.core.memory.FolderProbe;
import io.kvasir.core.memory.LockFile;
import io.kvasir.core.memory.MappedFile;
import io.kvasir.core.memory.OffHeap;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.AtomicMoveNotSupportedException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.util.ArrayDeque;

/**
 * Named values in a mapped file: set here, read by {@link CountersReader} in any process while they
 * change. A folder has one writer at a time. The file stays when the writer ends or dies, and the
 * next one in the folder replaces it; readers of the former keep what they have mapped.
 *
 * <p>One thread at a time allocates, sets and frees; {@link #errors} takes any thread. Setting a
 * value is one store.
 */
public final class CountersFile implements AutoCloseable {
    /** What is returned where there is no room for another counter. */
    public static final int NONE = -1;

    /** Least room for errors, in bytes. */
    public static final int MIN_ERROR_LENGTH = 1 << 10;

    static final String FILE = "kvasir.counters";

    /** A label stays for so long after its counter was freed: a reader may be at it. */
    private static final long REUSE_DELAY_MS = 1_000;

    private static final String NEW_FILE = FILE + ".new";
    private static final String LOCK_FILE = "kvasir.counters.lock";

    private final LockFile lock;
    private final OffHeap memory;
    private final int counters;
    private final DistinctErrors errors;
    private final ArrayDeque<Integer> freed = new ArrayDeque<>(); // oldest first
    private int used; // counters that were allocated at some time
    private boolean closed;

    private CountersFile(LockFile lock, OffHeap memory, int counters) {
        this.lock = lock;
        this.memory = memory;
        this.counters = counters;
        this.errors = new DistinctErrors(memory, CountersDescriptor.errorsOffset(counters));
    }

    /**
     * Makes the file of a folder, and takes the folder for this process.
     *
     * @param folder is made where there is none
     * @param counters most counters at once, 1 to 1,000,000; each takes 640 bytes of disk
     * @param errorLength bytes for distinct errors, at least {@link #MIN_ERROR_LENGTH}
     * @param nowMs milliseconds since the epoch
     * @throws IllegalStateException if another writer has the folder
     * @throws UncheckedIOException if the folder cannot be written to
     */
    public static CountersFile create(Path folder, int counters, int errorLength, long nowMs) {
        if (counters < 1 || counters > 1_000_000) {
            throw new IllegalArgumentException("counters=" + counters + " must be 1 to 1,000,000");
        }
        if (errorLength < MIN_ERROR_LENGTH) {
            throw new IllegalArgumentException(
                    "errorLength=" + errorLength + " must be at least " + MIN_ERROR_LENGTH);
        }
        try {
            Files.createDirectories(folder);
            final LockFile lock = lock(folder);
            try {
                return new CountersFile(lock, file(folder, counters, errorLength, nowMs), counters);
            } catch (Throwable t) {
                lock.close();
                throw t;
            }
        } catch (IOException e) {
            throw new UncheckedIOException("counters-dir=" + folder + " cannot be used", e);
        }
    }

    /**
     * Checks that the file of a folder can be made, and leaves all as it is. Whether another writer
     * has the folder is not asked.
     *
     * @param counters as of {@link #create}, like {@code errorLength}
     * @param room counts what the file would take
     * @throws IOException as the cause of what {@link #create} throws
     */
    public static void check(Path folder, int counters, int errorLength, DiskRoom room)
            throws IOException {
        FolderProbe.check(folder, LOCK_FILE);
        final Path made = folder.resolve(NEW_FILE);
        room.take(made, length(counters, errors(errorLength)), made);
    }

    private static int errors(int errorLength) {
        return Math.ceilDiv(errorLength, OffHeap.ALIGNMENT) * OffHeap.ALIGNMENT;
    }

    private static long length(int counters, int errors) {
        return CountersDescriptor.errorsOffset(counters) + errors;
    }

    private static LockFile lock(Path folder) throws IOException {
        final LockFile lock = LockFile.takeOrNull(folder.resolve(LOCK_FILE));
        if (lock == null) {
            throw new IllegalStateException(
                    "another router keeps its counters in "
                            + folder
                            + "; give each router its own counters-dir");
        }
        return lock;
    }

    private static OffHeap file(Path folder, int counters, int errorLength, long nowMs)
            throws IOException {
        final Path made = folder.resolve(NEW_FILE);
        Files.deleteIfExists(made);
        final int errors = errors(errorLength);
        final OffHeap memory = MappedFile.create(made, length(counters, errors));
        try {
            writeHeader(memory, counters, errors, nowMs);
            publish(made, folder.resolve(FILE));
            return memory;
        } catch (Throwable t) {
            memory.close();
            Files.deleteIfExists(made);
            throw t;
        }
    }

    private static void writeHeader(OffHeap memory, int counters, int errors, long nowMs) {
        memory.putInt(
                CountersDescriptor.METADATA_LENGTH_OFFSET,
                counters * CountersDescriptor.METADATA_LENGTH);
        memory.putInt(
                CountersDescriptor.VALUES_LENGTH_OFFSET,
                counters * CountersDescriptor.VALUE_LENGTH);
        memory.putInt(CountersDescriptor.ERRORS_LENGTH_OFFSET, errors);
        memory.putInt(CountersDescriptor.STATE_OFFSET, CountersDescriptor.RUNNING);
        memory.putLong(CountersDescriptor.PROCESS_OFFSET, ProcessHandle.current().pid());
        memory.putLong(CountersDescriptor.STARTED_OFFSET, nowMs);
        memory.putLong(CountersDescriptor.WRITTEN_OFFSET, nowMs);
        // the magic (release) after the header: CountersReader.open acquires it before the lengths
        memory.putLongRelease(CountersDescriptor.MAGIC_OFFSET, CountersDescriptor.MAGIC);
    }

    private static void publish(Path made, Path file) throws IOException {
        try {
            Files.move(made, file, StandardCopyOption.ATOMIC_MOVE);
        } catch (AtomicMoveNotSupportedException e) {
            Files.move(made, file, StandardCopyOption.REPLACE_EXISTING);
        }
    }

    /**
     * Allocates a counter of value 0.
     *
     * @param label is cut after 380 bytes of UTF-8
     * @param type what the value means, for programs that look for it
     * @param nowMs milliseconds since the epoch
     * @return its number, or {@link #NONE} where there is no room
     */
    public int allocate(String label, int type, long nowMs) {
        final int counter = next(nowMs);
        if (counter == NONE) {
            return NONE;
        }
        final long offset = CountersDescriptor.metadataOffset(counter);
        memory.putInt(offset + CountersDescriptor.TYPE_OFFSET, type);
        memory.putLong(offset + CountersDescriptor.REUSABLE_FROM_OFFSET, CountersDescriptor.NEVER);
        final byte[] text = label.getBytes(StandardCharsets.UTF_8);
        final int length = wholeCharacters(text, CountersDescriptor.MAX_LABEL_LENGTH);
        putBytes(memory, offset + CountersDescriptor.LABEL_OFFSET, text, length);
        // the length (release) after the label: CountersReader.visit acquires it, then reads that
        memory.putIntRelease(offset + CountersDescriptor.LABEL_LENGTH_OFFSET, length);
        set(counter, 0);
        // the state (release) after type, label and value: CountersReader.counters acquires it
        // first
        memory.putIntRelease(
                offset + CountersDescriptor.COUNTER_STATE_OFFSET, CountersDescriptor.ALLOCATED);
        return counter;
    }

    private int next(long nowMs) {
        final Integer oldest = freed.peekFirst();
        if (oldest != null
                && nowMs
                        >= memory.getLong(
                                CountersDescriptor.metadataOffset(oldest)
                                        + CountersDescriptor.REUSABLE_FROM_OFFSET)) {
            return freed.removeFirst();
        }
        return used == counters ? NONE : used++;
    }

    /** The longest prefix of whole characters of at most so many bytes. */
    static int wholeCharacters(byte[] text, int limit) {
        if (text.length <= limit) {
            return text.length;
        }
        int length = limit;
        while (length > 0 && (text[length] & 0xC0) == 0x80) { // within a character
            length--;
        }
        return length;
    }

    static void putBytes(OffHeap memory, long offset, byte[] bytes, int length) {
        for (int i = 0; i < length; i++) {
            memory.putByte(offset + i, bytes[i]);
        }
    }

    /** Sets a value of a counter that is allocated. */
    public void set(int counter, long value) {
        memory.putLongRelease(CountersDescriptor.valueOffset(counters, counter), value);
    }

    /**
     * Frees a counter that is allocated; its number is given again after a second.
     *
     * @param nowMs milliseconds since the epoch
     */
    public void free(int counter, long nowMs) {
        final long offset = CountersDescriptor.metadataOffset(counter);
        memory.putIntRelease(
                offset + CountersDescriptor.COUNTER_STATE_OFFSET, CountersDescriptor.FREE);
        memory.putLong(offset + CountersDescriptor.REUSABLE_FROM_OFFSET, nowMs + REUSE_DELAY_MS);
        freed.addLast(counter);
    }

    /**
     * Says that the values are those of now: a reader knows by it whether the writer lives.
     *
     * @param nowMs milliseconds since the epoch
     */
    public void written(long nowMs) {
        // after the values (release): a reader that acquires this time reads them or newer ones
        memory.putLongRelease(CountersDescriptor.WRITTEN_OFFSET, nowMs);
    }

    /** What goes wrong, each cause once. */
    public DistinctErrors errors() {
        return errors;
    }

    /** Says that the writer has ended and gives the folder back; a second call does nothing. */
    @Override
    public void close() {
        if (closed) {
            return;
        }
        closed = true;
        errors.close();
        // last (release): a reader that acquires CLOSED reads the final values
        memory.putIntRelease(CountersDescriptor.STATE_OFFSET, CountersDescriptor.CLOSED);
        memory.close();
        try {
            lock.close();
        } catch (IOException e) {
            throw new UncheckedIOException("the folder of the counters stays locked", e);
        }
    }
}
