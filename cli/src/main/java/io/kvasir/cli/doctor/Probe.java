package io.kvasir.cli.doctor;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;

import io.kvasir.cli.console.Json;

import java.io.IOException;
import java.util.SplittableRandom;

/** A prompt that no cache has: some blocks of random token ids that every tokenizer has. */
final class Probe {
    private static final int LEAST_TOKENS = 64;
    private static final int LEAST_BLOCKS = 2;
    private static final int FIRST_ID = 33;
    private static final int END_ID = 127;

    private final int[] tokens;

    /** Whole blocks and some tokens more. */
    Probe(int blockSize, SplittableRandom random) {
        final int blocks = Math.max(LEAST_BLOCKS, Math.ceilDiv(LEAST_TOKENS, blockSize));
        tokens = random.ints((long) blocks * blockSize + 1, FIRST_ID, END_ID).toArray();
    }

    int[] tokens() {
        return tokens;
    }

    /**
     * What the engine says of it.
     *
     * @param promptTokens that it has counted; -1 where it does not say
     * @param cachedTokens that it had in its cache; -1 where it does not say
     */
    record Usage(int promptTokens, int cachedTokens) {}

    /** Has an engine answer it with one token. */
    Usage send(EngineApi api, String modelOrNull, int rank, boolean manyRanks)
            throws IOException, InterruptedException, EngineApi.AnswerException {
        final ObjectNode body = Json.object();
        body.put("model", modelOrNull).put("max_tokens", 1).put("temperature", 0);
        final ArrayNode prompt = body.putArray("prompt");
        for (int token : tokens) {
            prompt.add(token);
        }
        final JsonNode usage =
                (manyRanks
                                ? api.post("/v1/completions", body, rank)
                                : api.post("/v1/completions", body))
                        .path("usage");
        return new Usage(
                usage.path("prompt_tokens").asInt(-1),
                usage.path("prompt_tokens_details").path("cached_tokens").asInt(-1));
    }
}
