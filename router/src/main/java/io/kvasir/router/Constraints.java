package io.kvasir.router;

import io.kvasir.pipeline.log.LineText;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashSet;
import java.util.List;
import java.util.Set;

/** What a request asks of the labels and taints of its worker. Owned by a {@link RouteRequest}. */
final class Constraints {
    /** Labels of one kind at most. */
    static final int MOST = 64;

    private final List<String> required = new ArrayList<>(4);
    private final List<String> preferred = new ArrayList<>(4);
    private final List<String> tolerated = new ArrayList<>(4);
    private double[] weights = new double[4]; // of the preferred ones

    void clear() {
        required.clear();
        preferred.clear();
        tolerated.clear();
    }

    void require(String label) {
        add(required, "required", label);
    }

    void tolerate(String taint) {
        add(tolerated, "tolerated", taint);
    }

    void prefer(String label, double weight) {
        if (!Double.isFinite(weight)) {
            throw new IllegalArgumentException(
                    "weight=" + weight + " of preferred " + LineText.of(label) + " must be finite");
        }
        add(preferred, "preferred", label);
        if (weights.length < preferred.size()) {
            weights = Arrays.copyOf(weights, 2 * weights.length);
        }
        weights[preferred.size() - 1] = weight;
    }

    private static void add(List<String> to, String kind, String label) {
        if (label == null) {
            throw new NullPointerException("a " + kind + " label is null");
        }
        if (label.isBlank()) {
            throw new IllegalArgumentException("a " + kind + " label is empty");
        }
        if (to.size() == MOST) {
            throw new IllegalArgumentException(
                    "more than "
                            + MOST
                            + " labels are "
                            + kind
                            + ", the last one "
                            + LineText.of(label));
        }
        to.add(label);
    }

    List<String> required() {
        return required;
    }

    List<String> preferred() {
        return preferred;
    }

    double weight(int preference) {
        return weights[preference];
    }

    /** Whether a worker's taint does not keep the request away: to ask for it is to bear it. */
    boolean isTolerated(String taint) {
        return tolerated.contains(taint) || required.contains(taint) || preferred.contains(taint);
    }

    /** The required labels, whatever their order. */
    Set<String> requiredSet() {
        return required.isEmpty() ? Set.of() : Set.copyOf(required);
    }

    /** The taints that the request tolerates, beside the required labels. */
    Set<String> toleratedSet() {
        if (tolerated.isEmpty() && preferred.isEmpty()) {
            return Set.of();
        }
        final Set<String> all = new HashSet<>(tolerated);
        all.addAll(preferred);
        return Set.copyOf(all);
    }

    /** Whether there is a taint that the request may tolerate. */
    boolean toleratesSome() {
        return !tolerated.isEmpty() || !required.isEmpty() || !preferred.isEmpty();
    }
}
