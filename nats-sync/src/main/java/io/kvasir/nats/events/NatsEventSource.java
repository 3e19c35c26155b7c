package io.kvasir.nats.events;

import io.kvasir.nats.NatsAccess;
import io.kvasir.pipeline.source.EventPlane;
import io.nats.client.Connection;
import io.nats.client.ConnectionListener;
import io.nats.client.Dispatcher;
import io.nats.client.Message;

import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

import java.util.Objects;
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
    private static final long MOST_WAITING_MESSAGES = 500_000;
    private static final long MOST_WAITING_BYTES = 256L << 20;

    private final NatsAccess access;
    private final EventPlane plane;
    private final RecoveryQueries queriesOrNull; // null where nothing is asked
    private final CoreSubscriber subscriber;

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
        plane.onDisconnected("connecting to " + access.address());
        subscriber =
                new CoreSubscriber(
                        access,
                        "events",
                        names,
                        MOST_WAITING_MESSAGES,
                        MOST_WAITING_BYTES,
                        new Reader());
        subscriber.start();
    }

    /** Gives the plane what comes, and says how the connection is. */
    private final class Reader implements CoreSubscriber.Reader {
        private volatile boolean subscribed; // the server has confirmed it, once

        @Override
        public synchronized void onRefused(String why) {
            plane.onDisconnected(why);
        }

        /** What the server refuses it says at any time from the subscription on. */
        private synchronized void onSubscribed() {
            if (subscriber.refusal().isEmpty()) {
                plane.onConnected();
            }
        }

        @Override
        public void subscribe(Connection made, Dispatcher to) {
            if (queriesOrNull != null) {
                // by the same dispatcher: an answer does not overtake the events before it
                to.subscribe(queriesOrNull.over(made));
            }
        }

        @Override
        public void run() throws InterruptedException {
            while (!subscriber.isClosed() && !subscribed) {
                awaitSubscriptions(subscriber.connection());
            }
            while (!subscriber.isClosed()) {
                plane.onWaiting(subscriber.waiting());
                plane.tick();
                Thread.sleep(TICK_MS);
            }
        }

        /** A server that is slow to confirm them is asked again: the connection stays. */
        private void awaitSubscriptions(Connection connection) throws InterruptedException {
            try {
                connection.flush(access.timeout());
                subscribed = true;
                onSubscribed();
                LOG.info(
                        "events come from {} over {}",
                        NatsAccess.addressOf(connection),
                        subscriber.subjects());
            } catch (TimeoutException | IllegalStateException e) { // closed: it is made anew
                plane.onDisconnected(
                        access.address() + ": the subscriptions are not confirmed yet");
                LOG.debug("NATS is slow", e);
                Thread.sleep(CoreSubscriber.PAUSE_MS);
            }
        }

        @Override
        public void onConnection(ConnectionListener.Events event) {
            switch (event) {
                case DISCONNECTED -> onRefused(lost());
                case RESUBSCRIBED -> {
                    if (subscribed) {
                        onSubscribed();
                    }
                }
                default -> {}
            }
        }

        /** One that is refused is made again until it is not. */
        private String lost() {
            final String refusal = subscriber.refusal();
            return refusal.isEmpty() ? access.address() + ": connection lost" : refusal;
        }

        @Override
        public void onMessage(Message message) {
            if (queriesOrNull != null && queriesOrNull.isAnswer(message)) {
                queriesOrNull.onMessage(message);
                return;
            }
            final byte[] data = message.getData();
            plane.onMessage(data, 0, data.length);
        }

        @Override
        public void onDropped(long count) {
            plane.onMissed(
                    "the index is slower than the events of NATS: "
                            + count
                            + " messages were dropped");
        }
    }

    @Override
    public void close() {
        subscriber.close();
    }
}
