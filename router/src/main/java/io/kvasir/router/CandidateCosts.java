package io.kvasir.router;

import io.kvasir.core.index.StorageTier;
import io.kvasir.core.load.LoadBoardDescriptor;
import io.kvasir.core.radix.OverlapScores;
import io.kvasir.pipeline.source.IndexState;

/**
 * What the candidates have to do with one prompt: leading blocks that they hold and leading blocks
 * that are in use there, and what they would cost for it. Owned by a {@link Selection}.
 *
 * <p>The relative cost of a slot is its weighted load, less the tokens that it need not prefill,
 * less the blocks that are in use there already: its cost without what is the same for all. Groups
 * of 64 with a slot that the matches have listed are computed slot by slot ({@link ListedCosts}),
 * all others set by set ({@link SharedCosts}).
 *
 * <p>Costs are first computed as if all overlaps could be trusted, which is a lower bound; how far
 * they can be is asked of those alone that could win.
 */
final class CandidateCosts {
    private static final int GROUP_SLOTS = LoadBoardDescriptor.GROUP_SLOTS;
    private static final int NONE = -1;

    private final Candidates candidates;
    private final HotPrefix hot = new HotPrefix();
    private final ListedCosts listed;
    private final SharedCosts shared;
    private final TierOverlaps tiers = new TierOverlaps();
    private OverlapScores cached; // until the choice is made
    private OverlapScores active;
    private int reusableBlocks;
    private double blockWeight;
    private double hotStrength;
    private int count; // of candidates that the hot blocks are known of
    private int settledSlot = NONE; // asked by itself
    private IndexState settledState;
    private double settledCredit;

    CandidateCosts(Candidates candidates) {
        this.candidates = candidates;
        listed = new ListedCosts(candidates, hot, tiers);
        shared = new SharedCosts(candidates, hot);
    }

    /**
     * Takes what the matches found.
     *
     * @param tiersOrNull of the tiers below the devices; null where there are none
     * @param reusable most blocks that an engine reuses of the prompt
     * @param weight what a block less to prefill counts
     * @param hotDiscount strength of {@link HotPrefix}
     */
    void fill(
            OverlapScores cachedScores,
            OverlapScores activeScores,
            TierScores tiersOrNull,
            int reusable,
            double weight,
            double hotDiscount) {
        cached = cachedScores;
        active = activeScores;
        reusableBlocks = reusable;
        blockWeight = weight;
        hotStrength = hotDiscount;
        tiers.fill(tiersOrNull, cached, candidates.groups(), reusable);
        fillHot();
        fillGroups();
    }

    /**
     * Takes what most of the candidates hold that are left; before they are compared. What was
     * computed by the share of those that were there before is computed anew.
     */
    void candidatesAreFinal() {
        if (hotStrength == 0 || candidates.count() == count) {
            return;
        }
        final boolean wasHot = hot.any();
        fillHot();
        if (wasHot || hot.any()) {
            fillGroups();
        }
    }

    private void fillHot() {
        count = candidates.count();
        hot.fill(candidates, cached, reusableBlocks, hotStrength);
    }

    private void fillGroups() {
        final int groups = candidates.groups();
        settledSlot = NONE;
        shared.fill(cached, active, reusableBlocks, blockWeight);
        listed.clear(reusableBlocks, blockWeight);
        if (tiers.any()
                || cached.listedSlots() + active.listedSlots() > groups * (GROUP_SLOTS / 8)) {
            listed.addAll(cached, active); // cheaper than to find out which
        } else {
            list(cached, groups);
            list(active, groups);
        }
    }

    private void list(OverlapScores scores, int groups) {
        for (int i = 0; i < scores.listedSlots(); i++) {
            final int group = scores.slotAt(i) / GROUP_SLOTS;
            if (group < groups && !listed.contains(group)) { // else registered after the snapshot
                listed.add(group, cached, active);
            }
        }
    }

    /** Has a group computed slot by slot if any of its slots is in a set. */
    private boolean listIfShared(int group) {
        if (listed.contains(group) || !shared.isIn(group)) {
            return false;
        }
        listed.add(group, cached, active);
        return true;
    }

    /** Computes the exact costs of all slots that overlap. */
    void settleAll() {
        for (int group = 0; group < candidates.groups(); group++) {
            listIfShared(group);
        }
        listed.settleAll();
    }

