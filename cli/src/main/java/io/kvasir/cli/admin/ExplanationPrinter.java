package io.kvasir.cli.admin;

import com.fasterxml.jackson.databind.JsonNode;

import io.kvasir.cli.console.ShortNames;
import io.kvasir.cli.console.Terminal;
import io.kvasir.cli.console.TextTable;
import io.kvasir.cli.console.TextTable.Mark;

import java.io.PrintWriter;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;

/** Writes explanations for people. One thread. */
public final class ExplanationPrinter {
    private static final int MOST_NAME = 60;
    private static final double MS_PER_SECOND = 1_000;

    private final PrintWriter out;
    private final int mostRows;
    private final boolean colour;

    /**
     * A printer.
     *
     * @param mostRows candidates that are listed
     */
    public ExplanationPrinter(PrintWriter out, int mostRows, boolean colour) {
        this.out = out;
        this.mostRows = mostRows;
        this.colour = colour;
    }

    /** Writes all of a request's. */
    public void print(Decisions decisions) {
        for (Explanation explained : decisions.explained()) {
            final ShortNames workers = workers(explained);
            head(decisions.requestId(), explained);
            why(explained, workers);
            runnerUp(explained, workers);
            table(explained, workers);
            excluded(explained);
            outcome(explained);
            split(explained.decision().path("split"));
            out.println();
        }
        out.flush();
    }

    /** Those that are named: the first of the candidates, the chosen one and the next. */
    private ShortNames workers(Explanation explained) {
        final List<String> named = new ArrayList<>(List.of(explained.worker()));
        explained.candidates().stream().limit(mostRows).map(Explanation::label).forEach(named::add);
        final JsonNode other = explained.runnerUpOrNull();
        if (other != null) {
            named.add(Explanation.label(other));
        }
        return new ShortNames(named, MOST_NAME);
    }

    private void head(String id, Explanation explained) {
        final JsonNode d = explained.decision();
        final JsonNode leg = d.path("leg");
        out.println(
                Mark.CHOSEN.on("request " + name(id), colour)
                        + ": "
                        + name(d.path("route").asText("?"))
                        + (d.path("model").isTextual()
                                ? " of model " + name(d.path("model").asText())
                                : "")
                        + (leg.isTextual() ? ", " + name(leg.asText()) + " leg" : "")
                        + ", attempt "
                        + d.path("attempt").asInt()
                        + " at "
                        + name(d.path("at").asText("?")));
        out.println(
                "  "
                        + d.path("tokens").asInt()
                        + " tokens"
                        + (explained.isComparable()
                                ? ""
                                : " of " + explained.prompts() + " prompts")
                        + ", "
                        + d.path("blocks").asInt()
                        + " whole blocks"
                        + (d.path("block_size").isNumber()
                                ? " of " + d.path("block_size").asInt()
                                : "")
                        + "; mode "
                        + name(d.path("mode").asText("?"))
                        + ", temperature "
                        + figure(Explanation.number(d, "temperature"))
                        + (d.path("settings_version").isNumber()
                                ? ", settings version " + d.path("settings_version").asLong()
                                : "")
                        + "; cost = "
                        + figure(Explanation.number(d, "overlap_weight"))
                        + " x prefill + in use + added, in blocks"
                        + credit(d));
    }

    /** What a block on a device counts, where the request has said so; "added" has the effect. */
    private static String credit(JsonNode decision) {
        final double credit = decision.path("overlap_credit").asDouble(1);
        return credit == 1 ? "" : "; a cached block counts " + figure(credit);
    }

