package io.kvasir.gateway.metrics;

import io.kvasir.router.RouterStatus;

import java.util.function.BiConsumer;
import java.util.function.Function;

/**
 * The series of one pool of each model, named and described as those of that pool.
 *
 * @param page has the metrics
 * @param models whose pools they are
 * @param prefix of the metrics' names
 * @param helpEnd ends their help
 * @param router status of the pool's router; null as long as a model has none: then it has no
 *     series
 */
record PoolSeries(
        MetricRegistry page,
        ModelPoints models,
        String prefix,
        String helpEnd,
        Function<FleetSnapshot.OfModel, RouterStatus> router) {
    /**
     * Adds a gauge.
     *
     * @param source gives what a model has to show; null where it has not
     */
    <T> void gauge(
            String name,
            String help,
            Function<FleetSnapshot.OfModel, T> source,
            BiConsumer<T, Point> points,
            String... labels) {
        page.gauge(
                prefix + name, help + helpEnd, models.each(source, points), models.labels(labels));
    }

    /** Adds a counter; see {@link #gauge}. */
    <T> void count(
            String name,
            String help,
            Function<FleetSnapshot.OfModel, T> source,
            BiConsumer<T, Point> points,
            String... labels) {
        page.count(
                prefix + name, help + helpEnd, models.each(source, points), models.labels(labels));
    }

    /** A part of the router's status; null where there is no router, or no such part. */
    <T> Function<FleetSnapshot.OfModel, T> of(Function<RouterStatus, T> part) {
        return model -> {
            final RouterStatus status = router.apply(model);
            return status == null ? null : part.apply(status);
        };
    }
}
