package io.kvasir.cli.simulate;

import io.kvasir.cli.load.MooncakeTrace;
import io.kvasir.router.policy.RoutingMode;

import java.util.List;

/** The policies by name. */
final class Policies {
    /** All of them, as the command compares them. */
    static final List<String> NAMES =
            List.of(
                    "random",
                    "round-robin",
                    "least-loaded",
                    "least-connections",
                    "power-of-two",
                    "kv:0.5",
                    "kv:1",
                    "kv:4",
                    "kv:64",
                    "prefill-time",
                    "earliest",
                    "future-value",
                    "load-aware",
                    "eviction-aware",
                    "affinity",
                    "clairvoyant");

    private static final String LINEAR = "linear"; // the router's own names of costs
    private static final String PREFILL_TIME = "prefill-time";
    private static final String WEIGHT = "kv:";
    private static final double FUTURE_VALUE = 4;
    private static final double AFFINITY = 100;

    private Policies() {}

    /**
     * Makes a policy for one run.
     *
     * @param name one of {@link #NAMES}, or {@code kv:} and a weight
     * @throws IllegalArgumentException if there is none of that name; the message lists them
     */
    static Policy of(String name, FleetPlan plan, List<MooncakeTrace.Request> requests) {
        return switch (name) {
            case "random", "round-robin", "least-loaded", "least-connections", "power-of-two" ->
                    new RouterPolicy(name, RoutingMode.parse(name), LINEAR, 1);
            case PREFILL_TIME -> new RouterPolicy(name, RoutingMode.KV, PREFILL_TIME, 1);
            case "earliest" -> new OwnCost(name, 1);
            case "future-value" -> new OwnCost(name, FUTURE_VALUE);
            case "load-aware" -> new ConvexCost(name);
            case "eviction-aware" -> new EvictionCost(name, plan);
            case "affinity" -> new OwnCost(name, AFFINITY);
            case "clairvoyant" -> new ClairvoyantCost(name, plan, requests);
            default -> new RouterPolicy(name, RoutingMode.KV, LINEAR, weight(name));
        };
    }

    private static double weight(String name) {
        try {
            final double weight =
                    name.startsWith(WEIGHT)
                            ? Double.parseDouble(name.substring(WEIGHT.length()))
                            : Double.NaN;
            if (weight >= 0 && weight < Double.POSITIVE_INFINITY) {
                return weight;
            }
        } catch (NumberFormatException e) {
            throw unknown(name, e);
        }
        throw unknown(name, null);
    }

    private static IllegalArgumentException unknown(String name, Throwable cause) {
        return new IllegalArgumentException(
                "unknown policy '"
                        + name
                        + "'; one of: "
                        + String.join(", ", NAMES)
                        + ", or kv: and a weight that is finite and not negative",
                cause);
    }
}
