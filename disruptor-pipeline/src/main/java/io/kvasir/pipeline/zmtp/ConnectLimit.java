package io.kvasir.pipeline.zmtp;

import java.util.ArrayDeque;
import java.util.Queue;

/**
 * Lets only so many connections of a poller be between their begin and the end of their handshake.
 * Without it ten thousand that begin at once time out on each other: what was too slow is begun
 * again and slows down the rest. On the poller's thread.
 */
public final class ConnectLimit {
    private final SocketPoller poller;
    private final int most;
    private final Queue<Runnable> waiting = new ArrayDeque<>();
    private int underWay;

    /**
     * Creates a limit that nothing is counted against yet.
     *
     * @param most connections at a time
     */
    public ConnectLimit(SocketPoller poller, int most) {
        this.poller = poller;
        this.most = most;
    }

    /**
     * Begins to connect, now or when it is its turn; each begin is followed by one {@link #end}.
     */
    void begin(Runnable connect) {
        if (underWay < most) {
            underWay++;
            connect.run();
        } else {
            waiting.add(connect);
        }
    }

    /** A connection is made, has failed, or is not wanted any more. */
    void end() {
        underWay--;
        if (!waiting.isEmpty()) {
            poller.execute(this::beginNext);
        }
    }

    private void beginNext() {
        if (underWay < most && !waiting.isEmpty()) {
            begin(waiting.poll());
        }
    }
}
