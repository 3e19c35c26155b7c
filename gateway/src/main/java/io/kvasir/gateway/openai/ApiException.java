package io.kvasir.gateway.openai;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;

import io.kvasir.router.disagg.LegFailure;

import org.eclipse.jetty.http.HttpField;
import org.eclipse.jetty.http.HttpHeader;

import java.io.IOException;
import java.nio.charset.StandardCharsets;

/**
 * A request that ends with an error answer in OpenAI's shape. Carries no stack trace: it is an
 * outcome.
 *
 * <p>Beside OpenAI's four members the error object has a member {@code kvasir} that says which leg
 * failed ({@code client}, {@code gateway}, {@code router}, {@code upstream}, or {@code prefill} or
 * {@code decode} of a request that was split), the worker when one is to blame, the kind of failure
 * and whether trying again makes sense.
 */
public final class ApiException extends Exception {
    private static final long serialVersionUID = 1L;

    /** Whose part of the path failed. */
    enum Leg {
        CLIENT("client"),
        GATEWAY("gateway"),
        ROUTER("router"),
        UPSTREAM("upstream"),
        PREFILL("prefill"),
        DECODE("decode");

        final String spelling;

        Leg(String spelling) {
            this.spelling = spelling;
        }
    }

    /** Names that clients gave are cut to this length where they are repeated. */
    private static final int MAX_NAME_LENGTH = 256;

    private final int status;
    private final String type;
    private final String param;
    private final String code;
    private final Leg leg;
    private final String kind;
    private final String worker;
    private final boolean retryable;
    private transient HttpField header; // what the answer says beside the error; null for nothing
    private transient Limits limits; // that a request has met; null for none
    private boolean ofQueue; // whether it may not wait
    private boolean clientLeft;

    /**
     * A limit that a request has met.
     *
     * @param name of the setting; null where the limit was the request's own
     * @param value of the setting
     * @param observed what was held against it
     * @param retryAfterSeconds when another try is worth it, 1 or more
     */
    public record Limits(String name, long value, long observed, long retryAfterSeconds) {}

    private ApiException(
            int status,
            String type,
            String param,
            String code,
            Leg leg,
            String kind,
            String worker,
            boolean retryable,
            String message) {
        super(message, null, false, false);
        this.status = status;
        this.type = type;
        this.param = param;
        this.code = code;
        this.leg = leg;
        this.kind = kind;
        this.worker = worker;
        this.retryable = retryable;
    }

    /**
     * 400: the request itself is wrong; {@code param} names the member, null for the whole body.
     */
    public static ApiException invalid(String param, String message) {
        return client(400, param, null, "invalid_request", message);
    }

    /** A 4xx of the gateway's own. */
    public static ApiException client(
            int status, String param, String code, String kind, String message) {
        return new ApiException(
                status,
                "invalid_request_error",
                param,
                code,
                Leg.CLIENT,
                kind,
                null,
                status == 408,
                message);
    }

    /**
     * 400: the request cannot be split, and no worker of the model does all of one.
     *
     * @param param member of the body that needs one worker for all of it; null for the whole body
     * @param more ends the message
     */
    public static ApiException needsWholeWorker(String param, String more) {
        return client(
                400,
                param,
                "needs_whole_worker",
                "needs_whole_worker",
                (param == null ? "the body" : "'" + param + "'")
                        + " needs a worker that does whole requests (role=both, or a vLLM decode"
                        + " worker), and this model has none"
                        + more);
    }

    private static String shortened(String name) {
        return name.substring(0, Math.min(name.length(), MAX_NAME_LENGTH));
    }

    /** 404: of the decisions that are kept none is of the request. */
    public static ApiException decisionNotHeld(String requestId, int kept) {
        return client(
                404,
                "id",
                "not_found",
                "decision_not_held",
                "no decision of request `"
                        + shortened(requestId)
                        + "` is among the last "
                        + kept
                        + "; it was not routed, or decision-log-size is too small for what came"
                        + " after it");
    }

    /** 404: no such model is served. */
    public static ApiException modelNotFound(String model) {
        return client(
                404,
                "model",
                "model_not_found",
                "model_not_found",
                "The model `"
                        + shortened(model)
                        + "` does not exist or you do not have access to it.");
    }

    /**
     * 413: the body exceeds a limit.
     *
     * @param length of the body; negative where it is unknown
     * @param settingOrNull what sets the limit; null where nothing does
     */
    public static ApiException tooLarge(long length, long limit, String settingOrNull) {
        return tooLarge(
                "request body of "
                        + (length < 0 ? "more than " + limit : Long.toString(length))
                        + " bytes exceeds the limit of "
                        + limit
                        + "; shorten it"
                        + (settingOrNull == null ? "" : " or raise " + settingOrNull));
    }

