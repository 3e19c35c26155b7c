package io.kvasir.pipeline.source;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.concurrent.TimeUnit;
import java.util.function.LongSupplier;

/**
 * Which links of an event plane carry which publishers, and the order of their messages: what comes
 * over several links, because brokers double it, is passed on once, and in the order of its numbers
 * as far as another link may still bring what is missing. Not thread-safe.
 *
 * <p>Numbers of one publisher only grow over one link; where they fall, it has begun anew.
 */
final class PublisherLinks {
    /** Takes what is to be passed on. */
    @FunctionalInterface
    interface Output {
        void pass(byte[] bytes, int offset, int length);
    }

    /** Publishers that are remembered; more of them forget the one that was silent for longest. */
    static final int MOST_PUBLISHERS = 65_536;

    /** Messages of a publisher that wait for one before them. */
    static final int MOST_WAITING = 256;

    /** How long they wait. */
    static final long PATIENCE_NS = TimeUnit.MILLISECONDS.toNanos(500);

    private static final long MOST_WAITING_BYTES = 64L << 20; // of all publishers
    private static final long UNKNOWN = -1;

    /** One publisher. */
    private static final class Publisher {
        private final Map<Integer, Long> lastByLink = new HashMap<>(2); // of connected links
        private final TreeMap<Long, byte[]> waiting = new TreeMap<>();
        private long next = UNKNOWN;
        private int lastLink;
        private long waitingSinceNs;

        /** Whether a link is not yet past what comes before a message. */
        private boolean mayStillCome(long number) {
            for (long last : lastByLink.values()) {
                if (last < number - 1) {
                    return true;
                }
            }
            return false;
        }
    }

    private final Output output;
    private final LongSupplier nanoClock;
    private final LinkedHashMap<Long, Publisher> publishers =
            new LinkedHashMap<>(16, 0.75f, true) {
                private static final long serialVersionUID = 1;

                @Override
                protected boolean removeEldestEntry(Map.Entry<Long, Publisher> eldest) {
                    return size() > MOST_PUBLISHERS && eldest.getValue().waiting.isEmpty();
                }
            };
    private final Set<Publisher> incomplete = new HashSet<>(); // those with messages that wait
    private long waitingBytes;
    private long doubles;

    PublisherLinks(Output output, LongSupplier nanoClock) {
        this.output = output;
        this.nanoClock = nanoClock;
    }

    /** Messages that had come before. */
    long doubles() {
        return doubles;
    }

    /** A publisher has answered over a link. */
    void seen(int link, long publisherId) {
        publisher(publisherId).lastByLink.putIfAbsent(link, UNKNOWN);
        publisher(publisherId).lastLink = link;
    }

    private Publisher publisher(long publisherId) {
        return publishers.computeIfAbsent(publisherId, _ -> new Publisher());
    }

    /** Takes a message. */
    void take(int link, long publisherId, long number, byte[] bytes, int offset, int length) {
        final Publisher publisher = publisher(publisherId);
        publisher.lastLink = link;
        final Long before = publisher.lastByLink.put(link, number);
        if (publisher.next == UNKNOWN || (before != null && number <= before)) {
            flush(publisher);
            pass(publisher, number, bytes, offset, length);
        } else if (number < publisher.next || publisher.waiting.containsKey(number)) {
            doubles++;
        } else if (number > publisher.next && publisher.mayStillCome(number)) {
            hold(publisher, number, Arrays.copyOfRange(bytes, offset, offset + length));
        } else {
            passBefore(publisher, number);
            pass(publisher, number, bytes, offset, length);
        }
        passPossible(publisher);
    }

    private void pass(Publisher publisher, long number, byte[] bytes, int offset, int length) {
        publisher.next = number + 1;
        output.pass(bytes, offset, length);
    }

    private void hold(Publisher publisher, long number, byte[] message) {
        if (publisher.waiting.isEmpty()) {
            publisher.waitingSinceNs = nanoClock.getAsLong();
            incomplete.add(publisher);
        }
        publisher.waiting.put(number, message);
        waitingBytes += message.length;
        if (publisher.waiting.size() > MOST_WAITING || waitingBytes > MOST_WAITING_BYTES) {
            flush(publisher);
        }
    }

    /** Passes on what waits and is next, or what no link brings anything before. */
    private void passPossible(Publisher publisher) {
        while (!publisher.waiting.isEmpty()) {
            final long first = publisher.waiting.firstKey();
            if (first > publisher.next && publisher.mayStillCome(first)) {
                return;
            }
            passFirst(publisher);
        }
    }

    /** Passes on what waits and has a lower number. */
    private void passBefore(Publisher publisher, long number) {
        while (!publisher.waiting.isEmpty() && publisher.waiting.firstKey() < number) {
            passFirst(publisher);
        }
    }

    private void passFirst(Publisher publisher) {
        final Map.Entry<Long, byte[]> first = publisher.waiting.pollFirstEntry();
        waitingBytes -= first.getValue().length;
        if (publisher.waiting.isEmpty()) {
            incomplete.remove(publisher);
        }
        pass(publisher, first.getKey(), first.getValue(), 0, first.getValue().length);
    }

    /** Passes on all that waits: what is missing before it does not come. */
    private void flush(Publisher publisher) {
        while (!publisher.waiting.isEmpty()) {
            passFirst(publisher);
        }
    }

    /** Passes on what has waited long enough. */
    void tick() {
        if (incomplete.isEmpty()) {
            return;
        }
        final long nowNs = nanoClock.getAsLong();
        for (Publisher publisher : new ArrayList<>(incomplete)) {
            if (nowNs - publisher.waitingSinceNs >= PATIENCE_NS) {
                flush(publisher);
            }
        }
    }

    /**
     * A link has lost its connection.
     *
     * @return publishers that no other link carries
     */
    Set<Long> lost(int link) {
        final Set<Long> silent = new HashSet<>();
        publishers.forEach(
                (id, publisher) -> {
                    if (publisher.lastByLink.remove(link) != null
                            && publisher.lastByLink.isEmpty()) {
                        silent.add(id);
                    }
                });
        return silent;
    }

    /** Whether a link that is connected again may be the one that brings a publisher back. */
    boolean mayBringBack(int link, long publisherId) {
        final Publisher publisher = publishers.get(publisherId);
        return publisher == null || (publisher.lastByLink.isEmpty() && publisher.lastLink == link);
    }
}
