package io.kvasir.sim.testing;

import io.kvasir.sim.SimEngine;
import io.kvasir.testsupport.ConnectingContext;

import org.zeromq.SocketType;
import org.zeromq.ZMQ;

import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

/** Subscriber and replay client of one rank, for tests; reads msgpack with a reader of its own. */
public final class EventClient implements AutoCloseable {
    /** One message off the wire. */
    public record Message(String topic, long sequence, List<Object> batch) {
        @SuppressWarnings("unchecked")
        public List<Map<String, Object>> events() {
            return (List<Map<String, Object>>) batch.get(1);
        }

        public List<String> types() {
            return events().stream().map(e -> (String) e.get("type")).toList();
        }
    }

    private final ConnectingContext context = new ConnectingContext();
    private final ZMQ.Socket subscriber;
    private final SimEngine engine;
    private final int rank;

    public EventClient(SimEngine engine, int rank) {
        this.engine = engine;
        this.rank = rank;
        this.subscriber = context.socket(SocketType.SUB);
        subscriber.setReceiveTimeOut(60_000);
        subscriber.setRcvHWM(0);
        subscriber.subscribe(ZMQ.SUBSCRIPTION_ALL);
        subscriber.setIPv6(engine.eventsEndpoint(rank).contains("["));
        subscriber.connect(engine.eventsEndpoint(rank));
    }

    /**
     * Waits until the subscription works, by making the engine publish until something arrives, and
     * reads all that it has published by then.
     */
    public void awaitSubscription(Runnable publish) {
        subscriber.setReceiveTimeOut(50);
        for (int i = 0; i < 1_200; i++) {
            publish.run();
            final byte[] topic = subscriber.recv();
            if (topic != null) {
                subscriber.setReceiveTimeOut(60_000);
                Message last = message(topic);
                while (last.sequence() < engine.state(rank).lastSequence()) {
                    last = next();
                }
                return;
            }
        }
        throw new AssertionError("no event arrived");
    }

    public Message next() {
        final byte[] topic = subscriber.recv();
        if (topic == null) {
            throw new AssertionError("no event within a minute");
        }
        return message(topic);
    }

    /** The rest of a message whose topic was read. */
    private Message message(byte[] topic) {
        final long sequence = ByteBuffer.wrap(subscriber.recv()).getLong();
        return new Message(
                new String(topic, StandardCharsets.UTF_8), sequence, batch(subscriber.recv()));
    }

    /** Asks for all messages from a number on. */
    public List<Message> replay(SimEngine from, int ofRank, long first) {
        try (ZMQ.Socket dealer = context.socket(SocketType.DEALER)) {
            dealer.setReceiveTimeOut(60_000);
            dealer.setRcvHWM(0);
            dealer.setIPv6(from.replayEndpoint(ofRank).contains("["));
            dealer.connect(from.replayEndpoint(ofRank));
            dealer.send(new byte[0], ZMQ.SNDMORE);
            dealer.send(ByteBuffer.allocate(8).putLong(first).array(), 0);
            final List<Message> messages = new ArrayList<>();
            while (true) {
                final List<byte[]> frames = new ArrayList<>();
                do {
                    final byte[] frame = dealer.recv();
                    if (frame == null) {
                        throw new AssertionError(
                                "no replay within a minute after " + messages.size());
                    }
                    frames.add(frame);
                } while (dealer.hasReceiveMore());
                if (frames.size() != 4 || frames.getFirst().length != 0) {
                    throw new AssertionError("frames=" + frames.size());
                }
                final long sequence = ByteBuffer.wrap(frames.get(2)).getLong();
                if (sequence == -1) {
                    if (frames.get(1).length + frames.get(3).length != 0) {
                        throw new AssertionError("the end has a topic or a payload");
                    }
                    return messages;
                }
                messages.add(
                        new Message(
                                new String(frames.get(1), StandardCharsets.UTF_8),
                                sequence,
                                batch(frames.get(3))));
            }
        }
    }

    /** Counts copies per block name as events tell of them. */
    public static Map<Long, Integer> held(List<Message> messages) {
        final Map<Long, Integer> held = new HashMap<>();
        for (Message message : messages) {
            for (Map<String, Object> event : message.events()) {
                switch ((String) event.get("type")) {
                    case "BlockStored" -> names(event).forEach(n -> held.merge(n, 1, Integer::sum));
                    case "BlockRemoved" ->
                            names(event)
                                    .forEach(
                                            n ->
                                                    held.compute(
                                                            n,
                                                            (k, c) ->
                                                                    c == null || c == 1
                                                                            ? null
                                                                            : c - 1));
                    default -> held.clear();
                }
            }
        }
        return held;
    }

    @SuppressWarnings("unchecked")
    public static List<Long> names(Map<String, Object> event) {
        return (List<Long>) event.get("block_hashes");
    }

    @SuppressWarnings("unchecked")
    public static List<Object> batch(byte[] payload) {
        final ByteBuffer bytes = ByteBuffer.wrap(payload);
        final Object value = MsgPack.read(bytes);
        if (bytes.hasRemaining()) {
            throw new AssertionError("bytes after the batch: " + bytes.remaining());
        }
        return (List<Object>) value;
    }

    @Override
    public void close() {
        context.close();
    }
}
