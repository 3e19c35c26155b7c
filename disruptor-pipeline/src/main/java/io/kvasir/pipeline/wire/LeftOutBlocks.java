package io.kvasir.pipeline.wire;

import io.kvasir.core.index.CopyRule;
import io.kvasir.core.index.StorageTier;

import org.agrona.collections.Long2LongHashMap;
import org.agrona.collections.LongArrayList;

import java.util.Arrays;

/**
 * Blocks that an engine holds and that were left out of the index, by tier: how many copies of each
 * on the device, one in a lower tier. A copy that is removed is one that was left out, as long as
 * there are any: so the index keeps what it was given of the same block since.
 *
 * <p>A message may be decoded again: what it has changed is undone unless it was {@link #taken}.
 * Bounded: {@value #MOST} blocks. One thread at a time.
 *
 * <pre>
 *   value   [ copies left out:63 | stored since:1 ]   0 = none is left out
 *   undo    tier, name, value before                  of a message that was not taken yet
 * </pre>
 */
final class LeftOutBlocks {
    static final int MOST = 1 << 14;

    private static final long STORED = 1;
    private static final long COPY = 2;

    private final Long2LongHashMap[] byTier = new Long2LongHashMap[StorageTier.values().length];
    private final LongArrayList undo = new LongArrayList();
    private int size;
    private boolean overflown; // not all of them are remembered

    LeftOutBlocks() {
        Arrays.setAll(byTier, _ -> new Long2LongHashMap(0));
    }

    /** How many there are, at least. */
    int size() {
        return overflown ? Math.max(1, size) : size;
    }

    /**
     * Blocks are left out.
     *
     * @param report whether those that are held already are only reported again
     */
    void add(StorageTier tier, long[] names, int count, boolean report) {
        for (int i = 0; i < count; i++) {
            final long before = value(tier, names[i]);
            if (before == 0 && size == MOST) {
                overflown = true;
            } else if (before == 0 || (tier == StorageTier.DEVICE && !report)) {
                set(tier, names[i], before + COPY);
            }
        }
    }

    /** An engine that says names only has put blocks into a lower tier. */
    void addNamed(StorageTier tier, long[] names, int count) {
        for (int i = 0; i < count && size() > 0; i++) {
            if (isMissing(StorageTier.DEVICE, tier, names[i])) {
                if (value(tier, names[i]) == 0 && size == MOST) {
                    overflown = true;
                } else {
                    set(tier, names[i], COPY);
                }
            }
        }
    }

    /** Whether a store in a tier finds nothing of a block that it goes on from. */
    boolean isMissing(StorageTier tier, long name) {
        return isMissing(tier == StorageTier.SHARED ? tier : StorageTier.DEVICE, tier, name);
    }

    private boolean isMissing(StorageTier from, StorageTier to, long name) {
        boolean missing = false;
        for (int t = from.number(); t <= to.number(); t++) {
            final long value = byTier[t].get(name);
            if ((value & STORED) != 0) {
                return false;
            }
            missing |= value != 0;
        }
        return missing;
    }

    /** Blocks go into the index; copies that were left out before stay so. */
    void stored(StorageTier tier, long[] names, int count, CopyRule rule, boolean report) {
        for (int i = 0; i < count && size > 0; i++) {
            final long before = value(tier, names[i]);
            if (tier != StorageTier.DEVICE || rule == CopyRule.LAST_COPY) {
                set(tier, names[i], 0);
            } else if (before != 0 && (before & STORED) == 0) {
                final long copies = report ? before - COPY : before; // which the report is of
                set(tier, names[i], copies == 0 ? 0 : copies | STORED);
            }
        }
    }

    /**
     * Blocks are removed.
     *
     * @param names those that the index has to remove are moved to the front
     * @return how many these are
     */
    int removed(StorageTier tier, long[] names, int count, CopyRule rule) {
        if (size == 0) {
            return count;
        }
        int left = 0;
        for (int i = 0; i < count; i++) {
            final long before = value(tier, names[i]);
            if (before == 0) {
                names[left++] = names[i];
            } else if (tier != StorageTier.DEVICE || rule == CopyRule.LAST_COPY) {
                set(tier, names[i], 0);
                names[left++] = names[i];
            } else {
                set(tier, names[i], before < 2 * COPY ? 0 : before - COPY);
            }
        }
        return left;
    }

    /**
     * A copy of a block is removed from the device.
     *
     * @param copies that the engine still holds
     * @return how many of these the index has
     */
    int removedTo(long name, int copies) {
        final long before = value(StorageTier.DEVICE, name);
        if (before == 0) {
            return copies;
        }
        final boolean stored = (before & STORED) != 0;
        final long out = stored ? Math.min(before / COPY - 1, copies) : copies;
        set(StorageTier.DEVICE, name, out == 0 ? 0 : (out * COPY) | (before & STORED));
        return (int) (copies - out);
    }

    /** None is held any more. */
    void clear() {
        for (Long2LongHashMap tier : byTier) {
            if (!tier.isEmpty()) {
                tier.clear();
                tier.compact();
            }
        }
        undo.clear();
        size = 0;
        overflown = false;
    }

    /** What was decoded last was taken. */
    void taken() {
        undo.clear();
    }

    /** A message is about to be decoded; one that was not taken is decoded again. */
    void undo() {
        for (int i = undo.size() - 3; i >= 0; i -= 3) {
            put((int) undo.getLong(i), undo.getLong(i + 1), undo.getLong(i + 2));
        }
        undo.clear();
    }

    private long value(StorageTier tier, long name) {
        return byTier[tier.number()].get(name);
    }

    private void set(StorageTier tier, long name, long value) {
        final long before = put(tier.number(), name, value);
        if (before != value) {
            undo.addLong(tier.number());
            undo.addLong(name);
            undo.addLong(before);
        }
    }

    private long put(int tier, long name, long value) {
        final long before = value == 0 ? byTier[tier].remove(name) : byTier[tier].put(name, value);
        size += (value == 0 ? 0 : 1) - (before == 0 ? 0 : 1);
        return before;
    }
}
