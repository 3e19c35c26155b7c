package io.kvasir.pipeline.source;

import io.kvasir.pipeline.zmtp.Endpoint;
import io.kvasir.pipeline.zmtp.ZmtpConnection;
import io.kvasir.pipeline.zmtp.ZmtpListener;
import io.kvasir.pipeline.zmtp.ZmtpMessage;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.net.SocketAddress;
import java.util.HashSet;
import java.util.Set;
import java.util.concurrent.TimeUnit;

/**
 * The feed of an address that publishers connect to. Which source a publisher belongs to shows with
 * its first message, or at once where there is only one source, and that takes all topics.
 */
final class BoundFeed extends EventFeed {
    private static final long PATIENCE_NS = TimeUnit.SECONDS.toNanos(4);

    private final ZmtpListener listener;
    private final String address;
    private final Set<Publisher> publishers = new HashSet<>();

    /**
     * Binds an address.
     *
     * @throws IOException if it is in use or not one of this machine
     */
    BoundFeed(SourceLane lane, Endpoint endpoint, SocketAddress socketAddress) throws IOException {
        super(lane);
        listener = lane.listener(endpoint, Publisher::new);
        address = listener.bind(socketAddress);
    }

    @Override
    String address() {
        return address;
    }

    @Override
    void add(ZmqSource source) {
        super.add(source);
        lane.poller().schedule(PATIENCE_NS, () -> reportMissing(source));
    }

    private void reportMissing(ZmqSource source) {
        if (!source.hasPublisher()) {
            source.connectFailed(
                    address
                            + ": no publisher "
                            + (source.topic().isEmpty()
                                    ? "has connected"
                                    : "with topic " + source.topic() + " has sent anything"));
        }
    }

    @Override
    void remove(ZmqSource source) {
        super.remove(source);
        publishers.forEach(publisher -> publisher.feeds.remove(source));
    }

    @Override
    void send(byte[] frame) {
        listener.send(frame);
    }

    @Override
    void close() {
        listener.close();
        try {
            lane.poller().releaseClosed();
        } catch (IOException e) {
            throw new UncheckedIOException(address + " may still be bound", e);
        }
    }

    /** One publisher that has connected, and the sources that it has sent something for. */
    private final class Publisher implements ZmtpConnection.Listener, Peer {
        private final Set<ZmqSource> feeds = new HashSet<>(2);

        @Override
        public void opened(ZmtpConnection connection) {
            publishers.add(this);
            subscribe(connection::send);
            if (sources.size() == 1 && sources.getFirst().topic().isEmpty()) {
                sent(sources.getFirst());
            }
        }

        @Override
        public void sent(ZmqSource source) {
            if (feeds.add(source)) {
                source.publisherCame();
            }
        }

        @Override
        public boolean feeds(ZmqSource source) {
            return feeds.contains(source);
        }

        @Override
        public boolean received(ZmtpConnection connection, ZmtpMessage message) {
            dispatch(message, this);
            return true;
        }

        @Override
        public void closed(ZmtpConnection connection, String why) {
            publishers.remove(this);
            feeds.forEach(source -> source.publisherLeft(address + ": " + why));
        }
    }
}
