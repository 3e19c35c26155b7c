package io.kvasir.pipeline.source;

import io.kvasir.pipeline.wire.DropReason;
import io.kvasir.pipeline.zmtp.ByteBudget;
import io.kvasir.pipeline.zmtp.Connector;
import io.kvasir.pipeline.zmtp.Endpoint;
import io.kvasir.pipeline.zmtp.Resolver;
import io.kvasir.pipeline.zmtp.ZmtpMessage;

import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Objects;
import java.util.Set;
import java.util.concurrent.TimeUnit;

/**
 * Feeds an event plane from ZMQ publishers of router events, or from brokers between many of them
 * and us. Each address is a link, connected by itself, now and again. What several brokers carry is
 * passed on once ({@link PublisherLinks}).
 *
 * <pre>
 * topic | publisher, 8 bytes big-endian | number, 8 bytes | 01 | length, 4 bytes | envelope
 * </pre>
 *
 * <p>ZMQ keeps nothing for a subscriber that is away: streams whose publisher no link carries are
 * stale until it sends again, and then the local indexers of workers are asked for what is missing
 * ({@link ZmqQueries}). While the index's ring is full nothing is read, and publishers keep what
 * they may.
 *
 * <p>{@link #close} may be called by any thread, and twice.
 */
public final class ZmqEventPlaneSource implements AutoCloseable {
    /** Addresses that one source may have. */
    public static final int MOST_ADDRESSES = 1_024;

    private static final Logger LOG = LoggerFactory.getLogger(ZmqEventPlaneSource.class);
    private static final int PUBLISHER_FRAME = 1;
    private static final int NUMBER_FRAME = 2;
    private static final long TICK_NS = TimeUnit.MILLISECONDS.toNanos(50);
    private static final long CONNECT_PATIENCE_NS = TimeUnit.SECONDS.toNanos(1);
    private static final long END_MS = 10_000;

    private final EventPlane plane;
    private final PlaneTopics topics;
    private final Resolver resolver = new Resolver();
    private final SourceLane lane;
    private final List<Link> links = new ArrayList<>();
    private final PublisherLinks publishers;
    private final ZmqQueries queriesOrNull; // null where nothing is asked
    private boolean connected; // the plane has been informed of it; of the poller's thread
    private long firstConnectedNs; // since when some link is, while the plane does not know yet

    /**
     * Begins to connect; does not wait for it.
     *
     * @param addresses of publishers or brokers, such as {@code tcp://10.0.0.7:6557}
     * @param topics of the messages that count
     * @param config limits of the connections
     * @param plane gets the events; not closed by this class
     * @param recover whether the local indexers of workers are asked for what is missing
     * @throws IllegalArgumentException if there is no address, or too many, or one is twice, or
     *     none that can be connected to
     */
    public ZmqEventPlaneSource(
            List<String> addresses,
            PlaneTopics topics,
            ZmqConfig config,
            EventPlane plane,
            boolean recover) {
        this.plane = Objects.requireNonNull(plane);
        this.topics = Objects.requireNonNull(topics);
        final List<Endpoint> endpoints = endpoints(addresses);
        publishers = new PublisherLinks(plane::onMessage, System::nanoTime);
        queriesOrNull = recover ? new ZmqQueries(plane, new QueryLinks()) : null;
        lane =
                new SourceLane(
                        "kvasir-zmq-plane",
                        config,
                        resolver,
                        new ByteBudget(config.receiveBytes()));
        if (recover) {
            plane.recoverOver(queriesOrNull);
        }
        plane.onDisconnected("connecting to " + String.join(", ", addresses));
        lane.poller().execute(() -> start(endpoints));
    }

    /**
     * Gives addresses back as what can be connected to.
     *
     * @throws IllegalArgumentException as the constructor
     */
    public static List<Endpoint> endpoints(List<String> addresses) {
        if (addresses.isEmpty() || addresses.size() > MOST_ADDRESSES) {
            throw new IllegalArgumentException(
                    addresses.size()
                            + " addresses of an event plane over ZMQ, limits are 1.."
                            + MOST_ADDRESSES
                            + "; a broker stands for many publishers");
        }
        final Set<String> all = new HashSet<>();
        for (String address : addresses) {
            if (!all.add(address)) {
                throw new IllegalArgumentException(
                        "address " + address + " of an event plane is there twice");
            }
        }
        return addresses.stream().map(address -> Endpoint.parse(address).connectable()).toList();
    }

    private void start(List<Endpoint> endpoints) {
        for (Endpoint endpoint : endpoints) {
            links.add(new Link(links.size(), endpoint));
        }
        links.forEach(link -> link.connector.start());
        tick();
    }

