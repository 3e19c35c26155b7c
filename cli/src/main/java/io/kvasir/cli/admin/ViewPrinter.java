package io.kvasir.cli.admin;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;

import io.kvasir.cli.console.Json;
import io.kvasir.cli.console.ShortNames;
import io.kvasir.cli.console.Terminal;
import io.kvasir.cli.console.TextTable;
import io.kvasir.cli.console.TextTable.Mark;

import java.io.PrintWriter;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.HashSet;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Set;
import java.util.function.Function;

/**
 * Writes what a gateway says of itself: what is not as it should be first, and at most so many
 * workers, however many there are. One thread.
 */
public final class ViewPrinter {
    private static final int MOST_NAME = 40;
    private static final int MOST_WORDS = 100;
    private static final int MOST_LINE = 300;
    private static final double PERCENT = 100;
    private static final double MS_PER_SECOND = 1_000;

    private final PrintWriter out;
    private final int mostRows;
    private final boolean colour;

    /**
     * A printer.
     *
     * @param mostRows workers that are listed
     */
    public ViewPrinter(PrintWriter out, int mostRows, boolean colour) {
        this.out = out;
        this.mostRows = mostRows;
        this.colour = colour;
    }

    /** Its state, on one screen. */
    public void status(GatewayView view) {
        head(view);
        findings(view);
        models(view);
        queues(view);
        snapshots(view.metrics());
        table(view, null);
        out.flush();
    }

    /**
     * Its state with rates.
     *
     * @param beforeOrNull the view that the rates begin with; null for the start of the gateway
     */
    public void top(GatewayView beforeOrNull, GatewayView view) {
        final Rates rates = Rates.between(beforeOrNull, view);
        head(view);
        rates(view, rates);
        queues(view);
        findings(view);
        table(view, rates);
        out.flush();
    }

    private void head(GatewayView view) {
        out.println(
                "kvasir "
                        + name(view.version())
                        + " at "
                        + view.url()
                        + ": "
                        + (view.ready() ? Mark.CHOSEN : Mark.WRONG)
                                .on(name(view.readiness()), colour)
                        + (Double.isNaN(view.upSeconds())
                                ? ""
                                : ", up " + time(MS_PER_SECOND * view.upSeconds())));
    }

    private void findings(GatewayView view) {
        for (String finding : Findings.of(view)) {
            out.println(Mark.WRONG.on("! " + Terminal.printable(finding, MOST_WORDS), colour));
        }
    }

    private void models(GatewayView view) {
        final ShortNames names =
                new ShortNames(view.models().stream().map(GatewayView::prefix).toList(), MOST_NAME);
        for (JsonNode model : view.models()) {
            final JsonNode prefill = model.path("prefill_mode");
            out.println(
                    names.of(GatewayView.prefix(model))
                            + "mode "
                            + name(model.path("mode").asText("?"))
                            + ", blocks of "
                            + model.path("block_size").asInt()
                            + " tokens, "
                            + model.path("active_leases").asLong()
                            + " requests booked"
                            + (prefill.isTextual()
                                    ? "; prefill: mode "
                                            + name(prefill.asText())
                                            + ", "
                                            + model.path("prefill_active_leases").asLong()
                                            + " booked, "
                                            + (model.path("split").asBoolean()
                                                    ? "requests can be split"
                                                    : "requests cannot be split now")
                                    : ""));
            final JsonNode replicas = model.path("replicas");
            if (replicas.isObject()) {
                out.println(
                        "  replicas: "
                                + replicas.path("heard_of").asLong()
                                + " others heard of, "
                                + replicas.path("bookings").asLong()
                                + " requests of theirs");
            }
            final JsonNode plane = model.path("event_plane");
            if (plane.isObject()) {
                out.println(
                        "  event plane: "
                                + (plane.path("problem").isTextual()
                                        ? "not connected"
                                        : "connected")
                                + ", "
                                + plane.path("streams").asLong()
                                + " streams, "
                                + plane.path("waiting").asLong()
                                + " events waiting, "
                                + plane.path("behind").asLong()
                                + " not applied, "
                                + plane.path("recovering").asLong()
                                + " workers recovering");
            }
        }
    }

    private void queues(GatewayView view) {
        for (QueueRow queue : QueueRow.of(view)) {
            out.println(Terminal.printable(queue.line(), MOST_LINE));
        }
    }

