package io.kvasir.pipeline.source;

import io.kvasir.pipeline.wire.BatchRank;
import io.kvasir.pipeline.wire.DropReason;
import io.kvasir.pipeline.zmtp.ZmtpMessage;

import java.util.ArrayList;
import java.util.List;
import java.util.function.Consumer;

/**
 * What arrives at one address, and the sources that share it: distinguished by topic and, where
 * their topics are the same, by the rank that a batch names. All methods on the lane's thread.
 */
abstract class EventFeed {
    /** The connection that a message has come by. */
    interface Peer {
        /** A message belongs to a source, which gets it after this call. */
        void sent(ZmqSource source);

        /** Whether messages of the connection belong to a source. */
        boolean feeds(ZmqSource source);
    }

    private static final int FRAMES = 3;
    private static final byte SUBSCRIBE = 1;
    private static final byte UNSUBSCRIBE = 0;

    final SourceLane lane;
    final List<ZmqSource> sources = new ArrayList<>(1);
    private final TopicRoutes routes = new TopicRoutes();
    private final BatchRank ranks = new BatchRank();

    /** Sources that refer to it; guarded by the transport. */
    int references;

    EventFeed(SourceLane lane) {
        this.lane = lane;
    }

    /** The address in use. */
    abstract String address();

    /** Ends all connections. */
    abstract void close();

    /** Sends a frame to the publishers that are connected. */
    abstract void send(byte[] frame);

    void add(ZmqSource source) {
        sources.add(source);
        if (routes.add(source)) {
            send(subscription(SUBSCRIBE, TopicRoutes.key(source)));
        }
        lane.add(source);
    }

    void remove(ZmqSource source) {
        sources.remove(source);
        if (routes.remove(source)) {
            send(subscription(UNSUBSCRIBE, TopicRoutes.key(source)));
        }
        lane.remove(source);
    }

    /** Subscribes to all topics over a new connection. */
    final void subscribe(Consumer<byte[]> connection) {
        for (String prefix : routes.prefixes()) {
            connection.accept(subscription(SUBSCRIBE, prefix));
        }
    }

    private static byte[] subscription(byte kind, String prefix) {
        final byte[] topic = TopicRoutes.bytes(prefix);
        final byte[] frame = new byte[1 + topic.length];
        frame[0] = kind;
        System.arraycopy(topic, 0, frame, 1, topic.length);
        return frame;
    }

    /** Passes a message on. */
    final void dispatch(ZmtpMessage message, Peer peer) {
        final List<ZmqSource> topical =
                routes.of(message.bytes(), message.offset(0), message.length(0));
        if (topical.isEmpty()) {
            return; // sent before an unsubscription has arrived
        }
        final ZmqSource first = topical.getFirst();
        if (message.frames() != FRAMES) {
            peer.sent(first);
            first.dropped(
                    DropReason.BAD_FRAME_COUNT,
                    "a message of " + message.frames() + " frames, not 3");
        } else if (message.length(1) != Long.BYTES) {
            peer.sent(first);
            first.dropped(
                    DropReason.BAD_SEQUENCE_FRAME,
                    "a message number of " + message.length(1) + " bytes, not 8");
        } else if (topical.size() == 1) {
            peer.sent(first);
            deliver(message, first);
        } else {
            deliverByRank(message, topical, peer);
        }
    }

    private void deliverByRank(ZmtpMessage message, List<ZmqSource> topical, Peer peer) {
        if (!ranks.isBatch(message.bytes(), message.offset(2), message.length(2))) {
            deliverToFed(message, topical, peer);
            return;
        }
        final long rank = ranks.of(message.bytes(), message.offset(2), message.length(2));
        boolean known = false;
        for (ZmqSource source : List.copyOf(topical)) {
            if (rank == BatchRank.NONE || source.dpRank() == rank) {
                known = true;
                peer.sent(source);
                deliver(message, source);
            }
        }
        if (!known) {
            topical.getFirst()
                    .dropped(
                            DropReason.UNREGISTERED_RANK,
                            "a batch of rank "
                                    + rank
                                    + " came over "
                                    + address()
                                    + ", and no worker is registered for it; register that rank");
        }
    }

    /** Passes on what names no rank and says nothing of one, such as a load report. */
    private void deliverToFed(ZmtpMessage message, List<ZmqSource> topical, Peer peer) {
        final List<ZmqSource> fed = topical.stream().filter(peer::feeds).toList();
        fed.forEach(source -> deliver(message, source));
        if (fed.isEmpty()) {
            topical.getFirst()
                    .dropped(
                            DropReason.IGNORED_MESSAGE,
                            "a message that is no batch came over "
                                    + address()
                                    + " before any batch of its publisher: its rank is not known");
        }
    }

    private static void deliver(ZmtpMessage message, ZmqSource source) {
        source.deliver(message.readLong(1), message.bytes(), message.offset(2), message.length(2));
    }
}
