package io.kvasir.nats.replica;

import io.kvasir.nats.ConnectPause;
import io.kvasir.nats.LastingConnection;
import io.kvasir.nats.NatsAccess;
import io.kvasir.nats.ServerErrors;
import io.kvasir.router.replica.ReplicaLink;
import io.kvasir.router.replica.ReplicaMessage;
import io.nats.client.Connection;
import io.nats.client.Consumer;
import io.nats.client.Dispatcher;
import io.nats.client.Message;
import io.nats.client.Options;

import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

import java.io.IOException;
import java.security.SecureRandom;
import java.time.Clock;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.TimeoutException;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicLong;

/**
 * A link over NATS core. It connects by itself, also when NATS comes later, and again whenever the
 * connection is lost; what is sent meanwhile is dropped and counted, as old news would only come
 * late. Where messages come faster than they are read, the newest are dropped and counted.
 */
public final class NatsReplicaLink implements ReplicaLink {
    private static final Logger LOG = LoggerFactory.getLogger(NatsReplicaLink.class);
    private static final int NO_BUFFER = 0;
    private static final int MAX_OUTGOING = 65_536;
    private static final long MAX_PENDING_MESSAGES = 65_536;
    private static final long MAX_PENDING_BYTES = 64L << 20;
    private static final Duration RECENTLY = Duration.ofSeconds(10); // longer than between digests
    private static final long PUBLISHER_IDS = (1L << 53) - 1;

    private final ReplicaCodec codec;
    private final ReplicaSubjects subjects;
    private final long publisherId = new SecureRandom().nextLong() & PUBLISHER_IDS;
    private final Clock clock = Clock.systemUTC();
    private final AtomicLong published = new AtomicLong();
    private final AtomicLong unread = new AtomicLong();
    private final AtomicLong formerlyDropped = new AtomicLong(); // by dispatchers before this one
    private final AtomicBoolean unreadLogged = new AtomicBoolean();
    private final Errors errors = new Errors();
    private final Options.Builder options;
    private final NatsAccess access;
    private final Thread connector;
    private volatile java.util.function.Consumer<ReplicaMessage> receiver;
    private volatile LastingConnection connection; // null before the first
    private volatile Dispatcher dispatcher; // null before start and connection
    private volatile String refusal = "";
    private volatile boolean closed;

    /**
     * Prepares a link; {@link #start} connects.
     *
     * @param config where NATS is, and the fleet
     * @throws IllegalArgumentException if a server's address is none
     */
    public NatsReplicaLink(NatsReplicaConfig config) {
        codec = new ReplicaCodec(config.form(), config.blockSize());
        subjects = new ReplicaSubjects(config.namespace(), config.component(), config.endpoint());
        access = config.access();
        options =
                access.options("kvasir-replica-sync")
                        .reconnectBufferSize(NO_BUFFER)
                        .maxMessagesInOutgoingQueue(MAX_OUTGOING)
                        .discardMessagesWhenOutgoingQueueFull()
                        .noEcho()
                        .errorListener(errors);
        connector =
                Thread.ofPlatform().daemon().name("kvasir-replica-nats").unstarted(this::connect);
    }

    @Override
    public void start(java.util.function.Consumer<ReplicaMessage> to) {
        receiver = to;
        connector.start();
    }

    /** Connects for the first time; from then on the client does it. */
    private void connect() {
        final ConnectPause connecting = new ConnectPause();
        boolean warned = false;
        while (!closed) {
            try {
                opened(LastingConnection.make(options, (_, _) -> {}, this::subscribe));
                return;
            } catch (IOException e) {
                refusal = access.address() + " cannot be reached: " + e.getMessage();
                if (!warned) {
                    LOG.warn("no replica sync yet: {}", refusal);
                }
                warned = true;
                pause(connecting);
            } catch (InterruptedException e) {
                return; // closing
            }
        }
    }

    private static void pause(ConnectPause connecting) {
        try {
            connecting.await();
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt(); // closing
        }
    }

    private synchronized void opened(LastingConnection made) {
        if (closed) {
            made.close();
            return;
        }
        connection = made;
        refusal = "";
    }

