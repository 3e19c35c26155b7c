package io.kvasir.pipeline.source;

import io.kvasir.pipeline.wire.DropReason;
import io.kvasir.pipeline.wire.RouterMessage;

import org.agrona.collections.Int2ObjectHashMap;
import org.agrona.collections.Long2ObjectHashMap;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

import java.util.HashSet;
import java.util.Objects;
import java.util.Set;
import java.util.concurrent.TimeUnit;
import java.util.function.Consumer;

/**
 * Takes the messages of one subscription to an event plane, in which many publishers speak of many
 * workers, and passes each event to the stream of its worker and rank. Knows no transport: the
 * owner of one calls {@link #onMessage} for what arrives, and says when the connection is lost.
 *
 * <p>A stream follows the numbers of its events; a plane follows the numbers of each publisher's
 * messages, so that a message lost at the end of a worker's events is noticed when the publisher
 * speaks of another. Where messages are missing, the streams of that publisher are stale until
 * their next event, whose number says whether any was theirs. When another publisher takes a worker
 * over and does not go on with its numbers, the worker has begun a new life.
 *
 * <p>Events of workers without a stream are counted, and offered to the {@link Registrar} each
 * time.
 *
 * <p>Any thread may call any method; a lock orders them. Messages must come in the order in which
 * they were received, so one thread should deliver them. It waits while the index's ring is full.
 */
public final class EventPlane {
    /** Is asked for the stream of a worker that speaks and has none. */
    @FunctionalInterface
    public interface Registrar {
        /**
         * Called with the plane's lock held: must be short, and must not wait for another thread.
         *
         * @param workerId the worker, 64 unsigned bits
         * @param dpRank its data-parallel rank
         * @return its stream, which is then registered; null to leave the event out
         */
        EngineStream unknown(long workerId, int dpRank);
    }

    /** Registers nothing: only workers that are known beforehand are followed. */
    public static final Registrar KNOWN_ONLY = (workerId, dpRank) -> null;

    private static final Logger LOG = LoggerFactory.getLogger(EventPlane.class);
    private static final int LINES = 10;
    private static final long LINES_PERIOD_NS = TimeUnit.SECONDS.toNanos(10);
    private static final long NONE = -1;

    /** The stream of one worker and rank, and who publishes its events. */
    private static final class Feed {
        private final EngineStream stream;
        private Publisher publisher; // null before the first envelope
        private long lastEventId = NONE;

        private Feed(EngineStream stream) {
            this.stream = stream;
        }
    }

    /** One publisher of envelopes that feeds a stream. */
    private static final class Publisher {
        private final long id;
        private final Set<Feed> feeds = new HashSet<>(2);
        private long nextSequence;

        private Publisher(long id) {
            this.id = id;
        }
    }

    private final Registrar registrar;
    private final RouterMessage message = new RouterMessage();
    private final Long2ObjectHashMap<Int2ObjectHashMap<Feed>> workers = new Long2ObjectHashMap<>();
    private final Long2ObjectHashMap<Publisher> publishers = new Long2ObjectHashMap<>();
    private final LogLimit lines = new LogLimit(LINES, LINES_PERIOD_NS);
    private int streams;
    private String unconnected = "";
    private long messages;
    private long events;
    private long unknownEvents;
    private long unreadable;
    private long gaps;
    private long missedMessages;
    private long publisherChanges;

    /**
     * Creates a plane without streams.
     *
     * @param registrar asked about unknown workers
     */
    public EventPlane(Registrar registrar) {
        this.registrar = Objects.requireNonNull(registrar);
    }

