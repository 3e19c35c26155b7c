package io.kvasir.cli.load;

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
import java.nio.file.attribute.BasicFileAttributes;
import java.util.ArrayList;
import java.util.List;

/**
 * Reader of request traces in Mooncake's format: one JSON object a line with {@code timestamp}
 * (ms), {@code input_length}, {@code output_length} (tokens) and {@code hash_ids}, one per {@value
 * #TOKENS_PER_HASH_ID} prompt tokens; equal ids at equal positions mean equal prefixes.
 *
 * @see <a href="https://github.com/kvcache-ai/Mooncake">Mooncake</a>
 */
public final class MooncakeTrace {
    /** Prompt tokens one hash id stands for; the last one may stand for fewer. */
    static final int TOKENS_PER_HASH_ID = 512;

    /** Some 126 years, whose ns a long has, Unix time or not. */
    private static final long LARGEST_MS = 4_000_000_000_000L;

    /** Of timestamps of any unit, which a double has exactly. */
    private static final long LARGEST_TIMESTAMP = 1L << 53;

    private MooncakeTrace() {}

    /**
     * One request of a trace.
     *
     * @param timestampMs arrival after the start of the trace
     * @param inputLength prompt tokens, at least 1
     * @param outputLength tokens to generate, at least 1
     * @param hashIds one id per {@value #TOKENS_PER_HASH_ID} tokens; not copied
     */
    @SuppressWarnings("ArrayRecordComponent") // never compared
    public record Request(long timestampMs, int inputLength, int outputLength, long[] hashIds) {}

    /**
     * Reads the first requests of a trace.
     *
     * @param limit requests to read at most
     * @return in the file's order, which is the order of arrival
     * @throws CommandFailure naming the line, when a line is not a request or times go backwards
     */
    public static List<Request> read(Path file, int limit) throws IOException {
        return read(file, limit, TOKENS_PER_HASH_ID, LARGEST_MS);
    }

    /**
     * Reads the first requests of a trace of another grain, whose timestamps are of any unit.
     *
     * @param limit requests to read at most
     * @param tokensPerHashId prompt tokens one hash id stands for
     * @return in the file's order, which is the order of arrival
     * @throws CommandFailure naming the line, when a line is not a request or times go backwards
     */
    public static List<Request> read(Path file, int limit, int tokensPerHashId) throws IOException {
        return read(file, limit, tokensPerHashId, LARGEST_TIMESTAMP);
    }

    private static List<Request> read(
            Path file, int limit, int tokensPerHashId, long largestTimestamp) throws IOException {
        if (Files.readAttributes(file, BasicFileAttributes.class).isOther()) {
            throw new CommandFailure(
                    file + " is no regular file, and may never end: copy the trace into one");
        }
        final List<Request> requests = new ArrayList<>();
        try (BufferedReader lines = Files.newBufferedReader(file, StandardCharsets.UTF_8)) {
            int number = 0;
            for (String line = lines.readLine();
                    line != null && requests.size() < limit;
                    line = lines.readLine()) {
                number++;
                final String text = NamedFile.withoutMark(line);
                if (!text.isBlank()) {
                    final Request request =
                            parse(text, file + ":" + number, tokensPerHashId, largestTimestamp);
                    if (!requests.isEmpty()
                            && request.timestampMs < requests.getLast().timestampMs) {
                        throw new CommandFailure(
                                file
                                        + ":"
                                        + number
                                        + ": timestamp "
                                        + request.timestampMs
                                        + " is before the previous line's; sort the trace");
                    }
                    requests.add(request);
                }
            }
        }
        if (requests.isEmpty()) {
            throw new CommandFailure(file + " holds no request");
        }
        return requests;
    }

    private static Request parse(
            String line, String where, int tokensPerHashId, long largestTimestamp) {
        final JsonNode node;
        try {
            node = Json.MAPPER.readTree(line);
        } catch (JsonProcessingException e) {
            throw new CommandFailure(where + ": not JSON: " + FailureText.of(e), e);
        }
        final int inputLength = positive(node, "input_length", where);
        return new Request(
                WholeNumber.of(
                        node.path("timestamp"),
                        "timestamp",
                        where,
                        -largestTimestamp,
                        largestTimestamp),
                inputLength,
                positive(node, "output_length", where),
                hashIds(node.path("hash_ids"), inputLength, tokensPerHashId, where));
    }

    private static long[] hashIds(
            JsonNode ids, int inputLength, int tokensPerHashId, String where) {
        final int needed = Math.ceilDiv(inputLength, tokensPerHashId);
        final int count = ids.isArray() ? ids.size() : 0;
        if (count < needed) {
            throw new CommandFailure(
                    where
                            + ": input_length "
                            + inputLength
                            + " needs "
                            + needed
                            + " hash_ids of "
                            + tokensPerHashId
                            + " tokens, found "
                            + count);
        }
        final long[] hashIds = new long[needed];
        for (int i = 0; i < needed; i++) {
            hashIds[i] = WholeNumber.hash(ids.get(i), "hash_ids[" + i + "]", where);
        }
        return hashIds;
    }

    private static int positive(JsonNode node, String field, String where) {
        return (int) WholeNumber.of(node.path(field), field, where, 1, Integer.MAX_VALUE);
    }
}
