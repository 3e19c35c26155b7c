package io.kvasir.cli.doctor;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;

import io.kvasir.cli.console.Json;
import io.kvasir.cli.http.BoundedClient;

import java.io.IOException;
import java.net.http.HttpResponse;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.Map;

/** HTTP of one engine, within limits. One thread. */
final class EngineApi implements AutoCloseable {
    static final int NOT_FOUND = 404;
    static final int NO_SUCH_METHOD = 405;
    private static final int OK = 200;
    private static final long MOST_BYTES = 64L << 20;
    private static final int MOST_WORDS = 300;
    private static final String RANK = "X-data-parallel-rank";

    private final BoundedClient client;

    EngineApi(TestedEngine tested, Duration limit) {
        client =
                new BoundedClient(
                        tested.worker().url(), tested.authorizationOrNull(), limit, MOST_BYTES);
    }

    /** The engine has said no, or something that it cannot mean. */
    static final class AnswerException extends Exception {
        private static final long serialVersionUID = 1L;

        private final int status;

        AnswerException(int status, String message) {
            super(message, null, false, false);
            this.status = status;
        }

        /** Whether it has no such page. */
        boolean isAbsent() {
            return status == NOT_FOUND || status == NO_SUCH_METHOD;
        }
    }

    /** A page, of whatever status. */
    HttpResponse<byte[]> get(String path) throws IOException, InterruptedException {
        return client.get(path);
    }

    /** The object of a page. */
    JsonNode object(String path) throws IOException, InterruptedException, AnswerException {
        return object("GET " + path, client.get(path));
    }

    /** The object that answers a body. */
    JsonNode post(String path, ObjectNode body)
            throws IOException, InterruptedException, AnswerException {
        return post(path, body, Map.of());
    }

    /** The object that answers a body, of a data-parallel rank. */
    JsonNode post(String path, ObjectNode body, int rank)
            throws IOException, InterruptedException, AnswerException {
        return post(path, body, Map.of(RANK, Integer.toString(rank)));
    }

    private JsonNode post(String path, ObjectNode body, Map<String, String> headers)
            throws IOException, InterruptedException, AnswerException {
        return object(
                "POST " + path,
                client.post(path, body.toString().getBytes(StandardCharsets.UTF_8), headers));
    }

    private static JsonNode object(String what, HttpResponse<byte[]> answer)
            throws AnswerException {
        if (answer.statusCode() != OK) {
            throw new AnswerException(
                    answer.statusCode(),
                    what + " answered " + answer.statusCode() + ": " + begin(answer.body()));
        }
        try {
            final JsonNode read = Json.MAPPER.readTree(answer.body());
            if (read.isObject()) {
                return read;
            }
        } catch (IOException e) {
            throw new AnswerException(OK, what + " answered no JSON: " + begin(answer.body()));
        }
        throw new AnswerException(OK, what + " answered no JSON object: " + begin(answer.body()));
    }

    private static String begin(byte[] body) {
        return new String(body, 0, Math.min(body.length, MOST_WORDS), StandardCharsets.UTF_8);
    }

    @Override
    public void close() {
        client.close();
    }
}
