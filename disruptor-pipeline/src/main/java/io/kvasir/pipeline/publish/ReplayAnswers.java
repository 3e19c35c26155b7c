package io.kvasir.pipeline.publish;

import java.util.concurrent.TimeUnit;

/**
 * Answers the requests of one peer for what was published before, one after the other and as fast
 * as the peer reads: all on the poller's thread.
 *
 * <pre>
 * answer:   "" | topic | number | payload, for each; then "" | "" | -1 | ""
 * </pre>
 */
final class ReplayAnswers {
    /** How an answer stands. */
    enum State {
        /** All of it is sent. */
        ENDED,
        /** The peer is to read first. */
        WAITING,
        /** The peer has read none of it for too long. */
        STALLED
    }

    /** Messages that wait for the peer at most. */
    static final int AHEAD = 64;

    /** Longest time for which a peer may read nothing of an answer. */
    static final long MOST_STALL_NS = TimeUnit.MINUTES.toNanos(5);

    private static final byte[] EMPTY = {};
    private static final byte[] END = ZmqPublisher.number(-1);

    private final ReplayBuffer buffer;
    private final byte[] topic;
    private final Subscriber.Peer peer;
    private boolean underWay;
    private long next;
    private long end;
    private long sentNs;

    /**
     * @param buffer what was published
     * @param topic of its messages
     */
    ReplayAnswers(ReplayBuffer buffer, byte[] topic, Subscriber.Peer peer) {
        this.buffer = buffer;
        this.topic = topic;
        this.peer = peer;
    }

    /** Whether an answer is under way; the next request waits for its end. */
    boolean isUnderWay() {
        return underWay;
    }

    /** Begins to answer a request with what is published from a number on until now. */
    State begin(long from, long nowNs) {
        assert !underWay : "one answer at a time: next=" + next + ", end=" + end;
        underWay = true;
        next = Math.max(0, from);
        end = buffer.next();
        sentNs = nowNs;
        return goOn(nowNs);
    }

    /** Sends as much as the peer takes; to be called again a little later while it waits. */
    State goOn(long nowNs) {
        assert underWay : "nothing is left to be sent: next=" + next + ", end=" + end;
        while (peer.isOpen() && peer.unsent() < AHEAD) {
            sentNs = nowNs;
            final ReplayBuffer.Message message = buffer.from(next);
            if (message == null || message.number() >= end) {
                peer.send(EMPTY, EMPTY, END, EMPTY);
                underWay = false;
                return State.ENDED;
            }
            peer.send(EMPTY, topic, ZmqPublisher.number(message.number()), message.payload());
            next = message.number() + 1;
        }
        return nowNs - sentNs > MOST_STALL_NS ? State.STALLED : State.WAITING;
    }
}
