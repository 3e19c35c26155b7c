package io.kvasir.nats.events;

import io.kvasir.nats.ConnectPause;
import io.kvasir.nats.LastingConnection;
import io.kvasir.nats.NatsAccess;
import io.kvasir.nats.ServerErrors;
import io.kvasir.pipeline.source.EventPlane;
import io.kvasir.pipeline.source.PlanePosition;
import io.nats.client.Connection;
import io.nats.client.ConnectionListener;
import io.nats.client.ConsumeOptions;
import io.nats.client.ConsumerContext;
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
import io.nats.client.api.StreamInfo;

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
import java.util.regex.Pattern;

/**
 * Feeds an event plane from the stream of JetStream that publishers write single events to, with a
 * durable consumer: what is published while there is no connection is kept and comes afterwards.
 *
 * <p>A message is acknowledged after its events are in the index, not before. How far the index is
 * the plane keeps with it ({@link EventPlane#keep}), where it outlives the process; a later process
 * has a new consumer that begins after that. So the position is never that of another index, as one
 * at the server can be. Where nothing was kept the consumer begins with the oldest event that the
 * stream has (an hour). A consumer of a name of its own continues after the last acknowledged
 * event; that is right only for an index that is known to have outlived the process with it.
 *
 * <p>The stream is made if it is not there. After each loss of the connection or of a delivery the
 * consumer is made again to begin after the last message that was taken, because JetStream would
 * send what was lost late and out of order. When the plane gets a worker that has spoken before,
 * the consumer is made again to begin with the oldest event. A message that comes again is
 * recognised by its number in the stream. Where nothing comes for {@value #SILENCE_S} s the server
 * is asked whether something waits there: a consumer that does not deliver it, as one whose
 * acknowledgements the server refuses, is made again, too. Where nothing comes it is also asked now
 * and then whether the stream still takes all events. What fails is tried again after a {@link
 * ConnectPause}, which begins anew once all has been read.
 *
 * <p>The plane counts as connected when it has got all that there was when the connection was made.
 * It counts as disconnected when that takes more than {@value #MOST_BEHIND_S} s after the consumer
 * was made again: what workers announce meanwhile comes after all that is read again. {@link
 * #close} may be called by any thread, and twice.
 */
public final class JetStreamEventSource implements AutoCloseable {
    private static final Logger LOG = LoggerFactory.getLogger(JetStreamEventSource.class);
    private static final Pattern DELETED =
            Pattern.compile("(?:consumer|stream) deleted", Pattern.CASE_INSENSITIVE);
    private static final int BATCH = 200; // acknowledged together

    /** So that even the largest messages of a server, 1 MiB by default, fit into a client's 64. */
    private static final int PULL = 64;

    private static final long PULL_EXPIRES_MS = 10_000; // a lost one has no heartbeats
    private static final Duration NEXT = Duration.ofMillis(50);
    private static final Duration INACTIVE = Duration.ofHours(1);
    private static final Duration UNNAMED_INACTIVE = Duration.ofMinutes(5);
    private static final long APPLY_PAUSE_NS = TimeUnit.MICROSECONDS.toNanos(50);
    private static final int MOST_BEHIND_S = 5;
    private static final int SILENCE_S = 5;
    private static final long TICK_NS = TimeUnit.MILLISECONDS.toNanos(20);
    private static final long FITNESS_NS = TimeUnit.SECONDS.toNanos(5);
    private static final long KEEP_NS = TimeUnit.MILLISECONDS.toNanos(200);
    private static final int NOT_FOUND = 404;
    private static final long CLOSE_PATIENCE_MS = 10_000;

