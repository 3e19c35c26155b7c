package io.kvasir.router;

import io.kvasir.pipeline.source.EventPlaneStatus;
import io.kvasir.router.policy.PolicyFailures;
import io.kvasir.router.replica.ReplicaStatus;
import io.kvasir.router.settings.Setting;
import io.kvasir.router.state.SnapshotStatus;

import java.util.LinkedHashMap;
import java.util.List;
import java.util.SequencedMap;

/**
 * What a router has used of its limits and what it has refused, as of one moment; see {@link
 * KvRouter#status}. How well the index is for one worker is {@link Worker#sourceStatus}.
 *
 * @param usages every limit that can be reached
 * @param refusals what was not taken, by cause
 * @param pathlessBookings bookings that weigh their own blocks, because there was no room for their
 *     paths
 * @param expiredLeases bookings that their deadline has ended
 * @param forgottenLeases bookings whose leases were collected without having been closed
 * @param loadCorrections times that a load was not what is booked, and was corrected
 * @param failures records of both rings that could not be applied because of an error, calls of
 *     {@link KvRouter#addRoomListener room listeners} that threw, and numbers that an embedder's
 *     {@link RouterConfig.Builder#random random source} did not have, and matches that found the
 *     index damaged
 * @param replicaOrNull what replica sync has done; null where the router has no replicas
 * @param planeOrNull what came from the event plane; null where the router is on none
 * @param snapshots what became of snapshots of the index
 * @param policyFailures how often the selection policy has failed
 * @param tiers the tiers below the device that are followed
 */
public record RouterStatus(
        List<Usage> usages,
        Refusals refusals,
        long pathlessBookings,
        long expiredLeases,
        long forgottenLeases,
        long loadCorrections,
        long failures,
        ReplicaStatus replicaOrNull,
        EventPlaneStatus planeOrNull,
        Snapshots snapshots,
        PolicyFailures policyFailures,
        List<TierStatus> tiers) {
    /** Copies the lists. */
    public RouterStatus {
        usages = List.copyOf(usages);
        tiers = List.copyOf(tiers);
    }

    /**
     * What became of snapshots.
     *
     * @param ofRouterOrNull those of this router alone; null where none are taken
     * @param ofPlaneOrNull those that all routers over the event plane share; likewise
     */
    public record Snapshots(SnapshotStatus ofRouterOrNull, SnapshotStatus ofPlaneOrNull) {}

    /**
     * How full something is.
     *
     * @param resource its name: words joined by dashes
     * @param setting what raises the limit
     * @param used of it, now
     * @param limit of it
     */
    public record Usage(String resource, Setting<?> setting, long used, long limit) {
        /** Part of the limit that is used, 0..1. */
        public double fraction() {
            return (double) used / limit;
        }
    }

    /**
     * What was not taken since the start.
     *
     * @param indexFull stores, because the index was full
     * @param missingParents stores, because their parent was refused or evicted
     * @param evictedBlocks blocks that were taken, and given up when the index was full
     * @param unknownParents stores, because the index did not know their parent
     * @param invalidStores stores that are no stores
     * @param conflictingStores stores that give a block another name or a name another block
     * @param unknownRemovals removals of blocks that the index did not know
     * @param eventRingFull event messages, because the event ring was full
     * @param bookingRingFull steps of requests, because the booking ring was full
     * @param bookingsFull bookings, because their entry in the table of running requests was taken:
     *     a defect
     */
    public record Refusals(
            long indexFull,
            long missingParents,
            long evictedBlocks,
            long unknownParents,
            long invalidStores,
            long conflictingStores,
            long unknownRemovals,
            long eventRingFull,
            long bookingRingFull,
            long bookingsFull) {
        /**
         * The counts by cause, as metrics, counters and log lines name it.
         *
         * @return all ten, always in the same order
         */
        public SequencedMap<String, Long> byCause() {
            final SequencedMap<String, Long> counts = new LinkedHashMap<>();
            counts.put("index-full", indexFull);
            counts.put("missing-parent", missingParents);
            counts.put("evicted-block", evictedBlocks);
            counts.put("unknown-parent", unknownParents);
            counts.put("invalid-store", invalidStores);
            counts.put("conflicting-store", conflictingStores);
            counts.put("unknown-removal", unknownRemovals);
            counts.put("event-ring-full", eventRingFull);
            counts.put("booking-ring-full", bookingRingFull);
            counts.put("bookings-full", bookingsFull);
            return counts;
        }
    }
}