    private void why(Explanation explained, ShortNames workers) {
        final JsonNode chosen = explained.chosenOrNull();
        final int others = explained.candidates().size() - 1;
        String text = "  sent to " + workers.of(explained.worker());
        if (chosen == null) {
            out.println(text + ", which is not in the record of the candidates");
            return;
        }
        text +=
                ": it holds "
                        + held(chosen)
                        + " of "
                        + explained.decision().path("blocks").asInt()
                        + " blocks and costs "
                        + figure(Explanation.number(chosen, "cost"));
        if (others == 0) {
            text += "; it was the only candidate";
        } else if (explained.isBySession()) {
            text += "; it had the last request of the session, which stays there";
        } else if (!explained.isByCost()) {
            text += "; costs do not decide in this mode";
        } else if (explained.lostByBlocks() > 0) {
            text += ", the least of " + (others + 1) + " candidates";
        } else if (explained.lostByBlocks() == 0) {
            text += ", as little as another: one of the cheapest is drawn";
        } else {
            text += ", not the least: the temperature draws among the candidates";
        }
        out.println(text);
    }

    private void runnerUp(Explanation explained, ShortNames workers) {
        final JsonNode other = explained.runnerUpOrNull();
        if (other == null) {
            return;
        }
        final double lost = explained.lostByBlocks();
        out.println(
                "  "
                        + (lost >= 0 ? "runner-up " : "cheapest other ")
                        + workers.of(Explanation.label(other))
                        + (lost >= 0 ? " lost by " : " would have cost less by ")
                        + figure(Math.abs(lost))
                        + " blocks"
                        + (Double.isNaN(explained.lostByTokens())
                                ? ""
                                : " (" + figure(Math.abs(explained.lostByTokens())) + " tokens)")
                        + ": "
                        + signed(explained.more("prefill_blocks"))
                        + " to prefill, "
                        + signed(explained.more("decode_blocks"))
                        + " in use, "
                        + signed(explained.more("added_blocks"))
                        + " added");
    }

    private void table(Explanation explained, ShortNames workers) {
        final List<JsonNode> all = explained.candidates();
        if (all.isEmpty()) {
            return;
        }
        out.println();
        final TextTable table =
                new TextTable(
                                "worker",
                                "index",
                                "event",
                                "requests",
                                "holds",
                                "shares",
                                "prefill",
                                "in use",
                                "added",
                                "cost")
                        .left("index");
        for (int i = 0; i < Math.min(all.size(), mostRows); i++) {
            final JsonNode c = all.get(i);
            final boolean chosen = i == 0 && explained.chosenOrNull() != null;
            table.row(
                    chosen ? Mark.CHOSEN : Mark.NONE,
                    (chosen ? "> " : "  ") + workers.of(Explanation.label(c)),
                    name(c.path("index_state").asText("?")),
                    whole(c, "event_sequence"),
                    whole(c, "active_requests"),
                    held(c),
                    whole(c, "active_prefix_blocks"),
                    figure(Explanation.number(c, "prefill_blocks")),
                    figure(Explanation.number(c, "decode_blocks")),
                    figure(Explanation.number(c, "added_blocks")),
                    figure(Explanation.number(c, "cost")));
        }
        table.print(out, colour);
        if (all.size() > mostRows) {
            out.println((all.size() - mostRows) + " costlier candidates are left out (--rows)");
        }
    }

    /** Blocks on the device, and those below it where there are any. */
    private static String held(JsonNode candidate) {
        final int lower =
                candidate.path("host_blocks").asInt()
                        + candidate.path("disk_blocks").asInt()
                        + candidate.path("shared_blocks").asInt();
        return candidate.path("overlap_blocks").asInt() + (lower == 0 ? "" : " + " + lower);
    }

    private void excluded(Explanation explained) {
        final Map<String, Integer> counts = new LinkedHashMap<>();
        final Map<String, StringBuilder> names = new LinkedHashMap<>();
        for (JsonNode worker : explained.excluded()) {
            final String reason = worker.path("excluded").asText();
            if (counts.merge(reason, 1, Integer::sum) <= mostRows) {
                names.computeIfAbsent(reason, _ -> new StringBuilder())
                        .append(counts.get(reason) == 1 ? "" : ", ")
                        .append(Explanation.label(worker));
            }
        }
        counts.forEach(
                (reason, count) ->
                        out.println(
                                "not a candidate, "
                                        + reason(reason)
                                        + ": "
                                        + Terminal.printable(names.get(reason).toString())
                                        + (count > mostRows
                                                ? " and " + (count - mostRows) + " more"
                                                : "")));
    }

