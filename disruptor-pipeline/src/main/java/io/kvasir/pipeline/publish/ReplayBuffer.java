package io.kvasir.pipeline.publish;

/** The last messages of a publisher, under consecutive numbers from 0. Any thread. */
final class ReplayBuffer {
    /** A message under its number. */
    @SuppressWarnings("ArrayRecordComponent") // never compared
    record Message(long number, byte[] payload) {}

    private final byte[][] payloads;
    private final long maxBytes;
    private long bytes;
    private long first;
    private long next;

    /**
     * @param maxMessages most messages that are kept
     * @param maxBytes most bytes of them
     */
    ReplayBuffer(int maxMessages, long maxBytes) {
        this.payloads = new byte[maxMessages][];
        this.maxBytes = maxBytes;
    }

    /** Adds a message; its number. */
    synchronized long add(byte[] payload) {
        if (next - first == payloads.length) {
            removeFirst();
        }
        payloads[index(next)] = payload;
        bytes += payload.length;
        final long number = next++;
        while (bytes > maxBytes && first < number) {
            removeFirst();
        }
        return number;
    }

    private void removeFirst() {
        bytes -= payloads[index(first)].length;
        payloads[index(first++)] = null;
    }

    /** Number of the next message. */
    synchronized long next() {
        return next;
    }

    /** The first number from one on that is still there; {@link #next} if none is. */
    synchronized long available(long number) {
        return Math.max(number, first);
    }

    /** The first message from a number on that is still there; null if none is. */
    synchronized Message from(long number) {
        final long found = Math.max(number, first);
        return found >= next ? null : new Message(found, payloads[index(found)]);
    }

    /** A message; null if it is not there any more, or not yet. */
    synchronized byte[] get(long number) {
        return number < first || number >= next ? null : payloads[index(number)];
    }

    private int index(long number) {
        return (int) (number % payloads.length);
    }
}
