package io.kvasir.router.replica;

import java.util.LinkedHashMap;
import java.util.SequencedMap;

/**
 * What replica sync has done, as of one moment.
 *
 * @param problem why messages do not go or come; empty if nothing is known to be wrong
 * @param peers other routers whose messages arrive, those that are not Kvasir included
 * @param peerBookings their bookings that count here
 * @param published messages sent
 * @param applied messages of others that changed something here
 * @param ownIgnored own messages that came back
 * @param lost messages of others that never came, by gaps in their numbers
 * @param repairedAdds bookings of others that were found missing, and are there now
 * @param repairedFrees bookings of others that were found to have ended, and were dropped
 * @param unknownWorkers messages about workers that are not registered here
 * @param queueDropped messages that were dropped because a queue was full, or the link did not take
 *     them once it had been connected
 * @param unreadable messages that could not be read
 * @param refused bookings of others for which there was no room
 * @param otherHashes bookings of others that share no blocks here, because their hashes are of
 *     another seed or not known
 * @param droppedPeers routers whose bookings were dropped because they fell silent
 */
public record ReplicaStatus(
        String problem,
        long peers,
        long peerBookings,
        long published,
        long applied,
        long ownIgnored,
        long lost,
        long repairedAdds,
        long repairedFrees,
        long unknownWorkers,
        long queueDropped,
        long unreadable,
        long refused,
        long otherHashes,
        long droppedPeers) {
    /** Of a router without replicas. */
    public static final ReplicaStatus NONE =
            new ReplicaStatus("", 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0);

    /** Whether messages go and come, as far as is known. */
    public boolean isConnected() {
        return problem.isEmpty();
    }

    /**
     * What was counted since the start, by the name that metrics and counters have.
     *
     * @return always the same names in the same order
     */
    public SequencedMap<String, Long> byEvent() {
        final SequencedMap<String, Long> counts = new LinkedHashMap<>();
        counts.put("published", published);
        counts.put("applied", applied);
        counts.put("own-ignored", ownIgnored);
        counts.put("lost", lost);
        counts.put("repaired-add", repairedAdds);
        counts.put("repaired-free", repairedFrees);
        counts.put("unknown-worker", unknownWorkers);
        counts.put("queue-dropped", queueDropped);
        counts.put("unreadable", unreadable);
        counts.put("refused", refused);
        counts.put("other-hashes", otherHashes);
        counts.put("dropped-peer", droppedPeers);
        return counts;
    }
}
