package io.kvasir.cli.admin;

import com.fasterxml.jackson.databind.JsonNode;

import java.net.URLEncoder;
import java.net.http.HttpResponse;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;

/**
 * The decisions of one request, in the order in which they were made.
 *
 * @param requestId of the request; empty where there is none
 * @param explained one for each attempt and leg
 * @param missing why there are none; empty where there are some
 */
public record Decisions(String requestId, List<Explanation> explained, String missing) {
    private static final int NOT_FOUND = 404;
    private static final String NOT_HELD = "decision_not_held";
    private static final String PAGE = "/debug/decisions";

    /**
     * Asks a gateway for the decisions of a request.
     *
     * @param idOrNull the request; null for the one of the newest decision
     */
    public static Decisions of(AdminPort port, String idOrNull) throws InterruptedException {
        if (idOrNull == null) {
            final JsonNode newest = port.json(PAGE, port.page(PAGE + "?limit=1"));
            final JsonNode first = newest.path("decisions").path(0);
            if (first.isMissingNode()) {
                return new Decisions(
                        "",
                        List.of(),
                        "no decision has been made yet; the last "
                                + newest.path("kept").asText("?")
                                + " are kept (decision-log-size)");
            }
            return of(port, first.path("request_id").asText());
        }
        final String path = PAGE + "?id=" + URLEncoder.encode(idOrNull, StandardCharsets.UTF_8);
        final HttpResponse<byte[]> answer = port.page(path, NOT_FOUND);
        final JsonNode page = port.json(path, answer);
        if (answer.statusCode() == NOT_FOUND
                && !page.path("error").path("kvasir").path("kind").asText().equals(NOT_HELD)) {
            throw port.noJson(path, null);
        }
        final List<Explanation> explained = new ArrayList<>();
        page.path("decisions").forEach(decision -> explained.add(new Explanation(decision)));
        Collections.reverse(explained);
        return new Decisions(
                idOrNull,
                List.copyOf(explained),
                explained.isEmpty() ? AdminPort.words(answer) : "");
    }
}
