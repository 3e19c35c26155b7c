package io.kvasir.router;

import io.kvasir.core.radix.OverlapScores;

import java.util.Arrays;

/**
 * What the leading blocks of a prompt count less because most candidates hold them. A block that
 * all hold says nothing about where to go, and one that most hold keeps requests away from the
 * rest; a block held by half of them or fewer counts in full, whatever the number of workers.
 *
 * <p>A block that a share {@code h} of the candidates holds counts {@code 1 − min(1, strength · (2h
 * − 1))}, where h is above a half. As no worker holds a block without those before it, the share
 * falls with depth: what is taken off depends on a depth alone and is summed up in {@value #STEPS}
 * steps at most of equal length, a power of two; exact for prefixes of so many blocks. Owned by
 * {@link CandidateCosts}.
 */
final class HotPrefix {
    private static final int STEPS = 64;

    private final int[] holders = new int[STEPS + 1]; // by whole steps that a candidate holds
    private final double[] taken = new double[STEPS + 1]; // blocks taken off the steps before
    private final double[] rates = new double[STEPS + 1]; // taken off a block of the step
    private int steps; // from which something is taken; 0 for none
    private int shift; // a step has 1 << shift blocks: a division for each slot would count

    /**
     * Takes what the candidates hold.
     *
     * @param reusable most blocks that an engine reuses of the prompt
     * @param strength how much the share counts; 0 = nothing
     */
    void fill(Candidates candidates, OverlapScores cached, int reusable, double strength) {
        steps = 0;
        final int deepest = Math.min(cached.deepest(), reusable);
        if (strength == 0 || deepest == 0 || !isMost(cached.matchedSlots(), candidates.count())) {
            return;
        }
        shift = Integer.SIZE - Integer.numberOfLeadingZeros((deepest - 1) / STEPS);
        Arrays.fill(holders, 0);
        for (int set = 0; set < cached.sets(); set++) {
            final int held = Math.min(cached.setDepth(set), deepest) >> shift;
            for (int group = 0; group < candidates.groups(); group++) {
                holders[held] +=
                        Long.bitCount(cached.setSlots(set, group) & candidates.slots(group));
            }
        }
        for (int i = 0; i < cached.listedSlots(); i++) {
            final int slot = cached.slotAt(i);
            if (slot / Long.SIZE < candidates.groups() && candidates.contains(slot)) {
                holders[Math.min(cached.depth(slot), deepest) >> shift]++;
            }
        }
        sum(candidates.count(), strength);
    }

    private static boolean isMost(int slots, int of) {
        return 2L * slots > of;
    }

    private void sum(int count, double strength) {
        for (int held = STEPS - 1; held > 0; held--) {
            holders[held] += holders[held + 1]; // now those that hold so many steps or more
        }
        while (steps < STEPS && isMost(holders[steps + 1], count)) {
            final double share = (double) holders[steps + 1] / count;
            rates[steps] = Math.min(1, strength * (2 * share - 1));
            taken[steps + 1] = taken[steps] + rates[steps] * (1 << shift);
            steps++;
        }
        rates[steps] = 0;
    }

    /** Whether anything counts less. */
    boolean any() {
        return steps > 0;
    }

    /** Blocks that so many leading ones, 0 or more, count less; never more than they are. */
    double discount(int blocks) {
        if (steps == 0) {
            return 0;
        }
        final int whole = Math.min(blocks >> shift, steps);
        return taken[whole] + rates[whole] * (blocks - (whole << shift));
    }

    /** What so many leading blocks count. */
    double credited(int blocks) {
        return steps == 0 ? blocks : blocks - discount(blocks);
    }
}
