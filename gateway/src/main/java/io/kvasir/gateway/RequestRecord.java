package io.kvasir.gateway;

import java.util.concurrent.atomic.AtomicBoolean;

/**
 * What a port knows of one request: the id that its answer, its worker, the log and the decisions
 * have in common, and what metrics and the access log are to say of it. Written by one thread at a
 * time; counted once.
 */
final class RequestRecord {
    /** Header that carries the id. */
    static final String HEADER = "X-Request-Id";

    /** Status of a request whose client left. */
    static final int CLIENT_LEFT = 499;

    /** Key of the id beside messages of the log. */
    static final String LOG_KEY = "request_id";

    private final String id;
    private final Endpoint endpoint;
    private final AtomicBoolean ended = new AtomicBoolean();
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

    String id() {
        return id;
    }

    Endpoint endpoint() {
        return endpoint;
    }

    /**
     * Ends it.
     *
     * @param httpStatus what it came to; the head may have said something else
     * @return false if it has ended before
     */
    boolean end(int httpStatus) {
        if (!ended.compareAndSet(false, true)) {
            return false;
        }
        status = httpStatus;
        return true;
    }

    /** What it came to; 0 before its end. */
    int status() {
        return status;
    }

    /** It asks for a model that is served. */
    void model(String served) {
        model = served;
    }

    /**
     * It was booked, perhaps not for the first time.
     *
     * @param tokens of its prompt, 0 where they are unknown
     */
    void routed(String routingMode, String workerName, int tokens) {
        mode = routingMode;
        worker = workerName;
        promptTokens = tokens > 0 ? tokens : UsageReader.UNKNOWN;
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
