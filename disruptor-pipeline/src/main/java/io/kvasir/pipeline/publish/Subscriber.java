package io.kvasir.pipeline.publish;

import io.kvasir.pipeline.wire.QueryTopic;
import io.kvasir.pipeline.wire.RecoveryQuery;
import io.kvasir.pipeline.zmtp.SocketPoller;
import io.kvasir.pipeline.zmtp.ZmtpMessage;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import java.util.function.Function;

/**
 * What a peer of a publisher has subscribed to, and what it is sent of the answers to its queries,
 * as fast as it reads: all on the poller's thread.
 */
final class Subscriber {
    /** The connection to a peer, made by it or to it. */
    interface Peer {
        /** Sends a message, which waits while the peer does not read. */
        void send(byte[]... frames);

        /** Messages that wait. */
        int unsent();

        /** Whether messages can be sent. */
        boolean isOpen();
    }

    /** Prefixes of topics that a peer may subscribe to; further ones are left out. */
    static final int MOST_PREFIXES = 4_096;

    /** Queries of a peer that are answered at the same time; further ones are not read. */
    static final int MOST_ANSWERS = 64;

    /** Messages that wait for a peer whose queries are not read, until it has read some. */
    static final int MOST_UNREAD = 1_024;

    private static final int ANSWER_AHEAD = 8; // messages that wait for the peer
    private static final int MOST_ANSWER_BYTES = 512 << 10;
    private static final long PAUSE_NS = TimeUnit.MILLISECONDS.toNanos(1);
    private static final long MOST_ANSWER_NS = TimeUnit.MINUTES.toNanos(5);
    private static final byte[] HEARD = {QueryTopic.HEARD};
    private static final byte[] END = {QueryTopic.END};

    private final SocketPoller poller;
    private final Peer peer;
    private final Function<RecoveryQuery, LocalIndexer> indexers;
    private final List<byte[]> prefixes = new ArrayList<>(2);
    private final Map<QueryTopic, Answer> answers = new HashMap<>();

    /**
     * @param indexers answer queries; null for none
     */
    Subscriber(SocketPoller poller, Peer peer, Function<RecoveryQuery, LocalIndexer> indexers) {
        this.poller = poller;
        this.peer = peer;
        this.indexers = indexers;
    }

    /** Takes what the peer says: a subscription, or its end. */
    void received(ZmtpMessage message) {
        if (message.frames() == 1 && message.length(0) > 0) {
            received(message.copy(0));
        }
    }

    /** Takes 1 and the topic of a subscription, or something else and that of its end. */
    void received(byte[] frame) {
        final byte[] topic = Arrays.copyOfRange(frame, 1, frame.length);
        final QueryTopic query = QueryTopic.readOrNull(topic);
        final boolean begins = frame[0] == 1;
        if (query != null) {
            if (begins) {
                asked(query, topic);
            } else {
                answers.remove(query);
            }
        } else if (begins) {
            if (prefixes.size() < MOST_PREFIXES) {
                prefixes.add(topic);
            }
        } else {
            unsubscribe(topic);
        }
    }

    private void unsubscribe(byte[] prefix) {
        for (int i = 0; i < prefixes.size(); i++) {
            if (Arrays.equals(prefixes.get(i), prefix)) {
                prefixes.remove(i);
                return;
            }
        }
    }

    /** The connection is lost: a new one begins without subscriptions. */
    void forget() {
        prefixes.clear();
        answers.clear();
    }

    /**
     * Sends a message if the peer has subscribed to it.
     *
     * @param mostUnsent messages that may wait for it
     * @return false if more wait
     */
    boolean send(int mostUnsent, byte[]... frames) {
        if (!wants(frames[0])) {
            return true;
        }
        if (peer.unsent() >= mostUnsent) {
            return false;
        }
        peer.send(frames);
        return true;
    }

    /** Whether something waits for the peer to read. */
    boolean isBehind() {
        return peer.isOpen() && peer.unsent() > 0;
    }

    private boolean wants(byte[] first) {
        for (byte[] prefix : prefixes) {
            if (first.length >= prefix.length
                    && Arrays.equals(first, 0, prefix.length, prefix, 0, prefix.length)) {
                return true;
            }
        }
        return false;
    }

    private void asked(QueryTopic query, byte[] topic) {
        final LocalIndexer indexer = indexers.apply(query.query());
        if (indexer == null
                || answers.size() >= MOST_ANSWERS
                || answers.containsKey(query)
                || peer.unsent() >= MOST_UNREAD) {
            return;
        }
        peer.send(topic, HEARD);
        final Answer answer =
                new Answer(
                        query, topic, indexer.answer(query.query().toBytes(), MOST_ANSWER_BYTES));
        answers.put(query, answer);
        answer.goOn();
    }

    /** An answer that is on its way. */
    private final class Answer {
        private final QueryTopic query;
        private final byte[] topic;
        private final List<byte[]> messages; // each made when it is asked for
        private final long sinceNs = System.nanoTime();
        private int next;

        private Answer(QueryTopic query, byte[] topic, List<byte[]> messages) {
            this.query = query;
            this.topic = topic;
            this.messages = messages;
        }

        /** Sends as much as the peer takes, then continues a little later. */
        private void goOn() {
            if (answers.get(query) != this) {
                return; // nothing more is wanted
            }
            while (next < messages.size() && peer.isOpen() && peer.unsent() < ANSWER_AHEAD) {
                peer.send(topic, messages.get(next++));
            }
            final boolean over = System.nanoTime() - sinceNs > MOST_ANSWER_NS || !peer.isOpen();
            if (next == messages.size()) {
                peer.send(topic, END);
                answers.remove(query);
            } else if (over) {
                answers.remove(query);
            } else {
                poller.schedule(PAUSE_NS, this::goOn);
            }
        }
    }
}
