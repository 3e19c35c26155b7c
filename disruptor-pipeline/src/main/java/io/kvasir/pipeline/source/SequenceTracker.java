package io.kvasir.pipeline.source;

import java.util.Arrays;
import java.util.zip.CRC32C;

/**
 * Follows the message numbers of one stream and remembers what the last messages held, so that a
 * repeated, a late and a swapped message are distinguished from the first messages of a restarted
 * engine.
 *
 * <p>A number that falls back proves a restart if its content is known and differs, if it is one of
 * the numbers that a life may begin with and was never seen, or if it begins a run of {@value
 * #RESTART_RUN} falling-back numbers in a row. Anything else that falls back is a repeat or came
 * too late. Not thread-safe.
 */
final class SequenceTracker {
    /** What a live message is, by its number and content. */
    enum Verdict {
        /** The next one. */
        NEXT,
        /** There are numbers missing before it. */
        AHEAD,
        /** Known already. */
        DUPLICATE,
        /** Its number has passed and nothing is known of its content. */
        LATE,
        /** Proof that the numbers have begun anew. */
        RESTART
    }

    static final int RESTART_RUN = 3;
    private static final int WINDOW = 256;
    private static final long NONE = -1;
    private static final long NOTHING = -1; // no content of a message

    private final CRC32C crc = new CRC32C();
    private final long[] numbers = new long[WINDOW];
    private final long[] contents = new long[WINDOW];
    private final long firstNumber;
    private final boolean[] sawFirst;
    private final long[] firstContents; // of the messages up to firstNumber
    private long last = NONE;
    private long handedOn = NONE; // known beside the window: live messages ahead go over that
    private long handedOnContent;
    private long proof = NONE; // the last one before the engine was doubted
    private long proofContent;
    private long highest = NONE; // that was handed on in this life
    private long highestLive = NONE;
    private long settled = NONE; // up to it all numbers are of this life, whatever their content
    private long runNext = NONE;
    private int run;

    /**
     * @param firstNumber highest number that the first message of a life may have
     */
    SequenceTracker(long firstNumber) {
        this.firstNumber = firstNumber;
        this.sawFirst = new boolean[(int) firstNumber + 1];
        this.firstContents = new long[sawFirst.length];
        Arrays.fill(numbers, NONE);
    }

    /** Number of the last message handed on, −1 before the first. */
    long last() {
        return last;
    }

    /** What stands for a message's bytes: equal for equal ones, hardly ever for others. */
    long contentOf(byte[] payload, int offset, int length) {
        crc.reset();
        crc.update(payload, offset, length);
        return crc.getValue() << Integer.SIZE | length;
    }

    /** Says what a live message is, and remembers it. */
    Verdict judge(long number, long content) {
        if (number <= settled) {
            highestLive = Math.max(highestLive, number);
            return Verdict.DUPLICATE;
        }
        if (number > highestLive) {
            highestLive = number;
            run = 0;
            if (number <= last) { // a replay was faster
                return differs(number, content) ? Verdict.RESTART : Verdict.DUPLICATE;
            }
            return ahead(number, content);
        }
        if (isKnown(number)) {
            return differs(number, content) ? Verdict.RESTART : Verdict.DUPLICATE;
        }
        if (number > last) {
            return ahead(number, content);
        }
        if (number <= firstNumber) {
            final int first = (int) number;
            return sawFirst[first] && firstContents[first] == content
                    ? Verdict.DUPLICATE
                    : Verdict.RESTART;
        }
        run = number == runNext ? run + 1 : 1;
        runNext = number + 1;
        return run >= RESTART_RUN ? Verdict.RESTART : Verdict.LATE;
    }

    private Verdict ahead(long number, long content) {
        remember(number, content);
        return number == last + 1 ? Verdict.NEXT : Verdict.AHEAD;
    }

    private boolean isKnown(long number) {
        return numbers[indexOf(number)] == number;
    }

    /** Whether a message of that number is known, and was another one. */
    boolean differs(long number, long content) {
        return isKnown(number) && contents[indexOf(number)] != content;
    }

    /** The engine may be another one from now on: what was handed on before shows it. */
    void doubt() {
        if (proof == NONE) {
            proof = last;
            proofContent = last == handedOn ? handedOnContent : NOTHING;
        }
    }

    /** Whether a number was that of a known message, or the next one, before the doubt. */
    boolean knewBeforeDoubt(long number) {
        return number <= proof() ? isKnown(number) : last == proof() && number == last + 1;
    }

    /** The engine is the same. */
    void believe() {
        proof = NONE;
    }

    /** Number of the message that shows whether the engine is the same, −1 if none does. */
    long proof() {
        return proof == NONE ? last : proof;
    }

    /** Whether a message is that one. */
    boolean isProof(long number, long content) {
        return proof == NONE
                ? number == last && number == handedOn && content == handedOnContent
                : number == proof && content == proofContent;
    }

    /** Goes on to a message that was handed on. */
    void advance(long number, long content) {
        skipTo(number);
        handedOn = number;
        handedOnContent = content;
        remember(number, content);
        if (number <= firstNumber) {
            sawFirst[(int) number] = true;
            firstContents[(int) number] = content;
        }
    }

    /** Goes on after a message that was handed on before this tracker was made. */
    void startAfter(long number, long content) {
        advance(number, content);
        highestLive = number; // a lower number has fallen back
    }

    /** Says that all messages up to the last one are known to be of this life of the engine. */
    void settle() {
        settled = Math.max(settled, last);
    }

    private void remember(long number, long content) {
        numbers[indexOf(number)] = number;
        contents[indexOf(number)] = content;
    }

    /** Begins again before the first message of the same life of the engine. */
    void rewind() {
        last = NONE;
        proof = NONE;
    }

    /** Goes on after a number, where everything before it is given up. */
    void skipTo(long number) {
        last = number;
        highest = Math.max(highest, number);
    }

    /** Highest number that was handed on, or given up, in this life of the engine; −1 for none. */
    long highest() {
        return highest;
    }

    /** Whether the view was begun again, and has not come as far again. */
    boolean isBehind() {
        return last < highest;
    }

    /** Forgets all messages: the engine has restarted. */
    void forget() {
        last = NONE;
        handedOn = NONE;
        proof = NONE;
        highest = NONE;
        highestLive = NONE;
        settled = NONE;
        run = 0;
        runNext = NONE;
        Arrays.fill(sawFirst, false);
        Arrays.fill(numbers, NONE);
    }

    private static int indexOf(long number) {
        return (int) number & (WINDOW - 1);
    }
}
