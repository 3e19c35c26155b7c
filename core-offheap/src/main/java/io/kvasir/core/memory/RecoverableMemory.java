package io.kvasir.core.memory;

import static io.kvasir.core.memory.RecoverableDescriptor.BEING_MADE;
import static io.kvasir.core.memory.RecoverableDescriptor.BOOT_OFFSET;
import static io.kvasir.core.memory.RecoverableDescriptor.CHECKSUM_OFFSET;
import static io.kvasir.core.memory.RecoverableDescriptor.CLOSED;
import static io.kvasir.core.memory.RecoverableDescriptor.COUNT_OFFSET;
import static io.kvasir.core.memory.RecoverableDescriptor.GENERATION_OFFSET;
import static io.kvasir.core.memory.RecoverableDescriptor.IN_USE;
import static io.kvasir.core.memory.RecoverableDescriptor.LENGTH_OFFSET;
import static io.kvasir.core.memory.RecoverableDescriptor.LOG_OFFSET;
import static io.kvasir.core.memory.RecoverableDescriptor.MAGIC;
import static io.kvasir.core.memory.RecoverableDescriptor.MAGIC_OFFSET;
import static io.kvasir.core.memory.RecoverableDescriptor.SPOILED;
import static io.kvasir.core.memory.RecoverableDescriptor.STATE_OFFSET;
import static io.kvasir.core.memory.RecoverableDescriptor.VERSION;
import static io.kvasir.core.memory.RecoverableDescriptor.VERSION_OFFSET;
import static io.kvasir.core.memory.RecoverableDescriptor.pages;
import static io.kvasir.core.memory.RecoverableDescriptor.wordOffset;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.List;
import java.util.UUID;
import java.util.zip.CRC32C;

/**
 * Memory of one structure that outlives the process, where the operating system keeps it: areas
 * whose stores are all taken back that were made after the last {@link #commit}. Says on reopening
 * whether what is there can be used; if anything is in doubt it cannot.
 *
 * <p>Survives the death of the process at any instruction, not that of the operating system: pages
 * reach the disk in no particular order. So what another boot has left is not used.
 *
 * <p>One writer thread stores into the areas and commits; other threads may read them.
 */
public final class RecoverableMemory implements AutoCloseable {
    /** Of an operating system that does not say which of its lives this is. */
    static final UUID NO_BOOT = new UUID(0, 0);

    private final OffHeap whole;
    private final OffHeap log;
    private final UndoLog undo;
    private final OffHeap[] areas;
    private final long restoredLongs;
    private final boolean killed;
    private final int compared; // words before the constants
    private boolean closed;
    private AutoCloseable lockOrNull; // of the file that it is, if it is one

    private RecoverableMemory(OffHeap whole, Shape shape, long restoredLongs, boolean killed) {
        this.whole = whole;
        this.compared = shape.words.size();
        this.log = whole.part(LOG_OFFSET, pages(shape.logLength));
        this.undo = new UndoLog(log);
        this.areas = new OffHeap[shape.areaLengths.length];
        this.restoredLongs = restoredLongs;
        this.killed = killed;
        for (int i = 0; i < areas.length; i++) {
            final long length = (shape.areaLengths[i] + Long.BYTES - 1) & -Long.BYTES;
            areas[i] = new LoggedMemory(whole, areaOffset(shape, i), length, undo);
        }
    }

    /**
     * A size or setting that a memory is made for.
     *
     * @param name by which the owner's user knows it
     * @param value the only part that is stored
     */
    public record Word(String name, long value) {}

    /**
     * Sizes of one memory, and what its owner compares.
     *
     * @param logLength bytes of the undo log: a change that stores over more cannot be taken back,
     *     and a kill in the middle of it costs the whole memory
     * @param areaLengths bytes of each area; each has as many more as its last long needs
     * @param words what must be the same when it is opened again
     */
    @SuppressWarnings("ArrayRecordComponent") // never compared as a whole
    public record Shape(long logLength, long[] areaLengths, List<Word> words) {
        /**
         * Checks the number of words.
         *
         * @throws IllegalArgumentException if they do not fit
         */
        public Shape {
            words = List.copyOf(words);
            if (words.size() > RecoverableDescriptor.MOST_WORDS / 2) {
                throw new IllegalArgumentException("too many words: " + words.size());
            }
        }

