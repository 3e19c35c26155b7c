package io.kvasir.router.policy;

import java.util.LinkedHashMap;
import java.util.SequencedMap;

/**
 * How often a selection policy of an embedder's own has failed, since the start. No request fails
 * by it: see {@link Eligibility}, {@link CostModel}, {@link Picker}.
 *
 * @param eligibility candidates that were left out because {@link Eligibility} threw or said null
 * @param costModel decisions that were made by the linear cost because {@link CostModel} threw
 * @param costs costs that were no numbers and counted as the dearest
 * @param picker decisions that took the lowest cost because {@link Picker} threw or named none
 */
public record PolicyFailures(long eligibility, long costModel, long costs, long picker) {
    /**
     * The counts by part, as metrics and counters name it.
     *
     * @return all four, always in the same order
     */
    public SequencedMap<String, Long> byPart() {
        final SequencedMap<String, Long> counts = new LinkedHashMap<>();
        counts.put("eligibility", eligibility);
        counts.put("cost-model", costModel);
        counts.put("cost", costs);
        counts.put("picker", picker);
        return counts;
    }
}
