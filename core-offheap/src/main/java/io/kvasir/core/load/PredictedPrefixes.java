package io.kvasir.core.load;

import io.kvasir.core.memory.MemoryGate;
import io.kvasir.core.memory.OffHeap;
import io.kvasir.core.memory.WriterCounter;
import io.kvasir.core.memory.WriterLane;
import io.kvasir.core.radix.OverlapScores;

import java.util.Objects;

/**
 * Prefixes that are taken as cached because requests were routed there, for engines that announce
 * nothing: the approximate index.
 *
 * <p>A <em>visit</em> says that a prompt went to a worker slot at some time. A block is taken as
 * held while a visit of the last {@code ttlNs} goes through it, so a later visit refreshes the
 * whole prefix that it shares with an earlier one. Visits stand in a ring in the order of their
 * times; the oldest are dropped when they are too old, when there are more than {@code maxVisits},
 * or when more than {@code maxBlocks} blocks are held, then down to {@code pruneTargetRatio} of
 * them, but for the newest, which stays. Dropping a visit takes its prompt back from the end up to
 * where another visit still holds it: oldest first, deepest first, in time proportional to the runs
 * that go.
 *
 * <p>Owner: the one thread that calls the methods marked as writer's. {@link #match} and the
 * counters are for any thread, never wait and allocate nothing.
 *
 * <p>After {@link #close}, {@link #match} and the writer's methods throw {@link
 * io.kvasir.core.memory.ClosedException}; counters keep their last values.
 */
public final class PredictedPrefixes implements AutoCloseable {
    private final PredictedPrefixesConfig config;
    private final MemoryGate gate;
    private final WriterLane writer;
    private final RefCountedPrefixes paths;
    private final OffHeap visits;
    private final WriterCounter expired = new WriterCounter();
    private final WriterCounter pruned = new WriterCounter();
    private final WriterCounter refused = new WriterCounter();
    private final WriterCounter remembered = new WriterCounter();
    private int oldest;
    private volatile PredictedPrefixesConfig limits; // no larger than the memory is for

    /**
     * Allocates an empty index with a gate of its own.
     *
     * @throws OutOfMemoryError if the operating system refuses the memory
     */
    public PredictedPrefixes(PredictedPrefixesConfig config) {
        this(config, new MemoryGate("the index of routed prefixes"));
    }

    /**
     * Allocates an empty index.
     *
     * @param gate keeps the memory while callers are inside; closed if the memory is refused
     * @throws OutOfMemoryError if the operating system refuses the memory
     */
    public PredictedPrefixes(PredictedPrefixesConfig config, MemoryGate gate) {
        this.config = config;
        this.limits = config;
        this.gate = gate;
        this.writer = new WriterLane(gate);
        try {
            // a prompt comes in before the oldest go, so there is room for two times the limit
            this.paths =
                    gate.own(
                            new RefCountedPrefixes(
                                    config.maxWorkerSlots(),
                                    2 * config.maxBlocks(),
                                    config.budgetBytes()));
            this.visits = gate.own(OffHeap.allocate(VisitDescriptor.offset(config.maxVisits())));
        } catch (Throwable t) {
            gate.close();
            throw t;
        }
    }

    /**
     * Remembers that a prompt was routed to a slot. Writer thread.
     *
     * @param slot worker slot
     * @param localHashes local hash of block {@code i} at index {@code i}; [count], not kept
     * @param count blocks; 0 changes nothing
     * @param nowNs time of the visit, not before that of an earlier one
     * @return false when it could not be remembered because memory is exhausted, or is longer than
     *     {@code maxBlocks}
     * @throws IndexOutOfBoundsException if the slot or {@code count} is out of range
     */
    public boolean visit(int slot, long[] localHashes, int count, long nowNs) {
        final int lane = writer.enter();
        try {
            Objects.checkIndex(slot, config.maxWorkerSlots());
            Objects.checkFromIndexSize(0, count, localHashes.length);
            expire(nowNs);
            final PredictedPrefixesConfig most = limits;
            if (count == 0) {
                return true;
            }
            if (count > most.maxBlocks() || !enter(slot, localHashes, count)) {
                refused.add(1);
                return false;
            }
            final int endArray = paths.endArray();
            final int endOffset = paths.endOffset();
            if (remembered.get() == config.maxVisits()) {
                dropOldest(); // which may join the segment that the path ends in
                pruned.add(1);
            }
            final long at = VisitDescriptor.offset(visitIndex((int) remembered.get()));
            visits.putLong(at + VisitDescriptor.TIME_OFFSET, nowNs);
            visits.putInt(at + VisitDescriptor.SLOT_OFFSET, slot);
            visits.putInt(at + VisitDescriptor.ARRAY_OFFSET, endArray);
            visits.putInt(at + VisitDescriptor.END_OFFSET, endOffset);
            remembered.add(1);
            pruneAbove(most, 1);
            return true;
        } finally {
            writer.exit(lane);
        }
    }

    /** Enters a path; without memory the oldest half makes room once. */
    private boolean enter(int slot, long[] localHashes, int count) {
        if (paths.enter(slot, localHashes, count) >= 0) {
            return true;
        }
        prune(paths.used() / 2, 0);
        return paths.enter(slot, localHashes, count) >= 0;
    }

    private void pruneAbove(PredictedPrefixesConfig most, int newest) {
        if (paths.used() > most.maxBlocks()) {
            prune((long) (most.pruneTargetRatio() * most.maxBlocks()), newest);
        }
    }

