package io.kvasir.pipeline.publish;

import io.kvasir.pipeline.wire.RecoveryQuery;
import io.kvasir.pipeline.zmtp.Backoff;
import io.kvasir.pipeline.zmtp.ByteBudget;
import io.kvasir.pipeline.zmtp.ConnectLimit;
import io.kvasir.pipeline.zmtp.Connector;
import io.kvasir.pipeline.zmtp.Endpoint;
import io.kvasir.pipeline.zmtp.FailureWords;
import io.kvasir.pipeline.zmtp.Resolver;
import io.kvasir.pipeline.zmtp.SocketPoller;
import io.kvasir.pipeline.zmtp.SocketType;
import io.kvasir.pipeline.zmtp.ZmtpConnection;
import io.kvasir.pipeline.zmtp.ZmtpListener;
import io.kvasir.pipeline.zmtp.ZmtpMessage;
import io.kvasir.pipeline.zmtp.ZmtpOptions;

import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

import java.io.IOException;
import java.net.SocketAddress;
import java.nio.ByteBuffer;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.SplittableRandom;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;
import java.util.function.Function;
import java.util.function.Supplier;

/**
 * A ZMQ publisher: a bound one, with a socket that answers requests for what was published before,
 * or one that is connected to brokers. Sends to each subscriber what it has subscribed to; a
 * subscriber that does not read loses what is beyond a limit, and no other one does.
 *
 * <p>{@link #send}, {@link #unsentMessages} and {@link #close} may be called by any thread; the
 * rest is done by the poller's own.
 *
 * <pre>
 * request:  "" | first number wanted, 8 bytes
 * </pre>
 *
 * @see ReplayAnswers for what is answered
 */
final class ZmqPublisher implements AutoCloseable {
    private static final Logger LOG = LoggerFactory.getLogger(ZmqPublisher.class);

    /** Messages that wait for one subscriber at most. */
    static final int MOST_UNSENT = 100_000;

    private static final long REPLAY_PAUSE_NS = TimeUnit.MILLISECONDS.toNanos(1);
    private static final long MAX_REQUEST_BYTES = 1 << 16;
    private static final long BUDGET_BYTES = 1 << 24;
    private static final long HANDSHAKE_NS = TimeUnit.SECONDS.toNanos(10);
    private static final long RECONNECT_NS = TimeUnit.MILLISECONDS.toNanos(100);
    private static final long RECONNECT_MAX_NS = TimeUnit.SECONDS.toNanos(5);
    private static final long DRAIN_NS = TimeUnit.SECONDS.toNanos(2);
    private static final long DRAIN_PAUSE_NS = TimeUnit.MILLISECONDS.toNanos(1);
    private static final long END_MS = 10_000;
    private static final byte[] EMPTY = {};

    private final SocketPoller poller;
    private final ByteBudget budget = new ByteBudget(BUDGET_BYTES);
    private final Set<Subscriber> subscribers = new HashSet<>(); // of the poller's thread
    private final List<LocalIndexer> indexersOfAll = new CopyOnWriteArrayList<>();
    private final Function<RecoveryQuery, LocalIndexer> indexers = this::indexerOrNull;
    private final Resolver resolver = new Resolver();
    private final AtomicInteger queued = new AtomicInteger();
    private final AtomicLong unsent = new AtomicLong();
    private final byte[] topic;
    private final ReplayBuffer buffer; // null without a replay socket
    private final String endpoint;
    private final String replayEndpoint; // null without one

    /**
     * Binds.
     *
     * @param endpoint address, such as {@code tcp://*:5557}; port 0 or {@code *} is any
     * @param replayEndpoint address for replays; null for none
     * @param topic of replayed messages
     * @param buffer what is replayed; null for nothing
     * @throws IOException if an address cannot be bound
     * @throws IllegalArgumentException if one is none
     */
    ZmqPublisher(String endpoint, String replayEndpoint, byte[] topic, ReplayBuffer buffer)
            throws IOException {
        this.topic = topic;
        this.buffer = buffer;
        this.poller = new SocketPoller("kvasir-zmq-publisher");
        try {
            this.endpoint = bind(endpoint, SocketType.PUB, Accepted::new);
            this.replayEndpoint =
                    replayEndpoint == null
                            ? null
                            : bind(replayEndpoint, SocketType.ROUTER, Requester::new);
        } catch (IOException | RuntimeException e) {
            close(); // what was bound before is free when the caller learns of it
            throw e;
        }
    }