    private void snapshots(MetricsPage metrics) {
        final Map<String, Double> ages = metrics.sums(GatewayView.SNAPSHOT_AGE, "kind");
        metrics.sums(GatewayView.SNAPSHOTS, "kind")
                .forEach(
                        (kind, all) -> {
                            final double failed =
                                    metrics.sum(
                                            GatewayView.SNAPSHOTS,
                                            s ->
                                                    s.label("kind").equals(kind)
                                                            && s.label("outcome").equals("failed"));
                            out.println(
                                    String.format(
                                            Locale.ROOT,
                                            "snapshots (%s): %.0f taken, %.0f failed%s",
                                            name(kind),
                                            all - failed,
                                            failed,
                                            ages.containsKey(kind)
                                                    ? ", the newest "
                                                            + time(MS_PER_SECOND * ages.get(kind))
                                                            + " old"
                                                    : ""));
                        });
    }

    private void rates(GatewayView view, Rates rates) {
        out.println(
                String.format(
                        Locale.ROOT,
                        "%s: %s requests/s (%s refused or failed), %s decisions/s, %s tokens"
                                + " generated/s, %.0f in flight",
                        rates.sinceStart()
                                ? "since its start"
                                : "last " + time(MS_PER_SECOND * rates.seconds()),
                        rate(rates.requestsPerSecond()),
                        rate(rates.refusedPerSecond()),
                        rate(rates.decisionsPerSecond()),
                        rate(rates.outputTokensPerSecond()),
                        view.metrics().sum(GatewayView.IN_FLIGHT)));
        out.println(
                "cache hits "
                        + percent(rates.hitRate())
                        + " of prompt tokens, predictions exact "
                        + percent(rates.exactRate())
                        + "; first token after "
                        + time(MS_PER_SECOND * rates.ttftMeanSeconds())
                        + " (mean), "
                        + time(MS_PER_SECOND * rates.ttftP95Seconds())
                        + " (95 %)");
    }

    /** A worker and what is wrong with it, or nothing. */
    private record Judged(WorkerRow row, String wrong) {
        boolean isWell() {
            return wrong.isEmpty();
        }
    }

    private static List<Judged> judged(GatewayView view) {
        final Map<String, Integer> blockSizes = view.blockSizes();
        final List<Judged> judged = new ArrayList<>();
        for (WorkerRow row : view.workers()) {
            judged.add(new Judged(row, row.wrong(blockSizes.getOrDefault(row.model(), 0))));
        }
        judged.sort(
                Comparator.comparing(Judged::isWell)
                        .thenComparingLong(j -> -j.row.requests())
                        .thenComparingLong(j -> -j.row.prefillTokens())
                        .thenComparing(j -> j.row.worker())
                        .thenComparingInt(j -> j.row.rank()));
        return judged;
    }

    private void table(GatewayView view, Rates ratesOrNull) {
        final List<Judged> all = judged(view);
        final long wrong = all.stream().filter(j -> !j.isWell()).count();
        out.println();
        out.println(
                all.size()
                        + " workers, "
                        + (wrong == 0 ? "all as they should be" : wrong + " not as they should be")
                        + (all.size() > mostRows
                                ? "; " + (all.size() - mostRows) + " left out (--rows)"
                                : ""));
        if (all.isEmpty()) {
            return;
        }
        final boolean several = view.models().size() > 1;
        final List<String> titles = new ArrayList<>(List.of("worker"));
        if (several) {
            titles.add("model");
        }
        titles.addAll(List.of("pool", "state", "breaker", "index", "blocks"));
        titles.addAll(List.of("requests", "prefill tokens"));
        final boolean reported = all.stream().anyMatch(j -> j.row.others() >= 0);
        if (reported) {
            titles.add("others'");
        }
        titles.addAll(ratesOrNull == null ? List.of("event age") : List.of("sent/s", "hits"));
        titles.add("not as it should be");
        final TextTable table =
                new TextTable(titles.toArray(String[]::new))
                        .left("pool", "state", "breaker", "index", "not as it should be");
        final List<Judged> listed = all.subList(0, Math.min(mostRows, all.size()));
        final ShortNames workers = names(listed, WorkerRow::label);
        final ShortNames models = names(listed, WorkerRow::model);
        final Set<String> rated = new HashSet<>();
        for (Judged judged : listed) {
            final WorkerRow row = judged.row;
            final List<String> cells = new ArrayList<>(List.of(workers.of(row.label())));
            if (several) {
                cells.add(models.of(row.model()));
            }
            cells.addAll(List.of(name(row.pool()), row.state(), name(row.breaker())));
            cells.addAll(List.of(name(row.index()), Long.toString(row.blocks())));
            cells.addAll(
                    List.of(Long.toString(row.requests()), Long.toString(row.prefillTokens())));
            if (reported) {
                cells.add(row.others() < 0 ? "-" : Long.toString(row.others()));
            }
            if (ratesOrNull == null) {
                cells.add(time(row.eventAgeMs()));
            } else if (!rated.add(row.worker())) {
                cells.addAll(List.of("", "")); // they are of all ranks together
            } else {
                cells.add(rate(ratesOrNull.attemptsPerSecond().getOrDefault(row.worker(), 0.0)));
                cells.add(percent(ratesOrNull.hitRates().getOrDefault(row.worker(), Double.NaN)));
            }
            cells.add(Terminal.printable(judged.wrong, MOST_WORDS));
            table.row(judged.isWell() ? Mark.NONE : Mark.WRONG, cells.toArray(String[]::new));
        }
        table.print(out, colour);
    }

