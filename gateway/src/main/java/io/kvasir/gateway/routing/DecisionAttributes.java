package io.kvasir.gateway.routing;

import io.kvasir.gateway.trace.LegTrace;

import java.util.Locale;

/**
 * The attributes by which the span of an attempt says why it went where it went; {@code
 * docs/operations/tracing.md} lists them. Only for spans that are recorded.
 */
final class DecisionAttributes {
    private DecisionAttributes() {}

    static void put(LegTrace span, DecisionRecord decision) {
        final DecisionRecord.RunnerUp other = decision.runnerUp();
        span.put("kvasir.mode", decision.mode().spelling())
                .put("kvasir.index_state", lower(decision.indexState()))
                .put("kvasir.settings", Long.toHexString(decision.settings()))
                .put("kvasir.candidates", other.candidates())
                .put("kvasir.cost", decision.cost())
                .put("kvasir.runner_up_cost", other.cost())
                .put("kvasir.regret", regret(decision.cost(), other.cost()));
        if (other.nameOrNull() != null) {
            span.put("kvasir.runner_up", other.nameOrNull());
        }
    }

    /** How much more the chosen worker costs than the cheapest; NaN where costs are unknown. */
    private static double regret(double chosen, double other) {
        if (Double.isNaN(chosen)) {
            return chosen;
        }
        return Double.isNaN(other) ? 0 : Math.max(0, chosen - other);
    }

    private static String lower(Enum<?> value) {
        return value.name().toLowerCase(Locale.ROOT);
    }
}
