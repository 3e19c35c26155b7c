package io.kvasir.core.index;

import static io.kvasir.core.index.HeldRunDescriptor.NO_POSITION;

import io.kvasir.core.memory.WriterCounter;

/**
 * Removes engine hashes of a worker slot: a list of them, copies of one, or all. Owner: the writer
 * thread; allocates nothing.
 *
 * <p>Engines remove what they stored together, last block first or first block first. So the engine
 * hashes after a removed one are looked for beside it before the index is asked, and those that are
 * the last of a held run without holes leave it in one step.
 */
final class RemoveOperation extends SlotOperation {
    final WriterCounter missingRemovals = new WriterCounter();
    final WriterCounter unknownRemovals = new WriterCounter();

    private long[] engineHashes;
    private int count;

    /** Engine hashes that stay, as one copy less of them is left. */
    private int kept;

    /** Engine hashes before this one do not go on to the last of a held run. */
    private int notLastBefore;

    RemoveOperation(IndexTables tables, IndexCapacity capacity) {
        super(tables, capacity);
    }

    /** The same as {@link PrefixIndex#remove}. */
    int remove(int workerSlot, long[] hashes, int blockCount, CopyRule rule) {
        begin(workerSlot);
        engineHashes = hashes;
        count = blockCount;
        notLastBefore = 0;
        kept = 0;
        int unknown = 0;
        int i = 0;
        while (i < count) {
            final int position = lookup.findExpected(engineHashes[i]);
            if (position == NO_POSITION) {
                unknown++;
                i++;
            } else if (!lookup.hasRecords()) {
                i += removeFrom(i, position);
            } else {
                removeOne(engineHashes[i], position, rule);
                lookup.expect(position - 1);
                i++;
            }
        }
        end();
        return removed(count - kept, unknown);
    }

    /** Counts those that are not held as removals of missing blocks, or of unknown ones. */
    private int removed(int removed, int notHeld) {
        final int unknown = missing.removed(slot, removed, notHeld);
        missingRemovals.add(notHeld - unknown);
        unknownRemovals.add(unknown);
        return unknown;
    }

    /** Removes an engine hash and those after it that go on from it; returns how many. */
    private int removeFrom(int first, int position) {
        final int heldRun = HeldRunDescriptor.heldRun(position);
        final int arrayOffset = HeldRunDescriptor.arrayOffset(position);
        int removed = heldRuns.isSolid(heldRun) ? countLast(first, heldRun, arrayOffset) : 0;
        if (removed > 0) {
            final boolean all = removed == heldRuns.held(heldRun);
            final int high = heldRuns.high(heldRun);
            final int last = HeldRunDescriptor.position(heldRun, high - 1);
            final int next = all ? holders.lastBefore(slot, heldRun) : last - removed;
            final int step = arrayOffset == high - 1 ? -1 : 1;
            lookup.remove(engineHashes, first, removed, position, step);
            holders.letGoLast(slot, heldRun, removed);
            lookup.expect(next);
        } else {
            removed = 1;
            lookup.remove(engineHashes, first, 1, position, 1);
            letGo(heldRun, arrayOffset);
            lookup.expect(position - 1, position + 1);
        }
        heldChange -= removed;
        return removed;
    }

    /**
     * How many of the next engine hashes are the last of a solid held run, in the order of its
     * blocks or against it; 0 = none or not all up to the last.
     */
    private int countLast(int first, int heldRun, int arrayOffset) {
        final int low = heldRuns.low(heldRun);
        final int high = heldRuns.high(heldRun);
        int same = 1;
        if (arrayOffset == high - 1) {
            final int most = Math.min(count - first, high - low);
            while (same < most
                    && heldRuns.name(heldRun, arrayOffset - same) == engineHashes[first + same]) {
                same++;
            }
            return same;
        }
        final int most = high - arrayOffset;
        if (most > count - first || first < notLastBefore) {
            return 0;
        }
        while (same < most
                && heldRuns.name(heldRun, arrayOffset + same) == engineHashes[first + same]) {
            same++;
        }
        if (same < most) {
            notLastBefore = first + same;
            return 0;
        }
        return same;
    }

    private void removeOne(long engineHash, int position, CopyRule rule) {
        final int copies = lookup.copies(engineHash);
        if (rule == CopyRule.PHYSICAL && copies > 1) {
            lookup.copies(engineHash, copies - 1);
            kept++;
        } else {
            release(engineHash, position);
        }
    }

    /**
     * The same as {@link PrefixIndex#removeTo}.
     *
     * @return copies that there is no memory to count
     */
    int removeTo(int workerSlot, long engineHash, int remainingCopies) {
        begin(workerSlot);
        int uncounted = 0;
        final int position = lookup.position(engineHash);
        if (position == NO_POSITION) {
            final int removed = remainingCopies <= 0 ? 1 : 0;
            removed(removed, removed);
        } else if (remainingCopies <= 0) {
            release(engineHash, position);
            removed(1, 0);
        } else if (!lookup.copies(engineHash, remainingCopies)) {
            uncounted = remainingCopies - lookup.copies(engineHash);
        }
        end();
        return uncounted;
    }

    /** The same as {@link PrefixIndex#clear}. */
    int clear(int workerSlot) {
        begin(workerSlot);
        for (int h = 0; h < heldRuns.end(); h++) {
            while (heldRuns.isUsed(h)) {
                if (heldRuns.isSolid(h)) {
                    holders.letGoLast(slot, h, heldRuns.held(h));
                } else {
                    holders.letGoOne(slot, h, heldRuns.high(h) - 1);
                }
            }
        }
        lookup.clear();
        missing.cleared(slot);
        missing.removes(slot, CopyRule.PHYSICAL); // until the next removal says more
        final int dropped = (int) heldBlocks();
        heldChange = -dropped;
        end();
        return dropped;
    }
}