    /**
     * Connects to brokers, each now and again; does not wait for it.
     *
     * @param brokers their addresses for publishers
     * @throws IllegalArgumentException if one cannot be connected to
     */
    ZmqPublisher(List<String> brokers) {
        this.topic = EMPTY;
        this.buffer = null;
        this.endpoint = String.join(",", brokers);
        this.replayEndpoint = null;
        final List<Endpoint> endpoints =
                brokers.stream().map(broker -> Endpoint.parse(broker).connectable()).toList();
        this.poller = new SocketPoller("kvasir-zmq-publisher");
        poller.execute(
                () -> {
                    final ConnectLimit limit = new ConnectLimit(poller, brokers.size());
                    endpoints.forEach(broker -> new Broker(broker, limit).connector.start());
                });
    }

    /** Has queries answered by this local indexer, besides those that are there. */
    void answerBy(LocalIndexer indexer) {
        indexersOfAll.add(indexer);
    }

    private LocalIndexer indexerOrNull(RecoveryQuery query) {
        for (LocalIndexer indexer : indexersOfAll) {
            if (indexer.workerId() == query.workerId() && indexer.dpRank() == query.dpRank()) {
                return indexer;
            }
        }
        return null;
    }

    private ZmtpOptions options(SocketType type) {
        return new ZmtpOptions(type, MAX_REQUEST_BYTES, HANDSHAKE_NS, budget);
    }

    private String bind(String address, SocketType type, Supplier<ZmtpConnection.Listener> peers)
            throws IOException {
        final Endpoint wanted = Endpoint.parse(address);
        final SocketAddress socketAddress = ZmtpListener.addressOf(wanted);
        final ZmtpListener listener = new ZmtpListener(poller, wanted, options(type), peers);
        final CompletableFuture<String> bound = new CompletableFuture<>();
        poller.execute(
                () -> {
                    try {
                        bound.complete(listener.bind(socketAddress));
                    } catch (IOException | RuntimeException e) {
                        bound.completeExceptionally(e);
                    }
                });
        try {
            return bound.join();
        } catch (CompletionException e) {
            throw new IOException(
                    "cannot bind " + address + ": " + FailureWords.of(e), e.getCause());
        }
    }

    /** The bound address. */
    String endpoint() {
        return endpoint;
    }

    /** The bound address for replays, null without one. */
    String replayEndpoint() {
        return replayEndpoint;
    }

    /** A number as messages have it: 8 bytes, big-endian. */
    static byte[] number(long value) {
        return ByteBuffer.allocate(Long.BYTES).putLong(value).array();
    }

    /** Sends to all whose subscription the first frame begins with; never waits. */
    void send(byte[]... frames) {
        if (queued.get() >= MOST_UNSENT) {
            unsent.getAndIncrement();
            return;
        }
        queued.getAndIncrement();
        poller.execute(
                () -> {
                    queued.getAndDecrement();
                    for (Subscriber subscriber : List.copyOf(subscribers)) {
                        if (!subscriber.send(MOST_UNSENT, frames)) {
                            unsent.getAndIncrement();
                        }
                    }
                });
    }

    /** Messages that were not sent to a subscriber because too many waited. */
    long unsentMessages() {
        return unsent.get();
    }

    /** Ends when what was sent before has left, for a bounded time. */
    @Override
    public void close() {
        if (!poller.isCurrent()) {
            poller.execute(() -> drain(System.nanoTime())); // behind the messages that are queued
            poller.awaitEnd(END_MS);
        }
        poller.close();
        resolver.close();
    }

