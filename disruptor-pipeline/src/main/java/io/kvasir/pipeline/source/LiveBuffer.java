package io.kvasir.pipeline.source;

import java.util.ArrayDeque;
import java.util.Arrays;
import java.util.Deque;

/**
 * Live messages of one stream that wait for older ones, in the order of their numbers. When there
 * are too many of them, here or in all streams of an event plane, the oldest is dropped: it can be
 * asked for. Not thread-safe.
 */
final class LiveBuffer {
    /** A message that waits. */
    @SuppressWarnings("ArrayRecordComponent") // never compared
    private record Waiting(long number, byte[] bytes) {
        long size() {
            return (long) bytes.length + MESSAGE_BYTES;
        }
    }

    private static final int MESSAGE_BYTES = 64; // of heap beside the message itself

    private final int maxMessages;
    private final long maxBytes;
    private final Deque<Waiting> messages = new ArrayDeque<>();
    private HeldBytes ofAll = new HeldBytes(Long.MAX_VALUE);
    private long bytes;

    /**
     * @param maxMessages most messages
     * @param maxBytes most bytes of them; one message may have more
     */
    LiveBuffer(int maxMessages, long maxBytes) {
        this.maxMessages = maxMessages;
        this.maxBytes = maxBytes;
    }

    /** Counts what waits here among what waits in other streams. While nothing waits. */
    void countIn(HeldBytes all) {
        ofAll = all;
    }

    int size() {
        return messages.size();
    }

    boolean isEmpty() {
        return messages.isEmpty();
    }

    /** Number of the first message that waits, −1 if none does. */
    long firstNumber() {
        return messages.isEmpty() ? -1 : messages.getFirst().number;
    }

    /** Bytes of the first message that waits. */
    byte[] first() {
        return messages.getFirst().bytes;
    }

    /** The first message waits no longer. */
    void dropFirst() {
        count(-messages.removeFirst().size());
    }

    /** Copies a message; one with the same number is replaced. */
    void hold(long number, byte[] payload, int offset, int length) {
        final Waiting message =
                new Waiting(number, Arrays.copyOfRange(payload, offset, offset + length));
        if (messages.isEmpty() || messages.getLast().number < number) {
            messages.addLast(message);
        } else {
            insert(message);
        }
        count(message.size());
        while (messages.size() > maxMessages || (isFull() && messages.size() > 1)) {
            dropFirst();
        }
    }

    private boolean isFull() {
        return bytes > maxBytes || ofAll.isExceeded();
    }

    private void count(long more) {
        bytes += more;
        ofAll.add(more);
    }

    private void insert(Waiting message) {
        final Deque<Waiting> after = new ArrayDeque<>();
        while (!messages.isEmpty() && messages.getLast().number >= message.number) {
            final Waiting last = messages.removeLast();
            if (last.number == message.number) {
                count(-last.size());
            } else {
                after.addFirst(last);
            }
        }
        messages.addLast(message);
        messages.addAll(after);
    }

    void clear() {
        messages.clear();
        count(-bytes);
    }
}
