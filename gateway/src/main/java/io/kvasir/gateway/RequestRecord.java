package io.kvasir.gateway;

import org.eclipse.jetty.http.HttpField;
import org.eclipse.jetty.http.HttpFields;
import org.eclipse.jetty.server.Request;

import java.util.HexFormat;
import java.util.concurrent.ThreadLocalRandom;
import java.util.concurrent.atomic.AtomicBoolean;

/**
 * What a port knows of one request: the id that its answer, its worker, the log and the decisions
 * have in common, and what metrics and the access log are to say of it. Written by one thread at a
 * time; counted once.
 */
final class RequestRecord {
    /** Key of the id beside messages of the log. */
    static final String LOG_KEY = "request_id";

    private static final String ATTRIBUTE = RequestRecord.class.getName();
    private static final int MAX_ID_LENGTH = 128;

    private final String id;
    private final Endpoint endpoint;
    private final AtomicBoolean counted = new AtomicBoolean();
    private volatile int status;
    private volatile String model;
    private volatile String mode;
    private volatile String worker;
    private volatile int promptTokens = UsageReader.UNKNOWN;
    private volatile int outputTokens = UsageReader.UNKNOWN;
    private volatile long firstByteNs = -1;

    RequestRecord(String id, Endpoint endpoint) {
        this.id = id;
        this.endpoint = endpoint;
    }

    /** The record of a request; made when it is asked for first. */
    static RequestRecord of(Request request) {
        if (request.getAttribute(ATTRIBUTE) instanceof RequestRecord known) {
            return known;
        }
        final String given = givenId(request.getHeaders());
        final RequestRecord made =
                new RequestRecord(
                        given == null ? newId() : given,
                        Endpoint.of(Request.getPathInContext(request)));
        request.setAttribute(ATTRIBUTE, made);
        return made;
    }

    /** The client's id; null for none, several, or one that does not belong into logs. */
    private static String givenId(HttpFields headers) {
        HttpField found = null;
        for (HttpField field : headers) {
            if (field.is(ProxyHeaders.REQUEST_ID)) {
                if (found != null) {
                    return null;
                }
                found = field;
            }
        }
        return found != null && isUsable(found.getValue()) ? found.getValue() : null;
    }

    /** Whether a text can be an id: visible ASCII, not too long. */
    private static boolean isUsable(String text) {
        if (text == null || text.isEmpty() || text.length() > MAX_ID_LENGTH) {
            return false;
        }
        for (int i = 0; i < text.length(); i++) {
            if (text.charAt(i) <= ' ' || text.charAt(i) > '~') {
                return false;
            }
        }
        return true;
    }

    private static String newId() {
        return "kv-" + HexFormat.of().toHexDigits(ThreadLocalRandom.current().nextLong());
    }

    String id() {
        return id;
    }

    Endpoint endpoint() {
        return endpoint;
    }

    /**
     * Counts the answer.
     *
     * @param httpStatus what it came to; the head may have said something else
     * @return false if it was counted before
     */
    boolean count(GatewayMetrics metrics, int httpStatus) {
        if (!counted.compareAndSet(false, true)) {
            return false;
        }
        status = httpStatus;
        metrics.answered(endpoint, httpStatus, mode, model);
        return true;
    }

    /** What it came to; 0 before it is counted. */
    int status() {
        return status;
    }

    /** It asks for a model that is served. */
    void model(String served) {
        model = served;
    }

    /** It was booked, perhaps not for the first time. */
    void routed(DecisionRecord decision) {
        mode = decision.mode().spelling();
        worker = decision.worker();
        promptTokens = decision.tokens() > 0 ? decision.tokens() : UsageReader.UNKNOWN;
    }

    /** The head of its answer is about to be sent. */
    void firstByte(long sinceStartNs) {
        firstByteNs = sinceStartNs;
    }

    /** What the worker states, or what came. */
    void tokens(int prompt, int output) {
        if (prompt != UsageReader.UNKNOWN) {
            promptTokens = prompt;
        }
        outputTokens = output;
    }

    /** Null where it is unknown, as are the following two. */
    String model() {
        return model;
    }

    String mode() {
        return mode;
    }

    String worker() {
        return worker;
    }

    int promptTokens() {
        return promptTokens;
    }

    int outputTokens() {
        return outputTokens;
    }

    /** From the head of the request to that of the answer; -1 where that is not known apart. */
    long firstByteNs() {
        return firstByteNs;
    }
}
