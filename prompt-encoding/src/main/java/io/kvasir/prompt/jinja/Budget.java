package io.kvasir.prompt.jinja;

import java.util.concurrent.CancellationException;
import java.util.function.Supplier;

/**
 * What is left of the {@link TemplateLimits} of one compilation or rendering. Everything whose cost
 * a template's author chooses asks here before it does the work, so that the cost of a template is
 * bounded before it is paid. One thread.
 *
 * <p>An interrupted thread ends its rendering at one of the next steps, so that work for a client
 * that left can be given up.
 */
final class Budget {
    private static final ScopedValue<Budget> CURRENT = ScopedValue.newInstance();

    /** Steps between two checks of the thread's interrupted state. */
    private static final int STEPS_PER_CHECK = 4096;

    private static final int CHARS_PER_STEP = 64;

    /** Comparisons of single characters, of which a search may need (text times wanted). */
    private static final int COMPARISONS_PER_STEP = 256;

    private static final int BYTES_PER_CHAR = 2;

    /** A reference in a list, with its share of what the list keeps free. */
    private static final int BYTES_PER_ITEM = 8;

    private final TemplateLimits limits;
    private long stepsLeft;
    private long checkAt;
    private long bytesLeft;
    private long bytesTaken;
    private int depth;

    Budget(TemplateLimits limits) {
        this.limits = limits;
        this.stepsLeft = limits.maxSteps();
        this.checkAt = stepsLeft;
        this.bytesLeft = limits.maxMemoryBytes();
    }

    /** The budget of what this thread compiles or renders. */
    static Budget current() {
        return CURRENT.get();
    }

    /**
     * Compiles or renders under this budget.
     *
     * @throws TemplateException of kind LIMIT when it runs out
     * @throws CancellationException if the thread was interrupted
     */
    <T> T in(Supplier<T> work) {
        try {
            return ScopedValue.where(CURRENT, this).call(work::get);
        } catch (StackOverflowError e) {
            // the depth limit is meant to come first; a thread with a small stack gets here
            throw nestedTooDeeply();
        }
    }

    /** Something is done. */
    void step() {
        steps(1);
    }

    void steps(long count) {
        stepsLeft -= count;
        if (stepsLeft < checkAt) {
            checkSteps();
        }
    }

    private void checkSteps() {
        if (stepsLeft < 0) {
            throw exhausted("steps", "template-max-steps", limits.maxSteps());
        }
        checkAt = Math.max(0, stepsLeft - STEPS_PER_CHECK);
        if (Thread.currentThread().isInterrupted()) {
            throw new CancellationException("the rendering was given up");
        }
    }

    /** A text of so many characters is read. */
    void read(long characters) {
        steps(characters / CHARS_PER_STEP);
    }

    /** A text of so many characters is made. */
    void text(long characters) {
        bytes(characters > Long.MAX_VALUE / BYTES_PER_CHAR ? characters : 2 * characters);
        read(characters);
    }

    /** A list of so many items is made. */
    void items(long count) {
        bytes(count > Long.MAX_VALUE / BYTES_PER_ITEM ? count : BYTES_PER_ITEM * count);
        steps(count);
    }

    /** A text is looked for in another one; the worst case counts. */
    void search(int length, int wantedLength) {
        steps((long) length * Math.max(1, wantedLength) / COMPARISONS_PER_STEP);
    }

    void bytes(long count) {
        bytesLeft -= count;
        bytesTaken += count;
        if (bytesLeft < 0) {
            throw exhausted(
                    "bytes of memory", "template-max-memory-bytes", limits.maxMemoryBytes());
        }
    }

    /** A variable's text or value is there: its size may be worked with. */
    void given(int characters) {
        bytesLeft += (long) TemplateLimits.BYTES_PER_INPUT_CHAR * characters;
    }

    /** The output is so long now. */
    void output(long characters) {
        if (characters > limits.maxOutputChars()) {
            throw exhausted(
                    "characters of output", "template-max-output-chars", limits.maxOutputChars());
        }
    }

    /** One level deeper, until {@link #leave}; what fails below gives the whole budget up. */
    void enter() {
        if (++depth > limits.maxDepth()) {
            throw nestedTooDeeply();
        }
    }

    void leave() {
        depth--;
    }

    /** Checks the depth of something that counts its levels itself. */
    void depth(int levels) {
        if (levels > limits.maxDepth()) {
            throw nestedTooDeeply();
        }
    }

    /** Memory taken so far, an upper bound of what is kept. */
    long bytesTaken() {
        return bytesTaken;
    }

    private TemplateException nestedTooDeeply() {
        return exhausted("levels of nesting", "template-max-depth", limits.maxDepth());
    }

    private static TemplateException exhausted(String what, String setting, long limit) {
        return new TemplateException(
                TemplateException.Kind.LIMIT,
                0,
                "the chat template needs more than "
                        + limit
                        + " "
                        + what
                        + ", the limit that "
                        + setting
                        + " sets");
    }
}
