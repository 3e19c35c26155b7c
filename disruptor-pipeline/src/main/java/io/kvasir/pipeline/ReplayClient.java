package io.kvasir.pipeline;

import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import org.zeromq.SocketType;
import org.zeromq.ZMQ;

import java.nio.ByteBuffer;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;
import java.util.function.BooleanSupplier;

/**
 * Asks an engine's replay socket for old messages and passes them to the stream that wants them.
 *
 * <p>Request: an empty frame, then the first number wanted as 8 bytes big-endian. Answer: one
 * message per batch, {@code ["", topic, number, payload]} or without the topic in older engines; at
 * the end one whose number is −1. Each request has a socket of its own, so that a late answer of an
 * abandoned one is never taken for the answer of the next. Runs on the source's thread.
 */
final class ReplayClient {
    private static final Logger LOG = LoggerFactory.getLogger(ReplayClient.class);
    private static final int POLL_MS = 50;
    private static final int MAX_ROUNDS = 8;
    private static final int MAX_FRAMES = 4;
    private static final long FULL_RING_PARK_NS = TimeUnit.MILLISECONDS.toNanos(1);

    private enum Outcome {
        ENDED,
        STOPPED,
        NO_ANSWER
    }

    private final ZmqSockets sockets;
    private final EventPipelineConfig config;
    private final EngineStream stream;
    private final BooleanSupplier closed;
    private final byte[][] frames = new byte[MAX_FRAMES][];

    ReplayClient(
            ZmqSockets sockets,
            EventPipelineConfig config,
            EngineStream stream,
            BooleanSupplier closed) {
        this.sockets = sockets;
        this.config = config;
        this.stream = stream;
        this.closed = closed;
    }

    /** Asks until the stream wants nothing more or the tries are used up. */
    void run() {
        int failed = 0;
        for (int round = 0; round < MAX_ROUNDS; round++) {
            final long from = stream.replayFrom();
            if (from < 0 || closed.getAsBoolean()) {
                return;
            }
            switch (ask(from)) {
                case ENDED -> stream.replayEnded();
                case STOPPED -> {} // the stream has changed its mind about what it wants
                case NO_ANSWER -> {
                    failed++;
                    if (failed >= config.replayAttempts() && !closed.getAsBoolean()) {
                        stream.replayFailed();
                        return;
                    }
                }
            }
        }
    }

    private Outcome ask(long from) {
        final ZMQ.Socket dealer = sockets.create(SocketType.DEALER);
        final ZMQ.Poller poller = sockets.poller(1);
        try {
            dealer.setRcvHWM(config.receiveHighWaterMark());
            dealer.setSendTimeOut(config.replayTimeoutMs());
            dealer.setMaxMsgSize(config.maxMessageBytes());
            dealer.connect(stream.config().replayEndpoint());
            final byte[] number = ByteBuffer.allocate(Long.BYTES).putLong(from).array();
            if (!dealer.sendMore(new byte[0]) || !dealer.send(number)) {
                return Outcome.NO_ANSWER;
            }
            poller.register(dealer, ZMQ.Poller.POLLIN);
            return receive(dealer, poller);
        } finally {
            poller.close();
            dealer.close();
        }
    }

    private Outcome receive(ZMQ.Socket dealer, ZMQ.Poller poller) {
        final long patienceNs = TimeUnit.MILLISECONDS.toNanos(config.replayTimeoutMs());
        long heardNs = System.nanoTime();
        while (!closed.getAsBoolean()) {
            final int count = receiveFrames(dealer);
            if (count == 0) {
                if (System.nanoTime() - heardNs > patienceNs) {
                    return Outcome.NO_ANSWER;
                }
                poller.poll(POLL_MS);
                continue;
            }
            heardNs = System.nanoTime();
            if (count < 2 || count > MAX_FRAMES || frames[count - 2].length != Long.BYTES) {
                LOG.warn(
                        "{}: a replay answer of {} frames is ignored",
                        stream.config().replayEndpoint(),
                        count);
                continue;
            }
            final long sequence = ByteBuffer.wrap(frames[count - 2]).getLong();
            if (sequence < 0) {
                return Outcome.ENDED;
            }
            if (pass(sequence, frames[count - 1]) == EngineStream.ReplayStep.STOP) {
                return Outcome.STOPPED;
            }
        }
        return Outcome.STOPPED;
    }

    /** Waits for room in the ring: the rest of the answer is kept by the socket. */
    private EngineStream.ReplayStep pass(long sequence, byte[] payload) {
        EngineStream.ReplayStep step = stream.onReplayed(sequence, payload);
        while (step == EngineStream.ReplayStep.RETRY && !closed.getAsBoolean()) {
            LockSupport.parkNanos(FULL_RING_PARK_NS);
            step = stream.onReplayed(sequence, payload);
        }
        return step;
    }

    /** Receives one message if there is one; returns its number of frames, 0 if there is none. */
    private int receiveFrames(ZMQ.Socket dealer) {
        byte[] frame = dealer.recv(ZMQ.DONTWAIT);
        if (frame == null) {
            return 0;
        }
        int count = 0;
        while (true) {
            if (count < MAX_FRAMES) {
                frames[count] = frame;
            }
            count++;
            if (!dealer.hasReceiveMore()) {
                return count;
            }
            frame = dealer.recv();
        }
    }
}
