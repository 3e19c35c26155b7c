package io.kvasir.gateway;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;

import io.kvasir.gateway.tokens.PromptException;

import org.eclipse.jetty.http.HttpHeader;
import org.eclipse.jetty.server.Handler;
import org.eclipse.jetty.server.Request;
import org.eclipse.jetty.server.Response;
import org.eclipse.jetty.util.Callback;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ThreadLocalRandom;

/**
 * Finds the endpoint of a request and answers it. Runs on a virtual thread per request and may
 * block.
 */
final class GatewayHandler extends Handler.Abstract {
    private static final Logger LOG = LoggerFactory.getLogger(GatewayHandler.class);
    private static final Map<String, List<String>> PATHS =
            Map.of(
                    "/v1/chat/completions", List.of("POST"),
                    "/v1/completions", List.of("POST"),
                    "/v1/models", List.of("GET", "HEAD"),
                    "/tokenize", List.of("POST"));

    private final ProxyContext context;
    private final PromptReader prompts;
    private final Pages pages;

    GatewayHandler(ProxyContext context, PromptReader prompts, Pages pages) {
        this.context = context;
        this.prompts = prompts;
        this.pages = pages;
    }

    @Override
    public boolean handle(Request request, Response response, Callback callback) {
        final String path = Request.getPathInContext(request);
        final String requestId = newRequestId();
        try {
            Paths.check(PATHS, path, request.getMethod(), response);
            switch (path) {
                case "/v1/chat/completions" ->
                        infer(InferenceRequest.Route.CHAT, request, response, callback, requestId);
                case "/v1/completions" ->
                        infer(
                                InferenceRequest.Route.COMPLETIONS,
                                request,
                                response,
                                callback,
                                requestId);
                case "/tokenize" -> Answers.json(response, callback, 200, tokenize(request));
                case "/v1/models" -> Answers.json(response, callback, 200, pages.models());
                default -> throw new AssertionError("path " + path + " is listed but not served");
            }
        } catch (ApiException e) {
            context.metrics().refused(PATHS.containsKey(path) ? path : "unknown", e.status());
            Answers.error(response, callback, e, requestId);
        } catch (IOException | RuntimeException e) {
            LOG.error("{} {} {} failed", requestId, request.getMethod(), path, e);
            context.metrics().refused(PATHS.containsKey(path) ? path : "unknown", 500);
            Answers.error(
                    response,
                    callback,
                    ApiException.internal(
                            "internal error; the gateway's log has request " + requestId),
                    requestId);
        }
        return true;
    }

    private static String newRequestId() {
        return "kv-" + HexFormat.of().toHexDigits(ThreadLocalRandom.current().nextLong());
    }

    private void infer(
            InferenceRequest.Route route,
            Request request,
            Response response,
            Callback callback,
            String requestId)
            throws ApiException, IOException {
        final byte[] given =
                BodyReader.read(request, context.config().get(GatewaySettings.MAX_BODY_BYTES));
        final InferenceRequest inference = RequestParser.parse(route, given);
        final RoutingHeaders overrides =
                RoutingHeaders.parse(request.getHeaders(), context.fleet().workers());
        final long begin = System.nanoTime();
        final RoutedPrompt prompt = prompts.read(inference, overrides);
        context.metrics().tokenized(route, System.nanoTime() - begin, prompt.known());
        final boolean askUsage =
                inference.stream
                        && !inference.includeUsage
                        && context.config().get(GatewaySettings.INCLUDE_USAGE);
        final ProxyRequest proxied =
                new ProxyRequest(
                        inference,
                        prompt,
                        ByteBuffer.wrap(askUsage ? inference.bodyWithUsage() : given),
                        askUsage,
                        requestId);
        new ProxyExchange(context, proxied, request, response, callback).start();
    }

    /** vLLM's own form: {@code {"tokens": [...], "count": n, "max_model_len": m or null}}. */
    private ObjectNode tokenize(Request request) throws ApiException {
        final byte[] body =
                BodyReader.read(request, context.config().get(GatewaySettings.MAX_BODY_BYTES));
        final boolean isChat;
        try {
            final JsonNode tree = Json.MAPPER.readTree(body);
            isChat = tree != null && tree.hasNonNull("messages");
        } catch (JsonProcessingException e) {
            throw RequestParser.malformed(e);
        } catch (IOException e) {
            throw ApiException.invalid(null, "cannot read the body: " + e.getMessage());
        }
        final InferenceRequest inference =
                RequestParser.parse(
                        isChat ? InferenceRequest.Route.CHAT : InferenceRequest.Route.COMPLETIONS,
                        body);
        prompts.adapter(inference.model);
        final int[] tokens;
        try {
            tokens = prompts.tokensOrRefusal(inference);
        } catch (PromptException e) {
            throw ApiException.invalid(null, e.getMessage());
        }
        if (tokens == null) {
            throw ApiException.client(
                    501,
                    null,
                    "no_tokenizer",
                    "no_tokenizer",
                    "the gateway cannot tokenize this prompt; is tokenizer set?");
        }
        return pages.tokens(tokens);
    }

    /**
     * Errors that the server itself answers (bad HTTP, shutdown) in the same shape as all others.
     */
    static boolean serverError(Request request, Response response, Callback callback) {
        final Object status = request.getAttribute("org.eclipse.jetty.server.error_status");
        final Object message = request.getAttribute("org.eclipse.jetty.server.error_message");
        final int code = status instanceof Integer number ? number : response.getStatus();
        final ApiException error =
                code == 503
                        ? ApiException.draining()
                        : code >= 400 && code < 500
                                ? ApiException.client(
                                        code, null, null, "bad_http", String.valueOf(message))
                                : ApiException.internal(String.valueOf(message));
        if (code == 503) {
            response.getHeaders().put(HttpHeader.CONNECTION, "close");
        }
        Answers.error(response, callback, error, null);
        return true;
    }
}
