package io.kvasir.sim.events;

import java.util.ArrayDeque;
import java.util.List;

/** The last event messages of one rank, for replay. Any thread. */
final class ReplayBuffer {
    /** One message as published; the payload is not to be changed. */
    static final class Message {
        private final long sequence;
        private final byte[] payload;

        private Message(long sequence, byte[] payload) {
            this.sequence = sequence;
            this.payload = payload;
        }

        long sequence() {
            return sequence;
        }

        byte[] payload() {
            return payload;
        }
    }

    private final ArrayDeque<Message> messages = new ArrayDeque<>();
    private final int maxMessages;
    private final long maxBytes;
    private long bytes;

    ReplayBuffer(int maxMessages, long maxBytes) {
        this.maxMessages = maxMessages;
        this.maxBytes = maxBytes;
    }

    synchronized void add(long sequence, byte[] payload) {
        messages.addLast(new Message(sequence, payload));
        bytes += payload.length;
        while (messages.size() > maxMessages || bytes > maxBytes) {
            bytes -= messages.removeFirst().payload().length;
        }
    }

    /** Returns the messages kept from a number on, oldest first. */
    synchronized List<Message> from(long sequence) {
        return messages.stream().filter(m -> m.sequence() >= sequence).toList();
    }
}
