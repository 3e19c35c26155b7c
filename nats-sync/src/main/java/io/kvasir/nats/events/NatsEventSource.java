package io.kvasir.nats.events;

import io.kvasir.nats.NatsAccess;
import io.kvasir.pipeline.source.EventPlane;
import io.nats.client.Connection;
import io.nats.client.ConnectionListener;
import io.nats.client.Consumer;
import io.nats.client.Dispatcher;
import io.nats.client.ErrorListener;
import io.nats.client.Message;

import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

import java.io.IOException;
import java.util.LinkedHashSet;
import java.util.Objects;
import java.util.Set;
import java.util.concurrent.TimeoutException;

/**
 * Feeds an event plane from core NATS, which keeps nothing: what is published while there is no
 * connection is missed. The local indexers of workers are asked for it, and for everything when a
 * worker is new; the streams of workers that have none say what is missing.
 *
 * <p>Subscribes to the subject of the endpoint, or those of all endpoints where none is named, and
 * to that of the component, as publishers of different ages use them. Connects by itself, now and
 * again, without an end. While the index's ring is full messages wait in the client, up to a limit;
 * what is dropped beyond that is counted by jnats and makes the plane's streams stale until their
 * next events, or until it is recovered.
 *
 * <p>{@link #close} may be called by any thread, and twice.
 */
public final class NatsEventSource implements AutoCloseable {
    private static final Logger LOG = LoggerFactory.getLogger(NatsEventSource.class);
    private static final long TICK_MS = 50;
    private static final long CONNECT_PAUSE_MS = 500;
    private static final long MOST_WAITING_MESSAGES = 500_000;
    private static final long MOST_WAITING_BYTES = 256L << 20;
    private static final long CLOSE_PATIENCE_MS = 10_000;

    private final NatsAccess access;
    private final Set<String> subjects = new LinkedHashSet<>();
    private final EventPlane plane;
    private final RecoveryQueries queriesOrNull; // null where nothing is asked
    private final Thread thread;
    private volatile Connection connection; // null before the first
    private Dispatcher dispatcher; // of the thread
    private volatile boolean subscribed; // the server has confirmed it, once
    private volatile boolean closed;

    /**
     * Begins to connect; does not wait for it.
     *
     * @param access where NATS is
     * @param names whose events
     * @param plane gets them; not closed by this class
     */
    public NatsEventSource(NatsAccess access, EventSubjects names, EventPlane plane) {
        this(access, names, plane, true);
    }

    /**
     * Begins to connect; does not wait for it.
     *
     * @param access where NATS is
     * @param names whose events
     * @param plane gets them; not closed by this class
     * @param recover whether the local indexers of workers are asked for what is missing
     */
    public NatsEventSource(
            NatsAccess access, EventSubjects names, EventPlane plane, boolean recover) {
        this.access = Objects.requireNonNull(access);
        this.plane = Objects.requireNonNull(plane);
        this.queriesOrNull = recover ? new RecoveryQueries(names, plane) : null;
        if (recover) {
            plane.recoverOver(queriesOrNull);
        }
        subjects.add(names.endpointSubjects());
        subjects.add(names.componentSubject());
        plane.onDisconnected("connecting to " + access.address());
        thread = Thread.ofPlatform().daemon().name("kvasir-nats-events").start(this::run);
    }

    private void run() {
        try {
            while (!closed && connection == null) {
                connect();
            }
            while (!closed && !subscribed) {
                awaitSubscriptions();
            }
            while (!closed) {
                plane.onWaiting(dispatcher.getPendingMessageCount());
                plane.tick();
                Thread.sleep(TICK_MS);
            }
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt(); // closing
        }
    }

    private void connect() throws InterruptedException {
        try {
            final Connection made =
                    EventConnections.connect(
                            access, "kvasir-events", this::onConnection, new SlowConsumer());
            dispatcher = made.createDispatcher(this::onMessage);
            dispatcher.setPendingLimits(MOST_WAITING_MESSAGES, MOST_WAITING_BYTES);
            subjects.forEach(dispatcher::subscribe);
            if (queriesOrNull != null) {
                // by the same dispatcher: an answer does not overtake the events before it
                dispatcher.subscribe(queriesOrNull.over(made));
            }
            connection = made;
        } catch (IOException e) {
            plane.onDisconnected(e.getMessage());
            LOG.debug("no NATS yet", e);
            Thread.sleep(CONNECT_PAUSE_MS);
        }
    }

    /** A server that is slow to confirm them is asked again: the connection is not made anew. */
    private void awaitSubscriptions() throws InterruptedException {
        try {
            connection.flush(access.timeout());
            subscribed = true;
            plane.onConnected();
            LOG.info("events come from {} over {}", connection.getConnectedUrl(), subjects);
        } catch (TimeoutException e) {
            plane.onDisconnected(access.address() + ": the subscriptions are not confirmed yet");
            LOG.debug("NATS is slow", e);
            Thread.sleep(CONNECT_PAUSE_MS);
        }
    }

    private void onConnection(Connection which, ConnectionListener.Events event) {
        if (closed || connection == null) {
            return;
        }
        switch (event) {
            case DISCONNECTED -> plane.onDisconnected(access.address() + ": connection lost");
            case RESUBSCRIBED -> {
                if (subscribed) {
                    plane.onConnected();
                }
            }
            default -> {}
        }
    }

    private void onMessage(Message message) {
        if (closed) {
            return;
        }
        if (queriesOrNull != null && queriesOrNull.isAnswer(message)) {
            queriesOrNull.onMessage(message);
            return;
        }
        final byte[] data = message.getData();
        plane.onMessage(data, 0, data.length);
    }

    /** Tells the plane when messages did not fit any more. */
    private final class SlowConsumer implements ErrorListener {
        @Override
        public void slowConsumerDetected(Connection conn, Consumer consumer) {
            plane.onMissed(
                    "the index is slower than the events of NATS: "
                            + consumer.getDroppedCount()
                            + " messages were dropped");
        }
    }

    @Override
    public void close() {
        closed = true;
        thread.interrupt();
        try {
            thread.join(CLOSE_PATIENCE_MS);
            final Connection open = connection;
            if (open != null) {
                open.close();
            }
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
    }
}
