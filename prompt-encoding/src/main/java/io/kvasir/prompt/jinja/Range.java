package io.kvasir.prompt.jinja;

import java.util.AbstractList;

/** Whole numbers from start towards stop, in steps; at most {@link #MAX_LENGTH} of them. */
final class Range extends AbstractList<Object> {
    /** The limit that the sandbox of the reference implementation sets. */
    static final int MAX_LENGTH = 100_000;

    private final long start;
    private final long stop;
    private final long step;
    private final int length;

    Range(long start, long stop, long step) {
        if (step == 0) {
            throw new ValueException("range() arg 3 must not be zero");
        }
        final long span = step > 0 ? stop - start : start - stop;
        final long count = span <= 0 ? 0 : (span - 1) / Math.abs(step) + 1;
        if (count > MAX_LENGTH) {
            throw new ValueException(
                    "range of " + count + " numbers; a template may make at most " + MAX_LENGTH);
        }
        this.start = start;
        this.stop = stop;
        this.step = step;
        this.length = (int) count;
    }

    static Range of(Arguments arguments) {
        final long first = Numbers.index(arguments.take("start"));
        final Object second = arguments.take("stop", null);
        final Object step = arguments.take("step", null);
        arguments.end();
        if (second == null) {
            return new Range(0, first, 1);
        }
        return new Range(first, Numbers.index(second), step == null ? 1 : Numbers.index(step));
    }

    @Override
    public Object get(int index) {
        return start + index * step;
    }

    @Override
    public int size() {
        return length;
    }

    /**
     * The numbers from one index to another, each so many indexes after the last.
     *
     * @throws ArithmeticException where a bound or the step is beyond 64 bits
     */
    Range slice(long from, long to, long by) {
        return new Range(at(from), at(to), Math.multiplyExact(step, by));
    }

    private long at(long index) {
        return Math.addExact(start, Math.multiplyExact(index, step));
    }

    String describe() {
        return step == 1
                ? "range(" + start + ", " + stop + ")"
                : "range(" + start + ", " + stop + ", " + step + ")";
    }
}