    /** 413: what the body needs exceeds a limit, which the message names. */
    static ApiException tooLarge(String message) {
        return client(413, null, "request_too_large", "request_too_large", message);
    }

    /** 429: there is no room for the request now; {@code setting} says how much there is. */
    public static ApiException overloaded(String what, String setting) {
        return new ApiException(
                429,
                "server_error",
                null,
                "overloaded",
                Leg.GATEWAY,
                "overloaded",
                null,
                true,
                what + " (" + setting + "); try again later");
    }

    /**
     * A request that waits for a worker no longer, or may not wait.
     *
     * @param status 429 or 503
     * @param kind what ended the wait
     */
    public static ApiException notQueued(int status, String kind, Limits met, String message) {
        final ApiException error = limited(status, kind, met, message);
        error.ofQueue = true;
        return error;
    }

    /** As {@link #notQueued}, by a limit of the workers' load; another pool may serve it. */
    public static ApiException beyondLimit(String kind, Limits met, String message) {
        return limited(503, kind, met, message);
    }

    private static ApiException limited(int status, String kind, Limits met, String message) {
        final ApiException error =
                new ApiException(
                        status,
                        "server_error",
                        null,
                        status == 429 ? "overloaded" : "service_unavailable",
                        Leg.ROUTER,
                        kind,
                        null,
                        true,
                        message + "; try again in " + met.retryAfterSeconds() + " s");
        error.limits = met;
        return error.with(HttpHeader.RETRY_AFTER, Long.toString(met.retryAfterSeconds()));
    }

    /** 400: the body ended before it was whole. Its client has left, or reads on all the same. */
    public static ApiException brokenOff(String message) {
        final ApiException error = client(400, null, null, "incomplete", message);
        error.clientLeft = true;
        return error;
    }

    /** Whether it counts as a client that left, whatever the answer to it says. */
    public boolean isOfClientThatLeft() {
        return clientLeft;
    }

    /** Whether it is about a wait for a worker: {@link #notQueued}. */
    public boolean isOfQueue() {
        return ofQueue;
    }

    /** A defect of the gateway; the log has the stack trace. */
    public static ApiException internal(String message) {
        return new ApiException(
                500,
                "server_error",
                null,
                "internal_error",
                Leg.GATEWAY,
                "internal",
                null,
                false,
                message);
    }

    /** 503: the gateway ends; another one may serve the request. */
    public static ApiException draining() {
        return new ApiException(
                503,
                "server_error",
                null,
                "service_unavailable",
                Leg.GATEWAY,
                "draining",
                null,
                true,
                "the gateway is shutting down");
    }

    /** The router was closed under a running gateway; another gateway may serve the request. */
    public static ApiException routerClosed() {
        return new ApiException(
                503,
                "server_error",
                null,
                "service_unavailable",
                Leg.ROUTER,
                "closed",
                null,
                true,
                "the router is closed");
    }

    /**
     * The router refused the request.
     *
     * @param status 400, 429 or 503
     */
    public static ApiException ofRouter(
            int status, String kind, boolean retryable, String message) {
        return new ApiException(
                status,
                status == 400 ? "invalid_request_error" : "server_error",
                null,
                status == 429 ? "overloaded" : status == 400 ? null : "service_unavailable",
                Leg.ROUTER,
                kind,
                null,
                retryable,
                message);
    }

    /**
     * A worker failed the request; another gateway or a later attempt may serve it.
     *
     * @param worker null where the client may not know it
     */
    public static ApiException upstream(int status, String kind, String worker, String message) {
        return new ApiException(
                status,
                "server_error",
                null,
                "upstream_" + kind,
                Leg.UPSTREAM,
                kind,
                worker,
                true,
                message);
    }

    /**
     * One of the two workers of a split request failed, and nothing else was tried; a later attempt
     * may be served.
     */
    public static ApiException ofLeg(LegFailure failure) {
        return new ApiException(
                switch (failure.kind()) {
                    case "timeout", "dead" -> 504;
                    case "no_worker", "busy" -> 503;
                    default -> 502;
                },
                "server_error",
                null,
                code(failure),
                leg(failure),
                failure.kind(),
                null,
                true,
                "the "
                        + failure.leg().spelling()
                        + " of the request failed ("
                        + failure.kind()
                        + ")");
    }