    private void subscribe(Connection made) throws InterruptedException {
        final Dispatcher receiving = made.createDispatcher(this::received);
        receiving.setPendingLimits(MAX_PENDING_MESSAGES, MAX_PENDING_BYTES);
        subjects.read().forEach(receiving::subscribe);
        flush(made); // from now on the server knows what is subscribed here
        final Dispatcher former = dispatcher;
        if (former != null) {
            formerlyDropped.getAndAdd(former.getDroppedCount());
        }
        dispatcher = receiving;
    }

    private void flush(Connection made) throws InterruptedException {
        try {
            made.flush(access.timeout());
        } catch (TimeoutException | IllegalStateException e) {
            LOG.debug("the connection was lost at once", e); // and comes again by itself
        }
    }

    private void received(Message message) {
        try {
            if (message.getSubject().endsWith(ReplicaSubjects.FLEET_TOPIC)) {
                final ReplicaMessage read = ReplicaCodec.readFleet(message.getData());
                if (read != null && !closed) {
                    receiver.accept(read);
                }
            } else {
                for (ReplicaMessage read : codec.readBookings(message.getData())) {
                    if (!closed) {
                        receiver.accept(read);
                    }
                }
            }
        } catch (IOException e) {
            unread.getAndIncrement();
            if (unreadLogged.compareAndSet(false, true)) {
                LOG.warn(
                        "a message on {} cannot be read; further ones are only counted",
                        message.getSubject(),
                        e);
            }
        }
    }

    @Override
    public boolean send(ReplicaMessage message) {
        if (closed || !isConnected()) {
            return false;
        }
        final Connection to = connection.now();
        try {
            if (message instanceof ReplicaMessage.OfBooking booking) {
                to.publish(
                        subjects.bookings(),
                        codec.booking(
                                booking, publisherId, published.getAndIncrement(), clock.millis()));
            } else {
                to.publish(subjects.fleet(), ReplicaCodec.fleet(message));
            }
            return true;
        } catch (IllegalArgumentException e) {
            errors.refused(
                    to,
                    "bookings or digests that are longer than its max_payload of "
                            + to.getMaxPayload()
                            + " bytes, which must be higher: they are not shared");
            return false;
        } catch (IllegalStateException e) { // closed, full
            return false;
        }
    }

    /** Whether NATS is there at this moment. */
    public boolean isConnected() {
        final LastingConnection now = connection;
        return now != null && now.isConnected();
    }

    @Override
    public boolean wasConnected() {
        return connection != null;
    }

    @Override
    public String problem() {
        if (closed) {
            return "";
        }
        if (connection == null) {
            return refusal.isEmpty() ? "connecting to " + access.address() : refusal;
        }
        final String lasting = errors.essential();
        if (!lasting.isEmpty()) {
            return access.address() + ": " + lasting;
        }
        if (!isConnected()) {
            return access.address() + ": connection lost";
        }
        final String text = errors.refusal(RECENTLY);
        return text.isEmpty() ? "" : access.address() + ": " + text;
    }

    @Override
    public long dropped() {
        final Dispatcher receiving = dispatcher;
        return formerlyDropped.get() + (receiving == null ? 0 : receiving.getDroppedCount());
    }

    @Override
    public long unreadable() {
        return unread.get();
    }

    @Override
    public void close() {
        final LastingConnection open;
        synchronized (this) {
            if (closed) {
                return;
            }
            closed = true;
            open = connection;
        }
        connector.interrupt();
        if (open == null) {
            return;
        }
        try {
            open.now().flushBuffer(); // what was sent last says that this router leaves
        } catch (IOException | RuntimeException e) {
            LOG.debug("the last messages were not sent", e);
        }
        open.close();
    }

    /** The client's errors: what they cost is counted elsewhere. */
    private final class Errors extends ServerErrors {
        @Override
        protected String essential() {
            for (String subject : subjects.read()) {
                final String text = refusedAll(List.of(subject));
                if (!text.isEmpty()) {
                    return text;
                }
            }
            return "";
        }

        @Override
        public void slowConsumerDetected(Connection conn, Consumer consumer) {
            LOG.warn("replica sync is too slow: messages of other routers are dropped");
        }
    }
}