    /** All of a view, and rates where there are some, as one object. */
    public ObjectNode json(GatewayView view, GatewayView beforeOrNull, boolean withRates) {
        final ObjectNode json = Json.object();
        json.put("url", view.url())
                .put("version", view.version())
                .put("ready", view.ready())
                .put("readiness", view.readiness())
                .put("up_seconds", Double.isNaN(view.upSeconds()) ? null : view.upSeconds());
        final ArrayNode findings = json.putArray("findings");
        Findings.of(view).forEach(findings::add);
        final Rates ratesOrNull = withRates ? Rates.between(beforeOrNull, view) : null;
        if (ratesOrNull != null) {
            ratesOrNull.put(json.putObject("rates"));
        }
        json.set("routers", view.page());
        final List<Judged> all = judged(view);
        json.put("workers_in_all", all.size());
        final ArrayNode workers = json.putArray("workers");
        final Set<String> rated = new HashSet<>();
        for (Judged judged : all.subList(0, Math.min(mostRows, all.size()))) {
            final WorkerRow row = judged.row;
            final ObjectNode item = workers.addObject();
            item.put("worker", row.worker()).put("dp_rank", row.rank());
            item.put("model", row.model().isEmpty() ? null : row.model());
            item.put("pool", row.pool()).put("state", row.state()).put("breaker", row.breaker());
            item.put("index_state", row.index()).put("index_blocks", row.blocks());
            item.put("active_requests", row.requests());
            item.put("prefill_tokens", row.prefillTokens());
            item.put("others_requests", row.others() < 0 ? null : (Long) row.others());
            item.put("busy", row.busy());
            item.put("event_age_ms", Double.isNaN(row.eventAgeMs()) ? null : row.eventAgeMs());
            if (ratesOrNull != null) {
                ratesOrNull.put(item, row.worker(), rated.add(row.worker()));
            }
            item.put("wrong", judged.wrong.isEmpty() ? null : judged.wrong);
        }
        return json;
    }

    private static ShortNames names(List<Judged> listed, Function<WorkerRow, String> name) {
        return new ShortNames(listed.stream().map(j -> name.apply(j.row)).toList(), MOST_NAME);
    }

    private static String name(String text) {
        return Terminal.printable(text, MOST_NAME);
    }

    private static String rate(double perSecond) {
        return Double.isFinite(perSecond) ? String.format(Locale.ROOT, "%.1f", perSecond) : "?";
    }

    private static String percent(double part) {
        return Double.isFinite(part) ? String.format(Locale.ROOT, "%.1f %%", PERCENT * part) : "-";
    }

    /** A time in the unit that fits; - where it is not known. */
    static String time(double ms) {
        if (!Double.isFinite(ms)) {
            return "-";
        }
        final Duration time = Duration.ofMillis(Math.max(0, Math.round(ms)));
        if (time.toMinutes() < 1) {
            return ms < MS_PER_SECOND
                    ? String.format(Locale.ROOT, "%.0f ms", ms)
                    : String.format(Locale.ROOT, "%.1f s", ms / MS_PER_SECOND);
        }
        return time.toHours() < 1
                ? time.toMinutes() + " min"
                : time.toDays() < 2 ? time.toHours() + " h" : time.toDays() + " days";
    }
}
