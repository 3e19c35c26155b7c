package io.kvasir.sim.events;

import io.kvasir.nixl.exchange.zmq.BoundPort;
import io.kvasir.nixl.exchange.zmq.FrameLimit;
import io.kvasir.sim.config.SimConfig;

import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import org.zeromq.SocketType;
import org.zeromq.ZContext;
import org.zeromq.ZFrame;
import org.zeromq.ZMQ;
import org.zeromq.ZMsg;

import java.net.BindException;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;

/**
 * The event sockets of one life of an engine: a publisher and a replay socket per rank.
 *
 * <p>{@link #publish} belongs to the thread of the step loop; replay is answered by a thread of its
 * own, which is the only one that touches the replay sockets.
 *
 * <pre>
 * message:  topic | sequence (8 bytes, big-endian) | payload
 * request:  "" | first sequence wanted
 * answer:   "" | topic | sequence | payload, for each; then "" | "" | -1 | ""
 * </pre>
 */
public final class EventSockets implements EventPublisher, AutoCloseable {
    /** Instead of a port where there is no socket. */
    public static final int DISABLED = -1;

    private static final Logger LOG = LoggerFactory.getLogger(EventSockets.class);
    private static final int PUBLISHER_HIGH_WATER_MARK = 100_000;
    private static final int MOST_FRAME_BYTES = 4_096; // a subscription, or a number to replay from
    private static final int POLL_MILLIS = 50;
    private static final long BIND_RETRY_NS = TimeUnit.SECONDS.toNanos(5);
    private static final byte[] EMPTY = new byte[0];
    private static final byte[] END = sequenceBytes(-1);

    /** Ports of all ranks; {@link #DISABLED} where there is no socket, 0 where any will do. */
    public static final class Ports {
        private final int[] events;
        private final int[] replay;

        private Ports(int[] events, int[] replay) {
            this.events = events;
            this.replay = replay;
        }

        /** Ports that a configuration asks for. */
        public static Ports wanted(SimConfig config) {
            return new Ports(
                    ports(config.eventsPort(), config.dataParallelSize()),
                    ports(
                            config.eventsPort() == DISABLED ? DISABLED : config.replayPort(),
                            config.dataParallelSize()));
        }

        /** Port at which the events of a rank are published. */
        public int events(int rank) {
            return events[rank];
        }

        /** Port at which those of a rank are replayed. */
        public int replay(int rank) {
            return replay[rank];
        }

        private static int[] ports(int base, int ranks) {
            final int[] ports = new int[ranks];
            for (int r = 0; r < ranks; r++) {
                ports[r] = base <= 0 ? base : base + r;
            }
            return ports;
        }
    }

    private final ZContext context = new ZContext(1);
    private final byte[] topic;
    private final ZMQ.Socket[] publishers;
    private final ZMQ.Socket[] replays;
    private final ReplayBuffer[] buffers;
    private final Ports ports;
    private final Thread replayThread;
    private volatile boolean closed;

    /**
     * Binds the sockets.
     *
     * @param ports where to bind; 0 takes a free port
     * @throws IllegalStateException when a port stays taken
     */
    public EventSockets(SimConfig config, Ports ports) {
        final int ranks = config.dataParallelSize();
        this.topic = config.topic().getBytes(StandardCharsets.UTF_8);
        this.publishers = new ZMQ.Socket[ranks];
        this.replays = new ZMQ.Socket[ranks];
        this.buffers = new ReplayBuffer[ranks];
        this.ports = new Ports(new int[ranks], new int[ranks]);
        context.setLinger(0);
        try {
            for (int r = 0; r < ranks; r++) {
                buffers[r] = new ReplayBuffer(config.replaySteps(), config.replayBytes());
                this.ports.events[r] = ports.events[r];
                this.ports.replay[r] = ports.replay[r];
                if (ports.events[r] != DISABLED) {
                    publishers[r] = context.createSocket(SocketType.PUB);
                    publishers[r].setSndHWM(PUBLISHER_HIGH_WATER_MARK);
                    this.ports.events[r] = bind(publishers[r], config.host(), ports.events[r]);
                }
                if (ports.replay[r] != DISABLED) {
                    replays[r] = context.createSocket(SocketType.ROUTER);
                    replays[r].setSndHWM(
                            0); // a replay is as long as the buffer, however slow its reader
                    this.ports.replay[r] = bind(replays[r], config.host(), ports.replay[r]);
                }
            }
        } catch (RuntimeException e) {
            context.close();
            throw e;
        }
        this.replayThread =
                ports.replay[0] == DISABLED
                        ? null
                        : Thread.ofPlatform()
                                .daemon()
                                .name("sim-replay-" + this.ports.replay[0])
                                .start(this::answerReplays);
    }

