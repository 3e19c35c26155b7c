package io.kvasir.gateway.metrics;

import io.prometheus.metrics.core.metrics.Counter;
import io.prometheus.metrics.core.metrics.CounterWithCallback;
import io.prometheus.metrics.core.metrics.GaugeWithCallback;
import io.prometheus.metrics.core.metrics.Histogram;
import io.prometheus.metrics.core.metrics.StatefulMetric;
import io.prometheus.metrics.model.registry.Collector;
import io.prometheus.metrics.model.registry.PrometheusRegistry;
import io.prometheus.metrics.model.snapshots.HistogramSnapshot;
import io.prometheus.metrics.model.snapshots.MetricMetadata;
import io.prometheus.metrics.model.snapshots.MetricSnapshot;

import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import java.util.TreeSet;
import java.util.function.Consumer;

/** The metrics of one page, by name. What reads them takes one value a series when it is asked. */
final class MetricRegistry {
    private static final String WORKER = "worker";

    private final PrometheusRegistry registry = new PrometheusRegistry();
    private final Set<String> names = new TreeSet<>();
    private final List<StatefulMetric<?, ?>> byWorker = new ArrayList<>();

    /** Where the library's own metrics are registered. */
    PrometheusRegistry prometheus() {
        return registry;
    }

    /** Every metric that the page may show, as it is spelled there. */
    Set<String> names() {
        return names;
    }

    /** Notes a name; for metrics that are registered by themselves. */
    String named(String name) {
        names.add(name);
        return name;
    }

    /** A counter that requests write to. Of a worker, if that is its first label. */
    Counter counter(String name, String help, String... labels) {
        return listed(
                Counter.builder()
                        .name(named(name))
                        .help(help)
                        .labelNames(labels)
                        .register(registry),
                labels);
    }

    /** A histogram that requests write to; see {@link #counter}. */
    Histogram histogram(String name, String help, double[] bounds, String... labels) {
        return listed(
                Histogram.builder()
                        .name(named(name))
                        .help(help)
                        .labelNames(labels)
                        .classicOnly()
                        .classicUpperBounds(bounds)
                        .register(registry),
                labels);
    }

    private <M extends StatefulMetric<?, ?>> M listed(M metric, String... labels) {
        if (labels.length > 0 && labels[0].equals(WORKER)) {
            byWorker.add(metric);
        }
        return metric;
    }

    /** A gauge that is read when the page is asked for. */
    void gauge(String name, String help, Consumer<Point> points, String... labels) {
        GaugeWithCallback.builder()
                .name(named(name))
                .help(help)
                .labelNames(labels)
                .callback(out -> points.accept(out::call))
                .register(registry);
    }

    /** A counter that is read when the page is asked for. */
    void count(String name, String help, Consumer<Point> points, String... labels) {
        CounterWithCallback.builder()
                .name(named(name))
                .help(help)
                .labelNames(labels)
                .callback(out -> points.accept(out::call))
                .register(registry);
    }

    /** Shows a histogram under another name, too: what is recorded is recorded once. */
    void alsoAs(Histogram of, String name) {
        named(name);
        registry.register(
                new Collector() {
                    @Override
                    public MetricSnapshot collect() {
                        final HistogramSnapshot now = of.collect();
                        return new HistogramSnapshot(
                                new MetricMetadata(name, now.getMetadata().getHelp()),
                                now.getDataPoints());
                    }

                    @Override
                    public String getPrometheusName() {
                        return name;
                    }
                });
    }

    /** Drops the series of workers that are not among these. */
    void forgetAllBut(Set<String> workers) {
        for (StatefulMetric<?, ?> metric : byWorker) {
            metric.removeIf(labels -> !workers.contains(labels.getFirst()));
        }
    }
}
