package io.kvasir.services.http;

import com.fasterxml.jackson.databind.JsonNode;

import java.io.IOException;
import java.io.OutputStream;
import java.nio.charset.StandardCharsets;

/**
 * An answer.
 *
 * @param status of the answer
 * @param type media type; null where there is no body
 * @param body writes the body
 */
public record Reply(int status, String type, Body body) {
    static final String JSON = "application/json";

    /** Writes a body as it is made, so that a large one is never in memory as a whole. */
    @FunctionalInterface
    public interface Body {
        /**
         * Writes all of it. May block while the client does not read.
         *
         * @throws IOException if the client is not there any more
         */
        void writeTo(OutputStream out) throws IOException;
    }

    /** A JSON value. */
    public static Reply json(int status, JsonNode value) {
        final byte[] bytes = value.toString().getBytes(StandardCharsets.UTF_8);
        return new Reply(status, JSON, out -> out.write(bytes));
    }

    /** JSON that is written as it is made. */
    public static Reply json(Body body) {
        return new Reply(200, JSON, body);
    }

    /** {@code {"status": "ok"}}. */
    public static Reply ok(int status) {
        return json(status, ServiceJson.object().put("status", "ok"));
    }

    /** A text. */
    public static Reply text(String type, String text) {
        final byte[] bytes = text.getBytes(StandardCharsets.UTF_8);
        return new Reply(200, type, out -> out.write(bytes));
    }

    /** Status 200 and nothing else. */
    public static Reply empty() {
        return new Reply(200, null, out -> {});
    }
}
