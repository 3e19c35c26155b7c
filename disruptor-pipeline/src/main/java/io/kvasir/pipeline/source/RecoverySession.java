package io.kvasir.pipeline.source;

import io.kvasir.pipeline.wire.RecoveryAnswer;
import io.kvasir.pipeline.wire.RecoveryQuery;
import io.kvasir.pipeline.wire.RouterMessage;

import java.util.Arrays;

/**
 * What one stream of an event plane asks its worker's local indexer, and the answer as far as it
 * has come. Believes nothing of an answer: it must be of the worker and the life that was asked, in
 * order, without a gap, and end where it says. Guarded by the plane's lock.
 */
final class RecoverySession {
    /** What to do after a message of an answer. */
    enum Step {
        /** More of it is to come. */
        MORE,
        /** It is over. */
        DONE,
        /** It was of no use now; ask again at once. */
        AGAIN,
        /** The message is of no answer that is waited for. */
        IGNORED,
        /** It cannot be used, see {@link #failure}. */
        FAILED
    }

    /** What a publisher is to the plane. */
    enum Life {
        /** The one whose events the stream has. */
        SAME,
        /** One that is not known. */
        NEW,
        /** The one before the one whose events the stream has. */
        FORMER
    }

    final long workerId;
    final int dpRank;
    final PlaneFeed feed;
    private final EngineStream stream;

    // of the query
    long queryId; // 0 = none is under way
    int failedTries;
    long dueNs; // not before
    long askedNs;
    long lastSeenNs; // last message of the answer, or the query
    boolean queued;

    // of the worker
    boolean answers; // it has answered
    long lastEventNs; // when the last event came, or the worker was asked for a newer one
    int unanswered; // queries in a row that were given up

    private RecoveryQuery query;
    private RecoveryAnswer first; // first message of the answer
    private int nextPart;
    private long nextEvent;
    private PlaneDump dump;
    private String failure = "";

    RecoverySession(long workerId, int dpRank, PlaneFeed feed) {
        this.workerId = workerId;
        this.dpRank = dpRank;
        this.feed = feed;
        this.stream = feed.stream;
    }

    /** Begins a query. */
    RecoveryQuery begin(long id, long nowNs) {
        queryId = id;
        askedNs = nowNs;
        lastSeenNs = nowNs;
        query =
                new RecoveryQuery(
                        workerId, dpRank, Math.max(0, stream.replayFrom()), RecoveryQuery.NO_END);
        first = null;
        nextPart = 0;
        dump = null;
        return query;
    }

    /** Ends the query. */
    void end() {
        queryId = 0;
        first = null;
        dump = null;
    }

    /** Words that an unfinished dump takes. */
    long stagedWords() {
        return dump == null ? 0 : dump.words();
    }

    /** Why the answer cannot be used. */
    String failure() {
        return failure;
    }

    /** Whether the answer is a dump. */
    boolean isDump() {
        return dump != null;
    }

    /** Whether the answer has begun: its publisher is the one whose events the stream has now. */
    boolean hasBegun() {
        return first != null;
    }

    /**
     * Takes a message of the answer.
     *
     * @param answer what was read
     * @param life what its publisher is
     * @param scratch for its events
     */
    Step take(RecoveryAnswer answer, Life life, RouterMessage scratch) {
        if (answer.workerId() != workerId || answer.dpRank() != dpRank) {
            return fail("it is about worker " + name(answer.workerId(), answer.dpRank()));
        }
        if (answer.publisherId() == EventPlane.NO_PUBLISHER) {
            return fail("it does not name its publisher");
        }
        if (first != null && first.publisherId() != answer.publisherId()) {
            return Step.IGNORED; // a second one answers
        }
        if (life == Life.FORMER) {
            return fail("a publisher answers that another one has taken over from");
        }
        if (!isNext(answer)) {
            return fail("part " + answer.part() + " came, part " + nextPart + " was next");
        }
        if (!stream.wantsReplay()) {
            return Step.DONE;
        }
        nextPart++;
        return switch (answer.kind()) {
            case ERROR -> fail(answer.error().isEmpty() ? "an error" : answer.error());
            case TOO_NEW -> tooNew(answer, life);
            case EVENTS ->
                    first == null && !beginEvents(answer, life)
                            ? Step.AGAIN
                            : events(answer, scratch);
            case DUMP -> dump(answer, life, scratch);
        };
    }

