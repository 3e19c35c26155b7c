package io.kvasir.router.disagg;

/**
 * The blocks of one prefill, from its request to their end: they are fetched by the decode worker
 * or freed, once, also where the prefill is given up before its answer says which blocks there are.
 * Thread-safe.
 */
public final class PrefillBlocks {
    /** Blocks that a prefill worker holds for a decode worker. */
    public interface Held {
        /** The decode worker has them: nothing is left to do. */
        void fetched();

        /** No decode worker will fetch them: they are to be freed. */
        void free();
    }

    private boolean answered; // guarded by this
    private Held held; // guarded by this; null before the answer and once the blocks' end is known
    private Boolean wanted; // guarded by this; null while it is open whether they are fetched

    /** Makes those of a prefill that has not answered. */
    public PrefillBlocks() {}

    /**
     * The prefill worker has answered, and holds blocks from now on.
     *
     * @param blocks frees them
     * @throws IllegalStateException if it has answered before
     */
    public void answered(Held blocks) {
        final Boolean end;
        synchronized (this) {
            if (answered) {
                throw new IllegalStateException("a prefill answers once: " + blocks);
            }
            answered = true;
            end = wanted;
            held = end == null ? blocks : null;
        }
        if (end != null) {
            end(blocks, end);
        }
    }

    /** The decode worker has fetched them. The first of this and {@link #free} counts. */
    public void fetched() {
        end(true);
    }

    /** No decode worker will fetch them, should there be any. */
    public void free() {
        end(false);
    }

    private void end(boolean fetched) {
        final Held blocks;
        synchronized (this) {
            if (wanted != null) {
                return;
            }
            wanted = fetched;
            blocks = held;
            held = null;
        }
        if (blocks != null) {
            end(blocks, fetched);
        }
    }

    private static void end(Held blocks, boolean fetched) {
        if (fetched) {
            blocks.fetched();
        } else {
            blocks.free();
        }
    }
}
