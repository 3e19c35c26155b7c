package io.kvasir.pipeline;

import io.kvasir.pipeline.wire.DropReason;

import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import org.zeromq.SocketType;
import org.zeromq.ZEvent;
import org.zeromq.ZMQ;
import org.zeromq.ZMQException;

import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;

/**
 * Receives the events of one (worker, rank) from a ZMQ publisher: topic, number of 8 bytes
 * big-endian, payload. One thread owns the sockets and feeds the stream; while it waits for a
 * replay, live messages wait in the socket.
 */
final class ZmqSource implements EventSource {
    private static final Logger LOG = LoggerFactory.getLogger(ZmqSource.class);
    private static final int POLL_MS = 100;
    private static final int BURST = 256;
    private static final int FRAMES = 3;
    private static final int RECONNECT_MS = 100;
    private static final int RECONNECT_MAX_MS = 2_000;
    private static final long JOIN_MS = 10_000;
    private static final long ERROR_PAUSE_NS = TimeUnit.MILLISECONDS.toNanos(100);
    private static final int CONNECTIONS = ZMQ.EVENT_HANDSHAKE_PROTOCOL;

    private final EngineStream stream;
    private final EventPipelineConfig config;
    private final ZMQ.Socket subscriber;
    private final ZMQ.Socket monitor;
    private final ZMQ.Poller poller;
    private final ReplayClient replay;
    private final Thread thread;
    private final byte[][] frames = new byte[FRAMES][];
    private long tailCheckAtNs;
    private volatile boolean closed;

    private ZmqSource(EventPipelineConfig config, ZmqSockets sockets, EngineStream stream) {
        this.stream = stream;
        this.config = config;
        this.subscriber = sockets.create(SocketType.SUB);
        this.monitor = sockets.monitor(subscriber, CONNECTIONS);
        this.poller = sockets.poller(2);
        this.replay = new ReplayClient(sockets, config, stream, () -> closed);
        final SourceConfig source = stream.config();
        this.thread = new Thread(this::run, "kvasir-zmq-" + source.name() + "-" + source.dpRank());
        thread.setDaemon(true);
    }

    static ZmqSource open(EventPipelineConfig config, ZmqSockets sockets, EngineStream stream) {
        final ZmqSource source = new ZmqSource(config, sockets, stream);
        try {
            source.attach();
        } catch (RuntimeException e) {
            source.closeSockets();
            throw new IllegalArgumentException(
                    "cannot "
                            + (stream.config().bind() ? "bind " : "connect to ")
                            + stream.config().endpoint()
                            + " for events of "
                            + stream.config().name(),
                    e);
        }
        source.thread.start();
        return source;
    }

    private void attach() {
        final SourceConfig source = stream.config();
        subscriber.setRcvHWM(config.receiveHighWaterMark());
        subscriber.setMaxMsgSize(config.maxMessageBytes());
        subscriber.setReconnectIVL(RECONNECT_MS);
        subscriber.setReconnectIVLMax(RECONNECT_MAX_MS);
        subscriber.setTCPKeepAlive(1);
        subscriber.subscribe(source.topic().getBytes(StandardCharsets.UTF_8));
        poller.register(subscriber, ZMQ.Poller.POLLIN);
        poller.register(monitor, ZMQ.Poller.POLLIN);
        if (source.bind()) {
            subscriber.bind(source.endpoint());
            stream.endpoint(subscriber.getLastEndpoint());
        } else {
            subscriber.connect(source.endpoint());
        }
    }

    private void run() {
        while (!closed) {
            try {
                poller.poll(POLL_MS);
                takeConnections();
                takeMessages();
                stream.tick();
                if (tailCheckAtNs != 0 && System.nanoTime() - tailCheckAtNs >= 0) {
                    tailCheckAtNs = 0;
                    stream.checkTail();
                }
                if (stream.replayFrom() >= 0) {
                    replay.run();
                }
            } catch (ZMQException e) {
                if (e.getErrorCode() == ZMQ.Error.ETERM.getCode()) {
                    break;
                }
                pauseAfter(e);
            } catch (RuntimeException e) {
                pauseAfter(e);
            }
        }
        closeSockets();
    }

    private void pauseAfter(RuntimeException error) {
        LOG.error("{}: receiving failed; going on", thread.getName(), error);
        LockSupport.parkNanos(ERROR_PAUSE_NS);
    }

    private void takeConnections() {
        boolean connected = false;
        // monitored for handshakes only, so any event is a connection, made by us or to us
        while (ZEvent.recv(monitor, ZMQ.DONTWAIT) != null) {
            connected = true;
        }
        if (connected) {
            stream.onConnected();
            if (config.tailCheckMs() > 0) {
                tailCheckAtNs =
                        System.nanoTime() + TimeUnit.MILLISECONDS.toNanos(config.tailCheckMs());
            }
        }
    }

    private void takeMessages() {
        for (int i = 0; i < BURST && stream.replayFrom() < 0; i++) {
            if (!takeMessage()) {
                return;
            }
        }
    }

    private boolean takeMessage() {
        byte[] frame = subscriber.recv(ZMQ.DONTWAIT);
        if (frame == null) {
            return false;
        }
        int count = 0;
        while (true) {
            if (count < FRAMES) {
                frames[count] = frame;
            }
            count++;
            if (!subscriber.hasReceiveMore()) {
                break;
            }
            frame = subscriber.recv();
        }
        if (count != FRAMES) {
            stream.dropped(DropReason.BAD_FRAME_COUNT, "a message of " + count + " frames, not 3");
        } else if (frames[1].length != Long.BYTES) {
            stream.dropped(
                    DropReason.BAD_SEQUENCE_FRAME,
                    "a message number of " + frames[1].length + " bytes, not 8");
        } else {
            stream.onMessage(ByteBuffer.wrap(frames[1]).getLong(), frames[2]);
        }
        return true;
    }

    private void closeSockets() {
        poller.close();
        monitor.close();
        subscriber.close();
    }

    @Override
    public SourceStatus status() {
        return stream.status();
    }

    @Override
    public IndexState state() {
        return stream.state();
    }

    @Override
    public boolean ready() {
        return stream.ready();
    }

    @Override
    public double credit(double degradedCredit) {
        return stream.credit(degradedCredit);
    }

    @Override
    public void reportServed() {
        stream.reportServed();
    }

    @Override
    public void clear() {
        stream.clear();
    }

    @Override
    public void reportEngineHit(int predictedCachedTokens, int engineCachedTokens) {
        stream.reportEngineHit(predictedCachedTokens, engineCachedTokens);
    }

    /** Tells the thread to end, without waiting for it. */
    void stop() {
        closed = true;
        stream.close();
    }

    @Override
    public void close() {
        stop();
        if (thread.equals(Thread.currentThread())) {
            return;
        }
        try {
            thread.join(JOIN_MS);
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
    }
}
