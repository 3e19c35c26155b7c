package io.kvasir.pipeline.source;

import java.util.List;
import java.util.concurrent.atomic.AtomicLong;

/** What an event plane counts. Written under its lock, but for what waits; read by any thread. */
final class EventPlaneCounters {
    private final AtomicLong messages = new AtomicLong();
    private final AtomicLong redelivered = new AtomicLong();
    private final AtomicLong events = new AtomicLong();
    private final AtomicLong unknownEvents = new AtomicLong();
    private final AtomicLong unreadable = new AtomicLong();
    private final AtomicLong gaps = new AtomicLong();
    private final AtomicLong missedMessages = new AtomicLong();
    private final AtomicLong publisherChanges = new AtomicLong();
    private final AtomicLong late = new AtomicLong();
    private final AtomicLong endedApplied = new AtomicLong(); // of streams that were removed
    private final AtomicLong endedRefused = new AtomicLong();
    private final AtomicLong recoveredRanges = new AtomicLong();
    private final AtomicLong recoveredDumps = new AtomicLong();
    private final AtomicLong failedRecoveries = new AtomicLong();
    private volatile int recovering;
    private volatile long waiting;

    void received(boolean first) {
        messages.getAndIncrement();
        if (!first) {
            redelivered.getAndIncrement();
        }
    }

    void passed() {
        events.getAndIncrement();
    }

    void unknownEvent() {
        unknownEvents.getAndIncrement();
    }

    void unreadable() {
        unreadable.getAndIncrement();
    }

    void gap(long missing) {
        gaps.getAndIncrement();
        missedMessages.getAndAccumulate(missing, MessageCounts::sum);
    }

    void publisherChange() {
        publisherChanges.getAndIncrement();
    }

    void late() {
        late.getAndIncrement();
    }

    void waiting(long count) {
        waiting = count;
    }

    /** So many workers' local indexers are asked now. */
    void recovering(int queries) {
        recovering = queries;
    }

    /** A local indexer has sent what was missing, as a dump or as events. */
    void recovered(boolean dump) {
        (dump ? recoveredDumps : recoveredRanges).getAndIncrement();
    }

    /** A query was not answered, or not with what can be used. */
    void recoveryFailed() {
        failedRecoveries.getAndIncrement();
    }

    /** A stream is removed: what it has done stays counted. */
    void ended(EngineStream stream) {
        endedApplied.getAndAdd(stream.appliedOperations());
        endedRefused.getAndAdd(stream.refusedEvents());
    }

    EventPlaneStatus status(List<EngineStream> streams, String unconnected, String unfit) {
        long applied = endedApplied.get();
        long refused = endedRefused.get();
        long behind = 0;
        for (EngineStream stream : streams) {
            applied += stream.appliedOperations();
            refused += stream.refusedEvents();
            behind += stream.behind();
        }
        return new EventPlaneStatus(
                messages.get(),
                redelivered.get(),
                events.get(),
                applied,
                refused,
                unknownEvents.get(),
                unreadable.get(),
                gaps.get(),
                missedMessages.get(),
                publisherChanges.get(),
                late.get(),
                recoveredRanges.get(),
                recoveredDumps.get(),
                failedRecoveries.get(),
                recovering,
                waiting,
                behind,
                streams.size(),
                unconnected,
                unfit);
    }
}
