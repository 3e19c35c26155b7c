package io.kvasir.gateway.server;

import java.util.concurrent.atomic.AtomicLong;
import java.util.function.LongSupplier;

/**
 * Limits the bytes of answers that are in memory whole, or to become whole: all of them together.
 * Thread-safe.
 */
public final class AnswerMemory {
    private final LongSupplier maxBytes;
    private final AtomicLong bytes = new AtomicLong();

    /**
     * @param maxBytes asked each time
     */
    public AnswerMemory(LongSupplier maxBytes) {
        this.maxBytes = maxBytes;
    }

    /**
     * Takes memory.
     *
     * @return false if there is not so much now; nothing is taken then
     */
    public boolean take(long count) {
        if (bytes.addAndGet(count) <= maxBytes.getAsLong()) {
            return true;
        }
        giveBack(count);
        return false;
    }

    /** Gives back what was taken. */
    public void giveBack(long count) {
        bytes.addAndGet(-count);
    }

    /** Bytes that are taken. */
    public long bytes() {
        return bytes.get();
    }
}
