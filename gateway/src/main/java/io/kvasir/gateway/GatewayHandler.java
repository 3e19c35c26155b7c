package io.kvasir.gateway;

import io.kvasir.gateway.config.GatewaySettings;
import io.kvasir.gateway.log.RequestRecord;
import io.kvasir.gateway.openai.ApiException;
import io.kvasir.gateway.openai.Endpoint;
import io.kvasir.gateway.openai.InferenceRequest;
import io.kvasir.gateway.openai.RequestParser;
import io.kvasir.gateway.openai.TenantSalt;
import io.kvasir.gateway.proxy.ProxyContext;
import io.kvasir.gateway.proxy.ProxyExchange;
import io.kvasir.gateway.proxy.ProxyRequest;
import io.kvasir.gateway.routing.PromptExecutor;
import io.kvasir.gateway.routing.PromptReader;
import io.kvasir.gateway.routing.QueueHints;
import io.kvasir.gateway.routing.RoutedPrompt;
import io.kvasir.gateway.routing.RoutingHeaders;
import io.kvasir.gateway.server.AdmissionGate;
import io.kvasir.gateway.server.AdmittedResponse;
import io.kvasir.gateway.server.BodyReader;
import io.kvasir.gateway.server.ClientStream;
import io.kvasir.gateway.server.Credentials;
import io.kvasir.gateway.server.Paths;
import io.kvasir.gateway.server.Queries;
import io.kvasir.gateway.server.RequestFailures;
import io.kvasir.gateway.server.RequestRecords;
import io.kvasir.gateway.server.Responses;
import io.kvasir.gateway.server.ServerAnswers;
import io.kvasir.gateway.trace.Tracing;
import io.kvasir.prompt.tokenizer.PromptException;
import io.kvasir.router.queue.QueueRank;

import org.eclipse.jetty.http.HttpException;
import org.eclipse.jetty.http.HttpStatus;
import org.eclipse.jetty.io.EofException;
import org.eclipse.jetty.server.Handler;
import org.eclipse.jetty.server.Request;
import org.eclipse.jetty.server.Response;
import org.eclipse.jetty.server.handler.ErrorHandler;
import org.eclipse.jetty.util.Callback;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/**
 * Finds the endpoint of a request and answers it. Runs on a virtual thread per request and may
 * block.
 */
final class GatewayHandler extends Handler.Abstract {
    /** Stands for the path of any model: names may have slashes. */
    private static final String ONE_MODEL = "/v1/models/{model}";

    private static final Map<String, List<String>> PATHS = paths();
    private static final List<String> OTHERS =
            List.of(StatusHandler.LIVE, StatusHandler.READY, StatusHandler.HEALTH);

    private static Map<String, List<String>> paths() {
        final Map<String, List<String>> paths = new LinkedHashMap<>();
        for (InferenceRequest.Route route : InferenceRequest.Route.values()) {
            paths.put(route.path, List.of("POST"));
        }
        paths.put("/v1/models", List.of("GET", "HEAD"));
        paths.put(ONE_MODEL, List.of("GET", "HEAD"));
        paths.put("/tokenize", List.of("POST"));
        return Collections.unmodifiableMap(paths);
    }

    private final ServedModels models;
    private final ProxyContext context; // the first model's, for what all share
    private final AdmissionGate gate;
    private final PromptExecutor executor;
    private final BodyReader bodies;
    private final boolean trustsTemplates; // of a model: a body says only later of which it is
    private final StatusEndpoints endpoints;
    private final Tracing tracing;
    private final RequestFailures failures;

    GatewayHandler(
            ServedModels models,
            AdmissionGate gate,
            PromptExecutor executor,
            StatusEndpoints endpoints,
            Tracing tracing) {
        this.models = models;
        this.context = models.first().context();
        this.gate = gate;
        this.executor = executor;
        this.bodies = new BodyReader(context.config());
        this.trustsTemplates =
                models.all().stream()
                        .anyMatch(m -> m.config().get(GatewaySettings.TRUST_REQUEST_CHAT_TEMPLATE));
        this.endpoints = endpoints;
        this.tracing = tracing;
        this.failures = new RequestFailures(context.metrics());
    }

    /** Refuses the requests whose bodies are waited for at this moment: the gateway ends. */
    void cutBodies() {
        bodies.cut();
    }

