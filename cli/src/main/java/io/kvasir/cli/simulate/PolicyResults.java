package io.kvasir.cli.simulate;

import java.util.List;
import java.util.function.ToDoubleFunction;

/**
 * One policy's runs, one a seed.
 *
 * @param policy its name
 * @param runs in the order of the seeds; at least one
 */
record PolicyResults(String policy, List<FleetStats.Result> runs) {
    /** Mean over the seeds. */
    double mean(ToDoubleFunction<FleetStats.Result> of) {
        return runs.stream().mapToDouble(of).average().orElseThrow();
    }

    /** Largest less smallest over the seeds. */
    double spread(ToDoubleFunction<FleetStats.Result> of) {
        return runs.stream().mapToDouble(of).max().orElseThrow()
                - runs.stream().mapToDouble(of).min().orElseThrow();
    }
}
