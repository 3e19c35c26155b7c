package io.kvasir.pipeline.source;

import io.kvasir.pipeline.wire.DropReason;
import io.kvasir.pipeline.zmtp.ByteBudget;
import io.kvasir.pipeline.zmtp.Connector;
import io.kvasir.pipeline.zmtp.Endpoint;
import io.kvasir.pipeline.zmtp.Resolver;
import io.kvasir.pipeline.zmtp.ZmtpMessage;

import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.Objects;
import java.util.concurrent.TimeUnit;

/**
 * Feeds an event plane from a ZMQ publisher of router events, or from a broker between many of them
 * and us. One connection, made by itself, now and again; so one plane for each address.
 *
 * <pre>
 * topic | publisher, 8 bytes big-endian | number, 8 bytes | 01 | length, 4 bytes | envelope
 * </pre>
 *
 * <p>ZMQ keeps nothing for a subscriber that is away: the plane's streams are stale until their
 * next events then. While the index's ring is full nothing is read, and the publisher keeps what it
 * may.
 *
 * <p>{@link #close} may be called by any thread, and twice.
 */
public final class ZmqEventPlaneSource implements AutoCloseable {
    private static final int FRAMES = 4;
    private static final int ENVELOPE_FRAME = 3;
    private static final byte VERSION = 1;
    private static final int HEAD_LENGTH = 1 + Integer.BYTES;
    private static final byte SUBSCRIBE = 1;
    private static final long TICK_NS = TimeUnit.MILLISECONDS.toNanos(50);
    private static final long END_MS = 10_000;

    private final PlaneSink plane;
    private final byte[] subscription;
    private final Resolver resolver = new Resolver();
    private final SourceLane lane;
    private final Connector connector;

    /**
     * Begins to connect; does not wait for it.
     *
     * @param address of the publisher or broker, such as {@code tcp://10.0.0.7:6557}
     * @param topic prefix of the topics to receive: {@code kv-events} of a publisher, the subject
     *     of NATS from a broker
     * @param config limits of the connection
     * @param plane gets the events; not closed by this class
     * @throws IllegalArgumentException if the address is none that can be connected to
     */
    public ZmqEventPlaneSource(String address, String topic, ZmqConfig config, EventPlane plane) {
        this(address, topic, config, PlaneSink.of(Objects.requireNonNull(plane)));
    }

    /**
     * The same for load reports.
     *
     * @param address of the publisher or broker
     * @param topic prefix of the topics to receive: {@code kv_metrics} of a publisher, the subject
     *     of NATS from a broker
     * @param config limits of the connection
     * @param plane gets the reports
     * @throws IllegalArgumentException if the address is none that can be connected to
     */
    public ZmqEventPlaneSource(String address, String topic, ZmqConfig config, LoadPlane plane) {
        this(address, topic, config, PlaneSink.of(Objects.requireNonNull(plane)));
    }

    private ZmqEventPlaneSource(String address, String topic, ZmqConfig config, PlaneSink plane) {
        this.plane = plane;
        final Endpoint endpoint = Endpoint.parse(address).connectable();
        final byte[] prefix = topic.getBytes(StandardCharsets.UTF_8);
        subscription = ByteBuffer.allocate(1 + prefix.length).put(SUBSCRIBE).put(prefix).array();
        lane =
                new SourceLane(
                        "kvasir-zmq-plane",
                        config,
                        resolver,
                        new ByteBudget(config.receiveBytes()));
        connector = lane.connector(endpoint, lane.subscriberOptions(), new Messages());
        plane.onDisconnected("connecting to " + address);
        lane.poller().execute(connector::start);
        lane.poller().execute(this::tick);
    }

    private void tick() {
        plane.tick();
        lane.poller().schedule(TICK_NS, this::tick);
    }

    /** What the connection says, on the poller's thread. */
    private final class Messages implements Connector.Listener {
        @Override
        public void connected() {
            connector.send(subscription);
            plane.onConnected();
        }

        @Override
        public boolean received(ZmtpMessage message) {
            if (message.frames() != FRAMES) {
                plane.dropped(
                        DropReason.BAD_FRAME_COUNT,
                        "a message of " + message.frames() + " frames, not " + FRAMES);
                return true;
            }
            final byte[] bytes = message.bytes();
            final int offset = message.offset(ENVELOPE_FRAME);
            final int length = message.length(ENVELOPE_FRAME) - HEAD_LENGTH;
            if (length < 0
                    || bytes[offset] != VERSION
                    || ByteBuffer.wrap(bytes).getInt(offset + 1) != length) {
                plane.dropped(
                        DropReason.UNDECODABLE_MESSAGE,
                        "a fourth frame that is not of version " + VERSION);
                return true;
            }
            plane.onMessage(bytes, offset + HEAD_LENGTH, length);
            return true;
        }

        @Override
        public void disconnected(String why) {
            plane.onDisconnected(why);
        }

        @Override
        public void connectFailed(String why) {
            plane.onDisconnected(why);
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