    /**
     * Has a stream get the events of a worker and rank from now on.
     *
     * @param workerId the worker, 64 unsigned bits
     * @param dpRank its data-parallel rank
     * @param stream of {@link MessageForm#ROUTER_EVENT}; not closed by this class
     * @throws IllegalArgumentException if the worker and rank have a stream that is not closed, or
     *     the stream takes other messages
     */
    public synchronized void register(long workerId, int dpRank, EngineStream stream) {
        if (stream.config().form() != MessageForm.ROUTER_EVENT) {
            throw new IllegalArgumentException(
                    stream.config().label() + " takes messages of another form than router events");
        }
        final Int2ObjectHashMap<Feed> ranks =
                workers.computeIfAbsent(workerId, id -> new Int2ObjectHashMap<>());
        final Feed before = ranks.get(dpRank);
        if (before != null && before.stream.state() != IndexState.GONE) {
            throw new IllegalArgumentException(
                    "worker "
                            + text(workerId, dpRank)
                            + " of the event plane has a stream already");
        }
        if (before != null) {
            detach(before);
            streams--;
        }
        ranks.put(dpRank, new Feed(stream));
        streams++;
        if (!unconnected.isEmpty()) {
            stream.onConnectFailed(unconnected);
        }
    }

    /**
     * Ends what {@link #register} began; the stream is left open.
     *
     * @param workerId the worker
     * @param dpRank its rank
     */
    public synchronized void remove(long workerId, int dpRank) {
        final Int2ObjectHashMap<Feed> ranks = workers.get(workerId);
        final Feed feed = ranks == null ? null : ranks.remove(dpRank);
        if (feed != null) {
            detach(feed);
            streams--;
            if (ranks.isEmpty()) {
                workers.remove(workerId);
            }
        }
    }

    private void detach(Feed feed) {
        final Publisher publisher = feed.publisher;
        if (publisher != null && publisher.feeds.remove(feed) && publisher.feeds.isEmpty()) {
            publishers.remove(publisher.id);
        }
        feed.publisher = null;
    }

    /**
     * Takes a message: an envelope or a single event.
     *
     * @param bytes holds the message; not kept
     * @param offset its first byte
     * @param length its bytes
     * @throws IndexOutOfBoundsException if the range does not lie in {@code bytes}
     */
    public synchronized void onMessage(byte[] bytes, int offset, int length) {
        messages++;
        if (!message.wrap(bytes, offset, length)) {
            unreadable(length + " bytes are no message of an event plane");
            return;
        }
        if (message.isEnveloped()) {
            followPublisher();
        }
        while (message.next()) {
            if (message.isAddressed()) {
                deliver(bytes);
            } else {
                unreadable("an event does not say which worker, rank and number it has");
            }
        }
        if (message.isTruncated()) {
            unreadable("a message ends in the middle of an event");
            final Publisher publisher = publisher();
            if (publisher != null) {
                missed(publisher, "the end of a message of the event plane is missing");
            }
        }
    }

    private Publisher publisher() {
        return message.isEnveloped() ? publishers.get(message.publisherId()) : null;
    }

    private void unreadable(String what) {
        unreadable++;
        if (mayLog()) {
            LOG.warn("event plane: {}; it is dropped", what);
        }
    }

    private boolean mayLog() {
        return lines.take(System.nanoTime()) >= 0;
    }

    private void followPublisher() {
        final Publisher publisher = publisher();
        if (publisher == null) {
            return; // it gets one with the first event for a stream
        }
        final long sequence = message.sequence();
        if (sequence > publisher.nextSequence) {
            final long missing = sequence - publisher.nextSequence;
            gaps++;
            missedMessages += missing;
            final String why =
                    missing
                            + " messages of publisher "
                            + Long.toHexString(publisher.id)
                            + " are missing before its message "
                            + sequence;
            if (mayLog()) {
                LOG.warn("event plane: {}", why);
            }
            missed(publisher, why);
        }
        publisher.nextSequence = Math.max(publisher.nextSequence, sequence + 1);
    }

    private static void missed(Publisher publisher, String why) {
        publisher.feeds.forEach(feed -> feed.stream.onMissed(why));
    }