    private final NatsAccess access;
    private final EventSubjects names;
    private final int replicas;
    private final String durable;
    private final boolean named;
    private final EventPlane plane;
    private final Thread thread;
    private final List<Message> unacknowledged = new ArrayList<>(BATCH);
    private final ConnectPause pause; // of the thread
    private final ServerErrors errors = new ServerErrors();
    private LastingConnection connection; // of the thread, as all below
    private JetStreamManagement management; // null before the first
    private long fitnessNs; // when the stream was checked last
    private ZonedDateTime streamMade; // null before the first
    private long lastInStream;
    private boolean restored; // and the consumer not yet made to begin there
    private String unfit = ""; // why the stream cannot carry all events
    private long lastDelivery; // of this consumer, 0 before its first
    private boolean caughtUp;
    private boolean behind; // the plane was notified that this takes long
    private long openedNs;
    private long askedNs; // or a message came then
    private boolean stalled; // and the consumer not yet made again
    private boolean waitsThere; // as the server said when it was asked last, and nothing has come
    private long lastTickNs = System.nanoTime();
    private long keptNs = lastTickNs;
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
        this(access, names, EventStreams.ONE_SERVER, durable, plane);
    }

    /**
     * The same where the stream, if it is not there, is made to be kept by several servers.
     *
     * @param access where NATS is
     * @param names whose events
     * @param replicas servers of a cluster that keep the stream, 1..5
     * @param durable name of the consumer; null for a new one
     * @param plane gets the events; not closed by this class
     */
    public JetStreamEventSource(
            NatsAccess access,
            EventSubjects names,
            int replicas,
            String durable,
            EventPlane plane) {
        this(access, names, replicas, durable, plane, null);
    }

    /**
     * The same for a plane whose workers are restored from snapshots.
     *
     * @param access where NATS is
     * @param names whose events
     * @param replicas servers of a cluster that keep the stream, 1..5
     * @param durable name of the consumer, null for a new one; one of that name is made anew
     * @param plane gets the events; not closed by this class
     * @param startOrNull the message after which to begin; null to begin as above
     */
    public JetStreamEventSource(
            NatsAccess access,
            EventSubjects names,
            int replicas,
            String durable,
            EventPlane plane,
            StreamPosition startOrNull) {
        this(access, names, replicas, durable, plane, startOrNull, new ConnectPause());
    }

    JetStreamEventSource(
            NatsAccess access,
            EventSubjects names,
            int replicas,
            String durable,
            EventPlane plane,
            StreamPosition startOrNull,
            ConnectPause pause) {
        this.pause = pause;
        this.replicas = EventStreams.checkReplicas(replicas);
        this.access = Objects.requireNonNull(access);
        this.names = Objects.requireNonNull(names);
        this.plane = Objects.requireNonNull(plane);
        this.named = durable != null;
        this.durable = named ? durable : UUID.randomUUID().toString();
        plane.keepsMessages();
        final PlanePosition kept = plane.keptBeforeOrNull();
        if (startOrNull != null) {
            beginBehind(startOrNull);
            plane.onResumed(startOrNull.ofPlane()); // a worker's own section may be behind
        } else if (kept != null && !named) {
            beginBehind(StreamPosition.of(kept));
            plane.onResumed(kept);
        }
        plane.onDisconnected("connecting to " + access.address());
        thread = Thread.ofPlatform().daemon().name("kvasir-nats-stream").start(this::run);
    }

    private void beginBehind(StreamPosition start) {
        restored = true;
        streamMade = start.made();
        lastInStream = start.sequence();
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
                    plane.onDisconnected(access.at(reason(e)));
                    LOG.debug("{} cannot be read now", names.stream(), e);
                    plane.tick();
                    pause.await();
                }
            }
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt(); // closing
        }
        end();
    }

    private String reason(Exception e) {
        return e instanceof JetStreamStatusCheckedException
                        && DELETED.matcher(String.valueOf(e.getMessage())).find()
                ? "consumer "
                        + durable
                        + " of stream "
                        + names.stream()
                        + " was deleted, maybe with the stream; both are made anew"
                : errors.reason(e, access.timeout());
    }

    /** Opens stream and consumer, then takes messages until something fails or closes. */
    private void follow()
            throws IOException,
                    JetStreamApiException,
                    JetStreamStatusCheckedException,
                    InterruptedException {
        if (connection == null) {
            connection =
                    EventConnections.connect(access, "kvasir-events", this::onConnection, errors);
        }
        final ConsumerContext consumer = openConsumer();
        final IterableConsumer messages =
                consumer.iterate(
                        ConsumeOptions.builder()
                                .batchSize(PULL)
                                .expiresIn(PULL_EXPIRES_MS)
                                .build());
        try {
            LOG.info("events come from stream {} by consumer {}", names.stream(), durable);
            while (!closed && !plane.isAgainWanted()) {
                take(messages.nextMessage(NEXT), consumer);
            }
            unacknowledged.clear(); // closing, or they come again
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
        management =
                connection
                        .now()
                        .jetStreamManagement(
                                JetStreamOptions.builder()
                                        .requestTimeout(access.timeout())
                                        .build());
        final StreamInfo stream = EventStreams.open(management, names, replicas);
        checkFitness(stream);
        fitnessNs = System.nanoTime();
        if (streamMade == null
                || !stream.getCreateTime().toInstant().equals(streamMade.toInstant())) {
            begin(stream);
        }
        final long againAfter = plane.beginsAgainAfter();
        final boolean again = againAfter != EventPlane.NOT_AGAIN;
        if (again) {
            lastInStream = againAfter;
        }
        caughtUp = false;
        behind = false;
        openedNs = System.nanoTime();
        askedNs = openedNs;
        waitsThere = false;
        lastDelivery = 0;
        final ConsumerInfo before = consumer();
        if (before == null) {
            create(lastInStream + 1);
        } else if (again
                || restored
                || stalled
                || lastInStream > 0
                || before.getNumAckPending() > 0) {
            // what was sent and not taken would come again late, and out of order
            final long acknowledged =
                    again || restored ? 0 : before.getAckFloor().getStreamSequence();
            final long taken = Math.max(lastInStream, acknowledged);
            management.deleteConsumer(names.stream(), durable);
            create(taken + 1);
        } else {
            lastDelivery = before.getDelivered().getConsumerSequence();
        }
        restored = false;
        stalled = false;
        look(stream);
        return connection.now().getStreamContext(names.stream()).getConsumerContext(durable);
    }

    /** The stream is read from its beginning: it is the first one here, or was made anew. */
    private void begin(StreamInfo stream) throws InterruptedException {
        awaitApplied(); // what is on its way to the index has numbers of the former one
        final boolean anew = streamMade != null;
        final long lastOfFormer = lastInStream;
        streamMade = stream.getCreateTime();
        lastInStream = 0;
        plane.onRenumbered(StreamPosition.store(streamMade));
        plane.keep();
        if (anew) {
            final String lost =
                    "stream "
                            + names.stream()
                            + " was made anew at "
                            + streamMade.toInstant()
                            + ": what was published after message "
                            + lastOfFormer
                            + " of the former one may be missing";
            LOG.warn("{}; each worker is stale until its next event", lost);
            plane.onMissed(lost);
        }
    }

    private void checkFitness(StreamInfo stream) {
        final String now =
                StreamFitness.problem(
                        stream, names, List.of(names.streamSubject(), names.oldStreamSubject()));
        if (!now.equals(unfit)) {
            final String before = unfit;
            unfit = now;
            plane.onFit(now);
            if (now.isEmpty()) {
                LOG.info("stream {} takes all events again", names.stream());
                plane.onMissed(before + " (until now)"); // since the last event that it has taken
            } else {
                LOG.warn("events may be missing: {}", now);
                plane.onMissed(now);
            }
        }
    }

    /** Finds out what the stream has, and whether that is all that came after the last message. */
    private void look(StreamInfo stream) {
        final long first = stream.getStreamState().getFirstSequence();
        plane.keptFrom(first);
        checkFollows(first);
    }

    /** The stream may have dropped messages before they were read, and deliveries do not say it. */
    private void checkFollows(long next) {
        if (lastInStream > 0 && next > lastInStream + 1) {
            plane.onMissed(
                    "stream "
                            + names.stream()
                            + " no longer has its messages "
                            + (lastInStream + 1)
                            + ".."
                            + (next - 1));
            lastInStream = next - 1;
        }
    }

    private void create(long from) throws IOException, JetStreamApiException {
        final ConsumerConfiguration.Builder consumer =
                ConsumerConfiguration.builder()
                        .durable(durable)
                        .ackPolicy(AckPolicy.Explicit)
                        .inactiveThreshold(named ? INACTIVE : UNNAMED_INACTIVE);
        if (from > 1) {
            consumer.deliverPolicy(DeliverPolicy.ByStartSequence).startSequence(from);
        } else {
            consumer.deliverPolicy(DeliverPolicy.All);
        }
        management.addOrUpdateConsumer(names.stream(), consumer.build());
    }

    /** The consumer as it is; null if there is none. */
    private ConsumerInfo consumer() throws IOException, JetStreamApiException {
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
        tick();
        if (reconnected) {
            reconnected = false;
            throw new IOException("the connection was lost");
        }
        if (message == null) {
            plane.onWaiting(0);
            checkSilence(consumer);
            checkStream();
        } else {
            askedNs = System.nanoTime();
            waitsThere = false;
            plane.onWaiting(message.metaData().pendingCount());
            pass(message);
            if (unacknowledged.size() < BATCH && message.metaData().pendingCount() > 0) {
                return;
            }
        }
        acknowledge();
        plane.settle();
        keep(message == null);
        if (!caughtUp && isCaughtUp(message, consumer)) {
            caughtUp = true;
            pause.connected();
            plane.onCaughtUp();
        }
    }

    /** Others may edit the stream, or fill it up, and then nothing may come any more. */
    private void checkStream() throws IOException, JetStreamApiException {
        final long now = System.nanoTime();
        if (now - fitnessNs >= FITNESS_NS) {
            fitnessNs = now;
            checkFitness(management.getStreamInfo(names.stream()));
        }
    }

    /** Nothing may come because nothing is there, or because it is not delivered. */
    private void checkSilence(ConsumerContext consumer) throws IOException, JetStreamApiException {
        if (System.nanoTime() - askedNs < TimeUnit.SECONDS.toNanos(SILENCE_S)) {
            return;
        }
        final ConsumerInfo info = consumer.getConsumerInfo();
        askedNs = System.nanoTime();
        final boolean waitedBefore = waitsThere;
        waitsThere = info.getNumPending() > 0;
        if (waitedBefore && waitsThere) {
            stalled = true;
            throw new IOException(
                    "the server delivers nothing although "
                            + info.getNumPending()
                            + " messages of "
                            + names.stream()
                            + " wait for it, and "
                            + info.getNumAckPending()
                            + " are not acknowledged");
        }
    }

    /** Has the plane keep how far the index is: at once where nothing comes, else now and then. */
    private void keep(boolean isQuiet) {
        final long now = System.nanoTime();
        if (isQuiet || now - keptNs >= KEEP_NS) {
            keptNs = now;
            plane.keep();
        }
    }

    /** Not for each message: there may be many streams. */
    private void tick() {
        final long now = System.nanoTime();
        if (now - lastTickNs >= TICK_NS) {
            lastTickNs = now;
            if (!caughtUp && !behind && now - openedNs > TimeUnit.SECONDS.toNanos(MOST_BEHIND_S)) {
                behind = true;
                plane.onDisconnected(
                        access.address()
                                + ": what the stream keeps is read first, and not yet all");
            }
            plane.tick();
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
        if (delivery > lastDelivery + 1) { // also before the first that has arrived
            throw new IOException("delivery " + (lastDelivery + 1) + " has not arrived");
        }
        lastDelivery = delivery;
        final long inStream = message.metaData().streamSequence();
        checkFollows(inStream);
        final byte[] data = message.getData();
        plane.onKept(data, 0, data.length, inStream, PublisherHeader.read(message));
        lastInStream = Math.max(lastInStream, inStream); // one that comes again is an earlier one
        unacknowledged.add(message);
    }

    /** Acknowledges all messages that were taken, as soon as the index has them. */
    private void acknowledge() throws InterruptedException {
        if (unacknowledged.isEmpty()) {
            return;
        }
        awaitApplied();
        unacknowledged.forEach(Message::ack);
        unacknowledged.clear();
    }

    private void awaitApplied() throws InterruptedException {
        while (!plane.isApplied()) {
            if (closed || Thread.interrupted()) {
                throw new InterruptedException();
            }
            LockSupport.parkNanos(APPLY_PAUSE_NS);
            tick(); // an event that waits for the one before it waits no longer than it may
        }
    }

    private void end() {
        final boolean interrupted = Thread.interrupted();
        try {
            if (connection != null) {
                if (!named) {
                    connection.now().jetStreamManagement().deleteConsumer(names.stream(), durable);
                }
                connection.now().flush(access.timeout());
            }
        } catch (IOException | JetStreamApiException | IllegalStateException e) {
            LOG.debug("consumer {} stays until it is inactive for some minutes", durable, e);
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
            connection.close();
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
