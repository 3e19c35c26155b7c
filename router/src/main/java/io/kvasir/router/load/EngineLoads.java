package io.kvasir.router.load;

import io.kvasir.core.load.EngineLoad;
import io.kvasir.core.load.LoadBoard;
import io.kvasir.core.load.OthersLoad;
import io.kvasir.router.settings.RouterSettings;
import io.kvasir.router.settings.Settings;

import java.util.concurrent.atomic.AtomicReferenceArray;
import java.util.function.LongSupplier;

/**
 * Takes what engines report of their load and puts on the load board what of it is not booked here.
 * The comparison is made when a report comes, with what is booked at that moment; bookings that
 * come and go afterwards count by themselves. A report that is not followed by another one stops to
 * count when its time to live is over, at the next {@link #expire tick}.
 *
 * <p>Sources are kept apart, so that one that states less takes nothing from another, and a source
 * that falls silent loses its say alone. Any thread; a lock per worker orders its reports, and no
 * decision waits for it: those read the board.
 */
public final class EngineLoads {
    private final LoadBoard board;
    private final BusyMarks marks;
    private final FullLimits limits;
    private final LongSupplier clock;
    private final int blockSize;
    private final boolean on;
    private final long ttlNs;
    private final LoadCounts counts = new LoadCounts();
    private final AtomicReferenceArray<SlotReports> bySlot;

    /**
     * Takes nothing where {@link RouterSettings#ENGINE_LOAD} is off.
     *
     * @param clock of the router
     */
    public EngineLoads(Settings settings, LoadBoard board, BusyMarks marks, LongSupplier clock) {
        this.board = board;
        this.marks = marks;
        this.clock = clock;
        limits = FullLimits.of(settings);
        blockSize = settings.get(RouterSettings.BLOCK_SIZE);
        on = settings.get(RouterSettings.ENGINE_LOAD);
        ttlNs = settings.get(RouterSettings.ENGINE_LOAD_TTL).toNanos();
        bySlot = new AtomicReferenceArray<>(on ? board.slots() : 0);
    }

    /** Blocks that so many tokens of an engine are. */
    public double blocks(long tokens) {
        return (double) tokens / blockSize;
    }

    /** Whether reports count. */
    public boolean isOn() {
        return on;
    }

    /**
     * Takes a report. The caller sees to it that the slot's worker stays the same meanwhile.
     *
     * @param order the source's own: one that is lower than that of the last report is older
     * @param reading as read
     * @param knownBlocks KV blocks of the engine where the report does not say it; 0 where they are
     *     not known
     * @return what became of it, which is counted
     */
    public LoadOutcome report(
            int slot, LoadSource source, long order, LoadReading reading, long knownBlocks) {
        return counts.add(source, take(slot, source, order, reading, knownBlocks));
    }

    private LoadOutcome take(
            int slot, LoadSource source, long order, LoadReading reading, long knownBlocks) {
        if (!on) {
            return LoadOutcome.OFF;
        }
        if (reading.problemOrNull() != null) {
            return LoadOutcome.BAD_VALUE;
        }
        if (reading.isEmpty()) {
            return LoadOutcome.EMPTY;
        }
        final EngineLoad load = reading.load(knownBlocks);
        final long nowNs = clock.getAsLong();
        final SlotReports reports = of(slot);
        synchronized (reports) {
            final boolean expired = reports.expire(nowNs, ttlNs);
            if (reports.isOlder(source, order)) {
                if (expired) {
                    publish(slot, reports);
                }
                return LoadOutcome.OLDER;
            }
            final OthersLoad others =
                    OthersLoad.of(
                            load,
                            board.prefillTokens(slot),
                            board.activeBlocks(slot),
                            board.activeRequests(slot),
                            blockSize);
            reports.take(source, load, others, order, nowNs);
            publish(slot, reports);
        }
        final String full = limits.whyFullOrNull(load);
        if (full != null) {
            marks.mark(slot, nowNs, full);
        }
        return LoadOutcome.TAKEN;
    }

    private SlotReports of(int slot) {
        final SlotReports known = bySlot.get(slot);
        if (known != null) {
            return known;
        }
        final SlotReports fresh = new SlotReports();
        return bySlot.compareAndSet(slot, null, fresh) ? fresh : bySlot.get(slot);
    }

    private void publish(int slot, SlotReports reports) {
        final ReportedLoad merged = reports.mergedOrNull();
        if (!reports.changes(merged)) {
            return; // an idle engine says the same again and again, and costs no copy of the board
        }
        if (merged == null) {
            board.clearReport(slot);
        } else {
            board.report(slot, merged.load(), merged.others());
        }
    }

    /** Has reports that are too old count no more; allocates nothing where there is none. */
    public void expire(long nowNs) {
        for (int slot = 0; slot < bySlot.length(); slot++) {
            final SlotReports reports = bySlot.get(slot);
            if (reports != null) {
                synchronized (reports) {
                    if (reports.expire(nowNs, ttlNs)) {
                        publish(slot, reports);
                    }
                }
            }
        }
    }

    /** Forgets what was reported of a slot, whose worker is removed. */
    public void forget(int slot) {
        final SlotReports reports = on ? bySlot.get(slot) : null;
        if (reports != null) {
            synchronized (reports) {
                reports.clear();
                board.clearReport(slot);
            }
        }
    }

    /** What counts of a slot's reports now; null where none does. */
    public ReportedLoad reportedOrNull(int slot) {
        final SlotReports reports = on ? bySlot.get(slot) : null;
        if (reports == null) {
            return null;
        }
        synchronized (reports) {
            return reports.mergedOrNull();
        }
    }

    /** How long a source has said nothing of a slot; -1 where it never has. */
    public long silentNs(int slot, LoadSource source) {
        final SlotReports reports = on ? bySlot.get(slot) : null;
        if (reports == null) {
            return -1;
        }
        synchronized (reports) {
            return reports.silentNs(source, clock.getAsLong());
        }
    }

    /** How many reports there were, by source and outcome. */
    public LoadCounts counts() {
        return counts;
    }
}