    private void tick() {
        try {
            publishers.tick();
            if (queriesOrNull != null) {
                queriesOrNull.tick();
            }
            lookForFirst();
            plane.tick();
        } finally {
            lane.poller().schedule(TICK_NS, this::tick);
        }
    }

    /** Messages that came over another link before. */
    long doubles() {
        return publishers.doubles();
    }

    private int connectedLinks() {
        int count = 0;
        for (Link link : links) {
            count += link.connected ? 1 : 0;
        }
        return count;
    }

    /** The plane is connected when all links are, or some have been for a while. */
    private void lookForFirst() {
        if (connected) {
            return;
        }
        final int count = connectedLinks();
        if (count == links.size()
                || (count > 0 && System.nanoTime() - firstConnectedNs >= CONNECT_PATIENCE_NS)) {
            connected = true;
            plane.onConnected();
        }
    }

    /** One address. Its methods are called on the poller's thread. */
    private final class Link implements Connector.Listener {
        private final int number;
        private final Endpoint endpoint;
        private final Connector connector;
        private boolean connected;
        private boolean failed; // and that was said

        private Link(int number, Endpoint endpoint) {
            this.number = number;
            this.endpoint = endpoint;
            this.connector = lane.connector(endpoint, lane.subscriberOptions(), this);
        }

        @Override
        public void connected() {
            topics.subscriptions().forEach(connector::send);
            if (connectedLinks() == 0) {
                firstConnectedNs = System.nanoTime();
            }
            connected = true;
            failed = false;
            LOG.info("router events come from {}", endpoint);
            if (ZmqEventPlaneSource.this.connected) {
                plane.onConnected(publisher -> publishers.mayBringBack(number, publisher));
            }
            if (queriesOrNull != null) {
                queriesOrNull.connected(number);
            }
            lookForFirst();
        }

        @Override
        public boolean received(ZmtpMessage message) {
            if (queriesOrNull != null && ZmqQueries.isAnswer(message)) {
                queriesOrNull.received(number, message);
            } else {
                event(message);
            }
            return true;
        }

        private void event(ZmtpMessage message) {
            if (message.frames() != PlaneEnvelope.FRAMES) {
                plane.dropped(
                        DropReason.BAD_FRAME_COUNT,
                        "a message of "
                                + message.frames()
                                + " frames, not "
                                + PlaneEnvelope.FRAMES);
                return;
            }
            final byte[] bytes = message.bytes();
            if (!topics.count(bytes, message.offset(0), message.length(0))) {
                return;
            }
            final int length = PlaneEnvelope.length(message);
            if (length < 0) {
                plane.dropped(
                        DropReason.UNDECODABLE_MESSAGE,
                        "a fourth frame that is not of version " + PlaneEnvelope.VERSION);
                return;
            }
            if (message.length(PUBLISHER_FRAME) != Long.BYTES
                    || message.length(NUMBER_FRAME) != Long.BYTES) {
                plane.dropped(
                        DropReason.UNDECODABLE_MESSAGE,
                        "a publisher and a number that do not have 8 bytes each");
                return;
            }
            publishers.take(
                    number,
                    message.readLong(PUBLISHER_FRAME),
                    message.readLong(NUMBER_FRAME),
                    bytes,
                    PlaneEnvelope.offset(message),
                    length);
        }

        @Override
        public void disconnected(String why) {
            connected = false;
            LOG.warn("no router events: {}; it is tried again", why);
            final Set<Long> silent = publishers.lost(number);
            if (queriesOrNull != null) {
                queriesOrNull.lost(number);
            }
            if (connectedLinks() == 0) {
                ZmqEventPlaneSource.this.connected = false;
                plane.onDisconnected(why);
            } else {
                plane.onDisconnected(why, silent::contains);
            }
        }

        @Override
        public void connectFailed(String why) {
            if (connectedLinks() == 0) {
                plane.onDisconnected(why);
            } else if (!failed) {
                failed = true;
                LOG.warn("no router events: {}; it is tried again", why);
            }
        }
    }

    /** What queries go by. */
    private final class QueryLinks implements ZmqQueries.Links {
        @Override
        public List<Integer> connected() {
            return links.stream().filter(link -> link.connected).map(link -> link.number).toList();
        }

        @Override
        public void send(int link, byte[] frame) {
            links.get(link).connector.send(frame);
        }

        @Override
        public void seen(int link, long publisherId) {
            publishers.seen(link, publisherId);
        }
    }

    @Override
    public void close() {
        lane.poller().close();
        if (!lane.poller().isCurrent()) {
            lane.poller().awaitEnd(END_MS);
        }
        resolver.close();
    }
}
