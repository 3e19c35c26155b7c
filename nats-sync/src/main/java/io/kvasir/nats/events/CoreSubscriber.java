package io.kvasir.nats.events;

import io.kvasir.nats.ConnectPause;
import io.kvasir.nats.LastingConnection;
import io.kvasir.nats.NatsAccess;
import io.kvasir.nats.ServerErrors;
import io.nats.client.Connection;
import io.nats.client.ConnectionListener;
import io.nats.client.Consumer;
import io.nats.client.Dispatcher;
import io.nats.client.Message;

import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

import java.io.IOException;
import java.util.LinkedHashSet;
import java.util.Objects;
import java.util.Set;

/**
 * Subscriptions to core NATS and the connection under them, for one {@link Reader}. A thread of its
 * own, which it owns, connects, now and again, without an end, and is the reader's then. Messages
 * that wait for the reader are bounded; what is beyond that is dropped.
 *
 * <p>{@link #close} may be called by any thread, and twice.
 */
final class CoreSubscriber implements AutoCloseable {
    /** Pause after subscriptions that were not confirmed. */
    static final long PAUSE_MS = 500;

    private static final Logger LOG = LoggerFactory.getLogger(CoreSubscriber.class);
    private static final long CLOSE_PATIENCE_MS = 10_000;

    private final NatsAccess access;
    private final String name;
    private final Set<String> subjects = new LinkedHashSet<>();
    private final long mostMessages;
    private final long mostBytes;
    private final Reader reader;
    private final ServerErrors errors = new Errors();
    private final ConnectPause pause = new ConnectPause(); // of the thread
    private Thread thread; // null before the start
    private volatile LastingConnection connection; // null before the first
    private volatile Dispatcher dispatcher; // null before the first connection
    private volatile boolean closed;

    /** What is done with messages and the connection. */
    interface Reader {
        /** A message has come. Not called once the subscriber is closed. Dispatcher's thread. */
        void onMessage(Message message);

        /**
         * No connection can be made now, and another try follows; or the server lets the user
         * subscribe to none of the subjects. Any thread.
         */
        default void onRefused(String why) {}

        /**
         * The dispatcher of a connection is there, or that of one made anew: subscribes to what is
         * no subject. The thread that connects.
         */
        default void subscribe(Connection made, Dispatcher to) {}

        /**
         * Uses the connection until the subscriber is closed, or returns before. Subscriber's
         * thread.
         */
        void run() throws InterruptedException;

        /** Something has happened to the connection. Any thread of jnats. */
        default void onConnection(ConnectionListener.Events event) {}

        /** Messages were dropped, so many until now. Any thread of jnats. */
        default void onDropped(long count) {}
    }

    /**
     * Made, not started.
     *
     * @param access where NATS is
     * @param name of connection and thread, after a prefix
     * @param names whose endpoint and component subjects are subscribed to
     * @param mostMessages that wait for the reader
     * @param mostBytes of these
     * @param reader gets the messages
     */
    CoreSubscriber(
            NatsAccess access,
            String name,
            EventSubjects names,
            long mostMessages,
            long mostBytes,
            Reader reader) {
        this.access = Objects.requireNonNull(access);
        this.name = name;
        this.mostMessages = mostMessages;
        this.mostBytes = mostBytes;
        this.reader = reader;
        subjects.add(names.endpointSubjects());
        subjects.add(names.componentSubject());
    }

    /** Begins to connect; does not wait for it. Once. */
    void start() {
        thread = Thread.ofPlatform().daemon().name("kvasir-nats-" + name).start(this::run);
    }

    private void run() {
        try {
            while (!closed && connection == null) {
                connect();
            }
            if (!closed) {
                reader.run();
            }
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt(); // closing
        }
    }

    private void connect() throws InterruptedException {
        try {
            connection =
                    EventConnections.connect(
                            access, "kvasir-" + name, this::onConnection, errors, this::subscribe);
        } catch (IOException e) {
            reader.onRefused(e.getMessage());
            LOG.debug("no NATS yet", e);
            pause.await();
        }
    }

    private void subscribe(Connection made) {
        final Dispatcher to = made.createDispatcher(this::onMessage);
        to.setPendingLimits(mostMessages, mostBytes);
        subjects.forEach(to::subscribe);
        reader.subscribe(made, to);
        dispatcher = to;
    }

    private void onConnection(Connection which, ConnectionListener.Events event) {
        if (!closed && connection != null) {
            reader.onConnection(event);
        }
    }

    private void onMessage(Message message) {
        if (!closed) {
            reader.onMessage(message);
        }
    }

    boolean isClosed() {
        return closed;
    }

    /** The connection as it is now; there is one once the reader runs. */
    Connection connection() {
        return connection.now();
    }

    /** Messages that wait for the reader; 0 before the first connection. */
    long waiting() {
        final Dispatcher to = dispatcher;
        return to == null ? 0 : to.getPendingMessageCount();
    }

    /** Why nothing comes although there is a connection; empty if the subjects are open. */
    String refusal() {
        final String text = errors.refusedAll(subjects);
        return text.isEmpty() ? "" : access.address() + ": " + text;
    }

    Set<String> subjects() {
        return subjects;
    }

    /** Reports what the dispatcher has dropped, and what the user may not subscribe to. */
    private final class Errors extends ServerErrors {
        @Override
        protected String essential() {
            return refusedAll(subjects);
        }

        @Override
        public void errorOccurred(Connection which, String error) {
            super.errorOccurred(which, error);
            final String refusal = CoreSubscriber.this.refusal();
            if (!refusal.isEmpty() && !closed) {
                reader.onRefused(refusal);
            }
        }

        @Override
        public void slowConsumerDetected(Connection conn, Consumer consumer) {
            reader.onDropped(consumer.getDroppedCount());
        }
    }

    @Override
    public void close() {
        closed = true;
        thread.interrupt();
        try {
            thread.join(CLOSE_PATIENCE_MS);
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
        final LastingConnection open = connection;
        if (open != null) {
            open.close();
        }
    }
}
