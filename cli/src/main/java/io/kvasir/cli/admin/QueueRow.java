package io.kvasir.cli.admin;

import com.fasterxml.jackson.databind.JsonNode;

import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.StringJoiner;

/**
 * What waits for the workers of one pool of a model, as its gateway says it.
 *
 * @param name what lines about it begin with
 * @param page requests, tokens, limits and refusals
 */
public record QueueRow(String name, JsonNode page) {
    private static final double NEARLY_FULL = 0.8;
    private static final double LONG_WAIT = 0.5;
    private static final double PERCENT = 100;
    private static final String MAIN = "main";
    private static final String REQUESTS = "queue-max-requests";
    private static final String TOKENS = "queue-max-tokens";
    private static final String WAIT = "queue-max-wait-ms";

    /** Those of a gateway; none where no request can wait. */
    static List<QueueRow> of(GatewayView view) {
        final List<QueueRow> rows = new ArrayList<>();
        for (JsonNode model : view.models()) {
            for (Map.Entry<String, JsonNode> pool : model.path("queues").properties()) {
                rows.add(new QueueRow(name(model, pool.getKey()), pool.getValue()));
            }
        }
        return rows;
    }

    /** What lines about the queue of a pool begin with, whether it has one or not. */
    static String name(JsonNode model, String pool) {
        return GatewayView.prefix(model) + (pool.equals(MAIN) ? "queue" : pool + " queue");
    }

    private long requests() {
        return page.path("requests").asLong();
    }

    private long tokens() {
        return page.path("tokens").asLong();
    }

    private long oldestMs() {
        return page.path("oldest_ms").asLong();
    }

    private long limit(String setting) {
        return page.path("limits").path(setting).asLong(Long.MAX_VALUE);
    }

    /** Whether it has no room for another request, or for a long one. */
    public boolean isFull() {
        return requests() >= limit(REQUESTS) || tokens() >= limit(TOKENS);
    }

    /** Whether a request has waited longer than one that comes now may. */
    public boolean isOverdue() {
        return requests() > 0 && oldestMs() > limit(WAIT);
    }

    /** Which limits of room are nearly reached. */
    public List<String> shortOfRoom() {
        final List<String> found = new ArrayList<>();
        nearlyFull(requests(), REQUESTS, "requests", found);
        nearlyFull(tokens(), TOKENS, "tokens", found);
        return found;
    }

    /** That a request waits for long; empty where none does. */
    public List<String> slow() {
        final List<String> found = new ArrayList<>();
        if (requests() > 0 && oldestMs() >= LONG_WAIT * limit(WAIT)) {
            found.add(
                    name
                            + ": the oldest request waits for "
                            + ViewPrinter.time((double) oldestMs())
                            + ", "
                            + WAIT
                            + "="
                            + limit(WAIT));
        }
        return found;
    }

    private void nearlyFull(long used, String setting, String what, List<String> found) {
        final long limit = limit(setting);
        if (used >= NEARLY_FULL * limit) {
            found.add(
                    String.format(
                            Locale.ROOT,
                            "%s: %d %s wait, %s=%d (%.0f %%)",
                            name,
                            used,
                            what,
                            setting,
                            limit,
                            PERCENT * used / limit));
        }
    }

    /** One line of it. */
    String line() {
        return name + ": " + figures();
    }

    /** What waits, with limits, oldest wait and refusals by cause. */
    public String figures() {
        final StringJoiner refused = new StringJoiner(", ");
        for (Map.Entry<String, JsonNode> cause : page.path("refused").properties()) {
            if (cause.getValue().asLong() > 0) {
                refused.add(cause.getValue().asLong() + " " + cause.getKey());
            }
        }
        return requests()
                + " of "
                + limit(REQUESTS)
                + " requests wait, "
                + tokens()
                + " of "
                + limit(TOKENS)
                + " tokens, the oldest for "
                + ViewPrinter.time((double) oldestMs())
                + " of "
                + ViewPrinter.time((double) limit(WAIT))
                + "; refused so far: "
                + (refused.length() == 0 ? "none" : refused);
    }
}