    private static String reason(String reason) {
        return switch (reason) {
            case "unavailable" -> "it cannot be used (its health checks)";
            case "out_of_reach" -> "its cost for this request is infinite";
            case "excluded" -> "the request failed there before";
            case "busy" -> "it is over a limit of load (busy-…)";
            case "tainted" -> "it does not take such requests (a taint)";
            case "not_pinned" -> "the request is pinned to another worker";
            default -> name(reason);
        };
    }

    private void outcome(Explanation explained) {
        final JsonNode d = explained.decision();
        final JsonNode engine = d.path("engine_cached_tokens");
        final int predicted = d.path("predicted_cached_tokens").asInt();
        String cached = "cached tokens: " + predicted + " predicted, ";
        if (engine.isNumber()) {
            final int difference = engine.asInt() - predicted;
            cached += engine.asInt() + " by the engine: ";
            if (!explained.isComparable()) {
                cached += "not compared, a batch of " + explained.prompts() + " prompts";
            } else if (difference == 0) {
                cached += "exact";
            } else {
                cached += Math.abs(difference) + (difference < 0 ? " fewer" : " more");
            }
        } else {
            cached += "the engine has not said";
        }
        out.println(cached);
        if (explained.isComparable()
                && d.path("engine_prompt_tokens").isNumber()
                && d.path("tokens").asInt() > 0
                && d.path("engine_prompt_tokens").asInt() != d.path("tokens").asInt()) {
            out.println(
                    Mark.WRONG.on(
                            "the engine counts "
                                    + d.path("engine_prompt_tokens").asInt()
                                    + " prompt tokens, the gateway "
                                    + d.path("tokens").asInt()
                                    + ": see kvasir doctor",
                            colour));
        }
        out.println(
                "outcome: "
                        + name(d.path("outcome").asText("?"))
                        + (d.path("status").isNumber() ? " (" + d.path("status").asInt() + ")" : "")
                        + after(d, "ttft_ms", "first token")
                        + after(d, "prompt_end_ms", "prompt computed")
                        + after(d, "duration_ms", "end"));
    }

    private static String after(JsonNode d, String name, String what) {
        final double ms = Explanation.number(d, name);
        return Double.isNaN(ms) ? "" : String.format(Locale.ROOT, ", %s after %.1f ms", what, ms);
    }

    private void split(JsonNode split) {
        if (!split.isObject()) {
            return;
        }
        out.println(
                (split.path("split").asBoolean() ? "split" : "not split")
                        + ": "
                        + name(split.path("reason").asText("?"))
                        + "; alone "
                        + seconds(split, "local_seconds")
                        + " and "
                        + seconds(split, "harm_seconds")
                        + " of harm to others, apart "
                        + seconds(split, "prefill_seconds")
                        + " and "
                        + seconds(split, "transfer_seconds")
                        + " of transfer; to compute alone "
                        + whole(split, "local_uncached_tokens")
                        + " tokens behind "
                        + whole(split, "local_queue_tokens")
                        + ", apart "
                        + whole(split, "remote_uncached_tokens")
                        + " behind "
                        + whole(split, "remote_queue_tokens"));
    }

    private static String seconds(JsonNode of, String name) {
        final double value = Explanation.number(of, name);
        return Double.isNaN(value)
                ? "? ms"
                : String.format(Locale.ROOT, "%.1f ms", value * MS_PER_SECOND);
    }

    private static String whole(JsonNode of, String name) {
        return of.path(name).isNumber() ? Long.toString(of.path(name).asLong()) : "?";
    }

    private static String figure(double value) {
        if (Double.isNaN(value)) {
            return "?";
        }
        return value == Math.rint(value)
                ? String.format(Locale.ROOT, "%.0f", value)
                : String.format(Locale.ROOT, "%.2f", value);
    }

    private static String signed(double value) {
        return value > 0 ? "+" + figure(value) : figure(value);
    }

    private static String name(String text) {
        return Terminal.printable(text, MOST_NAME);
    }
}
