package io.kvasir.gateway.metrics;

import java.util.Arrays;
import java.util.function.BiConsumer;
import java.util.function.Consumer;
import java.util.function.Function;

/**
 * What a page shows of each model: read from one snapshot, in series that have the label {@code
 * model} where there are several models. The page's thread writes the snapshot, and reads it.
 */
final class ModelPoints {
    private final boolean labelsModels;
    private volatile FleetSnapshot snapshot;

    ModelPoints(int models) {
        labelsModels = models > 1;
    }

    /** The page is made of this one. */
    void take(FleetSnapshot now) {
        snapshot = now;
    }

    /** What the page is made of. */
    FleetSnapshot snapshot() {
        return snapshot;
    }

    /** The labels of a series of a model. */
    String[] labels(String... labels) {
        if (!labelsModels) {
            return labels;
        }
        final String[] all = Arrays.copyOf(labels, labels.length + 1);
        all[labels.length] = "model";
        return all;
    }

    /** Takes values of one model. */
    Point of(String model, Point out) {
        return labelsModels ? out.of(model) : out;
    }

    /** Points of each model, of what it may not have; none of it then. */
    <T> Consumer<Point> each(
            Function<FleetSnapshot.OfModel, T> source, BiConsumer<T, Point> points) {
        return out -> {
            for (FleetSnapshot.OfModel model : snapshot.models()) {
                final T there = source.apply(model);
                if (there != null) {
                    points.accept(there, of(model.servers().model(), out));
                }
            }
        };
    }
}
