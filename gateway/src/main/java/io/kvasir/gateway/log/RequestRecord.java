package io.kvasir.gateway.log;

import io.kvasir.gateway.openai.Endpoint;
import io.kvasir.gateway.openai.UsageReader;
import io.kvasir.gateway.trace.RequestTrace;

import java.util.concurrent.atomic.AtomicBoolean;

/**
 * What a port knows of one request: the id that its answer, its worker, the log and the decisions
 * have in common, and what metrics and the access log are to say of it. Written by one thread at a
 * time; counted once.
 */
public final class RequestRecord {
    /** Header that carries the id. */
    public static final String HEADER = "X-Request-Id";

    /** Status of a request whose client left. */
    public static final int CLIENT_LEFT = 499;

    /** Key of the id beside messages of the log. */
    public static final String LOG_KEY = "request_id";

    private final String id;
    private final Endpoint endpoint;
    private final AtomicBoolean ended = new AtomicBoolean();
    private volatile int status;
    private volatile boolean left;
    private volatile String model;
    private volatile String mode;
    private volatile String worker;
    private volatile int promptTokens = UsageReader.UNKNOWN;
    private volatile int outputTokens = UsageReader.UNKNOWN;
    private volatile long firstByteNs = -1;
    private volatile long queuedNs = -1;
    private volatile RequestTrace trace = RequestTrace.NONE;

    /** Begins the record of a request to an endpoint. */
    public RequestRecord(String id, Endpoint endpoint) {
        this.id = id;
        this.endpoint = endpoint;
    }

    /** The client's id, or one made for the request. */
    public String id() {
        return id;
    }

    /** The endpoint that was asked for. */
    public Endpoint endpoint() {
        return endpoint;
    }

    /** Has it be traced. */
    public void trace(RequestTrace begun) {
        trace = begun;
    }

    /** Its trace; does nothing where it is not traced. */
    public RequestTrace trace() {
        return trace;
    }

    /** Has it end with {@link #CLIENT_LEFT}, whatever an answer to it says. */
    public void clientLeft() {
        left = true;
    }

    /**
     * Ends it.
     *
     * @param httpStatus what it came to; the head may have said something else
     * @return false if it has ended before
     */
    public boolean end(int httpStatus) {
        if (!ended.compareAndSet(false, true)) {
            return false;
        }
        status = left ? CLIENT_LEFT : httpStatus;
        endTrace();
        return true;
    }

    private void endTrace() {
        trace.put("kvasir.request_id", id);
        trace.put("gen_ai.request.model", model);
        trace.put("kvasir.mode", mode);
        if (promptTokens != UsageReader.UNKNOWN) {
            trace.put("gen_ai.usage.input_tokens", promptTokens);
        }
        if (outputTokens != UsageReader.UNKNOWN) {
            trace.put("gen_ai.usage.output_tokens", outputTokens);
        }
        trace.end(
                status,
                status == CLIENT_LEFT
                        ? "client_left"
                        : status >= 500 ? Integer.toString(status) : null);
    }

    /** What it came to; 0 before its end. */
    public int status() {
        return status;
    }

    /** It asks for a model that is served. */
    public void model(String served) {
        model = served;
    }

    /**
     * Its prompt was read.
     *
     * @param tokens of it, 0 where they are unknown
     */
    public void prompt(int tokens) {
        promptTokens = tokens > 0 ? tokens : UsageReader.UNKNOWN;
    }

    /**
     * It was booked, perhaps not for the first time.
     *
     * @param tokens of its prompt, 0 where they are unknown
     */
    public void routed(String routingMode, String workerName, int tokens) {
        mode = routingMode;
        worker = workerName;
        prompt(tokens);
    }

    /** It has waited for a worker, whether it got one or not. */
    public void queued(long ns) {
        queuedNs = ns;
        if (ns > 0) {
            trace.step("queue", ns);
        }
    }

    /** The head of its answer is about to be sent. */
    public void firstByte(long sinceStartNs) {
        firstByteNs = sinceStartNs;
    }

    /** What the worker states, or what came. */
    public void tokens(int prompt, int output) {
        if (prompt != UsageReader.UNKNOWN) {
            promptTokens = prompt;
        }
        outputTokens = output;
    }

    /** Null where it is unknown, as are the following two. */
    public String model() {
        return model;
    }

    /** How it was routed; null if it was not. */
    public String mode() {
        return mode;
    }

    String worker() {
        return worker;
    }

    /** How long it has waited for a worker; -1 where requests do not. */
    long queuedNs() {
        return queuedNs;
    }

    int promptTokens() {
        return promptTokens;
    }

    int outputTokens() {
        return outputTokens;
    }

    /** From the head of the request to that of the answer; -1 where that is not known apart. */
    public long firstByteNs() {
        return firstByteNs;
    }
}
