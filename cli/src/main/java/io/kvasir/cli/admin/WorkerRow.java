package io.kvasir.cli.admin;

import com.fasterxml.jackson.databind.JsonNode;

import java.util.List;

/**
 * One (worker, rank) as the gateway sees it.
 *
 * @param worker its name
 * @param rank its data-parallel rank
 * @param model what it serves; empty where the gateway serves one
 * @param pool main or prefill
 * @param available whether it may be chosen
 * @param draining whether it is on its way out
 * @param breaker up, down, ejected, trial, unknown
 * @param lastError what went wrong last, or empty
 * @param index state of its index, or none where it has no events
 * @param blocks blocks in the index
 * @param requests that are booked on it
 * @param prefillTokens that it has to compute
 * @param others requests that other clients have sent there, by its engine's report; -1 where
 *     nothing is reported
 * @param busy open, full, half-open
 * @param busyReason why it was full last, or empty
 * @param eventAgeMs since its last event; NaN where none has come
 * @param problem of its events, or of what is predicted of it, or empty
 * @param tokenizer agrees, differs, unknown
 * @param otherModels that it lists, where the one that it is asked for is not among them; or empty
 * @param blockSize that its engine has said; 0 where it has not
 */
record WorkerRow(
        String worker,
        int rank,
        String model,
        String pool,
        boolean available,
        boolean draining,
        String breaker,
        String lastError,
        String index,
        long blocks,
        long requests,
        long prefillTokens,
        long others,
        String busy,
        String busyReason,
        double eventAgeMs,
        String problem,
        String tokenizer,
        String otherModels,
        int blockSize) {
    private static final List<String> GOOD = List.of("exact", "predicted", "none");

    /** From an element of the page of workers; what it lacks is unknown. */
    static WorkerRow of(JsonNode json) {
        final JsonNode events = json.path("events");
        final int stated = json.path("engine_block_size").asInt();
        return new WorkerRow(
                json.path("worker").asText("?"),
                json.path("dp_rank").asInt(),
                json.path("model").asText(),
                json.path("pool").asText("?"),
                json.path("available").asBoolean(),
                json.path("draining").asBoolean(),
                json.path("health").asText("?"),
                text(json.path("last_error")),
                !events.isObject() && !json.path("index_state").asText().equals("predicted")
                        ? "none"
                        : json.path("index_state").asText("?"),
                json.path("index_blocks").asLong(),
                json.path("active_requests").asLong(),
                json.path("prefill_tokens").asLong(),
                json.path("engine_load").path("others_requests").asLong(-1),
                json.path("busy").asText("open"),
                text(json.path("busy_reason")),
                Explanation.number(events, "age_ms"),
                events.isObject() ? text(events.path("problem")) : text(json.path("index_problem")),
                json.path("tokenizer").asText("?"),
                text(json.path("other_models")),
                stated > 0 ? stated : events.path("block_size").asInt());
    }

    private static String text(JsonNode value) {
        return value.isTextual() ? value.asText() : "";
    }

    String label() {
        return worker + "/" + rank;
    }

    String state() {
        if (draining || !available) {
            return draining ? "draining" : "out of use";
        }
        return busy.equals("open") ? "in use" : busy;
    }

    /**
     * What is not as it should be, the worst alone.
     *
     * @param configured tokens of a block by the gateway's configuration
     * @return empty where all is well
     */
    String wrong(int configured) {
        if (breaker.equals("down") || breaker.equals("ejected") || breaker.equals("trial")) {
            return breaker + (lastError.isEmpty() ? "" : ": " + lastError);
        }
        if (!available && !draining) {
            return "out of use" + (lastError.isEmpty() ? "" : ": " + lastError);
        }
        if (!busy.equals("open")) {
            return busy + (busyReason.isEmpty() ? "" : ": " + busyReason);
        }
        if (blockSize > 0 && configured > 0 && blockSize != configured) {
            return "blocks of " + blockSize + " tokens: set block-size to " + blockSize;
        }
        if (!otherModels.isEmpty()) {
            return "serves " + otherModels + ": set model to a name that it serves";
        }
        if (tokenizer.equals("differs")) {
            return "computes other tokens: is tokenizer the model's own?";
        }
        if (!problem.isEmpty()) {
            return (index.equals("predicted") ? "predictions: " : "events: ") + problem;
        }
        if (!GOOD.contains(index)) {
            return "index " + index;
        }
        return breaker.equals("unknown") ? "not contacted yet" : "";
    }
}
