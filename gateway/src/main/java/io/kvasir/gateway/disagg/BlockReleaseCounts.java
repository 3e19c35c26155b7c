package io.kvasir.gateway.disagg;

import java.util.EnumMap;
import java.util.Map;

/**
 * What has become of finished prefills. All but {@code held} since the start.
 *
 * @param held prefills whose blocks their engine still holds, as far as is known here: neither
 *     fetched nor freed, and the lease is not over
 * @param fetched prefills whose blocks a decode worker has fetched
 * @param released prefills whose engine was notified that no decode worker comes
 * @param left prefills that no decode worker came for and whose engine could not be notified, by
 *     why; every reason is there
 * @param heartbeats leases that were prolonged, each time
 */
public record BlockReleaseCounts(
        long held, long fetched, long released, Map<LeaseReason, Long> left, long heartbeats) {
    /** Copies the map. */
    public BlockReleaseCounts {
        final Map<LeaseReason, Long> all = new EnumMap<>(LeaseReason.class);
        for (LeaseReason reason : LeaseReason.values()) {
            all.put(reason, left.getOrDefault(reason, 0L));
        }
        left = Map.copyOf(all);
    }
}
