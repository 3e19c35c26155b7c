package io.kvasir.pipeline.booking;

import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;

/**
 * One entry of the {@link BookingTable}: what is to be booked, and a word that says how far it is.
 *
 * <pre>
 *   63            32 31           8 7   5     4         3        2        1      0
 *   +---------------+--------------+-----+---------+--------+--------+--------+------+
 *   | generation    | output blocks|spare|PREDICTED| QUEUED | BOOKED | DECODE | OPEN |
 *   +---------------+--------------+-----+---------+--------+--------+--------+------+
 *   OPEN     the booking counts: from its reservation to its end
 *   DECODE   its prompt is computed
 *   BOOKED   the writer has it in the table of active requests; set and cleared by the writer alone
 *   QUEUED   a ring record for the entry is on its way, which will apply all that is to be done
 *   PREDICTED  the writer has to see the prompt even if the booking ends before
 *   output blocks   filled since the writer last read the word
 * </pre>
 *
 * <p>Every step is a compare-and-set of the word. The fields are written by the thread that has
 * taken the entry, before it sets OPEN. The writer copies them, and uses its copy only if its
 * compare-and-set to BOOKED succeeds: the end of a booking that is OPEN and not BOOKED changes the
 * word before the entry is given back, and only after that are the fields written again.
 */
final class Booking {
    static final long OPEN = 1;
    static final long DECODE = 2;
    static final long BOOKED = 4;
    static final long QUEUED = 8;
    static final long PREDICTED = 16;
    static final long GENERATION_MASK = -1L << Integer.SIZE;
    static final long OUTPUT_MASK = 0xFFFF_FF00L;
    static final int OUTPUT_SHIFT = 8;
    static final int MAX_OUTPUT = (int) (OUTPUT_MASK >>> OUTPUT_SHIFT);

    private static final VarHandle WORD;

    static {
        try {
            WORD =
                    MethodHandles.lookup()
                            .findVarHandle(Booking.class, "word", long.class)
                            .withInvokeExactBehavior();
        } catch (ReflectiveOperationException e) {
            throw new ExceptionInInitializerError(e);
        }
    }

    @SuppressWarnings("UnusedVariable") // read and written through WORD
    private long word;

    int next; // index + 1 of the next free entry, 0 at the end

    int slot;
    int slotGeneration;
    int hashCount;
    int firstChunk;
    int unknownBlocks; // blocks of the prompt without a hash
    int unsharedBlocks; // blocks of the prompt that count as its own, whatever their hashes
    int provisionalBlocks;
    long prefillTokens;
    long deadlineNs;

    long wordAcquire() {
        return (long) WORD.getAcquire(this);
    }

    boolean changeWord(long from, long to) {
        return WORD.compareAndSet(this, from, to);
    }

    static boolean is(long word, long flag) {
        return (word & flag) != 0;
    }

    /** Output blocks that a word counts. */
    static int outputBlocks(long word) {
        return (int) ((word & OUTPUT_MASK) >>> OUTPUT_SHIFT);
    }
}
