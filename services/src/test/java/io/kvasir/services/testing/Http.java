package io.kvasir.services.testing;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.charset.StandardCharsets;
import java.time.Duration;

/** Calls of a service on this machine. */
public final class Http {
    private static final ObjectMapper MAPPER = new ObjectMapper();
    private static final HttpClient CLIENT = HttpClient.newHttpClient();
    private static final Duration PATIENCE = Duration.ofMinutes(1);

    private final String base;

    /** Calls of one port. */
    public Http(int port) {
        base = "http://127.0.0.1:" + port;
    }

    /** An answer. */
    public record Answer(int status, String text) {
        /** The body as JSON. */
        public JsonNode json() {
            return Http.json(text);
        }
    }

    /** Reads JSON. */
    public static JsonNode json(String text) {
        try {
            return MAPPER.readTree(text);
        } catch (IOException e) {
            throw new UncheckedIOException("not JSON: " + text, e);
        }
    }

    /** Asks with GET. */
    public Answer get(String path) {
        return send(HttpRequest.newBuilder(URI.create(base + path)));
    }

    /** Asks with POST and a JSON body. */
    public Answer post(String path, String body) {
        return post(path, body.getBytes(StandardCharsets.UTF_8));
    }

    /** Asks with POST and a JSON body. */
    public Answer post(String path, byte[] body) {
        return send(
                HttpRequest.newBuilder(URI.create(base + path))
                        .header("Content-Type", "application/json")
                        .POST(HttpRequest.BodyPublishers.ofByteArray(body)));
    }

    /** Asks with PATCH and a JSON body. */
    public Answer patch(String path, String body) {
        return send(
                HttpRequest.newBuilder(URI.create(base + path))
                        .header("Content-Type", "application/json")
                        .method("PATCH", HttpRequest.BodyPublishers.ofString(body)));
    }

    /** Asks with DELETE. */
    public Answer delete(String path) {
        return send(HttpRequest.newBuilder(URI.create(base + path)).DELETE());
    }

    /** Sends any request to a path. */
    public Answer send(HttpRequest.Builder request) {
        try {
            final HttpResponse<String> answer =
                    CLIENT.send(
                            request.timeout(PATIENCE).build(),
                            HttpResponse.BodyHandlers.ofString());
            return new Answer(answer.statusCode(), answer.body());
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            throw new IllegalStateException(e);
        }
    }

    /** The URL of a path. */
    public URI url(String path) {
        return URI.create(base + path);
    }
}
