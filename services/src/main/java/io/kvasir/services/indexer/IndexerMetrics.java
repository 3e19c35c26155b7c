package io.kvasir.services.indexer;

import io.kvasir.services.http.Reply;
import io.kvasir.services.http.RequestObserver;
import io.prometheus.metrics.config.EscapingScheme;
import io.prometheus.metrics.core.metrics.Counter;
import io.prometheus.metrics.core.metrics.GaugeWithCallback;
import io.prometheus.metrics.core.metrics.Histogram;
import io.prometheus.metrics.expositionformats.ExpositionFormatWriter;
import io.prometheus.metrics.expositionformats.ExpositionFormats;
import io.prometheus.metrics.model.registry.PrometheusRegistry;

import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.function.ToDoubleFunction;

/** What {@code GET /metrics} of an indexer shows. */
final class IndexerMetrics implements RequestObserver {
    private static final double NANOS = 1e9;
    private static final double FIRST_BOUND = 0.000_1;
    private static final int BOUNDS = 20;
    private static final List<String> STATUSES = List.of("pending", "active", "paused", "failed");

    private final PrometheusRegistry registry = new PrometheusRegistry();
    private final ExpositionFormats formats = ExpositionFormats.init();
    private final Counter requests;
    private final Counter errors;
    private final Histogram duration;

    IndexerMetrics(IndexRegistry indexes) {
        requests =
                Counter.builder()
                        .name("dynamo_kvindexer_requests_total")
                        .help("HTTP requests")
                        .labelNames("endpoint", "method")
                        .register(registry);
        errors =
                Counter.builder()
                        .name("dynamo_kvindexer_errors_total")
                        .help("HTTP error answers, by 4xx and 5xx")
                        .labelNames("endpoint", "status_class")
                        .register(registry);
        duration =
                Histogram.builder()
                        .name("dynamo_kvindexer_request_duration_seconds")
                        .help("Time from a request's head to its answer")
                        .labelNames("endpoint")
                        .classicOnly()
                        .classicExponentialUpperBounds(FIRST_BOUND, 2, BOUNDS)
                        .register(registry);
        GaugeWithCallback.builder()
                .name("dynamo_kvindexer_models")
                .help("Indexes: models and routing groups")
                .callback(out -> out.call(indexes.groups().size()))
                .register(registry);
        GaugeWithCallback.builder()
                .name("dynamo_kvindexer_workers")
                .help("Registered instances")
                .callback(out -> out.call(indexes.views().size()))
                .register(registry);
        GaugeWithCallback.builder()
                .name("dynamo_kvindexer_listeners")
                .help("Event sources by status")
                .labelNames("status")
                .callback(
                        out ->
                                listeners(indexes)
                                        .forEach((status, count) -> out.call(count, status)))
                .register(registry);
        byGroup(
                "kvasir_indexer_held_blocks",
                "Blocks in the index, once for each rank that holds them",
                indexes,
                IndexGroup::heldBlocks);
        byGroup(
                "kvasir_indexer_used_bytes",
                "Bytes of the index in use",
                indexes,
                IndexGroup::usedBytes);
        GaugeWithCallback.builder()
                .name("kvasir_indexer_lost_messages")
                .help("Event messages known to be lost, of the listeners that are registered now")
                .callback(out -> out.call(lost(indexes)))
                .register(registry);
    }

    private void byGroup(
            String name, String help, IndexRegistry indexes, ToDoubleFunction<IndexGroup> value) {
        GaugeWithCallback.builder()
                .name(name)
                .help(help)
                .labelNames("model", "routing_group")
                .callback(
                        out ->
                                indexes.groups()
                                        .forEach(
                                                group ->
                                                        out.call(
                                                                value.applyAsDouble(group),
                                                                group.key.model(),
                                                                group.key.routingGroup())))
                .register(registry);
    }

    private static Map<String, Integer> listeners(IndexRegistry indexes) {
        final Map<String, Integer> counts = new TreeMap<>();
        STATUSES.forEach(status -> counts.put(status, 0));
        for (IndexRegistry.View view : indexes.views()) {
            view.listeners().forEach(listener -> counts.merge(listener.status(), 1, Integer::sum));
        }
        return counts;
    }

    private static double lost(IndexRegistry indexes) {
        double lost = 0; // which no numbers of engines overflow
        for (IndexRegistry.View view : indexes.views()) {
            for (Listener listener : view.listeners()) {
                lost += (double) listener.source.status().lostMessages();
            }
        }
        return lost;
    }

    @Override
    public void answered(String path, String method, int status, long nanos) {
        requests.labelValues(path, method).inc();
        duration.labelValues(path).observe(nanos / NANOS);
        if (status >= 400) {
            errors.labelValues(path, status < 500 ? "4xx" : "5xx").inc();
        }
    }

    /** The page, in the format that is asked for. */
    Reply page(String accept) {
        // not by findWriter: it takes protobuf where that is accepted, and has no writer of it
        final ExpositionFormatWriter open = formats.getOpenMetricsTextFormatWriter();
        final ExpositionFormatWriter writer =
                open.accepts(accept) ? open : formats.getPrometheusTextFormatWriter();
        final ByteArrayOutputStream out = new ByteArrayOutputStream();
        try {
            writer.write(out, registry.scrape(), EscapingScheme.UNDERSCORE_ESCAPING);
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
        return Reply.text(writer.getContentType(), out.toString(StandardCharsets.UTF_8));
    }
}