        /** Bytes of the whole memory. */
        public long length() {
            long length = LOG_OFFSET + pages(logLength);
            for (long area : areaLengths) {
                length += pages(area);
            }
            return length;
        }
    }

    /**
     * Makes an empty memory. It cannot be opened again before {@link #made} is called.
     *
     * @param whole zeroed, at least as long as the shape says; closed with this
     * @param boot life of the operating system
     * @param constants further words, which {@link #constant} answers after a restart, too
     */
    static RecoverableMemory create(OffHeap whole, Shape shape, UUID boot, long... constants) {
        whole.putLong(STATE_OFFSET, BEING_MADE);
        whole.putLong(VERSION_OFFSET, VERSION);
        whole.putLong(GENERATION_OFFSET, 1);
        whole.putLong(BOOT_OFFSET, boot.getMostSignificantBits());
        whole.putLong(BOOT_OFFSET + Long.BYTES, boot.getLeastSignificantBits());
        whole.putLong(LENGTH_OFFSET, shape.length());
        final int words = shape.words.size();
        whole.putLong(COUNT_OFFSET, words + constants.length);
        for (int i = 0; i < words; i++) {
            whole.putLong(wordOffset(i), shape.words.get(i).value);
        }
        whole.putLongs(wordOffset(words), constants, 0, constants.length);
        whole.putLong(CHECKSUM_OFFSET, checksum(whole));
        final RecoverableMemory made = new RecoverableMemory(whole, shape, 0, false);
        UndoLog.clear(made.log);
        whole.putLongRelease(MAGIC_OFFSET, MAGIC);
        return made;
    }

    /** From here on the memory can be opened again. */
    public void made() {
        commit();
        whole.putLongRelease(STATE_OFFSET, IN_USE);
        whole.storeStoreFence();
    }

    /**
     * Why a memory cannot be opened again; null if it can.
     *
     * @param length bytes that there are
     */
    static String problem(OffHeap whole, long length, Shape shape, UUID boot) {
        if (length < LOG_OFFSET || whole.getLong(MAGIC_OFFSET) != MAGIC) {
            return "it is no such memory, or of another byte order";
        }
        if (whole.getLong(VERSION_OFFSET) != VERSION) {
            return "its layout has version "
                    + whole.getLong(VERSION_OFFSET)
                    + ", this program writes "
                    + VERSION;
        }
        if (whole.getLong(LENGTH_OFFSET) != shape.length() || length < shape.length()) {
            return "it has "
                    + length
                    + " bytes, and "
                    + whole.getLong(LENGTH_OFFSET)
                    + " by its first page; the settings of now need "
                    + shape.length();
        }
        final long count = whole.getLong(COUNT_OFFSET);
        if (count < shape.words.size()
                || count > RecoverableDescriptor.MOST_WORDS
                || whole.getLong(CHECKSUM_OFFSET) != checksum(whole)) {
            return "the checksum of its first page is wrong";
        }
        for (int i = 0; i < shape.words.size(); i++) {
            final Word word = shape.words.get(i);
            if (whole.getLong(wordOffset(i)) != word.value) {
                return "it was made with other settings: "
                        + word.name
                        + " "
                        + whole.getLong(wordOffset(i))
                        + " instead of "
                        + word.value;
            }
        }
        final long state = whole.getLong(STATE_OFFSET);
        if (state == BEING_MADE) {
            return "its process ended while it was being made";
        }
        if (state != IN_USE && state != CLOSED) {
            return "its process had found an error in it";
        }
        if (boot.equals(NO_BOOT)) {
            return "nothing says whether the operating system has been restarted since";
        }
        if (whole.getLong(BOOT_OFFSET) != boot.getMostSignificantBits()
                || whole.getLong(BOOT_OFFSET + Long.BYTES) != boot.getLeastSignificantBits()) {
            return "the operating system has been restarted since";
        }
        return null;
    }

