package io.kvasir.pipeline.source;

import io.kvasir.pipeline.zmtp.ByteBudget;
import io.kvasir.pipeline.zmtp.Connector;
import io.kvasir.pipeline.zmtp.Endpoint;
import io.kvasir.pipeline.zmtp.Resolver;
import io.kvasir.pipeline.zmtp.ZmtpMessage;

import java.util.ArrayList;
import java.util.List;
import java.util.Objects;

/**
 * Feeds load reports from ZMQ publishers of an event plane, or from brokers between many of them
 * and us; the frames are those of {@link ZmqEventPlaneSource}. Each address is connected by itself,
 * now and again. A report that was missed is followed by another one, and one that comes over two
 * brokers is the same twice.
 *
 * <p>{@link #close} may be called by any thread, and twice.
 */
public final class ZmqLoadPlaneSource implements AutoCloseable {
    private static final long END_MS = 10_000;

    private final LoadPlane plane;
    private final PlaneTopics topics;
    private final Resolver resolver = new Resolver();
    private final SourceLane lane;

    /**
     * Begins to connect; does not wait for it.
     *
     * @param addresses of publishers or brokers, such as {@code tcp://10.0.0.7:6557}
     * @param topics of the messages that count
     * @param config limits of the connections
     * @param plane gets the reports
     * @throws IllegalArgumentException as of {@link ZmqEventPlaneSource#endpoints}
     */
    public ZmqLoadPlaneSource(
            List<String> addresses, PlaneTopics topics, ZmqConfig config, LoadPlane plane) {
        this.plane = Objects.requireNonNull(plane);
        this.topics = Objects.requireNonNull(topics);
        final List<Endpoint> endpoints = ZmqEventPlaneSource.endpoints(addresses);
        lane =
                new SourceLane(
                        "kvasir-zmq-loads",
                        config,
                        resolver,
                        new ByteBudget(config.receiveBytes()));
        final List<Link> links = new ArrayList<>();
        endpoints.forEach(endpoint -> links.add(new Link(endpoint)));
        lane.poller().execute(() -> links.forEach(link -> link.connector.start()));
    }

    /** One address. Its methods are called on the poller's thread. */
    private final class Link implements Connector.Listener {
        private final Connector connector;

        private Link(Endpoint endpoint) {
            connector = lane.connector(endpoint, lane.subscriberOptions(), this);
        }

        @Override
        public void connected() {
            topics.subscriptions().forEach(connector::send);
        }

        @Override
        public boolean received(ZmtpMessage message) {
            if (message.frames() != PlaneEnvelope.FRAMES) {
                plane.dropped();
                return true;
            }
            if (!topics.count(message.bytes(), message.offset(0), message.length(0))) {
                return true;
            }
            final int length = PlaneEnvelope.length(message);
            if (length < 0) {
                plane.dropped();
            } else {
                plane.onMessage(message.bytes(), PlaneEnvelope.offset(message), length);
            }
            return true;
        }

        @Override
        public void disconnected(String why) {
            // reports end by themselves
        }

        @Override
        public void connectFailed(String why) {
            // it is tried again
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
