package io.kvasir.router.policy.builtin;

import io.kvasir.router.policy.Candidate;
import io.kvasir.router.policy.CandidateView;
import io.kvasir.router.policy.CostModel;
import io.kvasir.router.policy.Eligibility;
import io.kvasir.router.policy.Picker;
import io.kvasir.router.policy.SelectionPolicy;

/**
 * When a prompt would be computed: {@code overlap weight · pace · (left of the prompts before + 4 ·
 * uncached) + blocks in use / 64}, in blocks. Allocates nothing.
 *
 * <p>What is not cached counts once for the time that it takes, and three times more for what it
 * takes from others: the time of those that come after it, and the blocks that it evicts, which
 * later prompts would have hit. The blocks in use decide where all else is alike. ADR 28.
 */
final class PrefillTimeCost {
    /** The policy of that cost. */
    static final SelectionPolicy POLICY =
            new SelectionPolicy(
                    "prefill-time",
                    Eligibility.ALL,
                    CostModel.each(PrefillTimeCost::blocks),
                    Picker.LOWEST);

    private static final double OWN_WEIGHT = 4;
    private static final double IN_USE_WEIGHT = 1.0 / 64;

    private PrefillTimeCost() {}

    private static double blocks(CandidateView all, Candidate one) {
        final long booked = Math.max(0, one.prefillTokens());
        final double own = Math.max(0, one.prefillBlocks() * all.blockSize() - booked);
        final double tokens = one.remainingPrefillTokens() + OWN_WEIGHT * own;
        return all.overlapWeight() * one.pace() * tokens / all.blockSize()
                + IN_USE_WEIGHT * one.decodeBlocks();
    }
}
