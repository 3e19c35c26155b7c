package io.kvasir.nats.events;

import io.kvasir.pipeline.source.EventPlane;
import io.kvasir.pipeline.source.RecoveryTransport;
import io.kvasir.pipeline.wire.RecoveryQuery;
import io.nats.client.Connection;
import io.nats.client.Message;

import java.util.Objects;

/**
 * Queries of an event plane to local indexers over core NATS. All answers come to one inbox; its
 * last token is the number of the query.
 */
final class RecoveryQueries implements RecoveryTransport {
    private static final int NO_RESPONDERS = 503;

    private final EventSubjects names;
    private final EventPlane plane;
    private volatile Connection connection; // null before the first
    private volatile String inbox = "";

    RecoveryQueries(EventSubjects names, EventPlane plane) {
        this.names = Objects.requireNonNull(names);
        this.plane = Objects.requireNonNull(plane);
    }

    /**
     * Asks over a connection from now on.
     *
     * @return subjects of the answers, to be subscribed to before the plane is connected, and their
     *     messages be passed to {@link #onMessage}
     */
    String over(Connection made) {
        inbox = made.createInbox() + ".";
        connection = made;
        return inbox + "*";
    }

    /** Whether a message is of an answer. */
    boolean isAnswer(Message message) {
        final String prefix = inbox;
        return !prefix.isEmpty() && message.getSubject().startsWith(prefix);
    }

    void onMessage(Message message) {
        final long queryId = queryId(message.getSubject().substring(inbox.length()));
        if (message.isStatusMessage()) {
            if (message.getStatus().getCode() == NO_RESPONDERS) {
                plane.onNoAnswerer(queryId);
            }
        } else {
            plane.onAnswer(queryId, message.getData());
        }
    }

    private static long queryId(String token) {
        try {
            return Long.parseLong(token);
        } catch (NumberFormatException e) {
            return 0; // of no query
        }
    }

    @Override
    public boolean ask(long queryId, RecoveryQuery query) {
        final Connection open = connection;
        if (open == null || open.getStatus() != Connection.Status.CONNECTED) {
            return false;
        }
        try {
            open.publish(
                    names.querySubject(query.workerId(), query.dpRank()),
                    inbox + queryId,
                    query.toBytes());
            return true;
        } catch (IllegalStateException e) {
            return false; // it is closed now
        }
    }
}
