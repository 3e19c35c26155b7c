package io.kvasir.cli.commands;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.JsonNode;

import io.kvasir.cli.console.CommandFailure;
import io.kvasir.cli.console.Json;
import io.kvasir.cli.console.NamedFile;
import io.kvasir.cli.console.WholeNumber;
import io.kvasir.registry.FailureText;

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
    private static final long LARGEST_TOKEN = 0xFFFF_FFFFL;

    private GoldenTrace() {}

    /**
     * One request as the engine served it.
     *
     * @param number as in the mark {@code REQ number} of the event file
     * @param prompt token ids, unsigned; not copied
     * @param cachedTokens the engine's own statement of its prefix hit
     */
    @SuppressWarnings("ArrayRecordComponent") // never compared
    record Request(int number, int[] prompt, int cachedTokens) {}

    /**
     * Reads the lines that have {@code i}, {@code prompt} and {@code cached_tokens}; lines about
     * concurrent bursts have no {@code i} and are passed over, nothing is predicted for them.
     *
     * @return by number, in the file's order
     * @throws CommandFailure naming the line that is no such request, or has another one's {@code
     *     i}
     */
    static Map<Integer, Request> read(Path file) throws IOException {
        final Map<Integer, Request> requests = new LinkedHashMap<>();
        try (BufferedReader lines = Files.newBufferedReader(file, StandardCharsets.UTF_8)) {
            int number = 0;
            for (String line = lines.readLine(); line != null; line = lines.readLine()) {
                number++;
                final String text = NamedFile.withoutMark(line);
                if (!text.isBlank()) {
                    final JsonNode node = parse(text, file + ":" + number);
                    if (node.has("i")) {
                        final Request request = request(node, file + ":" + number);
                        if (requests.put(request.number(), request) != null) {
                            throw new CommandFailure(
                                    file
                                            + ":"
                                            + number
                                            + ": i "
                                            + request.number()
                                            + " is that of an earlier line, too");
                        }
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
            throw new CommandFailure(where + ": not JSON: " + FailureText.of(e), e);
        }
    }

    private static Request request(JsonNode node, String where) {
        final JsonNode prompt = node.path("prompt");
        if (!prompt.isArray()) {
            throw new CommandFailure(where + ": prompt is no array of token ids");
        }
        final int[] ids = new int[prompt.size()];
        for (int i = 0; i < ids.length; i++) {
            final String field = "prompt[" + i + "]";
            ids[i] = (int) WholeNumber.of(prompt.get(i), field, where, 0, LARGEST_TOKEN);
        }
        return new Request(count(node, "i", where), ids, count(node, "cached_tokens", where));
    }

    private static int count(JsonNode node, String field, String where) {
        return (int) WholeNumber.of(node.path(field), field, where, 0, Integer.MAX_VALUE);
    }
}