    /**
     * Opens a memory that has no {@link #problem}, and takes back what was not committed.
     *
     * @return null if that cannot be taken back
     */
    static RecoverableMemory reopen(OffHeap whole, Shape shape) {
        final OffHeap log = whole.part(LOG_OFFSET, pages(shape.logLength));
        final boolean wasKilled = whole.getLong(STATE_OFFSET) == IN_USE;
        final long restored = UndoLog.rollBack(log, LOG_OFFSET, whole);
        if (restored < 0) {
            return null;
        }
        whole.putLong(GENERATION_OFFSET, whole.getLong(GENERATION_OFFSET) + 1);
        whole.putLongRelease(STATE_OFFSET, IN_USE);
        return new RecoverableMemory(whole, shape, restored, wasKilled);
    }

    private static long checksum(OffHeap whole) {
        final CRC32C crc = new CRC32C();
        final ByteBuffer word = ByteBuffer.allocate(Long.BYTES).order(ByteOrder.nativeOrder());
        add(crc, word, whole.getLong(VERSION_OFFSET));
        add(crc, word, whole.getLong(LENGTH_OFFSET));
        final long count = whole.getLong(COUNT_OFFSET);
        add(crc, word, count);
        for (int i = 0; i < count && i < RecoverableDescriptor.MOST_WORDS; i++) {
            add(crc, word, whole.getLong(wordOffset(i)));
        }
        return crc.getValue();
    }

    private static void add(CRC32C crc, ByteBuffer word, long value) {
        crc.update(word.clear().putLong(value).flip());
    }

    /** A constant that it was made with. */
    public long constant(int index) {
        return whole.getLong(wordOffset(compared + index));
    }

    /** Whether it was made by an earlier process, and has what that had committed. */
    public boolean isReopened() {
        return generation() > 1;
    }

    /** Gives it a lock to keep, which ends when it is closed. */
    void lockedBy(AutoCloseable lock) {
        lockOrNull = lock;
    }

    /** An area, for the writer thread to store into and any thread to read. */
    public OffHeap area(int index) {
        return areas[index];
    }

    /** Bytes of all of it. */
    public long length() {
        return whole.length();
    }

    /** How often it was opened. */
    public long generation() {
        return whole.getLong(GENERATION_OFFSET);
    }

    /** Longs that were taken back when it was opened. */
    public long restoredLongs() {
        return restoredLongs;
    }

    /** Whether the process that had it before ended without closing it. */
    public boolean wasKilled() {
        return killed;
    }

    /** Changes that had more stores than the undo log has room for. */
    public long incompleteChanges() {
        return undo.incompleteChanges();
    }

    /** What was stored since the last commit stays. Writer thread. */
    public void commit() {
        undo.commit();
    }

    /** Nothing of it is to be used again, because its content may be wrong. Any thread. */
    public void spoil() {
        whole.putLongRelease(STATE_OFFSET, SPOILED);
    }

    /**
     * Gives the memory back; what was not committed is taken back when it is opened again. A second
     * call does nothing. No other call may follow or run.
     */
    @Override
    public void close() {
        if (closed) {
            return;
        }
        closed = true;
        if (undo.isEmpty() && whole.getLong(STATE_OFFSET) == IN_USE) {
            whole.putLongRelease(STATE_OFFSET, CLOSED);
        }
        whole.close();
        if (lockOrNull != null) {
            try {
                lockOrNull.close();
            } catch (Exception e) {
                throw new IllegalStateException("the lock could not be given back", e);
            }
        }
    }

    /** Where an area begins in the whole memory; for tests. */
    static long areaOffset(Shape shape, int index) {
        long at = LOG_OFFSET + pages(shape.logLength);
        for (int i = 0; i < index; i++) {
            at += pages(shape.areaLengths[i]);
        }
        return at;
    }

    /** Shows all stores to a listener, by their offset in the whole memory; for tests. */
    void listen(OffHeap.StoreListener listener) {
        whole.listen(listener);
        log.listen(shifted(listener, LOG_OFFSET));
        long at = LOG_OFFSET + log.length();
        for (OffHeap area : areas) {
            area.listen(shifted(listener, at));
            at += pages(area.length());
        }
    }

    private static OffHeap.StoreListener shifted(OffHeap.StoreListener listener, long start) {
        return listener == null
                ? null
                : new OffHeap.StoreListener() {
                    @Override
                    public void store(long offset, int length, long value, boolean release) {
                        listener.store(start + offset, length, value, release);
                    }

                    @Override
                    public void fence() {
                        listener.fence();
                    }
                };
    }
}
