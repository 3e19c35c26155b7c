package io.kvasir.pipeline.source;

import io.kvasir.pipeline.zmtp.Backoff;
import io.kvasir.pipeline.zmtp.ByteBudget;
import io.kvasir.pipeline.zmtp.ConnectLimit;
import io.kvasir.pipeline.zmtp.Connector;
import io.kvasir.pipeline.zmtp.Endpoint;
import io.kvasir.pipeline.zmtp.Resolver;
import io.kvasir.pipeline.zmtp.SocketPoller;
import io.kvasir.pipeline.zmtp.SocketType;
import io.kvasir.pipeline.zmtp.ZmtpConnection;
import io.kvasir.pipeline.zmtp.ZmtpListener;
import io.kvasir.pipeline.zmtp.ZmtpOptions;

import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.List;
import java.util.Queue;
import java.util.SplittableRandom;
import java.util.concurrent.TimeUnit;
import java.util.function.Supplier;

/**
 * One poller and the sources on it: their ticks, spread over time, and the turn of their replays.
 * All methods on the poller's thread, but {@link #poller}.
 */
final class SourceLane {
    private static final long SLICE_NS = TimeUnit.MILLISECONDS.toNanos(50);
    private static final int SLICES = 4;
    private static final int CONNECTS_AT_A_TIME = 512;

    private final SocketPoller poller;
    private final Resolver resolver;
    private final ZmqConfig config;
    private final ByteBudget memory;
    private final ConnectLimit connects;
    private final int maxReplays;
    private final SplittableRandom random = new SplittableRandom();
    private final List<ZmqSource> sources = new ArrayList<>();
    private final Queue<ZmqSource> wantReplay = new ArrayDeque<>();
    private int replays;
    private int nextTick;

    SourceLane(String name, ZmqConfig config, Resolver resolver, ByteBudget memory) {
        this.poller = new SocketPoller(name);
        this.resolver = resolver;
        this.config = config;
        this.memory = memory;
        this.connects = new ConnectLimit(poller, CONNECTS_AT_A_TIME);
        this.maxReplays = Math.max(1, config.replays() / config.pollers());
        poller.execute(this::tickLater);
    }

    SocketPoller poller() {
        return poller;
    }

    ZmqConfig config() {
        return config;
    }

    ByteBudget memory() {
        return memory;
    }

    private void tickLater() {
        poller.schedule(SLICE_NS, this::tick);
    }

    private void tick() {
        try {
            for (int left = (sources.size() + SLICES - 1) / SLICES; left > 0; left--) {
                nextTick = nextTick < sources.size() ? nextTick : 0;
                sources.get(nextTick++).tick();
            }
        } finally {
            tickLater();
        }
    }

    void add(ZmqSource source) {
        source.laneIndex(sources.size());
        sources.add(source);
    }

    void remove(ZmqSource source) {
        final ZmqSource last = sources.removeLast();
        if (last != source) {
            sources.set(source.laneIndex(), last);
            last.laneIndex(source.laneIndex());
        }
        source.released();
    }

    /** Has a source begin its replay when it is its turn. */
    void wantReplay(ZmqSource source) {
        wantReplay.add(source);
        startReplays();
    }

    /** Says that a source's replay is over. */
    void replayOver() {
        replays--;
        startReplays();
    }

    private void startReplays() {
        while (replays < maxReplays && !wantReplay.isEmpty()) {
            if (wantReplay.poll().startReplay()) {
                replays++;
            }
        }
    }

    ZmtpOptions subscriberOptions() {
        return options(SocketType.SUB);
    }

    ZmtpOptions replayOptions() {
        return options(SocketType.DEALER);
    }

    private ZmtpOptions options(SocketType type) {
        return new ZmtpOptions(
                type,
                config.maxMessageBytes(),
                TimeUnit.MILLISECONDS.toNanos(config.handshakeMs()),
                memory);
    }

    Backoff backoff() {
        return new Backoff(
                TimeUnit.MILLISECONDS.toNanos(config.reconnectMs()),
                TimeUnit.MILLISECONDS.toNanos(config.reconnectMaxMs()),
                random);
    }

    Connector connector(Endpoint endpoint, ZmtpOptions options, Connector.Listener listener) {
        return new Connector(poller, resolver, endpoint, options, backoff(), connects, listener);
    }

    ZmtpListener listener(Endpoint endpoint, Supplier<ZmtpConnection.Listener> newPeer) {
        return new ZmtpListener(poller, endpoint, subscriberOptions(), newPeer);
    }
}
