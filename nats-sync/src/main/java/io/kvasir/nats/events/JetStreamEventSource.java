package io.kvasir.nats.events;

import io.kvasir.nats.NatsAccess;
import io.kvasir.pipeline.source.EventPlane;
import io.nats.client.Connection;
import io.nats.client.ConnectionListener;
import io.nats.client.ConsumeOptions;
import io.nats.client.ConsumerContext;
import io.nats.client.ErrorListener;
import io.nats.client.IterableConsumer;
import io.nats.client.JetStreamApiException;
import io.nats.client.JetStreamManagement;
import io.nats.client.JetStreamOptions;
import io.nats.client.JetStreamStatusCheckedException;
import io.nats.client.Message;
import io.nats.client.api.AckPolicy;
import io.nats.client.api.ConsumerConfiguration;
import io.nats.client.api.ConsumerInfo;
import io.nats.client.api.DeliverPolicy;

import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

import java.io.IOException;
import java.time.Duration;
import java.time.ZonedDateTime;
import java.util.ArrayList;
import java.util.List;
import java.util.Objects;
import java.util.UUID;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.concurrent.locks.LockSupport;

/**
 * Feeds an event plane from the stream of JetStream that publishers write single events to, with a
 * durable consumer: what is published while there is no connection is kept and comes afterwards.
 *
 * <p>A message is acknowledged after its events are in the index, not before: a consumer of a name
 * of its own goes on behind the last event that the index had. That is right only for an index that
 * has outlived the process; an index that is new needs a consumer that is new, which begins with
 * the oldest event that the stream keeps (an hour). Without a name there is a new one, which goes
 * with this source.
 *
 * <p>The stream is made if it is not there. After each loss of the connection or of a delivery the
 * consumer is made again to begin behind the last message that was taken, because JetStream would
 * send what was lost late and out of order. A message that comes again is recognised by its number
 * in the stream.
 *
 * <p>The plane counts as connected when it has got all that there was when the connection was made.
 * {@link #close} may be called by any thread, and twice.
 */
public final class JetStreamEventSource implements AutoCloseable {
    private static final Logger LOG = LoggerFactory.getLogger(JetStreamEventSource.class);
    private static final int BATCH = 200;
    private static final long PULL_EXPIRES_MS = 30_000;
    private static final Duration NEXT = Duration.ofMillis(50);
    private static final Duration INACTIVE = Duration.ofHours(1);
    private static final long RETRY_PAUSE_MS = 500;
    private static final long APPLY_PAUSE_NS = TimeUnit.MICROSECONDS.toNanos(50);
    private static final int NOT_FOUND = 404;
    private static final long CLOSE_PATIENCE_MS = 10_000;

    private final NatsAccess access;
    private final EventSubjects names;
    private final String durable;
    private final boolean named;
    private final EventPlane plane;
    private final Thread thread;
    private final List<Message> unacknowledged = new ArrayList<>(BATCH);
    private Connection connection; // of the thread, as all below
    private ZonedDateTime streamMade;
    private long lastInStream;
    private long lastDelivery; // of this consumer, 0 before the first
    private boolean caughtUp;
    private volatile boolean reconnected;
    private volatile boolean closed;

    /**
     * Begins to connect; does not wait for it.
     *
     * @param access where NATS is
     * @param names whose events
     * @param durable name of the consumer, to go on where one of that name ended; null for a new
     *     one
     * @param plane gets the events; not closed by this class
     */
    public JetStreamEventSource(
            NatsAccess access, EventSubjects names, String durable, EventPlane plane) {
        this.access = Objects.requireNonNull(access);
        this.names = Objects.requireNonNull(names);
        this.plane = Objects.requireNonNull(plane);
        this.named = durable != null;
        this.durable = named ? durable : UUID.randomUUID().toString();
        plane.onDisconnected("connecting to " + access.address());
        thread = Thread.ofPlatform().daemon().name("kvasir-nats-stream").start(this::run);
    }

    /** Name of the consumer. */
    public String durable() {
        return durable;
    }

    private void run() {
        try {
            while (!closed) {
                try {
                    follow();
                } catch (IOException
                        | JetStreamApiException
                        | JetStreamStatusCheckedException
                        | IllegalStateException e) {
                    unacknowledged.clear(); // they come again
                    caughtUp = false;
                    plane.onDisconnected(access.address() + ": " + e.getMessage());
                    LOG.debug("{} cannot be read now", names.stream(), e);
                    plane.tick();
                    Thread.sleep(RETRY_PAUSE_MS);
                }
            }
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt(); // closing
        }
        end();
    }

    /** Opens stream and consumer, then takes messages until something fails or closes. */
    private void follow()
            throws IOException,
                    JetStreamApiException,
                    JetStreamStatusCheckedException,
                    InterruptedException {
        if (connection == null) {
            connection =
                    EventConnections.connect(
                            access, "kvasir-events", this::onConnection, new ErrorListener() {});
        }
        final ConsumerContext consumer = openConsumer();
        final IterableConsumer messages =
                consumer.iterate(
                        ConsumeOptions.builder()
                                .batchSize(BATCH)
                                .expiresIn(PULL_EXPIRES_MS)
                                .build());
        try {
            LOG.info("events come from stream {} by consumer {}", names.stream(), durable);
            while (!closed) {
                take(messages.nextMessage(NEXT), consumer);
            }
        } finally {
            messages.stop();
        }
    }

