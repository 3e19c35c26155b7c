package io.kvasir.pipeline.source;

import java.util.LinkedHashMap;
import java.util.SequencedMap;

/**
 * What an {@link EventPlane} has counted since its start, and how far behind it is.
 *
 * @param messages messages that arrived
 * @param redelivered those of them that the transport had passed before
 * @param events events in them that were passed to a stream
 * @param applied operations of events by which the index was changed
 * @param refused events for which the ring had no room, and stores that the index did not take
 * @param unknownEvents events of workers for which no stream is registered
 * @param unreadable messages or events that do not say whose they are
 * @param gaps times that a publisher's messages were not consecutive
 * @param missedMessages messages that are missing in these gaps
 * @param publisherChanges times that another publisher took a worker over
 * @param late events that were left out because another publisher had taken their worker over
 * @param recoveredRanges answers of workers' local indexers with the events that were missing
 * @param recoveredDumps answers with all that the worker holds
 * @param failedRecoveries queries that were not answered, or not with what can be used
 * @param recovering queries that are under way now
 * @param waiting messages that wait in the transport now, as far as it knows
 * @param behind events that were passed to a stream and are not in the index yet
 * @param streams streams that are registered now
 * @param unconnected why there is no connection; empty while there is one
 * @param unfit why what the transport is connected to cannot carry all events; empty where it can
 */
public record EventPlaneStatus(
        long messages,
        long redelivered,
        long events,
        long applied,
        long refused,
        long unknownEvents,
        long unreadable,
        long gaps,
        long missedMessages,
        long publisherChanges,
        long late,
        long recoveredRanges,
        long recoveredDumps,
        long failedRecoveries,
        int recovering,
        long waiting,
        long behind,
        int streams,
        String unconnected,
        String unfit) {
    /**
     * What was counted since the start, by the name that metrics and counters have.
     *
     * @return always the same names in the same order
     */
    public SequencedMap<String, Long> byEvent() {
        final SequencedMap<String, Long> counts = new LinkedHashMap<>();
        counts.put("received", messages);
        counts.put("redelivered", redelivered);
        counts.put("passed", events);
        counts.put("applied", applied);
        counts.put("refused", refused);
        counts.put("unknown-worker", unknownEvents);
        counts.put("unreadable", unreadable);
        counts.put("gap", gaps);
        counts.put("missed", missedMessages);
        counts.put("publisher-change", publisherChanges);
        counts.put("late", late);
        counts.put("recovered-range", recoveredRanges);
        counts.put("recovered-dump", recoveredDumps);
        counts.put("recovery-failed", failedRecoveries);
        return counts;
    }

    /** Why events may not come, in words; empty where nothing is known to keep them back. */
    public String problem() {
        return isConnected() ? unfit : unconnected;
    }

    /** Whether there is a connection. */
    public boolean isConnected() {
        return unconnected.isEmpty();
    }
}
