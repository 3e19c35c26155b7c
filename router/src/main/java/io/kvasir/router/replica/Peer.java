package io.kvasir.router.replica;

import org.agrona.collections.Long2ObjectHashMap;

import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.Map;

/** Another router, as far as its messages say. Replica thread only. */
final class Peer {
    private static final int MAX_ENDED = 16_384;

    final ReplicaOrigin origin;
    final SequenceGaps gaps = new SequenceGaps();
    final Long2ObjectHashMap<PeerBooking> bookings = new Long2ObjectHashMap<>();
    final Map<ReplicaWorker, PeerWorker> workers = new HashMap<>();
    long lastSeenNs;

    /** The latest ended bookings: what still comes of them is late. */
    private final Map<Long, Boolean> ended =
            new LinkedHashMap<>() {
                private static final long serialVersionUID = 1L;

                @Override
                protected boolean removeEldestEntry(Map.Entry<Long, Boolean> eldest) {
                    return size() > MAX_ENDED;
                }
            };

    Peer(ReplicaOrigin origin) {
        this.origin = origin;
    }

    /** Remembers an end; a router that is not Kvasir may use a name again. */
    void end(long booking) {
        if (!origin.isForeign()) {
            ended.put(booking, Boolean.TRUE);
        }
    }

    boolean hasEnded(long booking) {
        return ended.containsKey(booking);
    }
}
