package io.kvasir.pipeline.publish;

import java.util.ArrayDeque;
import java.util.Deque;

/** A peer for which all that it is sent waits until it reads. */
final class SlowPeer implements Subscriber.Peer {
    private final Deque<byte[][]> waiting = new ArrayDeque<>();
    private int most;

    @Override
    public void send(byte[]... frames) {
        waiting.add(frames);
        most = Math.max(most, waiting.size());
    }

    @Override
    public int unsent() {
        return waiting.size();
    }

    @Override
    public boolean isOpen() {
        return true;
    }

    /** Reads the first message that waits. */
    byte[][] read() {
        return waiting.remove();
    }

    /** Most messages that have waited at a time. */
    int most() {
        return most;
    }
}
