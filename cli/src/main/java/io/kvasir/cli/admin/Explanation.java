package io.kvasir.cli.admin;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;

import io.kvasir.cli.console.Json;

import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;

/**
 * Why one attempt of a request went where it went: a decision as the gateway recorded it, and what
 * follows from it. Members that a record lacks count as unknown.
 */
public final class Explanation {
    private final JsonNode decision;
    private final List<JsonNode> candidates = new ArrayList<>();
    private final List<JsonNode> excluded = new ArrayList<>();
    private final JsonNode chosenOrNull;

    /** Of one element of the page of decisions. */
    Explanation(JsonNode decision) {
        this.decision = decision;
        for (JsonNode candidate : decision.path("candidates")) {
            (candidate.path("excluded").isTextual() ? excluded : candidates).add(candidate);
        }
        candidates.sort(
                Comparator.<JsonNode, Boolean>comparing(c -> !isChosen(c))
                        .thenComparingDouble(c -> c.path("cost").asDouble(Double.MAX_VALUE)));
        chosenOrNull =
                candidates.isEmpty() || !isChosen(candidates.getFirst())
                        ? null
                        : candidates.getFirst();
    }

    private boolean isChosen(JsonNode candidate) {
        return label(candidate).equals(worker());
    }

    /** What a worker's rank is named by. */
    static String label(JsonNode of) {
        return of.path("worker").asText("?") + "/" + of.path("dp_rank").asInt();
    }

    /** The record. */
    JsonNode decision() {
        return decision;
    }

    /** Name and rank of the chosen worker. */
    String worker() {
        return label(decision);
    }

    /** Those that could be chosen: the chosen one, then the others, the cheapest first. */
    List<JsonNode> candidates() {
        return candidates;
    }

    /** Workers that could not be chosen, in order of registration. */
    List<JsonNode> excluded() {
        return excluded;
    }

    /** The chosen one among the candidates; null where the record has none of its name. */
    JsonNode chosenOrNull() {
        return chosenOrNull;
    }

    /** The cheapest of the others; null where there was no other candidate. */
    JsonNode runnerUpOrNull() {
        return chosenOrNull == null || candidates.size() < 2 ? null : candidates.get(1);
    }

    /**
     * What the cheapest other candidate cost more than the chosen one.
     *
     * @return blocks; below 0 where the chosen one was not the cheapest; NaN where it is not known
     */
    double lostByBlocks() {
        final JsonNode other = runnerUpOrNull();
        return other == null ? Double.NaN : number(other, "cost") - number(chosenOrNull, "cost");
    }

    /** The same in tokens of a prompt. */
    double lostByTokens() {
        return lostByBlocks() * number(decision, "block_size");
    }

    /** What the runner-up had more of a term of the cost than the chosen one; NaN if unknown. */
    double more(String term) {
        final JsonNode other = runnerUpOrNull();
        return other == null ? Double.NaN : number(other, term) - number(chosenOrNull, term);
    }

    /** Whether it was chosen because it had the last request of the session. */
    boolean isBySession() {
        return decision.path("by_session").asBoolean();
    }

    /** Prompts of the request; 1 where the record does not say. */
    int prompts() {
        return decision.path("prompts").asInt(1);
    }

    /**
     * Whether what the engine states of prompt tokens is of what the gateway has counted. Of a
     * batch the engine states the sum, the gateway counts what prompts have in common once.
     */
    boolean isComparable() {
        return prompts() == 1;
    }

    /** Whether costs decide in this mode. */
    boolean isByCost() {
        return decision.path("mode").asText().equals("kv");
    }

    static double number(JsonNode of, String name) {
        return of.path(name).isNumber() ? of.path(name).doubleValue() : Double.NaN;
    }

    /** The record and what follows from it. */
    public ObjectNode json() {
        final ObjectNode json = Json.object();
        json.put("worker", decision.path("worker").asText());
        json.put("dp_rank", decision.path("dp_rank").asInt());
        json.put("candidates", candidates.size());
        json.put("excluded", excluded.size());
        final JsonNode other = runnerUpOrNull();
        if (other == null) {
            json.putNull("runner_up");
        } else {
            final ObjectNode second = json.putObject("runner_up");
            second.put("worker", other.path("worker").asText());
            second.put("dp_rank", other.path("dp_rank").asInt());
            put(second, "lost_by_blocks", lostByBlocks());
            put(second, "lost_by_tokens", lostByTokens());
            put(second, "more_prefill_blocks", more("prefill_blocks"));
            put(second, "more_decode_blocks", more("decode_blocks"));
            put(second, "more_added_blocks", more("added_blocks"));
        }
        put(
                json,
                "engine_minus_predicted_tokens",
                isComparable()
                        ? number(decision, "engine_cached_tokens")
                                - number(decision, "predicted_cached_tokens")
                        : Double.NaN);
        json.set("decision", decision);
        return json;
    }

    private static void put(ObjectNode json, String name, double value) {
        if (Double.isFinite(value)) {
            json.put(name, value);
        } else {
            json.putNull(name);
        }
    }
}
