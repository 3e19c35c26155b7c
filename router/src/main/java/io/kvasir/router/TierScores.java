package io.kvasir.router;

import io.kvasir.core.index.LowerTiers;
import io.kvasir.core.index.StorageTier;
import io.kvasir.core.radix.OverlapScores;

/**
 * How many leading blocks of one prompt each worker slot holds if they may lie in lower tiers, too:
 * the results of the matches, each of a tier with those above it. Owned by a request; reused.
 */
final class TierScores {
    private final OverlapScores hostOrNull;
    private final OverlapScores diskOrNull;
    private final OverlapScores sharedOrNull; // slot 0
    private final int maxSlots;
    private final TierWeights weights;
    private OverlapScores eagle; // null before the first prompt that is matched both ways

    /**
     * @param lower the tiers to be matched
     * @param weights what their blocks count
     * @param maxSlots worker slots
     */
    TierScores(LowerTiers lower, TierWeights weights, int maxSlots) {
        this.weights = weights;
        hostOrNull = lower.isIndexed(StorageTier.HOST) ? new OverlapScores(maxSlots) : null;
        diskOrNull = lower.isIndexed(StorageTier.DISK) ? new OverlapScores(maxSlots) : null;
        sharedOrNull = lower.isIndexed(StorageTier.SHARED) ? new OverlapScores(1) : null;
        this.maxSlots = maxSlots;
    }

    /**
     * Matches all tiers; the caller has entered the index's gate.
     *
     * @param withEagle whether the prompt's blocks as engines name them that draft with EAGLE are
     *     to be matched, too
     */
    void match(LowerTiers lower, RouteRequest request, boolean withEagle) {
        match(lower, StorageTier.HOST, request, withEagle, hostOrNull);
        match(lower, StorageTier.DISK, request, withEagle, diskOrNull);
        match(lower, StorageTier.SHARED, request, withEagle, sharedOrNull);
    }

    private void match(
            LowerTiers lower,
            StorageTier tier,
            RouteRequest request,
            boolean withEagle,
            OverlapScores out) {
        if (out == null) {
            return;
        }
        if (lower.indexOrNull(tier).blocks() == 0) { // most engines have no such tier
            out.clear();
            return;
        }
        var _ = lower.matchInside(tier, request.localHashes, request.blockCount, out);
        if (withEagle) {
            if (eagle == null) {
                eagle = new OverlapScores(maxSlots);
            }
            var _ = lower.matchInside(tier, request.eagleHashes, request.eagleBlockCount, eagle);
            for (int i = 0; i < eagle.matchedSlots(); i++) {
                final int slot = eagle.slotAt(i);
                if (out.depth(slot) == 0) {
                    out.add(slot, eagle.depth(slot));
                }
            }
        }
    }

    /** What blocks of the tiers count. */
    TierWeights weights() {
        return weights;
    }

    /** The deepest match of a worker in any tier, or of shared storage. */
    int deepest() {
        return Math.max(Math.max(deepest(hostOrNull), deepest(diskOrNull)), sharedBlocks());
    }

    private static int deepest(OverlapScores scores) {
        return scores == null ? 0 : scores.deepest();
    }

    /** Leading blocks that shared storage has. */
    int sharedBlocks() {
        return deepest(sharedOrNull);
    }

    /** Copies what the slots of some groups hold with the host's memory; 0 where it is off. */
    boolean copyHost(int groups, int[] out) {
        return copy(hostOrNull, groups, out);
    }

    /** The same with the disk. */
    boolean copyDisk(int groups, int[] out) {
        return copy(diskOrNull, groups, out);
    }

    private static boolean copy(OverlapScores scores, int groups, int[] out) {
        if (deepest(scores) == 0) {
            return false;
        }
        scores.copyDepths(0, groups, out);
        return true;
    }
}
