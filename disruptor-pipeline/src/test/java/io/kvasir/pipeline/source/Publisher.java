package io.kvasir.pipeline.source;

import static org.junit.jupiter.api.Assertions.assertEquals;

import io.kvasir.testsupport.FreePorts;

import org.zeromq.SocketType;
import org.zeromq.ZContext;
import org.zeromq.ZMQ;
import org.zeromq.ZMQException;

import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;

/** A small engine: publishes messages over real sockets and answers replay requests. */
final class Publisher implements AutoCloseable {
    /** Number of what ends an answer. */
    static final long END = -1;

    private static final String ANY_PORT = "tcp://127.0.0.1:*";

    private final ZContext context = new ZContext(1);
    private final ZMQ.Socket events = context.createSocket(SocketType.XPUB);
    private final String endpoint;
    private final String replayEndpoint;
    private final List<byte[]> kept = new CopyOnWriteArrayList<>();
    private final List<Long> asked = new CopyOnWriteArrayList<>();
    private final Thread replies;
    private volatile Sends sends = (request, number) -> true;
    private volatile boolean mute;
    private volatile boolean withTopic = true;
    private volatile int keptFrom;
    private volatile boolean closed;

    /** Whether a message of an answer is sent, as of a socket that drops what finds no room. */
    @FunctionalInterface
    interface Sends {
        /**
         * Whether it is.
         *
         * @param request 1 for the first one
         * @param number of the message, {@link #END} for the end
         */
        boolean sends(int request, long number);
    }

    /** Binds free ports; see {@link #at} for given ones. */
    Publisher() {
        this(ANY_PORT, ANY_PORT);
    }

    private Publisher(String eventsAddress, String replayAddress) {
        events.setSndHWM(0);
        events.setLinger(0);
        endpoint = bind(events, eventsAddress);
        final ZMQ.Socket router = context.createSocket(SocketType.ROUTER);
        router.setLinger(0);
        router.setSndHWM(0); // what is dropped is chosen: see sends
        replayEndpoint = bind(router, replayAddress);
        replies = new Thread(() -> answer(router), "test-replay");
        replies.start();
    }

    /** A port that no connection of this machine takes while the engine is away. */
    private static String bind(ZMQ.Socket socket, String address) {
        for (int tries = 0; address.equals(ANY_PORT) && tries < 100; tries++) {
            try {
                socket.bind("tcp://127.0.0.1:" + FreePorts.run(1));
                return socket.getLastEndpoint();
            } catch (ZMQException e) {
                assertEquals(ZMQ.Error.EADDRINUSE.getCode(), e.getErrorCode());
            }
        }
        socket.bind(address);
        return socket.getLastEndpoint();
    }

    /** A new life of the engine, on the same addresses. */
    static Publisher at(String endpoint, String replayEndpoint) {
        return new Publisher(endpoint, replayEndpoint);
    }

    String endpoint() {
        return endpoint;
    }

    String replayEndpoint() {
        return replayEndpoint;
    }

    /** Numbers asked for so far. */
    List<Long> asked() {
        return asked;
    }

    /** Stops or resumes answering. */
    void mute(boolean silent) {
        mute = silent;
    }

    /** Leaves messages out of answers. */
    void sends(Sends which) {
        sends = which;
    }

    /** Answers in the older form, without the topic. */
    void oldReplayForm() {
        withTopic = false;
    }

    /** Forgets messages before a number, as a bounded replay buffer does. */
    void forgetBefore(int sequence) {
        keptFrom = sequence;
    }

    /** Waits until a subscription has arrived: from then on nothing sent is missed. */
    void awaitSubscriber() {
        events.setReceiveTimeOut(60_000);
        final byte[] subscription = events.recv();
        if (subscription == null || subscription.length == 0 || subscription[0] != 1) {
            throw new IllegalStateException("no subscription within a minute");
        }
    }

    /** Adds a message without sending it: lost on the way. */
    int lose(byte[] payload) {
        kept.add(payload);
        return kept.size() - 1;
    }

    /** Adds and sends a message; returns its number. */
    int publish(byte[] payload) {
        final int sequence = lose(payload);
        send(number(sequence), payload);
        return sequence;
    }

    void send(byte[]... framesBehindTopic) {
        final List<byte[]> frames = new ArrayList<>();
        frames.add("kv-events".getBytes(java.nio.charset.StandardCharsets.US_ASCII));
        frames.addAll(List.of(framesBehindTopic));
        sendRaw(frames);
    }

    void sendRaw(List<byte[]> frames) {
        for (int i = 0; i < frames.size(); i++) {
            events.send(frames.get(i), i + 1 < frames.size() ? ZMQ.SNDMORE : 0);
        }
    }

    static byte[] number(long sequence) {
        return ByteBuffer.allocate(8).putLong(sequence).array();
    }

    private void answer(ZMQ.Socket router) {
        router.setReceiveTimeOut(20);
        while (!closed) {
            final byte[] identity = router.recv();
            if (identity == null) {
                continue;
            }
            byte[] last = identity;
            while (router.hasReceiveMore()) {
                last = router.recv();
            }
            final long from = ByteBuffer.wrap(last).getLong();
            final boolean unanswered = mute; // as it is before the question shows
            asked.add(from);
            if (unanswered) {
                continue;
            }
            final List<byte[]> messages = List.copyOf(kept);
            for (int i = (int) Math.max(from, keptFrom); i < messages.size(); i++) {
                reply(router, identity, "kv-events", i, messages.get(i));
            }
            reply(router, identity, "", END, new byte[0]);
        }
        router.close();
    }

    private void reply(
            ZMQ.Socket router, byte[] identity, String topic, long sequence, byte[] payload) {
        if (!sends.sends(asked.size(), sequence)) {
            return;
        }
        router.send(identity, ZMQ.SNDMORE);
        router.send(new byte[0], ZMQ.SNDMORE);
        if (withTopic) {
            router.send(topic, ZMQ.SNDMORE);
        }
        router.send(number(sequence), ZMQ.SNDMORE);
        router.send(payload, 0);
    }

    @Override
    public void close() {
        closed = true;
        try {
            replies.join(); // no socket may be closed while it is used
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
        events.close();
        context.close();
    }
}
