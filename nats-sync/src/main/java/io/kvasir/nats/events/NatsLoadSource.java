package io.kvasir.nats.events;

import io.kvasir.nats.NatsAccess;
import io.kvasir.pipeline.source.LoadPlane;
import io.nats.client.Message;

import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

import java.util.Objects;

/**
 * Feeds load reports from core NATS, where publishers of an event plane send them whatever keeps
 * their events. Connects by itself, now and again, without an end. What is missed, or dropped while
 * more waits than may, is no loss: a report is followed by the next one, or ends by its time to
 * live.
 *
 * <p>{@link #close} may be called by any thread, and twice.
 */
public final class NatsLoadSource implements AutoCloseable {
    private static final Logger LOG = LoggerFactory.getLogger(NatsLoadSource.class);
    private static final long MOST_WAITING_MESSAGES = 10_000;
    private static final long MOST_WAITING_BYTES = 4L << 20;

    private final LoadPlane plane;
    private final CoreSubscriber subscriber;

    /**
     * Begins to connect; does not wait for it.
     *
     * @param access where NATS is
     * @param names whose reports, whatever their topic
     * @param plane gets them
     */
    public NatsLoadSource(NatsAccess access, EventSubjects names, LoadPlane plane) {
        this.plane = Objects.requireNonNull(plane);
        subscriber =
                new CoreSubscriber(
                        access,
                        "loads",
                        names.about(EventSubjects.KV_METRICS),
                        MOST_WAITING_MESSAGES,
                        MOST_WAITING_BYTES,
                        new Reader());
        subscriber.start();
    }

    /** Gives the plane what comes. */
    private final class Reader implements CoreSubscriber.Reader {
        @Override
        public void run() {
            LOG.info(
                    "load reports come from {} over {}",
                    NatsAccess.addressOf(subscriber.connection()),
                    subscriber.subjects());
        }

        @Override
        public void onMessage(Message message) {
            final byte[] data = message.getData();
            plane.onMessage(data, 0, data.length);
        }
    }

    @Override
    public void close() {
        subscriber.close();
    }
}