    /** The lowest cost of a candidate, if all overlaps could be trusted. */
    double lowestBound() {
        double lowest = listed.lowest();
        for (int group = 0; group < candidates.groups(); group++) {
            if (!listed.contains(group)) {
                lowest = shared.least(group, lowest);
            }
        }
        return lowest;
    }

    /** The lowest cost of a candidate as far as overlaps can be trusted; after the bound. */
    double lowest() {
        double lowest = listed.lowestSettled();
        for (int group = 0; group < candidates.groups(); group++) {
            if (!listed.contains(group)) {
                final double least = shared.least(group, Double.POSITIVE_INFINITY);
                lowest =
                        least <= lowest && listIfShared(group)
                                ? listed.settled(group, lowest)
                                : Math.min(lowest, least);
            }
        }
        return lowest;
    }

    /**
     * The next group, from one on, that may have a candidate of the lowest cost.
     *
     * @return -1 when there is none
     */
    int nextGroup(int from, double lowest) {
        for (int group = from; group < candidates.groups(); group++) {
            final double bound = listed.contains(group) ? listed.least(group) : shared.bound(group);
            if (bound <= lowest) {
                return group;
            }
        }
        return -1;
    }

    /** A bound below the relative cost of a candidate; its own where that was computed. */
    double bound(int slot) {
        return listed.contains(slot / GROUP_SLOTS)
                ? listed.bound(slot)
                : shared.bound(slot / GROUP_SLOTS);
    }

    /** Candidates of a group whose cost is the lowest one of all, one bit each. */
    long slotsWith(int group, double lowest) {
        return listed.contains(group)
                ? listed.slotsWith(group, lowest)
                : shared.slotsWith(group, lowest);
    }

    /**
     * Asks the worker of one slot how far its overlap can be trusted.
     *
     * @return whether its cost is the one computed
     */
    boolean isExact(int slot) {
        if (listed.isSettled(slot / GROUP_SLOTS) || reach(slot) == 0) {
            return true;
        }
        settledSlot = slot;
        settledState = candidates.state(slot);
        settledCredit = candidates.credit(slot);
        return settledCredit == 1;
    }

    /** Leading blocks that a slot holds. */
    int overlap(int slot) {
        return listed.contains(slot / GROUP_SLOTS) ? listed.overlap(slot) : shared.overlap(slot);
    }

    /** Whether any block counts less because most hold it. */
    boolean hasHot() {
        return hot.any();
    }

    /** Blocks that leading ones which a candidate holds count less, as most hold them. */
    double hotDiscount(int blocks) {
        return hot.discount(blocks);
    }

    /** Leading blocks that a slot holds in any tier, or can load. */
    int reach(int slot) {
        return tiers.any() ? tiers.reach()[slot] : overlap(slot);
    }

    /**
     * Blocks that a slot holds in a tier, or of shared storage, beyond those in the tiers above.
     */
    int overlap(int slot, StorageTier tier) {
        return switch (tier) {
            case DEVICE -> overlap(slot);
            case HOST -> tiers.host(slot);
            case DISK -> tiers.disk(slot);
            case SHARED -> tiers.shared(slot);
        };
    }

    /** What slots hold below their devices. */
    TierOverlaps tiers() {
        return tiers;
    }

    /** Leading blocks that are in use on a slot. */
    int activePrefix(int slot) {
        return listed.contains(slot / GROUP_SLOTS)
                ? listed.activePrefix(slot)
                : shared.activePrefix(slot);
    }

    /** The state that a slot was priced by; the one of now where it had no part in its cost. */
    IndexState state(int slot) {
        if (isSettledOverlap(slot)) {
            return listed.state(slot);
        }
        return slot == settledSlot ? settledState : candidates.state(slot);
    }

    /** What a cached token counted on a slot; what it counts now where it had no part. */
    double credit(int slot) {
        if (isSettledOverlap(slot)) {
            return listed.credit(slot);
        }
        return slot == settledSlot ? settledCredit : candidates.credit(slot);
    }

    /** Whether the costs of a group asked the worker; only candidates are asked. */
    private boolean isSettledOverlap(int slot) {
        return listed.isSettled(slot / GROUP_SLOTS) && reach(slot) > 0 && candidates.contains(slot);
    }
}
