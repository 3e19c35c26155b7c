package io.kvasir.core.memory;

import static io.kvasir.core.memory.UndoLogDescriptor.EMPTY;
import static io.kvasir.core.memory.UndoLogDescriptor.END_OFFSET;
import static io.kvasir.core.memory.UndoLogDescriptor.INCOMPLETE;

/**
 * What the open change of a {@link RecoverableMemory} has stored over, so that a process that ends
 * in the middle leaves what the next one needs to take the change back.
 *
 * <p>A killed process has made a prefix of its stores, in the order in which the compiler has put
 * them, and the fences here keep that order: a record, then the end of the log after it, then the
 * store that the record is about. So the log has a record of every long that differs, each as it
 * was when the change began if the records are taken back from the last to the first. {@link
 * #commit} is one store, after all those of the change and before any of the next.
 *
 * <p>A change with more stores than the log has room for continues without one: the log says so
 * before the first store that it lacks, and until the commit the memory cannot be taken back.
 *
 * <p>Owner: the one thread that writes the memory. Layout: {@link UndoLogDescriptor}.
 */
final class UndoLog {
    private final OffHeap log;
    private final long capacity;
    private long end = EMPTY;
    private long incompleteChanges;

    /**
     * @param log where it is; empty, or rolled back
     */
    UndoLog(OffHeap log) {
        this.log = log;
        this.capacity = log.length();
    }

    /** Makes an empty log of whatever bytes are there. */
    static void clear(OffHeap log) {
        log.writeFenced(END_OFFSET, EMPTY);
    }

    /** Whether nothing was stored since the last commit. */
    boolean isEmpty() {
        return end == EMPTY;
    }

    /** Changes that had more stores than there was room for. */
    long incompleteChanges() {
        return incompleteChanges;
    }

    /**
     * Writes down longs that are about to be stored over, whole or in part.
     *
     * @param area what they lie in
     * @param areaOffset where that begins
     */
    void remember(OffHeap area, long areaOffset, long offset, long length) {
        final long first = offset & -Long.BYTES;
        final long longs = (offset + length - first + Long.BYTES - 1) >>> 3;
        final long before = end;
        final long trailer = before + (longs << 3);
        if (before == INCOMPLETE) {
            return;
        }
        if (trailer + Long.BYTES > capacity || longs > UndoLogDescriptor.MOST_LONGS) {
            giveUp();
            return;
        }
        for (long i = 0; i < longs; i++) {
            log.write(before + (i << 3), area.getLong(first + (i << 3)));
        }
        log.write(trailer, UndoLogDescriptor.trailer(longs, areaOffset + first));
        end = trailer + Long.BYTES;
        // after the record (release), and before the store that it is about (fence): a process
        // that is killed in between has either both or not yet the store
        log.writeFenced(END_OFFSET, trailer + Long.BYTES);
    }

    private void giveUp() {
        end = INCOMPLETE;
        incompleteChanges++;
        log.writeFenced(END_OFFSET, INCOMPLETE); // before the store that is not in the log
    }

    /** All stores so far stay: the log is empty again. */
    void commit() {
        if (end != EMPTY) {
            end = EMPTY;
            // after every store of the change (release), and before the records of the next one,
            // which take the memory of these (fence)
            log.writeFenced(END_OFFSET, EMPTY);
        }
    }

    /**
     * Takes the change back that was open when the process ended. A process that is killed
     * meanwhile leaves it to the next one, which does the same again.
     *
     * @param log where it is
     * @param logOffset where that begins in the whole memory
     * @param whole memory that the change was in
     * @return longs taken back; -1 if the log has not all of them, or is none
     */
    static long rollBack(OffHeap log, long logOffset, OffHeap whole) {
        final long end = log.getLong(END_OFFSET);
        if (end < EMPTY || end > log.length() || end % Long.BYTES != 0) {
            return -1;
        }
        long restored = 0;
        for (long at = end; at > EMPTY; ) {
            final long trailer = log.getLong(at - Long.BYTES);
            final long longs = UndoLogDescriptor.longs(trailer);
            final long offset = UndoLogDescriptor.offset(trailer);
            at -= (longs + 1) << 3;
            if (longs == 0
                    || at < EMPTY
                    || offset < logOffset + log.length()
                    || offset + (longs << 3) > whole.length()) {
                return -1;
            }
            for (long i = 0; i < longs; i++) {
                whole.putLong(offset + (i << 3), log.getLong(at + (i << 3)));
            }
            restored += longs;
        }
        clear(log);
        return restored;
    }
}