    /** Drops the oldest visits until no more blocks are held, or so many visits are left. */
    private void prune(long target, int newest) {
        while (paths.used() > target && remembered.get() > newest) {
            dropOldest();
            pruned.add(1);
        }
    }

    /**
     * Drops the visits that are older than {@code ttlNs}, and what is above {@code maxBlocks} since
     * that was lowered. Writer thread.
     *
     * @return how many were too old
     */
    public int expire(long nowNs) {
        final int lane = writer.enter();
        try {
            int dropped = 0;
            final PredictedPrefixesConfig most = limits;
            while (remembered.get() > 0 && nowNs - oldestTime() > most.ttlNs()) {
                dropOldest();
                dropped++;
            }
            expired.add(dropped);
            pruneAbove(most, 0);
            return dropped;
        } finally {
            writer.exit(lane);
        }
    }

    /**
     * Changes blocks, ratio and age from the writer's next visit or expiry on. What is too much or
     * too old then is dropped there. Any thread.
     *
     * @throws IllegalArgumentException if the blocks are more than the memory is for
     */
    public void limits(long maxBlocks, double pruneTargetRatio, long ttlNs) {
        if (maxBlocks > config.maxBlocks()) {
            throw new IllegalArgumentException(
                    "maxBlocks=" + maxBlocks + " exceeds those at start: " + config.maxBlocks());
        }
        limits =
                new PredictedPrefixesConfig(
                        config.maxWorkerSlots(),
                        maxBlocks,
                        pruneTargetRatio,
                        config.maxVisits(),
                        ttlNs);
    }

    private long oldestTime() {
        return visits.getLong(VisitDescriptor.offset(oldest) + VisitDescriptor.TIME_OFFSET);
    }

    private void dropOldest() {
        takeBack(oldest);
        oldest = visitIndex(1);
        remembered.add(-1);
    }

    private void takeBack(int visit) {
        final long at = VisitDescriptor.offset(visit);
        final int slot = visits.getInt(at + VisitDescriptor.SLOT_OFFSET);
        if (slot != VisitDescriptor.NO_SLOT) {
            visits.putInt(at + VisitDescriptor.SLOT_OFFSET, VisitDescriptor.NO_SLOT);
            paths.leave(
                    slot,
                    visits.getInt(at + VisitDescriptor.ARRAY_OFFSET),
                    visits.getInt(at + VisitDescriptor.END_OFFSET));
        }
    }

    /**
     * Forgets what a slot was sent: its worker restarted or was removed. Writer thread. Reads every
     * visit.
     *
     * @return visits forgotten
     * @throws IndexOutOfBoundsException if the slot is out of range
     */
    public int clear(int slot) {
        final int lane = writer.enter();
        try {
            Objects.checkIndex(slot, config.maxWorkerSlots());
            int forgotten = 0;
            for (int i = 0; i < remembered.get(); i++) {
                final int visit = visitIndex(i);
                if (visits.getInt(VisitDescriptor.offset(visit) + VisitDescriptor.SLOT_OFFSET)
                        == slot) {
                    takeBack(visit);
                    forgotten++;
                }
            }
            return forgotten;
        } finally {
            writer.exit(lane);
        }
    }

    /**
     * Finds how many leading blocks of a prompt each slot was sent. Any thread; as exact as {@link
     * io.kvasir.core.index.PrefixIndex#match}.
     *
     * @param localHashes local hash of block {@code i} at index {@code i}; [count], not copied
     * @param count blocks to match
     * @param out cleared, then filled with the depth in blocks of each slot
     * @return deepest match in blocks, 0 when nothing matched
     * @throws IndexOutOfBoundsException if {@code count} is negative or beyond the array
     * @throws io.kvasir.core.memory.ClosedException if the index is closed
     */
    public int match(long[] localHashes, int count, OverlapScores out) {
        final int lane = gate.enterOrThrow();
        try {
            return matchInside(localHashes, count, out);
        } finally {
            gate.exit(lane);
        }
    }

    /** The same as {@link #match}, for a caller that has entered {@link #gate()}. */
    public int matchInside(long[] localHashes, int count, OverlapScores out) {
        Objects.checkFromIndexSize(0, count, localHashes.length);
        return paths.match(localHashes, count, out);
    }

    /** Blocks held, counted once per worker slot; any thread. */
    public long blocks() {
        return paths.used();
    }

    /** Visits remembered, those of cleared slots included; any thread. */
    public long visits() {
        return remembered.get();
    }

    /** Visits dropped for their age; any thread. */
    public long expired() {
        return expired.get();
    }

    /** Visits dropped because the tree is full; any thread. */
    public long pruned() {
        return pruned.get();
    }

    /** Visits that could not be remembered; any thread. */
    public long refused() {
        return refused.get();
    }

    /** Off-heap bytes; constant from construction to close. */
    public long bytes() {
        return paths.bytes() + visits.length();
    }

    /** Sizes that the index was made with. */
    public PredictedPrefixesConfig config() {
        return config;
    }

    /** Keeps the memory while callers are inside. */
    public MemoryGate gate() {
        return gate;
    }

    /** How the writer thread keeps the memory; pinned by a pipeline for as long as it runs. */
    public WriterLane writer() {
        return writer;
    }

    /**
     * Closes the gate, and with it all structures that share it: the memory is given back when the
     * last thread inside has left. Any thread, at any time; a second call does nothing.
     */
    @Override
    public void close() {
        gate.close();
    }

    /** Number of the visit that came {@code after} the oldest, in the ring. */
    private int visitIndex(int after) {
        final int visit = oldest + after;
        return visit < config.maxVisits() ? visit : visit - config.maxVisits();
    }
}
