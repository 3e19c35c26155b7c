package io.kvasir.pipeline.publish;

import io.kvasir.pipeline.zmtp.ByteBudget;
import io.kvasir.pipeline.zmtp.Endpoint;
import io.kvasir.pipeline.zmtp.SocketPoller;
import io.kvasir.pipeline.zmtp.SocketType;
import io.kvasir.pipeline.zmtp.ZmtpConnection;
import io.kvasir.pipeline.zmtp.ZmtpListener;
import io.kvasir.pipeline.zmtp.ZmtpMessage;
import io.kvasir.pipeline.zmtp.ZmtpOptions;

import java.io.IOException;
import java.net.SocketAddress;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;
import java.util.function.Supplier;

/**
 * A bound ZMQ publisher, with a socket that answers requests for what was published before. Sends
 * to each subscriber what it has subscribed to; a subscriber that does not read loses what is
 * beyond a limit, and no other one does.
 *
 * <p>{@link #send}, {@link #unsentMessages} and {@link #close} may be called by any thread; the
 * rest is done by the poller's own.
 *
 * <pre>
 * request:  "" | first number wanted, 8 bytes
 * answer:   "" | topic | number | payload, for each; then "" | "" | -1 | ""
 * </pre>
 */
final class ZmqPublisher implements AutoCloseable {
    /** Messages that wait for one subscriber at most. */
    static final int MOST_UNSENT = 100_000;

    private static final int REPLAY_AHEAD = 64;
    private static final long REPLAY_PAUSE_NS = TimeUnit.MILLISECONDS.toNanos(1);
    private static final long MAX_REQUEST_BYTES = 1 << 16;
    private static final long BUDGET_BYTES = 1 << 24;
    private static final long HANDSHAKE_NS = TimeUnit.SECONDS.toNanos(10);
    private static final long END_MS = 10_000;
    private static final byte[] EMPTY = {};
    private static final byte[] END = number(-1);

    private final SocketPoller poller;
    private final ByteBudget budget = new ByteBudget(BUDGET_BYTES);
    private final Set<Subscriber> subscribers = new HashSet<>(); // of the poller's thread
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
     */
    ZmqPublisher(String endpoint, String replayEndpoint, byte[] topic, ReplayBuffer buffer)
            throws IOException {
        this.topic = topic;
        this.buffer = buffer;
        this.poller = new SocketPoller("kvasir-zmq-publisher");
        try {
            this.endpoint = bind(endpoint, SocketType.PUB, Subscriber::new);
            this.replayEndpoint =
                    replayEndpoint == null
                            ? null
                            : bind(replayEndpoint, SocketType.ROUTER, Requester::new);
        } catch (IOException e) {
            poller.close();
            throw e;
        }
    }

    private String bind(String address, SocketType type, Supplier<ZmtpConnection.Listener> peers)
            throws IOException {
        final Endpoint wanted = Endpoint.parse(address);
        final SocketAddress socketAddress = ZmtpListener.addressOf(wanted);
        final ZmtpOptions options = new ZmtpOptions(type, MAX_REQUEST_BYTES, HANDSHAKE_NS, budget);
        final ZmtpListener listener = new ZmtpListener(poller, wanted, options, peers);
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
            throw new IOException("cannot bind " + address + ": " + e.getCause(), e.getCause());
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
                        subscriber.send(frames);
                    }
                });
    }

    /** Messages that were not sent to a subscriber because too many waited. */
    long unsentMessages() {
        return unsent.get();
    }

    @Override
    public void close() {
        poller.close();
        if (!poller.isCurrent()) {
            poller.awaitEnd(END_MS);
        }
    }

    /** A subscriber and what it has subscribed to. */
    private final class Subscriber implements ZmtpConnection.Listener {
        private final List<byte[]> prefixes = new ArrayList<>(1);
        private ZmtpConnection connection;

        @Override
        public void opened(ZmtpConnection opened) {
            connection = opened;
            subscribers.add(this);
        }

        @Override
        public boolean received(ZmtpConnection from, ZmtpMessage message) {
            if (message.frames() == 1 && message.length(0) > 0) {
                final byte[] frame = message.copy(0);
                final byte[] prefix = Arrays.copyOfRange(frame, 1, frame.length);
                if (frame[0] == 1) {
                    prefixes.add(prefix);
                } else {
                    unsubscribe(prefix);
                }
            }
            return true;
        }

        private void unsubscribe(byte[] prefix) {
            for (int i = 0; i < prefixes.size(); i++) {
                if (Arrays.equals(prefixes.get(i), prefix)) {
                    prefixes.remove(i);
                    return;
                }
            }
        }

        private void send(byte[]... frames) {
            if (!wants(frames[0])) {
                return;
            }
            if (connection.unsent() >= MOST_UNSENT) {
                unsent.getAndIncrement();
            } else {
                connection.send(frames);
            }
        }

        private boolean wants(byte[] first) {
            for (byte[] prefix : prefixes) {
                if (first.length >= prefix.length
                        && Arrays.equals(first, 0, prefix.length, prefix, 0, prefix.length)) {
                    return true;
                }
            }
            return false;
        }

        @Override
        public void closed(ZmtpConnection gone, String why) {
            subscribers.remove(this);
        }
    }

    /** A peer that asks for old messages. */
    private final class Requester implements ZmtpConnection.Listener {
        @Override
        public void opened(ZmtpConnection connection) {
            // it asks when it wants something
        }

        @Override
        public boolean received(ZmtpConnection connection, ZmtpMessage message) {
            final int last = message.frames() - 1;
            if (last == 1 && message.length(0) == 0 && message.length(1) == Long.BYTES) {
                answer(connection, Math.max(0, message.readLong(1)), buffer.next());
            }
            return true;
        }

        /** Sends as much as the connection takes, then goes on a little later. */
        private void answer(ZmtpConnection connection, long from, long end) {
            long number = from;
            while (connection.isOpen() && connection.unsent() < REPLAY_AHEAD) {
                number = buffer.available(number);
                if (number >= end) {
                    connection.send(EMPTY, EMPTY, END, EMPTY);
                    return;
                }
                connection.send(EMPTY, topic, number(number), buffer.get(number));
                number++;
            }
            final long next = number;
            if (connection.isOpen()) {
                poller.schedule(REPLAY_PAUSE_NS, () -> answer(connection, next, end));
            }
        }

        @Override
        public void closed(ZmtpConnection connection, String why) {
            // its answer ends by itself
        }
    }
}