    /** Ports that are bound. */
    public Ports ports() {
        return ports;
    }

    @Override
    public void publish(int rank, long sequence, byte[] payload, boolean lost) {
        buffers[rank].add(sequence, payload);
        if (!lost && publishers[rank] != null) {
            publishers[rank].send(topic, ZMQ.SNDMORE);
            publishers[rank].send(sequenceBytes(sequence), ZMQ.SNDMORE);
            publishers[rank].send(payload, 0);
        }
    }

    @Override
    public void close() {
        closed = true;
        if (replayThread != null) {
            try {
                replayThread.join();
            } catch (InterruptedException e) {
                Thread.currentThread().interrupt();
            }
        }
        context.close();
    }

    private static int bind(ZMQ.Socket socket, String host, int port) {
        FrameLimit.set(socket, MOST_FRAME_BYTES);
        final long deadline = System.nanoTime() + BIND_RETRY_NS;
        while (true) {
            try {
                return BoundPort.bind(socket, host, port);
            } catch (BindException e) {
                // a restarted engine binds the port that its former life has just given back
                if (System.nanoTime() > deadline) {
                    throw new IllegalStateException(e.getMessage(), e);
                }
                LockSupport.parkNanos(TimeUnit.MILLISECONDS.toNanos(20));
            }
        }
    }

    private void answerReplays() {
        final ZMQ.Poller poller = context.createPoller(replays.length);
        for (ZMQ.Socket replay : replays) {
            poller.register(replay, ZMQ.Poller.POLLIN);
        }
        while (!closed) {
            if (poller.poll(POLL_MILLIS) <= 0) {
                continue;
            }
            for (int r = 0; r < replays.length; r++) {
                if (poller.pollin(r)) {
                    answer(r);
                }
            }
        }
        poller.close();
    }

    private void answer(int rank) {
        final ZMsg request = ZMsg.recvMsg(replays[rank]);
        if (request == null) {
            return;
        }
        final byte[] client = request.pop().getData();
        final ZFrame delimiter = request.pop();
        final ZFrame start = request.pop();
        if (delimiter == null || start == null || start.size() != Long.BYTES) {
            LOG.warn("replay request of rank {} is not [\"\", 8 bytes]: {}", rank, request);
            return;
        }
        final long from = ByteBuffer.wrap(start.getData()).getLong();
        for (ReplayBuffer.Message message : buffers[rank].from(from)) {
            reply(rank, client, topic, sequenceBytes(message.sequence()), message.payload());
        }
        reply(rank, client, EMPTY, END, EMPTY);
    }

    private void reply(int rank, byte[] client, byte[] name, byte[] sequence, byte[] payload) {
        final ZMQ.Socket socket = replays[rank];
        socket.send(client, ZMQ.SNDMORE);
        socket.send(EMPTY, ZMQ.SNDMORE);
        socket.send(name, ZMQ.SNDMORE);
        socket.send(sequence, ZMQ.SNDMORE);
        socket.send(payload, 0);
    }

    private static byte[] sequenceBytes(long sequence) {
        return ByteBuffer.allocate(Long.BYTES).putLong(sequence).array();
    }
}
