package io.kvasir.gateway;

import org.eclipse.jetty.client.Connection;
import org.eclipse.jetty.client.Request;

import java.util.Collections;
import java.util.Map;
import java.util.WeakHashMap;

/**
 * The client's connections that an answer has come over, to a request or to a probe. A worker may
 * close such a one by itself while the next request is on its way: that is no fault, and the
 * request can be sent again. Thread-safe.
 */
final class AnsweredConnections {
    /**
     * How often a request or a probe is sent again because the worker had closed its connection:
     * that many are no attempts.
     */
    static final int STALE_RETRIES = 5;

    private final Map<Connection, Boolean> seen = Collections.synchronizedMap(new WeakHashMap<>());

    /** Notes where an answer comes from; at its begin, as its end gives the connection away. */
    void add(Request answered) {
        seen.put(answered.getConnection(), Boolean.TRUE);
    }

    /**
     * Whether a request failed because the worker had closed its connection before.
     *
     * @param unanswered a request of which no answer has begun
     */
    boolean wasStale(Request unanswered, UpstreamFault fault) {
        return fault == UpstreamFault.CLOSED && seen.containsKey(unanswered.getConnection());
    }
}
