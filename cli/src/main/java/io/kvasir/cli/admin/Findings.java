package io.kvasir.cli.admin;

import com.fasterxml.jackson.databind.JsonNode;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;

/** What of a gateway is not as it should be; workers have it in their rows. */
final class Findings {
    private static final double NEARLY_FULL = 0.8;
    private static final double PERCENT = 100;

    private Findings() {}

    /** One line each; empty where all is well. */
    static List<String> of(GatewayView view) {
        final List<String> found = new ArrayList<>();
        for (QueueRow queue : QueueRow.of(view)) {
            found.addAll(queue.shortOfRoom());
            found.addAll(queue.slow());
        }
        found.addAll(besideQueues(view));
        return found;
    }

    /** The same without what concerns its queues. */
    static List<String> besideQueues(GatewayView view) {
        final List<String> found = new ArrayList<>();
        if (!view.ready()) {
            found.add("not ready: " + view.readiness());
        }
        if (view.workers().isEmpty()) {
            found.add("it has no workers");
        }
        for (JsonNode model : view.models()) {
            final String name = GatewayView.prefix(model);
            final JsonNode plane = model.path("event_plane");
            if (plane.path("problem").isTextual()) {
                found.add(name + "event plane: " + plane.path("problem").asText());
            }
            if (!plane.path("unknown_workers").isEmpty()) {
                found.add(
                        name
                                + "event plane: events of "
                                + plane.path("unknown_workers").size()
                                + " workers that no event-worker= names");
            }
        }
        final MetricsPage metrics = view.metrics();
        resources(metrics, "", GatewayView.USED, GatewayView.LIMIT, found);
        resources(metrics, "prefill ", GatewayView.PREFILL_USED, GatewayView.PREFILL_LIMIT, found);
        snapshots(metrics, "", GatewayView.SNAPSHOT_FAILURES, found);
        snapshots(metrics, "prefill ", GatewayView.PREFILL_SNAPSHOT_FAILURES, found);
        failures(metrics, "", GatewayView.FAILURES, found);
        failures(metrics, " of prefill workers", GatewayView.PREFILL_FAILURES, found);
        return found;
    }

    /** Of the last one that was tried: what failed before is in the counts above alone. */
    private static void snapshots(
            MetricsPage metrics, String pool, String name, List<String> found) {
        for (MetricsPage.Series series : metrics.series(name)) {
            if (series.value() > 0) {
                found.add(
                        String.format(
                                Locale.ROOT,
                                "%ssnapshots (%s): %.0f failed; see its log",
                                pool,
                                series.label("kind"),
                                series.value()));
            }
        }
    }

    private static void failures(
            MetricsPage metrics, String whose, String name, List<String> found) {
        final double failures = metrics.sum(name);
        if (failures > 0) {
            found.add(
                    String.format(
                            Locale.ROOT,
                            "%.0f events or bookings%s could not be applied because of an error",
                            failures,
                            whose));
        }
    }

    /** Each model's router has limits of its own, and another one for its prefill workers. */
    private static void resources(
            MetricsPage metrics, String pool, String used, String limit, List<String> found) {
        final Map<Map<String, String>, Double> limits = new HashMap<>();
        metrics.series(limit).forEach(each -> limits.put(each.labels(), each.value()));
        for (MetricsPage.Series series : metrics.series(used)) {
            final double most = limits.getOrDefault(series.labels(), Double.NaN);
            if (series.value() >= NEARLY_FULL * most) {
                final String model = series.label("model");
                found.add(
                        String.format(
                                Locale.ROOT,
                                "%s%s%s: %.0f of %.0f in use (%.0f %%)",
                                model.isEmpty() ? "" : "model " + model + ": ",
                                pool,
                                series.label("resource"),
                                series.value(),
                                most,
                                PERCENT * series.value() / most));
            }
        }
    }
}
