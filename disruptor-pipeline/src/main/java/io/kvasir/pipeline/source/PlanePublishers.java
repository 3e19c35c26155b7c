package io.kvasir.pipeline.source;

import io.kvasir.pipeline.log.LogLimit;
import io.kvasir.pipeline.wire.RouterMessage;

import org.agrona.collections.Long2ObjectHashMap;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

import java.util.HashSet;
import java.util.Set;
import java.util.function.LongSupplier;

/**
 * Follows the publishers of an event plane: the numbers of their messages, and whose events each
 * stream has. Guarded by the plane's lock.
 */
final class PlanePublishers {
    /** Events of a former publisher that are taken for late ones. */
    static final int MOST_LATE = 16;

    private static final Logger LOG = LoggerFactory.getLogger(PlanePublishers.class);

    /** One publisher of envelopes that feeds streams. */
    static final class Publisher {
        final long id;
        private final Set<PlaneFeed> feeds = new HashSet<>(2);
        private long nextSequence;

        private Publisher(long id) {
            this.id = id;
        }
    }

    private final EventPlaneCounters counters;
    private final LogLimit lines;
    private final LongSupplier nanoClock;
    private final Long2ObjectHashMap<Publisher> publishers = new Long2ObjectHashMap<>();

    PlanePublishers(EventPlaneCounters counters, LogLimit lines, LongSupplier nanoClock) {
        this.counters = counters;
        this.lines = lines;
        this.nanoClock = nanoClock;
    }

    /**
     * An enveloped message has come: its number says whether others of its publisher are missing.
     */
    void follow(RouterMessage message) {
        final Publisher publisher = publishers.get(message.publisherId());
        if (publisher == null) {
            return; // it gets one with the first event for a stream
        }
        final long sequence = message.sequence();
        if (sequence > publisher.nextSequence) {
            final long missing = sequence - publisher.nextSequence;
            counters.gap(missing);
            final String why =
                    missing
                            + " messages of publisher "
                            + Long.toHexString(publisher.id)
                            + " are missing before its message "
                            + sequence;
            final String more = lines.take(nanoClock.getAsLong());
            if (more != null) {
                LOG.warn("event plane: {}{}", why, more);
            }
            missed(message, why);
        }
        publisher.nextSequence = Math.max(publisher.nextSequence, sequence + 1);
    }

    /** The streams of a message's publisher may have missed something. */
    void missed(RouterMessage message, String why) {
        final Publisher publisher =
                message.isEnveloped() ? publishers.get(message.publisherId()) : null;
        if (publisher != null) {
            publisher.feeds.forEach(feed -> feed.missed(why));
        }
    }

    /**
     * An event for a stream has come.
     *
     * @param message at the event
     * @param publisherId its publisher where the message does not name one; {@value
     *     EventPlane#NO_PUBLISHER} where that is not known
     * @return false if it is a late one of a publisher that another one has succeeded
     */
    boolean accept(PlaneFeed feed, RouterMessage message, long publisherId) {
        final boolean named = message.isEnveloped();
        final long id = named ? message.publisherId() : publisherId;
        if (isLate(feed, id)) {
            return false;
        }
        if (named || id != EventPlane.NO_PUBLISHER) {
            attach(feed, id, named ? message.sequence() : PlaneFeed.NONE, message.eventId());
        }
        return true;
    }

    /** What a killed publisher has sent may be held up until after its successor's first events. */
    private static boolean isLate(PlaneFeed feed, long publisherId) {
        return publisherId != EventPlane.NO_PUBLISHER
                && publisherId == feed.formerPublisher
                && feed.late++ < MOST_LATE;
    }

    /**
     * Follows the publisher of a stream's events.
     *
     * @param sequence number of the publisher's message, {@link PlaneFeed#NONE} where they have
     *     none
     */
    private void attach(PlaneFeed feed, long publisherId, long sequence, long eventId) {
        if (feed.publisher != null && feed.publisher.id == publisherId) {
            return;
        }
        if (feed.hasPublisher() && feed.publisherId() != publisherId) {
            final String how =
                    "publisher "
                            + Long.toHexString(publisherId)
                            + " took it over from "
                            + Long.toHexString(feed.publisherId());
            succeed(feed);
            // a publisher with a local indexer begins its numbers anew in each life
            if (feed.session.answers || eventId != feed.lastEventId + 1) {
                feed.stream.onRestart(how);
            } else {
                feed.stream.onTakenOver();
            }
        }
        feed.answeredBy = EventPlane.NO_PUBLISHER;
        Publisher publisher = publishers.get(publisherId);
        if (publisher == null) {
            publisher = new Publisher(publisherId);
            publisher.nextSequence = sequence + 1;
            publishers.put(publisher.id, publisher);
        }
        publisher.feeds.add(feed);
        feed.publisher = publisher;
    }

    /** Another publisher has the worker of a stream: what comes of the one before is late. */
    private void succeed(PlaneFeed feed) {
        counters.publisherChange();
        feed.formerPublisher = feed.publisherId();
        feed.succeededNs = nanoClock.getAsLong();
        feed.late = 0;
        feed.answeredBy = EventPlane.NO_PUBLISHER;
        detach(feed);
    }

    /** A publisher has answered for a worker: its events are the ones that the stream has. */
    void adopt(PlaneFeed feed, long publisherId) {
        if (feed.hasPublisher() && feed.publisherId() == publisherId) {
            return;
        }
        if (feed.hasPublisher()) {
            succeed(feed);
        }
        feed.answeredBy = publisherId;
    }

    /** A stream is fed by its publisher no more. */
    void detach(PlaneFeed feed) {
        final Publisher publisher = feed.publisher;
        if (publisher != null && publisher.feeds.remove(feed) && publisher.feeds.isEmpty()) {
            publishers.remove(publisher.id);
        }
        feed.publisher = null;
    }
}