    @Override
    public boolean handle(Request request, Response response, Callback callback) {
        final String asked = Request.getPathInContext(request);
        final String path = Endpoint.isOfOneModel(asked) ? ONE_MODEL : asked;
        try {
            Credentials.check(request);
            Queries.check(request);
            if (Paths.options(PATHS, path, request, response, callback)) {
                return true;
            }
            Paths.check(PATHS, OTHERS, path, request.getMethod());
            final InferenceRequest.Route route = InferenceRequest.Route.ofOrNull(path);
            if (route != null) {
                if (tracing.isOn()) {
                    RequestRecords.of(request)
                            .trace(
                                    tracing.begin(
                                            request.getMethod(),
                                            path,
                                            request.getHeaders(),
                                            context.trusted().trusts(request)));
                }
                admit(
                        false,
                        request,
                        response,
                        callback,
                        (body, admitted) -> infer(route, body, request, admitted, callback));
                return true;
            }
            switch (path) {
                case "/tokenize" ->
                        admit(
                                true,
                                request,
                                response,
                                callback,
                                (body, admitted) -> tokenize(body, admitted, callback));
                case "/v1/models" -> Responses.json(response, callback, 200, endpoints.models());
                case ONE_MODEL ->
                        Responses.json(
                                response, callback, 200, endpoints.model(Endpoint.modelOf(asked)));
                default -> throw new AssertionError("path " + path + " is listed but not served");
            }
        } catch (Throwable e) { // an Error as well must be answered, counted and logged
            failures.answer(request, response, callback, e);
        }
        return true;
    }

    /** What is done with a body that was let in. */
    private interface BodyWork {
        Runnable on(byte[] body, Response admitted) throws ApiException, IOException;
    }

    /** Lets a request in, reads its body and has it worked on; nothing is spent before. */
    private void admit(
            boolean answers, Request request, Response response, Callback callback, BodyWork work)
            throws ApiException {
        final AdmissionGate.Admission admission;
        try {
            admission = gate.enter();
        } catch (ApiException e) {
            bodies.drain(request);
            throw e;
        }
        Request.addCompletionListener(request, failure -> admission.end());
        final Response admitted = new AdmittedResponse(request, response, admission);
        try {
            final byte[] body = bodies.read(request, admission);
            new PromptTask(
                            executor,
                            failures,
                            context.metrics(),
                            answers,
                            request,
                            admitted,
                            callback)
                    .start(
                            body.length,
                            trustsTemplates,
                            () -> {
                                try {
                                    return work.on(body, admitted);
                                } finally {
                                    admission.prepared();
                                }
                            });
        } catch (ApiException e) {
            admission.prepared(); // before the client gets to know, and sends the next one
            throw e;
        }
    }

    private Runnable infer(
            InferenceRequest.Route route,
            byte[] given,
            Request request,
            Response response,
            Callback callback)
            throws ApiException, IOException {
        final InferenceRequest inference = RequestParser.parse(route, given);
        final ServedModel model = models.of(inference.model);
        final boolean trusted = context.trusted().trusts(request);
        final RoutingHeaders overrides =
                (trusted
                                ? RoutingHeaders.parse(
                                                request.getHeaders(), inference, model.registry())
                                        .withHints(inference.routingConstraints)
                                : RoutingHeaders.NONE)
                        .ofSession(
                                request.getHeaders()
                                        .get(model.config().get(GatewaySettings.SESSION_HEADER)));
        if (inference.namesBlocks != null && !trusted && model.registry().handsBlocksOver()) {
            throw ApiException.invalid(
                    null, "members that hand KV blocks over are set by the gateway alone");
        }
        final boolean salted = salt(inference, request);
        final long begin = System.nanoTime();
        final RequestRecord record = RequestRecords.of(request);
        final RoutedPrompt prompt = model.prompts().read(inference, overrides, record.id());
        final long readNs = System.nanoTime() - begin;
        if (route.form != InferenceRequest.Form.OTHER) {
            context.metrics().tokenized(route, readNs, prompt.known());
        }
        record.trace().step("tokenize", readNs);
        record.model(model.prompts().servedModel(inference.model));
        record.prompt(prompt.tokens().length);
        final boolean askUsage =
                inference.stream
                        && route.form == InferenceRequest.Form.COMPLETION
                        && !inference.includeUsage
                        && context.config().get(GatewaySettings.INCLUDE_USAGE);
        final byte[] asked = askUsage ? inference.bodyWithUsage() : given;
        final byte[] routed =
                inference.routerOverride == null ? asked : InferenceRequest.withoutOverride(asked);
        final byte[] body =
                inference.setsAnnouncements
                        ? InferenceRequest.withoutAnnouncements(routed)
                        : routed;
        final ProxyRequest proxied =
                new ProxyRequest(
                        inference,
                        prompt,
                        ByteBuffer.wrap(
                                salted
                                        ? TenantSalt.put(
                                                body, inference.clientSalt, inference.cacheSalt)
                                        : body),
                        askUsage,
                        trusted
                                ? QueueHints.of(request.getHeaders(), inference, System.nanoTime())
                                : QueueRank.USUAL,
                        trusted,
                        record);
        return new ProxyExchange(model.context(), proxied, request, response, callback)::start;
    }

