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
record QueueRow(String name, JsonNode page) {
    private static final double NEARLY_FULL = 0.8;
    private static final double LONG_WAIT = 0.5;
    private static final double PERCENT = 100;
    private static final String REQUESTS = "queue-max-requests";
    private static final String TOKENS = "queue-max-tokens";
    private static final String WAIT = "queue-max-wait-ms";

    /** Those of a gateway; none where no request can wait. */
    static List<QueueRow> of(GatewayView view) {
        final List<QueueRow> rows = new ArrayList<>();
        for (JsonNode model : view.models()) {
            for (Map.Entry<String, JsonNode> pool : model.path("queues").properties()) {
                rows.add(
                        new QueueRow(
                                GatewayView.prefix(model)
                                        + (pool.getKey().equals("main")
                                                ? "queue"
                                                : pool.getKey() + " queue"),
                                pool.getValue()));
            }
        }
        return rows;
    }

    private long requests() {
        return page.path("requests").asLong();
    }

    private long oldestMs() {
        return page.path("oldest_ms").asLong();
    }

    private long limit(String setting) {
        return page.path("limits").path(setting).asLong(Long.MAX_VALUE);
    }

    /** What of it is not as it should be: a limit that is nearly reached. */
    void judge(List<String> found) {
        nearlyFull(requests(), REQUESTS, "requests", found);
        nearlyFull(page.path("tokens").asLong(), TOKENS, "tokens", found);
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
        final StringJoiner refused = new StringJoiner(", ");
        for (Map.Entry<String, JsonNode> cause : page.path("refused").properties()) {
            if (cause.getValue().asLong() > 0) {
                refused.add(cause.getValue().asLong() + " " + cause.getKey());
            }
        }
        return name
                + ": "
                + requests()
                + " of "
                + limit(REQUESTS)
                + " requests wait, "
                + page.path("tokens").asLong()
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
