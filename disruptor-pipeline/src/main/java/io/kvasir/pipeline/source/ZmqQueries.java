package io.kvasir.pipeline.source;

import io.kvasir.pipeline.wire.QueryTopic;
import io.kvasir.pipeline.wire.RecoveryAnswer;
import io.kvasir.pipeline.wire.RecoveryQuery;
import io.kvasir.pipeline.zmtp.ZmtpMessage;

import org.agrona.collections.Long2ObjectHashMap;

import java.nio.ByteBuffer;
import java.security.SecureRandom;
import java.util.List;
import java.util.concurrent.TimeUnit;

/**
 * Queries of an event plane to local indexers over ZMQ: each is a subscription that is made over
 * all links, and taken back over those that do not answer first. What nothing answers within
 * {@value #FIRST_MS} ms has no local indexer. All on the poller's thread.
 */
final class ZmqQueries implements RecoveryTransport {
    /** How long the first sign of an answer may take. */
    static final long FIRST_MS = 2_000;

    private static final byte BEGIN = 1;
    private static final byte END = 0;
    private static final long SILENCE_NS = TimeUnit.MINUTES.toNanos(1);

    /** What queries go by. */
    interface Links {
        /** Numbers of the links that are connected. */
        List<Integer> connected();

        /** Sends a frame over one of them. */
        void send(int link, byte[] frame);

        /** A publisher has answered over a link. */
        void seen(int link, long publisherId);
    }

    private static final int NO_LINK = -1;

    /** A query that is under way. */
    private static final class Asked {
        private final long id;
        private final byte[] topic;
        private int link = NO_LINK; // that answers
        private boolean named; // its publisher is known
        private long lastSeenNs = System.nanoTime();

        private Asked(long id, byte[] topic) {
            this.id = id;
            this.topic = topic;
        }
    }

    private final EventPlane plane;
    private final Links links;
    private final long askerId = new SecureRandom().nextLong();
    private final Long2ObjectHashMap<Asked> asked = new Long2ObjectHashMap<>();

    ZmqQueries(EventPlane plane, Links links) {
        this.plane = plane;
        this.links = links;
    }

    @Override
    public boolean ask(long queryId, RecoveryQuery query) {
        final List<Integer> connected = links.connected();
        if (connected.isEmpty()) {
            return false;
        }
        final Asked made = new Asked(queryId, new QueryTopic(askerId, queryId, query).toBytes());
        asked.put(queryId, made);
        connected.forEach(link -> say(BEGIN, made, link));
        return true;
    }

    private void say(byte what, Asked query, int link) {
        links.send(
                link,
                ByteBuffer.allocate(1 + query.topic.length).put(what).put(query.topic).array());
    }

    /** A link is connected: the publisher behind it may know what is asked. */
    void connected(int link) {
        for (Asked query : asked.values()) {
            if (query.link == NO_LINK) {
                say(BEGIN, query, link);
            }
        }
    }

    /** A link is lost: what it has not answered to the end it never will. */
    void lost(int link) {
        for (Asked query : List.copyOf(asked.values())) {
            if (query.link == link) {
                asked.remove(query.id);
                plane.onNoAnswerer(query.id);
            }
        }
    }

    /** Whether a message is of an answer. */
    static boolean isAnswer(ZmtpMessage message) {
        return message.frames() == 2
                && QueryTopic.isAnswerTo(message.bytes(), message.offset(0), message.length(0));
    }

    /** Takes a message of an answer. */
    void received(int link, ZmtpMessage message) {
        final Asked query =
                asked.get(QueryTopic.queryId(message.bytes(), message.offset(0), askerId));
        if (query == null || (query.link != NO_LINK && query.link != link)) {
            return;
        }
        query.lastSeenNs = System.nanoTime();
        if (query.link == NO_LINK) {
            query.link = link;
            for (int other : links.connected()) {
                if (other != link) {
                    say(END, query, other);
                }
            }
        }
        if (message.length(1) > 1) {
            answered(query, message.copy(1));
        } else if (message.length(1) == 1 && message.bytes()[message.offset(1)] == QueryTopic.END) {
            end(query);
        }
    }

    private void answered(Asked query, byte[] bytes) {
        if (!query.named) {
            final RecoveryAnswer answer = RecoveryAnswer.read(bytes);
            if (answer != null) {
                query.named = true;
                links.seen(query.link, answer.publisherId());
            }
        }
        plane.onAnswer(query.id, bytes);
    }

    private void end(Asked query) {
        asked.remove(query.id);
        for (int link : links.connected()) {
            if (query.link == NO_LINK || query.link == link) {
                say(END, query, link);
            }
        }
    }

    /** Gives up what is not answered. */
    void tick() {
        if (asked.isEmpty()) {
            return;
        }
        final long nowNs = System.nanoTime();
        for (Asked query : List.copyOf(asked.values())) {
            final boolean unseen = query.link == NO_LINK;
            final long mostNs = unseen ? TimeUnit.MILLISECONDS.toNanos(FIRST_MS) : SILENCE_NS;
            if (nowNs - query.lastSeenNs >= mostNs) {
                end(query);
                if (unseen) {
                    plane.onNoAnswerer(query.id);
                }
            }
        }
    }
}
