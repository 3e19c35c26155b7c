package io.kvasir.core.memory;

/** Counts the stores to a checked memory: what an operation of its writer costs, on any machine. */
public final class StoreCounter implements AutoCloseable {
    private final OffHeap memory;
    private long stores;

    /** Counts from now on. */
    public StoreCounter(OffHeap memory) {
        this.memory = memory;
        memory.listen(
                new OffHeap.StoreListener() {
                    @Override
                    public void store(long offset, int length, long value, boolean release) {
                        stores += (length + Long.BYTES - 1) / Long.BYTES;
                    }

                    @Override
                    public void fence() {
                        // no store
                    }
                });
    }

    /** Whether stores can be counted: unchecked memory shows none. */
    public static boolean isPossible() {
        return OffHeap.isCheckable();
    }

    /** Stores since the call before, or since the beginning; those of more words count as such. */
    public long takeStores() {
        final long taken = stores;
        stores = 0;
        return taken;
    }

    /** Counts no more. */
    @Override
    public void close() {
        memory.listen(null);
    }
}
