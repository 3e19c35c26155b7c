package io.kvasir.cli.doctor;

import com.fasterxml.jackson.databind.JsonNode;

import io.kvasir.cli.admin.GatewayView;
import io.kvasir.cli.admin.QueueRow;
import io.kvasir.cli.console.Json;
import io.kvasir.cli.http.BoundedClient;

import java.io.IOException;
import java.net.URI;
import java.net.http.HttpResponse;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;

/** What a running gateway says of itself over its admin port: its queues above all. */
public final class GatewayChecks {
    private static final String PAGE = "/debug/workers";
    private static final long MOST_BYTES = 256L << 20;
    private static final int OK = 200;
    private static final int UNAUTHORIZED = 401;
    private static final int FORBIDDEN = 403;

    private GatewayChecks() {}

    /**
     * Whether an admin port of a gateway answers there, with or without leave. No token is sent: it
     * may be an engine.
     *
     * @param url its base
     * @param limit of the exchange
     */
    public static boolean isGateway(URI url, Duration limit) throws InterruptedException {
        try (BoundedClient client = new BoundedClient(url, null, limit, MOST_BYTES)) {
            final HttpResponse<byte[]> answer = client.get(PAGE);
            return switch (answer.statusCode()) {
                case OK -> {
                    final JsonNode page = Json.MAPPER.readTree(answer.body());
                    yield page.path("workers").isArray() && page.has("block_size");
                }
                case UNAUTHORIZED, FORBIDDEN ->
                        Json.MAPPER
                                .readTree(answer.body())
                                .path("error")
                                .path("message")
                                .asText()
                                .contains("admin");
                default -> false;
            };
        } catch (IOException e) {
            return false; // the tests of an engine say what is wrong
        }
    }

    /** Judges what a gateway has said. */
    public static List<Check> of(GatewayView view) {
        final List<Check> checks = new ArrayList<>();
        final List<String> problems = view.problems();
        checks.add(
                problems.isEmpty()
                        ? Check.pass("gateway", view.readiness(), "ready, no limit nearly reached")
                        : Check.fail(
                                "gateway",
                                String.join("; ", problems),
                                "ready, no limit nearly reached",
                                "kvasir status shows it with its workers"));
        for (QueueRow queue : view.queues()) {
            checks.add(room(queue));
            checks.add(wait(queue));
        }
        view.notQueued().forEach(each -> checks.add(off(each)));
        return checks;
    }

    private static Check room(QueueRow queue) {
        final String name = queue.name() + " room";
        final String expected = "below 80 % of queue-max-requests and queue-max-tokens";
        return queue.shortOfRoom().isEmpty()
                ? Check.pass(name, queue.figures(), expected)
                : Check.fail(
                        name,
                        (queue.isFull() ? "full: " : "nearly full: ") + queue.figures(),
                        expected,
                        "add workers, or see in kvasir status which are down or busy; a higher"
                                + " limit lets requests wait longer, no more of them be served");
    }

    private static Check wait(QueueRow queue) {
        final String name = queue.name() + " wait";
        final String expected = "the oldest request waits for less than half of queue-max-wait-ms";
        return queue.slow().isEmpty()
                ? Check.pass(name, queue.figures(), expected)
                : Check.fail(
                        name,
                        (queue.isOverdue()
                                        ? "beyond the longest wait: "
                                        : "near the longest wait: ")
                                + queue.figures(),
                        expected,
                        queue.isOverdue()
                                ? "queue-max-wait-ms was lowered since it came, or the gateway is"
                                        + " short of processor time: see its log"
                                : "no worker has had room for so long: add workers, or see in"
                                        + " kvasir status which are down or busy");
    }

    private static Check off(GatewayView.NotQueued each) {
        final String seen = "off; refused so far because all workers were busy: " + each.requests();
        final String expected = "none refused as busy while no request can wait";
        return each.requests() == 0
                ? Check.pass(each.name(), seen, expected)
                : Check.fail(
                        each.name(),
                        seen,
                        expected,
                        "set queue-threshold or queue-prefill-tokens, and requests wait instead; or"
                                + " raise what makes workers busy: busy-ttft-ms,"
                                + " active-prefill-tokens-threshold or its -frac,"
                                + " active-decode-blocks-threshold, busy-lease-ms");
    }
}
