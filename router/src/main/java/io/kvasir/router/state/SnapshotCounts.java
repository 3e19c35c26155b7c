package io.kvasir.router.state;

import java.util.EnumMap;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.SequencedMap;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;
import java.util.function.LongSupplier;

/** Counts what becomes of snapshots. Thread-safe. */
public final class SnapshotCounts {
    private static final long NONE = -1;

    private final AtomicLong taken = new AtomicLong();
    private final AtomicLong failed = new AtomicLong();
    private volatile long failedBefore; // the last attempt
    private final Map<SnapshotCause, AtomicLong> abandoned = byCause();
    private final AtomicLong totalNs = new AtomicLong();
    private final AtomicLong lastBytes = new AtomicLong();
    private final AtomicLong lastTakenMs = new AtomicLong();
    private final AtomicLong restoredWorkers = new AtomicLong();
    private final AtomicLong restoredBlocks = new AtomicLong();
    private final AtomicLong restoreFailures = new AtomicLong();

    private final LongSupplier clock;
    private long takenNs; // of the newest, by this process' own clock; guarded by this
    private boolean isKnown; // whether there is one; likewise

    /** Counts nothing yet. */
    public SnapshotCounts() {
        this(System::nanoTime);
    }

    /** The same by another clock, in ns. */
    SnapshotCounts(LongSupplier clock) {
        this.clock = clock;
    }

    private static Map<SnapshotCause, AtomicLong> byCause() {
        final Map<SnapshotCause, AtomicLong> counts = new EnumMap<>(SnapshotCause.class);
        for (SnapshotCause cause : SnapshotCause.values()) {
            counts.put(cause, new AtomicLong());
        }
        return counts;
    }

    /** One is to be saved: what failed before is over. */
    public void begun() {
        failedBefore = failed.get();
    }

    /**
     * One was saved.
     *
     * @param ns how long it took
     * @param bytes its length
     * @param atMs time of day, in ms since 1970
     */
    public void taken(long ns, long bytes, long atMs) {
        totalNs.getAndAdd(ns);
        lastBytes.set(bytes);
        known(atMs, 0);
        taken.getAndIncrement();
    }

    /** One, or a worker of one, could not be saved. */
    public void failed() {
        failed.getAndIncrement();
    }

    /** One, or a worker of one, was given up. */
    public void abandoned(SnapshotCause cause) {
        abandoned.get(cause).getAndIncrement();
    }

    /**
     * There is one. Its age grows by this process' own clock from now on, which does not jump.
     *
     * @param takenMs when it was taken, in ms since 1970; 0 where that is not known
     * @param ageMs how long ago that was; a negative one, of clocks that differ, is 0
     */
    public void known(long takenMs, long ageMs) {
        if (takenMs <= 0) {
            return;
        }
        lastTakenMs.accumulateAndGet(takenMs, Math::max);
        final long atNs = clock.getAsLong() - TimeUnit.MILLISECONDS.toNanos(Math.max(0, ageMs));
        synchronized (this) {
            if (!isKnown || atNs - takenNs > 0) {
                takenNs = atNs;
                isKnown = true;
            }
        }
    }

    private synchronized long ageMs() {
        return isKnown ? TimeUnit.NANOSECONDS.toMillis(clock.getAsLong() - takenNs) : NONE;
    }

    /** A worker was restored with so many blocks. */
    public void restored(long blocks) {
        restoredWorkers.getAndIncrement();
        restoredBlocks.getAndAdd(blocks);
    }

    /** A worker that was saved could not be restored. */
    public void restoreFailed() {
        restoreFailures.getAndIncrement();
    }

    /** As of now. */
    public SnapshotStatus status() {
        final SequencedMap<String, Long> byCause = new LinkedHashMap<>();
        abandoned.forEach((cause, count) -> byCause.put(cause.label(), count.get()));
        return new SnapshotStatus(
                taken.get(),
                failed.get(),
                byCause,
                totalNs.get(),
                lastBytes.get(),
                lastTakenMs.get(),
                ageMs(),
                restoredWorkers.get(),
                restoredBlocks.get(),
                restoreFailures.get(),
                failed.get() - failedBefore);
    }
}
