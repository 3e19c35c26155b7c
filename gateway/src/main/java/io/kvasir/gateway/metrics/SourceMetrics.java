package io.kvasir.gateway.metrics;

import io.kvasir.pipeline.source.SourceStatus;

import java.util.Map;
import java.util.function.Function;
import java.util.function.ToLongFunction;

/** The event sources of the page's snapshot. */
final class SourceMetrics {
    private static final double NANOS = 1e9;

    private final MetricRegistry page;
    private final ModelPoints models;

    /** Adds the metrics to a page. */
    SourceMetrics(MetricRegistry page, ModelPoints models) {
        this.page = page;
        this.models = models;
        page.gauge(
                "kvasir_worker_event_age_seconds",
                "Time since the last live event message; absent before the first",
                out -> {
                    for (SourceStatus s : models.snapshot().sources()) {
                        if (s.lastEventAgeNs() >= 0) {
                            out.call(s.lastEventAgeNs() / NANOS, s.name(), Labels.rank(s));
                        }
                    }
                },
                "worker",
                "dp_rank");
        page.gauge(
                "kvasir_worker_event_lag",
                "Event messages that are not in the index yet, by where they wait",
                out -> {
                    for (SourceStatus s : models.snapshot().sources()) {
                        out.call((double) s.waiting(), s.name(), Labels.rank(s), "replay");
                        out.call((double) s.behind(), s.name(), Labels.rank(s), "ring");
                    }
                },
                "worker",
                "dp_rank",
                "waiting");
        source("event_messages", "Event messages received", SourceStatus::messages);
        source("lost_event_messages", "Event messages lost for good", SourceStatus::lostMessages);
        sourceBy(
                "ignored_event_messages",
                "Event messages that came too late, or twice, and were ignored",
                "cause",
                s -> Map.of("late", s.late(), "repeated", s.duplicates()));
        source("event_replays", "Replays answered to the end", SourceStatus::replays);
        source("engine_restarts", "Engines seen to have started anew", SourceStatus::restarts);
        sourceBy(
                "event_connections",
                "Changes of event connections: lost, restored, failed to open",
                "change",
                s ->
                        Map.of(
                                "lost", s.disconnects(),
                                "restored", s.reconnects(),
                                "failed", s.connectFailures()));
        sourceBy(
                "events_dropped",
                "Events that were not applied, by reason",
                "reason",
                SourceStatus::drops);
        sourceBy(
                "events_refused",
                "Stores and removals that the index did not take, by cause",
                "cause",
                s ->
                        Map.of(
                                "index-full", s.capacityRefusals(),
                                "missing-parent", s.missingParents(),
                                "evicted-block", s.evictedBlocks(),
                                "unknown-parent", s.unknownParents(),
                                "invalid-store", s.invalidStores(),
                                "unknown-removal", s.unknownRemovals(),
                                "event-ring-full", s.refused()));
    }

    private void source(String name, String help, ToLongFunction<SourceStatus> value) {
        page.count(
                "kvasir_" + name + "_total",
                help,
                out -> {
                    for (SourceStatus s : models.snapshot().sources()) {
                        out.call((double) value.applyAsLong(s), s.name(), Labels.rank(s));
                    }
                },
                "worker",
                "dp_rank");
    }

    private void sourceBy(
            String name,
            String help,
            String label,
            Function<SourceStatus, Map<String, Long>> values) {
        page.count(
                "kvasir_" + name + "_total",
                help,
                out -> {
                    for (SourceStatus s : models.snapshot().sources()) {
                        values.apply(s)
                                .forEach((key, n) -> out.call(n, s.name(), Labels.rank(s), key));
                    }
                },
                "worker",
                "dp_rank",
                label);
    }
}
