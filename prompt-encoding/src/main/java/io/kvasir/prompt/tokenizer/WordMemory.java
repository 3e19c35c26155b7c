package io.kvasir.prompt.tokenizer;

import java.util.concurrent.CancellationException;
import java.util.concurrent.Semaphore;

/**
 * Memory that the merges of long words may take together. A word waits for others; one that could
 * never have enough is refused. Thread-safe.
 */
final class WordMemory {
    /** Words of fewer characters are not counted. */
    static final int LONG_WORD = 1 << 16;

    /** Per byte of a word: the byte, its id, its length and its entries of the heap as it grows. */
    private static final int BYTES_PER_BYTE = 27;

    private static final int UNIT = 1 << 10;

    /** That of this process: a quarter of its heap. */
    static final WordMemory PROCESS = new WordMemory(Runtime.getRuntime().maxMemory() / 4);

    private final long bytes;
    private final int units;
    private final Semaphore free;

    WordMemory(long bytes) {
        this.bytes = bytes;
        units = (int) Math.min(Integer.MAX_VALUE, bytes / UNIT);
        free = new Semaphore(units, true);
    }

    /**
     * Takes memory for a word, until {@link #giveBack} of what this returns.
     *
     * @throws PromptException of kind LIMIT if there is never so much
     * @throws CancellationException if the thread is interrupted while it waits
     */
    int take(long wordBytes) {
        final long needed = wordBytes * BYTES_PER_BYTE / UNIT + 1;
        if (needed > units) {
            throw PromptException.limit(
                    "the prompt has a word of "
                            + wordBytes
                            + " bytes, without a boundary in it; at most "
                            + bytes / BYTES_PER_BYTE
                            + " can be tokenized with this heap; shorten it or give the gateway"
                            + " a larger heap (-Xmx in KVASIR_OPTS)");
        }
        try {
            free.acquire((int) needed);
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            throw new CancellationException("the encoding was given up");
        }
        return (int) needed;
    }

    void giveBack(int taken) {
        free.release(taken);
    }
}
