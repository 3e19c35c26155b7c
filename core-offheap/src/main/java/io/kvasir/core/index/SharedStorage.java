package io.kvasir.core.index;

import io.kvasir.core.memory.WriterCounter;

/**
 * What lies in the storage that workers share: one slot of an index of its own, whichever worker
 * has announced a block.
 *
 * <p>Workers that load each other's blocks have to name them alike, so a name is the storage's
 * here. A removal by one worker ends the block for all. What a worker announced last is dropped
 * with the worker: a later removal might never be announced. Writer thread only.
 */
final class SharedStorage {
    private static final int SLOT = 0;
    private static final int PART = 1024;

    final WriterCounter dropped = new WriterCounter();

    private final PrefixIndex index;
    private final AnnouncedNames announced;
    private final long[] part = new long[PART];

    /**
     * @param index has one slot, and no other writer
     * @param workerSlots slots of the workers
     */
    SharedStorage(PrefixIndex index, int workerSlots) {
        this.index = index;
        this.announced = new AnnouncedNames(workerSlots);
        index.onEviction((_, names, count) -> disown(names, count));
    }

    PrefixIndex index() {
        return index;
    }

    /**
     * A worker has announced blocks; those after a block that is not there are refused. Of a store
     * that is refused the blocks that are there already are that worker's, too.
     */
    void stored(int slot, boolean root, long parent, long[] names, long[] locals, int count) {
        final StoreResult result = index.store(SLOT, root, parent, names, locals, count, true);
        if (result == StoreResult.INVALID) {
            return;
        }
        for (int i = 0; i < count; i++) {
            if (result == StoreResult.STORED || index.holds(SLOT, names[i])) {
                announced.put(names[i], slot);
            }
        }
    }

    /** A worker has announced that blocks are there no more. */
    void removed(long[] names, int count) {
        index.remove(SLOT, names, count, CopyRule.LAST_COPY);
        disown(names, count);
    }

    private void disown(long[] names, int count) {
        for (int i = 0; i < count; i++) {
            announced.remove(names[i]);
        }
    }

    /** Drops what a worker announced last; takes time for each of these blocks. */
    void forget(int slot) {
        int count;
        do {
            count = announced.take(slot, part);
            index.remove(SLOT, part, count, CopyRule.LAST_COPY);
            dropped.add(count);
        } while (count == PART);
    }
}