    private void deliver(byte[] bytes) {
        final Feed feed = feed(message.workerId(), message.dpRank());
        if (feed == null) {
            unknownEvents++;
            if (mayLog()) {
                LOG.warn(
                        "event plane: worker {} is not registered; its events are left out",
                        text(message.workerId(), message.dpRank()));
            }
            return;
        }
        if (message.isEnveloped()) {
            attach(feed);
        }
        events++;
        feed.stream.onMessage(
                message.eventId(), bytes, message.eventOffset(), message.eventLength());
        feed.lastEventId = message.eventId();
    }

    private Feed feed(long workerId, int dpRank) {
        final Int2ObjectHashMap<Feed> ranks = workers.get(workerId);
        final Feed known = ranks == null ? null : ranks.get(dpRank);
        if (known != null && known.stream.state() != IndexState.GONE) {
            return known;
        }
        final EngineStream stream = registrar.unknown(workerId, dpRank);
        if (stream == null) {
            return null;
        }
        register(workerId, dpRank, stream);
        return workers.get(workerId).get(dpRank);
    }

    /** Follows who publishes a worker's events. */
    private void attach(Feed feed) {
        if (feed.publisher != null && feed.publisher.id == message.publisherId()) {
            return;
        }
        if (feed.publisher != null) {
            publisherChanges++;
            final String how =
                    "publisher "
                            + Long.toHexString(message.publisherId())
                            + " took it over from "
                            + Long.toHexString(feed.publisher.id);
            detach(feed);
            if (message.eventId() != feed.lastEventId + 1) {
                feed.stream.onRestart(how);
            }
        }
        Publisher publisher = publishers.get(message.publisherId());
        if (publisher == null) {
            publisher = new Publisher(message.publisherId());
            publisher.nextSequence = message.sequence() + 1;
            publishers.put(publisher.id, publisher);
        }
        publisher.feeds.add(feed);
        feed.publisher = publisher;
    }

    private static String text(long workerId, int dpRank) {
        return Long.toUnsignedString(workerId) + "/" + dpRank;
    }

    /**
     * Says that the transport is connected, for the first time or again; what was published
     * meanwhile was missed.
     */
    public synchronized void onConnected() {
        unconnected = "";
        forEachStream(EngineStream::onConnected);
    }

    /** Says that the transport is connected and has passed on all that there was meanwhile. */
    public synchronized void onCaughtUp() {
        unconnected = "";
        forEachStream(EngineStream::onCaughtUp);
    }

    /**
     * Says that the transport has lost its connection.
     *
     * @param why in words, with the address
     */
    public synchronized void onDisconnected(String why) {
        unconnected = Objects.requireNonNull(why);
        forEachStream(stream -> stream.onDisconnected(why));
    }

    /**
     * Says that messages may be missing, of whatever publisher.
     *
     * @param why in words
     */
    public synchronized void onMissed(String why) {
        forEachStream(stream -> stream.onMissed(why));
    }

    /** Counts a message that the transport could not pass on, such as one with missing frames. */
    synchronized void dropped(DropReason reason, String what) {
        messages++;
        unreadable(reason.label() + ": " + what);
    }

    /** Does what is due in all streams; the owner calls it some times per second. */
    public synchronized void tick() {
        forEachStream(EngineStream::tick);
    }

    /** Whether all that was passed on so far is in the index. */
    public synchronized boolean isApplied() {
        for (Int2ObjectHashMap<Feed> ranks : workers.values()) {
            for (Feed feed : ranks.values()) {
                if (!feed.stream.isApplied()) {
                    return false;
                }
            }
        }
        return true;
    }

    private void forEachStream(Consumer<EngineStream> action) {
        for (Int2ObjectHashMap<Feed> ranks : workers.values()) {
            for (Feed feed : ranks.values()) {
                action.accept(feed.stream);
            }
        }
    }

    /** Counters, as of now. */
    public synchronized EventPlaneStatus status() {
        return new EventPlaneStatus(
                messages,
                events,
                unknownEvents,
                unreadable,
                gaps,
                missedMessages,
                publisherChanges,
                streams,
                unconnected);
    }
}
