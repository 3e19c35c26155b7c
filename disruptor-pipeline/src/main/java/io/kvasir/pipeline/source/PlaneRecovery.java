package io.kvasir.pipeline.source;

import io.kvasir.pipeline.wire.RecoveryAnswer;
import io.kvasir.pipeline.wire.RouterMessage;

import org.agrona.collections.Long2ObjectHashMap;

import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.List;
import java.util.Queue;
import java.util.concurrent.TimeUnit;
import java.util.function.BiConsumer;
import java.util.function.LongSupplier;

/**
 * Has the local indexers of an event plane's workers send what streams miss: some at a time, each
 * again when it does not answer, or not with what can be used. Guarded by the plane's lock.
 */
final class PlaneRecovery {
    private final RecoveryTransport transport;
    private final RecoveryLimits limits;
    private final LongSupplier nanoClock;
    private final EventPlaneCounters counters;
    private final BiConsumer<PlaneFeed, Long> adopt; // another publisher has a worker
    private final HeldBytes held;
    private final RouterMessage scratch = new RouterMessage();
    private final List<RecoverySession> sessions = new ArrayList<>();
    private final Queue<RecoverySession> queue = new ArrayDeque<>();
    private final Long2ObjectHashMap<RecoverySession> asked = new Long2ObjectHashMap<>();
    private long lastQueryId;

    PlaneRecovery(
            RecoveryTransport transport,
            RecoveryLimits limits,
            LongSupplier nanoClock,
            EventPlaneCounters counters,
            BiConsumer<PlaneFeed, Long> adopt) {
        this.transport = transport;
        this.limits = limits;
        this.nanoClock = nanoClock;
        this.counters = counters;
        this.adopt = adopt;
        this.held = new HeldBytes(limits.heldBytes());
    }

    /** Counts the live messages that wait for answers. */
    HeldBytes held() {
        return held;
    }

    void add(PlaneFeed feed) {
        feed.stream.queryable(held);
        feed.session.lastEventNs = nanoClock.getAsLong();
        sessions.add(feed.session);
    }

    void remove(PlaneFeed feed) {
        cancel(feed.session);
        queue.remove(feed.session);
        sessions.remove(feed.session);
    }

    /** An event of a worker has come. */
    void received(PlaneFeed feed) {
        feed.session.lastEventNs = nanoClock.getAsLong();
    }

    /** There is no connection: what was asked is not answered any more. */
    void cancelAll() {
        sessions.forEach(this::cancel);
    }

    private void cancel(RecoverySession session) {
        if (session.queryId != 0) {
            over(session);
        }
        session.failedTries = 0;
        session.dueNs = nanoClock.getAsLong();
    }

    private void over(RecoverySession session) {
        asked.remove(session.queryId);
        session.end();
        counters.recovering(asked.size());
    }

    /** Asks what is to be asked, and gives up what is not answered. */
    void tick() {
        final long nowNs = nanoClock.getAsLong();
        for (RecoverySession session : sessions) {
            look(session, nowNs);
        }
        askWaiting(nowNs);
    }

    /** Asks those whose turn it is, as many as may be asked at the same time. */
    private void askWaiting(long nowNs) {
        while (!queue.isEmpty() && asked.size() < limits.atOnce()) {
            final RecoverySession next = queue.remove();
            next.queued = false;
            if (next.feed.stream.wantsReplay()) {
                ask(next, nowNs);
            }
        }
    }

    private void look(RecoverySession session, long nowNs) {
        if (session.queryId != 0) {
            if (nowNs - session.lastSeenNs >= limits.patienceNs()) {
                failed(session, "no answer for " + ms(limits.patienceNs()));
            } else if (nowNs - session.askedNs >= limits.answerNs()) {
                failed(session, "its answer has not ended after " + ms(limits.answerNs()));
            }
            return;
        }
        if (nowNs - session.lastEventNs >= limits.tailCheckNs(session.unanswered)) {
            session.lastEventNs = nowNs;
            session.feed.stream.checkTail();
        }
        if (!session.queued && nowNs - session.dueNs >= 0 && session.feed.stream.wantsReplay()) {
            session.queued = true;
            queue.add(session);
        }
    }

    private static String ms(long ns) {
        return TimeUnit.NANOSECONDS.toMillis(ns) + " ms";
    }

    private void ask(RecoverySession session, long nowNs) {
        final long id = ++lastQueryId;
        asked.put(id, session);
        counters.recovering(asked.size());
        if (!transport.ask(id, session.begin(id, nowNs))) {
            failed(session, "it cannot be asked now");
        }
    }

    /** Takes a message of an answer. */
    void onAnswer(long queryId, byte[] message) {
        final RecoverySession session = asked.get(queryId);
        if (session == null) {
            return; // it was given up
        }
        take(session, message);
        askWaiting(nanoClock.getAsLong());
    }

    private void take(RecoverySession session, byte[] message) {
        final RecoveryAnswer answer = RecoveryAnswer.read(message);
        if (answer == null) {
            failed(session, message.length + " bytes are no answer");
            return;
        }
        final RecoverySession.Life life =
                session.feed.lifeOf(answer.publisherId(), session.askedNs);
        final RecoverySession.Step step = session.take(answer, life, scratch);
        if (step == RecoverySession.Step.IGNORED) {
            return;
        }
        session.lastSeenNs = nanoClock.getAsLong();
        if (session.hasBegun()) {
            session.answers = true;
            adopt.accept(session.feed, answer.publisherId());
        }
        switch (step) {
            case MORE -> {
                if (stagedWords() > limits.stagedWords()) {
                    failed(
                            session,
                            "dumps have no room: words="
                                    + stagedWords()
                                    + " of all that are under way, most="
                                    + limits.stagedWords());
                }
            }
            case DONE -> succeeded(session);
            case AGAIN -> failed(session, 0, "it knows of another life of the worker");
            case FAILED -> failed(session, session.failure());
            case IGNORED -> {}
        }
    }

    private long stagedWords() {
        long words = 0;
        for (RecoverySession session : asked.values()) {
            words += session.stagedWords();
        }
        return words;
    }

    private void succeeded(RecoverySession session) {
        counters.recovered(session.isDump());
        session.unanswered = 0;
        over(session);
        session.failedTries = 0;
        session.dueNs = nanoClock.getAsLong();
    }

    /** Says that nothing takes queries for the worker. */
    void onNoAnswerer(long queryId) {
        final RecoverySession session = asked.get(queryId);
        if (session != null) {
            giveUp(session, "nothing answers for the worker");
            askWaiting(nanoClock.getAsLong());
        }
    }

    private void failed(RecoverySession session, String why) {
        failed(session, limits.backoffNs(session.failedTries + 1), why);
    }

    private void failed(RecoverySession session, long backoffNs, String why) {
        session.failedTries++;
        if (session.failedTries >= limits.tries()) {
            giveUp(session, why);
            return;
        }
        counters.recoveryFailed();
        over(session);
        session.dueNs = nanoClock.getAsLong() + backoffNs;
    }

    private void giveUp(RecoverySession session, String why) {
        counters.recoveryFailed();
        session.unanswered++;
        over(session);
        session.failedTries = 0;
        session.dueNs = nanoClock.getAsLong();
        session.feed.stream.replayFailed(why);
    }
}