    /** Sets the salt of the request's tenant; true if the worker must get it, too. */
    private boolean salt(InferenceRequest inference, Request request) throws ApiException {
        final String header = context.config().get(GatewaySettings.TENANT_HEADER);
        if (header == null) {
            return false;
        }
        if (request.getHeaders().getFields(header).size() > 1) { // one may be the client's own
            throw ApiException.invalid(null, "there is more than one " + header + " header");
        }
        if (inference.severalSalts) { // one salt is to keep all prompts from those of others
            throw ApiException.invalid(
                    "cache_salt", "'cache_salt' must be a string beside " + header);
        }
        inference.clientSalt = inference.cacheSalt != null;
        inference.cacheSalt = TenantSalt.of(request.getHeaders().get(header), inference.cacheSalt);
        return inference.cacheSalt != null;
    }

    /**
     * vLLM's own form: {@code {"tokens": [...], "count": n, "max_model_len": m or null,
     * "token_strs": [...] or null}}.
     */
    private Runnable tokenize(byte[] body, Response response, Callback callback)
            throws ApiException {
        final InferenceRequest inference =
                RequestParser.parse(
                        RequestParser.has(body, "messages")
                                ? InferenceRequest.Route.CHAT
                                : InferenceRequest.Route.COMPLETIONS,
                        body);
        if (inference.prompts() > 1) {
            throw ApiException.invalid(inference.batchIn, "one prompt is tokenized at a time");
        }
        final ServedModel model = models.of(inference.model);
        final PromptReader prompts = model.prompts();
        prompts.adapter(inference.model);
        final int[] tokens;
        try {
            tokens = prompts.tokensOrRefusal(inference);
        } catch (PromptException e) {
            throw ApiException.invalid(null, e.getMessage());
        }
        final String[] names =
                tokens != null && inference.returnsTokenStrings ? prompts.namesOf(tokens) : null;
        if (tokens == null || (inference.returnsTokenStrings && names == null)) {
            throw ApiException.client(
                    501,
                    null,
                    "no_tokenizer",
                    "no_tokenizer",
                    "the gateway cannot tokenize this prompt; is tokenizer set?");
        }
        final byte[] page = StatusEndpoints.tokens(tokens, names, model);
        return () -> context.coding().json(response, callback, page);
    }

    /**
     * Errors that the server itself answers (bad HTTP, shutdown) in the same shape as all others.
     */
    static boolean serverError(Request request, Response response, Callback callback) {
        ClientStream.wrap(request); // of one that ends before it is handled
        ServerAnswers.keep(request, response);
        final int status = ServerAnswers.lastOfConnection(request, response);
        Responses.error(
                response, callback, serverError(request, status), RequestRecords.of(request).id());
        return true;
    }

    private static ApiException serverError(Request request, int code) {
        if (hasBrokenOff(request)) {
            if (RequestRecords.statusOfBrokenOff(request) != RequestRecord.CLIENT_LEFT) {
                return ApiException.draining();
            }
            RequestRecords.of(request).clientLeft();
            return ApiException.brokenOff("the request broke off");
        }
        return switch (code) {
            case HttpStatus.SERVICE_UNAVAILABLE_503 -> ApiException.draining();
            case HttpStatus.REQUEST_TIMEOUT_408 -> ServerAnswers.lateHead();
            case HttpStatus.URI_TOO_LONG_414, HttpStatus.REQUEST_HEADER_FIELDS_TOO_LARGE_431 ->
                    ApiException.client(
                            code,
                            null,
                            null,
                            "head_too_large",
                            "the request's head is longer than max-head-bytes allows");
            default ->
                    HttpStatus.isClientError(code) || code == 501 || code == 505
                            ? ApiException.client(
                                    code, null, null, "bad_http", HttpStatus.getMessage(code))
                            : ApiException.internal("internal error");
        };
    }

    /** The server has a 500 for what ends before it is handled. */
    private static boolean hasBrokenOff(Request request) {
        final Object failure = request.getAttribute(ErrorHandler.ERROR_EXCEPTION);
        return failure instanceof EofException && !(failure instanceof HttpException);
    }
}