    private static String code(LegFailure failure) {
        return failure.leg().spelling() + "_" + failure.kind();
    }

    private static Leg leg(LegFailure failure) {
        return failure.leg() == io.kvasir.router.disagg.Leg.PREFILL ? Leg.PREFILL : Leg.DECODE;
    }

    /**
     * The same error as the failure of one leg of a split request. What the client has done wrong
     * is of no leg, and stays as it is.
     */
    public ApiException of(LegFailure failure) {
        if (leg == Leg.CLIENT || status == 400) {
            return this;
        }
        final ApiException named =
                new ApiException(
                        status,
                        type,
                        param,
                        code(failure),
                        leg(failure),
                        failure.kind(),
                        worker,
                        retryable,
                        getMessage());
        named.header = header;
        named.limits = limits;
        return named;
    }

    /**
     * A worker finds fault with the request.
     *
     * @param status a 4xx
     * @param body what the worker says; its message is the client's if it has one
     */
    public static ApiException ofWorker(int status, byte[] body) {
        return client(status, null, null, "refused", messageIn(body, status));
    }

    private static String messageIn(byte[] body, int status) {
        try {
            final JsonNode answer = Json.MAPPER.readTree(body);
            final JsonNode message = answer.at("/error/message");
            if (message.isTextual()) {
                return message.textValue();
            }
            if (answer.path("message").isTextual()) {
                return answer.path("message").textValue();
            }
        } catch (IOException e) {
            // not JSON: there is nothing to repeat
        }
        return "the worker refuses the request with status " + status;
    }

    /** The gateway itself could not ask a worker; another gateway may serve the request. */
    public static ApiException unable(int status, String kind, String message) {
        return new ApiException(
                status,
                "server_error",
                null,
                "service_unavailable",
                Leg.GATEWAY,
                kind,
                null,
                true,
                message);
    }

    /** The same with a header of the answer. */
    public ApiException with(HttpHeader name, String value) {
        header = new HttpField(name, value);
        return this;
    }

    /** Header of the answer; null for none. */
    public HttpField header() {
        return header;
    }

    /** Status of the answer. */
    public int status() {
        return status;
    }

    /** The error as an object {@code {"error": {...}}}. */
    public ObjectNode json(String requestId) {
        final ObjectNode body = JsonNodeFactory.instance.objectNode();
        final ObjectNode error = body.putObject("error");
        error.put("message", getMessage());
        error.put("type", type);
        error.put("param", param);
        error.put("code", code);
        final ObjectNode detail = error.putObject("kvasir");
        detail.put("leg", leg.spelling);
        detail.put("worker", worker);
        detail.put("kind", kind);
        detail.put("retryable", retryable);
        if (limits != null) {
            if (limits.name != null) {
                detail.put("limit", limits.name);
                detail.put("limit_value", limits.value);
            }
            detail.put("observed", limits.observed);
            detail.put("retry_after_seconds", limits.retryAfterSeconds);
        }
        if (requestId != null) {
            detail.put("request_id", requestId);
        }
        return body;
    }

    /** The error as the body of an answer. */
    public byte[] body(InferenceRequest.Form form, String requestId) {
        return json(form, requestId).toString().getBytes(StandardCharsets.UTF_8);
    }

    /** The error as one server-sent event. */
    public byte[] event(InferenceRequest.Form form, String requestId) {
        final String name = form.hasTypedEvents() ? "event: error\n" : "";
        return (name + "data: " + json(form, requestId) + "\n\n").getBytes(StandardCharsets.UTF_8);
    }

    /** OpenAI's error object; other APIs have some of its members beside it, too. */
    private ObjectNode json(InferenceRequest.Form form, String requestId) {
        final ObjectNode page = json(requestId);
        switch (form) {
            case MESSAGES -> {
                page.put("type", "error");
                ((ObjectNode) page.get("error")).put("type", messagesType());
            }
            case RESPONSES -> {
                page.put("type", "error");
                page.put("code", code);
                page.put("message", getMessage());
                page.put("param", param);
            }
            case COMPLETION, GENERATE, TOKENS, OTHER -> {}
        }
        return page;
    }

    /** The type in the words of the Messages API. */
    private String messagesType() {
        return switch (status) {
            case 401 -> "authentication_error";
            case 403 -> "permission_error";
            case 404 -> "not_found_error";
            case 413 -> "request_too_large";
            case 429 -> "rate_limit_error";
            case 503 -> "overloaded_error";
            default -> status < 500 ? "invalid_request_error" : "api_error";
        };
    }
}
