package io.kvasir.pipeline.source;

import io.kvasir.pipeline.zmtp.ByteBudget;
import io.kvasir.pipeline.zmtp.Endpoint;
import io.kvasir.pipeline.zmtp.FailureWords;
import io.kvasir.pipeline.zmtp.Resolver;
import io.kvasir.pipeline.zmtp.SocketPoller;
import io.kvasir.pipeline.zmtp.ZmtpListener;

import java.io.IOException;
import java.net.InetSocketAddress;
import java.net.SocketAddress;
import java.util.HashMap;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;

/**
 * The connections of all ZMQ sources of a pipeline: a few lanes with one thread each, one
 * connection per address. Any thread.
 */
final class ZmqTransport implements AutoCloseable {
    private static final long BIND_TIMEOUT_S = 10;
    private static final long END_TIMEOUT_MS = 5_000;

    private final ZmqConfig config;
    private final Resolver resolver = new Resolver();
    private final ByteBudget memory;
    private final SourceLane[] lanes;
    private final Map<String, EventFeed> feeds = new HashMap<>();
    private int nextLane;

    ZmqTransport(ZmqConfig config) {
        this.config = config;
        this.memory = new ByteBudget(config.receiveBytes());
        this.lanes = new SourceLane[config.pollers()];
        for (int i = 0; i < lanes.length; i++) {
            lanes[i] = new SourceLane("kvasir-zmq-" + i, config, resolver, memory);
        }
    }

    ZmqConfig config() {
        return config;
    }

    /**
     * Opens a source. A publisher that cannot be reached is no error: the stream is notified.
     *
     * @throws IllegalArgumentException if an address is none, or cannot be bound
     */
    ZmqSource open(EngineStream stream) {
        final SourceConfig source = stream.config();
        try {
            final Endpoint endpoint = endpoint(source);
            return source.bind() ? bind(stream, endpoint) : connect(stream, endpoint);
        } catch (IOException | IllegalArgumentException e) {
            throw refusal(source, e);
        }
    }

    /**
     * Checks the addresses of a source that is not opened; one to bind is bound for a moment.
     *
     * @throws IllegalArgumentException as of {@link #open}
     */
    void check(SourceConfig source) {
        try {
            final Endpoint endpoint = endpoint(source);
            if (source.bind()) {
                tryBind(endpoint);
            }
        } catch (IOException | IllegalArgumentException e) {
            throw refusal(source, e);
        }
    }

    private static Endpoint endpoint(SourceConfig source) {
        if (source.replayEndpoint() != null) {
            Endpoint.parse(source.replayEndpoint()).connectable();
        }
        final Endpoint endpoint = Endpoint.parse(source.endpoint());
        return source.bind() ? endpoint : endpoint.connectable();
    }

    private static IllegalArgumentException refusal(SourceConfig source, Exception cause) {
        return new IllegalArgumentException(
                "cannot "
                        + (source.bind() ? "bind " : "connect to ")
                        + source.endpoint()
                        + " for events of "
                        + source.name()
                        + ": "
                        + FailureWords.of(cause),
                cause);
    }

    private synchronized ZmqSource connect(EngineStream stream, Endpoint endpoint) {
        final EventFeed known = feeds.get(endpoint.text());
        if (known != null) {
            return attach(stream, known);
        }
        final ConnectedFeed feed = new ConnectedFeed(lanes[nextLane], endpoint);
        final ZmqSource source = attach(stream, feed);
        nextLane = (nextLane + 1) % lanes.length;
        feeds.put(feed.address(), feed);
        feed.lane.poller().execute(feed::start);
        return source;
    }

    private ZmqSource bind(EngineStream stream, Endpoint endpoint) throws IOException {
        final SocketAddress address = ZmtpListener.addressOf(endpoint);
        synchronized (this) {
            final EventFeed feed = boundFeed(endpoint, address);
            final ZmqSource source = attach(stream, feed);
            stream.endpoint(feed.address());
            return source;
        }
    }

    private void tryBind(Endpoint endpoint) throws IOException {
        final SocketAddress address = ZmtpListener.addressOf(endpoint);
        final EventFeed feed;
        synchronized (this) {
            feed = boundFeed(endpoint, address);
            if (!forgetUnused(feed)) {
                return;
            }
        }
        close(feed);
    }

    private EventFeed boundFeed(Endpoint endpoint, SocketAddress address) throws IOException {
        final String wanted =
                address instanceof InetSocketAddress tcp ? ZmtpListener.text(tcp) : endpoint.text();
        final EventFeed known = endpoint.isAnyPort() ? null : feeds.get(wanted);
        if (known != null) {
            return known;
        }
        // an address keeps its lane: there an earlier listener is closed before this one
        final SourceLane lane = lanes[Math.floorMod(wanted.hashCode(), lanes.length)];
        return newBoundFeed(lane, endpoint, address);
    }

    private BoundFeed newBoundFeed(SourceLane lane, Endpoint endpoint, SocketAddress address)
            throws IOException {
        final CompletableFuture<BoundFeed> result = new CompletableFuture<>();
        lane.poller()
                .execute(
                        () -> {
                            try {
                                result.complete(new BoundFeed(lane, endpoint, address));
                            } catch (IOException | RuntimeException e) {
                                result.completeExceptionally(e);
                            }
                        });
        try {
            final BoundFeed feed = result.get(BIND_TIMEOUT_S, TimeUnit.SECONDS);
            feeds.put(feed.address(), feed);
            return feed;
        } catch (ExecutionException e) {
            throw new IOException(FailureWords.of(e), e.getCause());
        } catch (TimeoutException e) {
            throw new IOException("no answer from the poller within " + BIND_TIMEOUT_S + " s", e);
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            throw new IOException("interrupted", e);
        }
    }

    private ZmqSource attach(EngineStream stream, EventFeed feed) {
        final ZmqSource source = new ZmqSource(stream, this, feed);
        feed.references++;
        feed.lane.poller().execute(() -> feed.add(source));
        return source;
    }

    /**
     * Lets go of a closed source. An address that was bound for it alone can then be bound again,
     * by other transports of the process too: that is waited for.
     */
    void release(ZmqSource source) {
        final EventFeed feed = source.feed();
        synchronized (this) {
            feed.lane.poller().execute(() -> feed.remove(source));
            feed.references--;
            if (!forgetUnused(feed)) {
                return;
            }
        }
        close(feed);
    }

    /** Forgets a feed that no source refers to; then it is to be closed. Under the lock. */
    private boolean forgetUnused(EventFeed feed) {
        if (feed.references > 0) {
            return false;
        }
        feeds.remove(feed.address());
        return true;
    }

    private static void close(EventFeed feed) {
        final SocketPoller poller = feed.lane.poller();
        final CountDownLatch closed = new CountDownLatch(1);
        poller.execute(
                () -> {
                    try {
                        feed.close();
                    } finally {
                        closed.countDown();
                    }
                });
        if (feed instanceof BoundFeed && !poller.isCurrent()) {
            try {
                closed.await(END_TIMEOUT_MS, TimeUnit.MILLISECONDS);
            } catch (InterruptedException e) {
                Thread.currentThread().interrupt();
            }
        }
    }

    /** Ends all connections and threads. */
    @Override
    public void close() {
        resolver.close();
        for (SourceLane lane : lanes) {
            lane.poller().close();
        }
        for (SourceLane lane : lanes) {
            lane.poller().awaitEnd(END_TIMEOUT_MS);
        }
    }
}
