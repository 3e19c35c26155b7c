package io.kvasir.nats.events;

import io.kvasir.nats.NatsAccess;
import io.kvasir.pipeline.source.LoadPlane;
import io.nats.client.Connection;
import io.nats.client.Dispatcher;
import io.nats.client.ErrorListener;
import io.nats.client.Message;

import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

import java.io.IOException;
import java.util.LinkedHashSet;
import java.util.Objects;
import java.util.Set;

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
    private static final long CONNECT_PAUSE_MS = 500;
    private static final long MOST_WAITING_MESSAGES = 10_000;
    private static final long MOST_WAITING_BYTES = 4L << 20;
    private static final long CLOSE_PATIENCE_MS = 10_000;

    private final NatsAccess access;
    private final Set<String> subjects = new LinkedHashSet<>();
    private final LoadPlane plane;
    private final Thread thread;
    private volatile Connection connection; // null before the first
    private volatile boolean closed;

    /**
     * Begins to connect; does not wait for it.
     *
     * @param access where NATS is
     * @param names whose reports, whatever their topic
     * @param plane gets them
     */
    public NatsLoadSource(NatsAccess access, EventSubjects names, LoadPlane plane) {
        this.access = Objects.requireNonNull(access);
        this.plane = Objects.requireNonNull(plane);
        final EventSubjects loads = names.about(EventSubjects.KV_METRICS);
        subjects.add(loads.endpointSubjects());
        subjects.add(loads.componentSubject());
        thread = Thread.ofPlatform().daemon().name("kvasir-nats-loads").start(this::run);
    }

    private void run() {
        try {
            while (!closed && connection == null) {
                connect();
            }
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt(); // closing
        }
    }

    private void connect() throws InterruptedException {
        try {
            final Connection made =
                    EventConnections.connect(
                            access, "kvasir-loads", (_, _) -> {}, new ErrorListener() {});
            final Dispatcher dispatcher = made.createDispatcher(this::onMessage);
            dispatcher.setPendingLimits(MOST_WAITING_MESSAGES, MOST_WAITING_BYTES);
            subjects.forEach(dispatcher::subscribe);
            connection = made;
            LOG.info("load reports come from {} over {}", made.getConnectedUrl(), subjects);
        } catch (IOException e) {
            LOG.debug("no NATS yet", e);
            Thread.sleep(CONNECT_PAUSE_MS);
        }
    }

    private void onMessage(Message message) {
        if (!closed) {
            final byte[] data = message.getData();
            plane.onMessage(data, 0, data.length);
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