    private boolean isNext(RecoveryAnswer answer) {
        return answer.part() == nextPart
                && (first == null
                        || (first.kind() == answer.kind()
                                && first.parts() == answer.parts()
                                && first.lastEventId() == answer.lastEventId()
                                && first.lostEventId() == answer.lostEventId()));
    }

    private Step tooNew(RecoveryAnswer answer, Life life) {
        if (life == Life.SAME) {
            return fail(
                    "it has events up to "
                            + answer.lastEventId()
                            + ", and "
                            + query.startEventId()
                            + " was asked for");
        }
        begin(answer, life);
        return Step.AGAIN;
    }

    private void begin(RecoveryAnswer answer, Life life) {
        first = answer;
        stream.answerBegins(
                life == Life.SAME,
                "publisher " + Long.toHexString(answer.publisherId()) + " answers for it");
    }

    /** False if the events go on from ones that nothing is known of. */
    private boolean beginEvents(RecoveryAnswer answer, Life life) {
        begin(answer, life);
        nextEvent = Math.max(1, query.startEventId());
        return life == Life.SAME || nextEvent == 1;
    }

    private Step events(RecoveryAnswer answer, RouterMessage scratch) {
        if (!stream.goesOnAt(nextEvent)) {
            return Step.AGAIN; // it was cleared meanwhile
        }
        final byte[] payload = answer.payload();
        if (!scratch.wrapPayload(payload, 0, payload.length)) {
            return fail("it holds no list of events");
        }
        while (scratch.next()) {
            final long id = scratch.eventId();
            if (!isOfWorker(scratch) || !follows(id, answer)) {
                return fail("event " + nextEvent + " of the worker was next");
            }
            final int from = scratch.eventOffset();
            final byte[] event = Arrays.copyOfRange(payload, from, from + scratch.eventLength());
            switch (stream.onReplayed(id, event)) {
                case CONTINUE -> nextEvent = id + 1;
                case STOP -> {
                    return Step.AGAIN; // it wants something else now
                }
                case RETRY -> {
                    return fail("the event ring is full");
                }
            }
        }
        if (scratch.isTruncated()) {
            return fail("it ends in the middle of an event");
        }
        if (nextPart < answer.parts()) {
            return Step.MORE;
        }
        if (nextEvent <= answer.lastEventId()) {
            return fail(
                    "it ends before event "
                            + nextEvent
                            + ", the last one is "
                            + answer.lastEventId());
        }
        stream.replayEnded();
        return Step.DONE;
    }

    private boolean isOfWorker(RouterMessage event) {
        return event.isAddressed() && event.workerId() == workerId && event.dpRank() == dpRank;
    }

    /** Whether nothing is missing before an event but what its publisher has missed, too. */
    private boolean follows(long id, RecoveryAnswer answer) {
        return id <= answer.lastEventId()
                && (id == nextEvent || (id > nextEvent && id - 1 <= answer.lostEventId()));
    }

    private Step dump(RecoveryAnswer answer, Life life, RouterMessage scratch) {
        if (first == null) {
            begin(answer, life);
            dump = stream.newDump(answer.lastEventId(), answer.lostEventId());
        }
        final byte[] payload = answer.payload();
        if (!scratch.wrapPayload(payload, 0, payload.length)) {
            return fail("its dump holds no list of events");
        }
        dump.beginPart();
        while (scratch.next()) {
            if (!isOfWorker(scratch)
                    || !dump.add(payload, scratch.eventOffset(), scratch.eventLength())) {
                return fail("its dump holds something that is no block of the worker");
            }
        }
        if (!dump.endPart() || scratch.isTruncated()) {
            return fail("its dump is damaged");
        }
        if (nextPart < answer.parts()) {
            return Step.MORE;
        }
        return stream.onDump(dump) ? Step.DONE : fail("its dump is too old, or had no room");
    }

    private Step fail(String why) {
        failure = why;
        return Step.FAILED;
    }

    private static String name(long worker, int rank) {
        return Long.toUnsignedString(worker) + "/" + rank;
    }
}