    private void onConnection(Connection which, ConnectionListener.Events event) {
        switch (event) {
            case DISCONNECTED -> plane.onDisconnected(access.address() + ": connection lost");
            case RECONNECTED -> reconnected = true;
            default -> {}
        }
    }

    private ConsumerContext openConsumer()
            throws IOException, JetStreamApiException, InterruptedException {
        final JetStreamManagement management =
                connection.jetStreamManagement(
                        JetStreamOptions.builder().requestTimeout(access.timeout()).build());
        final ZonedDateTime made = EventStreams.open(management, names);
        if (!made.equals(streamMade)) {
            streamMade = made; // its numbers are others
            lastInStream = 0;
        }
        caughtUp = false;
        lastDelivery = 0;
        final ConsumerInfo before = consumer(management);
        if (before == null) {
            create(management, lastInStream + 1);
        } else if (lastInStream > 0 || before.getNumAckPending() > 0) {
            // what was sent and not taken would come again late, and out of order
            final long taken = Math.max(lastInStream, before.getAckFloor().getStreamSequence());
            management.deleteConsumer(names.stream(), durable);
            create(management, taken + 1);
        }
        return connection.getStreamContext(names.stream()).getConsumerContext(durable);
    }

    private void create(JetStreamManagement management, long from)
            throws IOException, JetStreamApiException {
        final ConsumerConfiguration.Builder consumer =
                ConsumerConfiguration.builder()
                        .durable(durable)
                        .ackPolicy(AckPolicy.Explicit)
                        .inactiveThreshold(INACTIVE);
        if (from > 1) {
            consumer.deliverPolicy(DeliverPolicy.ByStartSequence).startSequence(from);
        } else {
            consumer.deliverPolicy(DeliverPolicy.All);
        }
        management.addOrUpdateConsumer(names.stream(), consumer.build());
    }

    /** The consumer as it is; null if there is none. */
    private ConsumerInfo consumer(JetStreamManagement management)
            throws IOException, JetStreamApiException {
        try {
            return management.getConsumerInfo(names.stream(), durable);
        } catch (JetStreamApiException e) {
            if (e.getErrorCode() == NOT_FOUND) {
                return null;
            }
            throw e;
        }
    }

    /** Takes a message, or acknowledges what was taken when there is none now. */
    private void take(Message message, ConsumerContext consumer)
            throws IOException, JetStreamApiException, InterruptedException {
        plane.tick();
        if (reconnected) {
            reconnected = false;
            throw new IOException("the connection was lost");
        }
        if (message != null) {
            pass(message);
            if (unacknowledged.size() < BATCH && message.metaData().pendingCount() > 0) {
                return;
            }
        }
        acknowledge();
        if (!caughtUp && isCaughtUp(message, consumer)) {
            caughtUp = true;
            plane.onCaughtUp();
        }
    }

    private static boolean isCaughtUp(Message message, ConsumerContext consumer)
            throws IOException, JetStreamApiException {
        if (message != null) {
            return message.metaData().pendingCount() == 0;
        }
        final ConsumerInfo info = consumer.getConsumerInfo();
        return info.getNumPending() == 0 && info.getNumAckPending() == 0;
    }

    private void pass(Message message) throws IOException {
        final long delivery = message.metaData().consumerSequence();
        if (delivery > lastDelivery + 1 && lastDelivery > 0) {
            throw new IOException("delivery " + (lastDelivery + 1) + " has not arrived");
        }
        lastDelivery = delivery;
        final long inStream = message.metaData().streamSequence();
        if (inStream > lastInStream) {
            final byte[] data = message.getData();
            plane.onMessage(data, 0, data.length);
            lastInStream = inStream;
        }
        unacknowledged.add(message);
    }

    /** Acknowledges all messages that were taken, as soon as the index has them. */
    private void acknowledge() throws InterruptedException {
        if (unacknowledged.isEmpty()) {
            return;
        }
        while (!plane.isApplied()) {
            if (closed || Thread.interrupted()) {
                throw new InterruptedException();
            }
            LockSupport.parkNanos(APPLY_PAUSE_NS);
        }
        unacknowledged.forEach(Message::ack);
        unacknowledged.clear();
    }

    private void end() {
        final boolean interrupted = Thread.interrupted();
        try {
            if (connection != null) {
                if (!named) {
                    connection.jetStreamManagement().deleteConsumer(names.stream(), durable);
                }
                connection.flush(access.timeout());
            }
        } catch (IOException | JetStreamApiException | IllegalStateException e) {
            LOG.debug("consumer {} stays until it is inactive for an hour", durable, e);
        } catch (TimeoutException | InterruptedException e) {
            LOG.debug("the last acknowledgements may come late", e);
        } finally {
            closeConnection();
            if (interrupted) {
                Thread.currentThread().interrupt();
            }
        }
    }

    private void closeConnection() {
        if (connection != null) {
            try {
                connection.close();
            } catch (InterruptedException e) {
                Thread.currentThread().interrupt();
            }
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
    }
}
