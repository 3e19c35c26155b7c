package io.kvasir.gateway.openai;

import com.fasterxml.jackson.databind.JsonNode;

import java.io.IOException;

/** Reads what an engine says in a stream instead of output. */
final class ErrorEvent {
    private static final int LEAST = 400;
    private static final int MOST = 599;
    private static final int INTERNAL = 500;

    private ErrorEvent() {}

    /** The status of {@code {"error":{"code":…}}}; 500 where that is no status of an error. */
    static int status(byte[] bytes, int offset, int length) {
        try {
            final JsonNode event = Json.MAPPER.readTree(bytes, offset, length);
            final int code = event == null ? 0 : event.at("/error/code").asInt();
            return code >= LEAST && code <= MOST ? code : INTERNAL;
        } catch (IOException e) {
            return INTERNAL;
        }
    }
}
