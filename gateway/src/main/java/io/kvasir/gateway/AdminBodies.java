package io.kvasir.gateway;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.core.StreamReadFeature;
import com.fasterxml.jackson.databind.DeserializationFeature;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectReader;
import com.fasterxml.jackson.databind.exc.MismatchedInputException;

import io.kvasir.gateway.config.GatewayConfig;
import io.kvasir.gateway.openai.ApiException;
import io.kvasir.gateway.openai.Json;
import io.kvasir.gateway.openai.RequestParser;
import io.kvasir.gateway.server.BodyReader;
import io.kvasir.registry.FailureText;

import org.eclipse.jetty.server.Request;

import java.io.IOException;

/** Reads what operators send: one JSON value, in which no member is given twice. */
final class AdminBodies {
    private static final int MAX_BYTES = 64 << 10;

    private static final ObjectReader JSON =
            Json.MAPPER
                    .reader()
                    .with(StreamReadFeature.STRICT_DUPLICATE_DETECTION)
                    .with(DeserializationFeature.FAIL_ON_TRAILING_TOKENS);

    private final BodyReader bodies;

    AdminBodies(GatewayConfig config) {
        bodies = new BodyReader(config);
    }

    /**
     * Reads the body of a request.
     *
     * @return a missing node where it is empty
     * @throws ApiException 400 where it is something else, which the message names; 413 where it is
     *     too long
     */
    JsonNode read(Request request) throws ApiException {
        final byte[] body = bodies.read(request, MAX_BYTES, BodyReader.Budget.NONE);
        try {
            return JSON.readTree(body);
        } catch (MismatchedInputException e) { // a tree takes any value
            throw ApiException.invalid(null, "the body has more than one value; one is needed");
        } catch (JsonProcessingException e) {
            throw RequestParser.malformed(e);
        } catch (IOException e) {
            throw ApiException.invalid(null, "cannot read the body: " + FailureText.of(e));
        }
    }
}
