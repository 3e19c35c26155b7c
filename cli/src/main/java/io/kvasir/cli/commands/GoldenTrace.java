package io.kvasir.cli.commands;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.JsonNode;

import io.kvasir.cli.console.CommandFailure;
import io.kvasir.cli.console.Json;

import java.io.BufferedReader;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.LinkedHashMap;
import java.util.Map;

/**
 * The requests of a golden trace: what a real engine was asked and how much it found in its cache.
 */
final class GoldenTrace {
    private GoldenTrace() {}

    /**
     * One request as the engine served it.
     *
     * @param number as in the mark {@code REQ number} of the event file
     * @param prompt token ids; not copied
     * @param cachedTokens the engine's own statement of its prefix hit
     */
    @SuppressWarnings("ArrayRecordComponent") // never compared
    record Request(int number, int[] prompt, int cachedTokens) {}

    /**
     * Reads the lines that have {@code i}, {@code prompt} and {@code cached_tokens}; lines about
     * concurrent bursts have no {@code i} and are passed over, nothing is predicted for them.
     *
     * @return by number, in the file's order
     * @throws CommandFailure naming the line that is no such request
     */
    static Map<Integer, Request> read(Path file) throws IOException {
        final Map<Integer, Request> requests = new LinkedHashMap<>();
        try (BufferedReader lines = Files.newBufferedReader(file, StandardCharsets.UTF_8)) {
            int number = 0;
            for (String line = lines.readLine(); line != null; line = lines.readLine()) {
                number++;
                if (!line.isBlank()) {
                    final JsonNode node = parse(line, file + ":" + number);
                    if (node.has("i")) {
                        final Request request = request(node, file + ":" + number);
                        requests.put(request.number(), request);
                    }
                }
            }
        }
        if (requests.isEmpty()) {
            throw new CommandFailure(file + " holds no line with i, prompt and cached_tokens");
        }
        return requests;
    }

    private static JsonNode parse(String line, String where) {
        try {
            return Json.MAPPER.readTree(line);
        } catch (JsonProcessingException e) {
            throw new CommandFailure(where + ": not JSON: " + e.getOriginalMessage(), e);
        }
    }

    private static Request request(JsonNode node, String where) {
        final JsonNode prompt = node.path("prompt");
        final JsonNode cached = node.path("cached_tokens");
        if (!prompt.isArray() || !cached.isInt()) {
            throw new CommandFailure(
                    where + ": prompt must be an array of ids and cached_tokens a number");
        }
        final int[] ids = new int[prompt.size()];
        for (int i = 0; i < ids.length; i++) {
            ids[i] = (int) prompt.get(i).asLong();
        }
        return new Request(node.get("i").asInt(), ids, cached.asInt());
    }
}
