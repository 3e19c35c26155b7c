package io.kvasir.services.select;

import io.kvasir.services.http.GroupKey;
import io.kvasir.services.http.ServiceException;

import java.util.Iterator;
import java.util.LinkedHashMap;
import java.util.Map;

/**
 * Selections that wait for their reservation, for some time; the oldest gives way when there are
 * too many. All methods are for any thread.
 */
final class PendingSelections {
    /** One of them. */
    private record Waiting(Selection selection, long untilNs) {}

    private final int most;
    private final long ttlNs;
    private final Map<String, Waiting> waiting = new LinkedHashMap<>(); // the oldest first

    PendingSelections(int most, long ttlNs) {
        this.most = most;
        this.ttlNs = ttlNs;
    }

    synchronized void add(String id, Selection selection, long nowNs) {
        expire(nowNs);
        waiting.remove(id);
        if (waiting.size() == most) {
            waiting.remove(waiting.keySet().iterator().next());
        }
        waiting.put(id, new Waiting(selection, nowNs + ttlNs));
    }

    /** Reserves what was selected, and says what that is now. */
    @FunctionalInterface
    interface Reservation {
        Selection of(Selection selection) throws ServiceException;
    }

    /**
     * Has one of a group reserved; where that fails it waits on.
     *
     * @return what was reserved; null if it is not there any more, or never was
     */
    synchronized Selection claimOrNull(String id, GroupKey key, long nowNs, Reservation reservation)
            throws ServiceException {
        expire(nowNs);
        final Waiting found = waiting.get(id);
        if (found == null || !found.selection.key().equals(key)) {
            return null;
        }
        final Selection reserved = reservation.of(found.selection);
        waiting.remove(id);
        return reserved;
    }

    private void expire(long nowNs) {
        for (Iterator<Waiting> each = waiting.values().iterator(); each.hasNext(); ) {
            if (each.next().untilNs - nowNs > 0) {
                return;
            }
            each.remove();
        }
    }
}
