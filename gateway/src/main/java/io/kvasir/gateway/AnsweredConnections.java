package io.kvasir.gateway;

import org.eclipse.jetty.client.Connection;

import java.util.Collections;
import java.util.Map;
import java.util.WeakHashMap;

/**
 * The client's connections that an answer has come over. A worker may close such a one by itself
 * while the next request is on its way: that is no fault, and the request can be sent again.
 * Thread-safe.
 */
final class AnsweredConnections {
    private final Map<Connection, Boolean> seen = Collections.synchronizedMap(new WeakHashMap<>());

    void add(Connection connection) {
        seen.put(connection, Boolean.TRUE);
    }

    boolean contains(Connection connection) {
        return seen.containsKey(connection);
    }
}