    private void drain(long sinceNs) {
        if (System.nanoTime() - sinceNs < DRAIN_NS
                && subscribers.stream().anyMatch(Subscriber::isBehind)) {
            poller.schedule(DRAIN_PAUSE_NS, () -> drain(sinceNs));
        } else {
            poller.close();
        }
    }

    /** A peer that has connected to this. */
    private abstract static class ConnectedPeer
            implements ZmtpConnection.Listener, Subscriber.Peer {
        ZmtpConnection connection; // null before it is open

        @Override
        public void opened(ZmtpConnection opened) {
            connection = opened;
        }

        @Override
        public void send(byte[]... frames) {
            connection.send(frames);
        }

        @Override
        public int unsent() {
            return connection.unsent();
        }

        @Override
        public boolean isOpen() {
            return connection.isOpen();
        }
    }

    /** A subscriber that has connected. */
    private final class Accepted extends ConnectedPeer {
        private final Subscriber subscriber = new Subscriber(poller, this, indexers);

        @Override
        public void opened(ZmtpConnection opened) {
            super.opened(opened);
            subscribers.add(subscriber);
        }

        @Override
        public boolean received(ZmtpConnection from, ZmtpMessage message) {
            subscriber.received(message);
            return true;
        }

        @Override
        public void closed(ZmtpConnection closed, String why) {
            subscribers.remove(subscriber);
            subscriber.forget();
        }
    }

    /** A broker that is connected to, now and again. */
    private final class Broker implements Connector.Listener, Subscriber.Peer {
        private final Subscriber subscriber = new Subscriber(poller, this, indexers);
        private final Connector connector;

        private Broker(Endpoint endpoint, ConnectLimit limit) {
            connector =
                    new Connector(
                            poller,
                            resolver,
                            endpoint,
                            options(SocketType.PUB),
                            new Backoff(RECONNECT_NS, RECONNECT_MAX_NS, new SplittableRandom()),
                            limit,
                            this);
        }

        @Override
        public void connected() {
            subscribers.add(subscriber);
        }

        @Override
        public boolean received(ZmtpMessage message) {
            subscriber.received(message);
            return true;
        }

        @Override
        public void disconnected(String why) {
            LOG.warn("{}; it is tried again", why);
            subscribers.remove(subscriber);
            subscriber.forget();
        }

        @Override
        public void connectFailed(String why) {
            LOG.debug("{}; it is tried again", why);
        }

        @Override
        public void send(byte[]... frames) {
            connector.send(frames);
        }

        @Override
        public int unsent() {
            return connector.unsent();
        }

        @Override
        public boolean isOpen() {
            return connector.isConnected();
        }
    }

    /** A peer that asks for old messages: while it is answered, nothing more is read from it. */
    private final class Requester extends ConnectedPeer {
        private final ReplayAnswers answers = new ReplayAnswers(buffer, topic, this);

        @Override
        public boolean received(ZmtpConnection from, ZmtpMessage message) {
            if (answers.isUnderWay()) {
                return false; // it comes again when the answer has ended
            }
            final int last = message.frames() - 1;
            if (last == 1 && message.length(0) == 0 && message.length(1) == Long.BYTES) {
                after(answers.begin(message.readLong(1), System.nanoTime()));
            }
            return true;
        }

        private void after(ReplayAnswers.State state) {
            switch (state) {
                case ENDED -> {}
                case WAITING -> poller.schedule(REPLAY_PAUSE_NS, this::goOn);
                case STALLED -> {
                    LOG.info(
                            "a peer that asked for old messages reads none: its connection is"
                                    + " closed");
                    connection.close();
                }
            }
        }

        private void goOn() {
            if (!connection.isOpen()) {
                return;
            }
            after(answers.goOn(System.nanoTime()));
            if (!answers.isUnderWay()) {
                connection.resume();
            }
        }

        @Override
        public void closed(ZmtpConnection closed, String why) {
            // its answer ends by itself
        }
    }
}
