package io.kvasir.pipeline.source;

import java.util.concurrent.TimeUnit;

/**
 * The stream of one worker and rank of an {@link EventPlane}, and the publisher of its events.
 * Guarded by the plane's lock.
 */
final class PlaneFeed {
    static final long NONE = -1;
    static final long NOT_KEPT = 0;

    /** How long after a succession the publisher before may still answer. */
    static final long LATE_ANSWERS_NS = TimeUnit.SECONDS.toNanos(30);

    final EngineStream stream;
    final RecoverySession session;
    PlanePublishers.Publisher publisher; // null before the first message that names one
    long answeredBy = EventPlane.NO_PUBLISHER; // whose answer came since the last message
    long formerPublisher = EventPlane.NO_PUBLISHER;
    long succeededNs; // when that was
    int late; // events of the former one since it was succeeded
    long lastEventId = NONE;
    long lastKept; // number of the last kept message with an event of it
    long lastTaken; // which of all messages that was
    boolean renumbered; // since the slot was loaded: its mark may be of the former numbers
    long firstKept; // number of the first kept message with an event of it since then
    boolean waits; // for the transport to begin again
    PlanePosition restoredOrNull; // how far it was, where the plane's store was not known yet
    long restoredKept = NOT_KEPT; // the snapshot may have been made in the middle of it
    long restoredEvent; // the last one that it has
    String missed = ""; // why messages may be missing, until an event has said whether any is
    boolean unsettled; // it is among those that may have something left to apply

    PlaneFeed(long workerId, int dpRank, EngineStream stream) {
        this.stream = stream;
        this.session = new RecoverySession(workerId, dpRank, this);
    }

    /** Messages may be missing; that the transport is connected and has caught up is no answer. */
    void missed(String why) {
        missed = why;
        stream.onMissed(why);
    }

    /** Whether it is known whose events the stream has. */
    boolean hasPublisher() {
        return publisher != null || answeredBy != EventPlane.NO_PUBLISHER;
    }

    /** Whose events the stream has; only if that is known. */
    long publisherId() {
        return publisher != null ? publisher.id : answeredBy;
    }

    /** The same, {@link EventPlane#NO_PUBLISHER} if it is not known. */
    long publisherOrNone() {
        return hasPublisher() ? publisherId() : EventPlane.NO_PUBLISHER;
    }

    /**
     * What a publisher that answers a query is to the stream. The one before is refused where it
     * may have been ending when it was asked: before the other one took over, or less than {@link
     * #LATE_ANSWERS_NS} after that. Asked later it is alive, and what came of the other one was
     * late.
     *
     * @param askedNs when it was asked, on the clock of {@link #succeededNs}
     */
    RecoverySession.Life lifeOf(long publisherId, long askedNs) {
        if (hasPublisher() ? publisherId == publisherId() : stream.lastNumber() < 0) {
            return RecoverySession.Life.SAME;
        }
        return publisherId == formerPublisher && askedNs - succeededNs < LATE_ANSWERS_NS
                ? RecoverySession.Life.FORMER
                : RecoverySession.Life.NEW;
    }
}
