package io.kvasir.core.memory;

import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;

/**
 * A count that one thread writes and any thread reads: no locked instruction, no allocation.
 * Release and acquire: a reader that sees a count sees what the writer stored before it.
 */
public final class WriterCounter {
    private static final VarHandle VALUE;

    static {
        try {
            VALUE =
                    MethodHandles.lookup()
                            .findVarHandle(WriterCounter.class, "value", long.class)
                            .withInvokeExactBehavior();
        } catch (ReflectiveOperationException e) {
            throw new ExceptionInInitializerError(e);
        }
    }

    private long value;

    /** Adds to the count. Writer thread only. */
    public void add(long delta) {
        VALUE.setRelease(this, value + delta);
    }

    /** Reads the count; any thread. */
    public long get() {
        return (long) VALUE.getAcquire(this);
    }
}
