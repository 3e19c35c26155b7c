package io.kvasir.nixl.engine;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.Iterator;
import java.util.List;
import java.util.Map;

/**
 * Blocks that are kept for peers that will pull them: until as many consumers as were expected have
 * said that they are done, or until no reader has answered for the lease's time. Time is given, on
 * a monotonic clock: leases that no message is about end when {@link #expire} is called, which is
 * to be done now and then. One thread.
 *
 * <p>A lease that has ended is remembered for one lease time, so that a message that comes late is
 * distinguished from one about a request that never existed: the first may mean that a peer has
 * read blocks which were in use for something else already.
 */
public final class BlockLeases {
    /** What became of a message about a lease. */
    public enum Outcome {
        /** The lease continues. */
        HELD,
        /** That was the last consumer: the blocks are free. */
        RELEASED,
        /** The lease had ended before: what the peer has read is not to be trusted. */
        LATE,
        /** There was no such lease. */
        UNKNOWN
    }

    /** Notified of blocks that are free again, on the thread that calls; may call the table. */
    @FunctionalInterface
    public interface Freed {
        /**
         * Blocks are free.
         *
         * @param id the lease's name
         * @param blocks as they were given; not copied
         * @param expired whether no reader came for them
         */
        void onFreed(String id, int[] blocks, boolean expired);
    }

    private static final class Lease {
        private final int[] blocks;
        private int consumersLeft;
        private long untilNs;
        private boolean ended;

        private Lease(int[] blocks, int consumers, long untilNs) {
            this.blocks = blocks;
            this.consumersLeft = consumers;
            this.untilNs = untilNs;
        }
    }

    private final long leaseNs;
    private final long extensionNs;
    private final int capacity;
    private final Freed freed;
    private final Map<String, Lease> leases = new HashMap<>();
    private int held;
    private long expired;
    private long late;

    /**
     * Makes an empty table.
     *
     * @param leaseNs time from the grant to the end without any sign of a reader, above 0
     * @param extensionNs time from a heartbeat to the end, above 0
     * @param capacity leases at a time, at least 1
     * @param freed notified when blocks are free
     * @throws IllegalArgumentException naming what is out of range
     */
    public BlockLeases(long leaseNs, long extensionNs, int capacity, Freed freed) {
        if (leaseNs < 1 || extensionNs < 1 || capacity < 1) {
            throw new IllegalArgumentException(
                    "leases are of positive time and number: leaseNs="
                            + leaseNs
                            + ", extensionNs="
                            + extensionNs
                            + ", capacity="
                            + capacity);
        }
        this.leaseNs = leaseNs;
        this.extensionNs = extensionNs;
        this.capacity = capacity;
        this.freed = freed;
    }

    /**
     * Keeps blocks.
     *
     * @param id name that peers will use
     * @param blocks not copied
     * @param consumers peers, or ranks of them, that will be done one by one, at least 1
     * @param nowNs time
     * @return false if {@code capacity} leases are held already; free the blocks otherwise then
     * @throws IllegalArgumentException if the name is held or {@code consumers} is below 1
     */
    public boolean grant(String id, int[] blocks, int consumers, long nowNs) {
        final Lease before = leases.get(id);
        if (consumers < 1 || (before != null && !before.ended)) {
            throw new IllegalArgumentException(
                    "lease "
                            + id
                            + (consumers < 1 ? " for " + consumers + " consumers" : " is held"));
        }
        if (held == capacity) {
            return false;
        }
        leases.put(id, new Lease(blocks, consumers, nowNs + leaseNs));
        held++;
        return true;
    }

    /**
     * A consumer is done. Costs a look at this lease alone.
     *
     * @param id the lease's name
     * @param nowNs time
     * @return what became of it
     */
    public Outcome done(String id, long nowNs) {
        final Lease lease = current(id, nowNs);
        if (lease == null) {
            return Outcome.UNKNOWN;
        }
        if (lease.ended) {
            late++;
            return Outcome.LATE;
        }
        if (--lease.consumersLeft > 0) {
            return Outcome.HELD;
        }
        end(id, lease, nowNs, false);
        return Outcome.RELEASED;
    }

    /**
     * A consumer still wants the blocks. Costs a look at this lease alone.
     *
     * @param id the lease's name
     * @param nowNs time
     * @return what became of it
     */
    public Outcome heartbeat(String id, long nowNs) {
        final Lease lease = current(id, nowNs);
        if (lease == null) {
            return Outcome.UNKNOWN;
        }
        if (lease.ended) {
            late++;
            return Outcome.LATE;
        }
        lease.untilNs = later(lease.untilNs, nowNs + extensionNs);
        return Outcome.HELD;
    }

    /** A lease as it is at this time: ended, or forgotten, if its time is over. */
    private Lease current(String id, long nowNs) {
        final Lease lease = leases.get(id);
        if (lease == null || nowNs - lease.untilNs < 0) {
            return lease;
        }
        if (lease.ended) {
            leases.remove(id);
            return null;
        }
        expired++;
        end(id, lease, nowNs, true);
        return lease;
    }

    private static long later(long a, long b) {
        return a - b > 0 ? a : b;
    }

    /**
     * Ends leases whose time is over and forgets those that ended long ago. Costs a look at each.
     *
     * @param nowNs time
     * @return leases that ended now
     */
    public int expire(long nowNs) {
        List<Map.Entry<String, Lease>> over = null;
        for (Iterator<Map.Entry<String, Lease>> i = leases.entrySet().iterator(); i.hasNext(); ) {
            final Map.Entry<String, Lease> entry = i.next();
            if (nowNs - entry.getValue().untilNs < 0) {
                continue;
            }
            if (entry.getValue().ended) {
                i.remove();
            } else {
                over = over == null ? new ArrayList<>() : over;
                over.add(Map.entry(entry.getKey(), entry.getValue()));
            }
        }
        if (over == null) {
            return 0;
        }
        int ended = 0;
        for (Map.Entry<String, Lease> entry : over) {
            if (!entry.getValue().ended) { // else a call from within onFreed has ended it
                expired++;
                ended++;
                end(entry.getKey(), entry.getValue(), nowNs, true);
            }
        }
        return ended;
    }

    private void end(String id, Lease lease, long nowNs, boolean isExpired) {
        lease.ended = true;
        lease.untilNs = nowNs + leaseNs; // remembered until then
        held--;
        freed.onFreed(id, lease.blocks, isExpired);
    }

    /**
     * Leases that keep blocks.
     *
     * @return 0..capacity
     */
    public int held() {
        return held;
    }

    /**
     * Leases that ended without a reader.
     *
     * @return since the start
     */
    public long expired() {
        return expired;
    }

    /**
     * Messages that came after their lease had ended.
     *
     * @return since the start
     */
    public long late() {
        return late;
    }
}
