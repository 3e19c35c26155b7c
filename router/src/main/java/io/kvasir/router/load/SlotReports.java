package io.kvasir.router.load;

import io.kvasir.core.load.EngineLoad;
import io.kvasir.core.load.OthersLoad;

import java.util.EnumMap;
import java.util.Map;
import java.util.function.Predicate;

/**
 * The last report of each source about one worker slot. Guarded by itself: every method is called
 * with its lock held.
 */
final class SlotReports {
    private static final LoadSource[] SOURCES = LoadSource.values();

    /**
     * A report and what of it is of others, as it was found when the report came.
     *
     * @param order the source's own; those of lower order are older
     */
    private record Entry(EngineLoad load, OthersLoad others, long order, long atNs) {}

    private final Map<LoadSource, Entry> entries = new EnumMap<>(LoadSource.class);
    private final Map<LoadSource, Long> lastSeenNs = new EnumMap<>(LoadSource.class);
    private ReportedLoad merged; // null where no report counts
    private ReportedLoad published; // as it is on the board; null where nothing is

    /** Whether a report is older than one that counts. */
    boolean isOlder(LoadSource source, long order) {
        final Entry known = entries.get(source);
        return known != null && order < known.order;
    }

    void take(LoadSource source, EngineLoad load, OthersLoad others, long order, long nowNs) {
        entries.put(source, new Entry(load, others, order, nowNs));
        lastSeenNs.put(source, nowNs);
        merge();
    }

    /**
     * Drops reports that are too old; allocates nothing where there is none.
     *
     * @return whether there was one
     */
    boolean expire(long nowNs, long ttlNs) {
        boolean dropped = false;
        for (LoadSource source : SOURCES) {
            final Entry entry = entries.get(source);
            if (entry != null && nowNs - entry.atNs > ttlNs) {
                entries.remove(source);
                dropped = true;
            }
        }
        if (dropped) {
            merge();
        }
        return dropped;
    }

    void clear() {
        entries.clear();
        lastSeenNs.clear();
        merged = null;
        published = null;
    }

    /** Whether the board has other numbers than these; it is to get these then. */
    boolean changes(ReportedLoad to) {
        final ReportedLoad before = published;
        published = to;
        if (to == null || before == null) {
            return (to == null) != (before == null);
        }
        return !to.load().equals(before.load()) || !to.others().equals(before.others());
    }

    ReportedLoad mergedOrNull() {
        return merged;
    }

    /** How long a source is silent; -1 where it has never spoken. */
    long silentNs(LoadSource source, long nowNs) {
        final Long seen = lastSeenNs.get(source);
        return seen == null ? -1 : nowNs - seen;
    }

    private void merge() {
        LoadSource latest = null;
        for (LoadSource source : entries.keySet()) {
            latest = latest == null || isLater(source, latest) ? source : latest;
        }
        if (latest == null) {
            merged = null;
            return;
        }
        final Entry counts = latest(SlotReports::hasCounts);
        final Entry waits = latest(SlotReports::hasWaiting);
        final Entry uses = latest(entry -> entry.load.usedBlocks() >= 0);
        final Entry sizes = latest(entry -> entry.load.blocks() >= 0);
        final Entry steps = latest(entry -> entry.load.batchTokens() >= 0);
        final long unknown = EngineLoad.UNKNOWN;
        merged =
                new ReportedLoad(
                        new EngineLoad(
                                counts == null ? unknown : counts.load.running(),
                                counts == null ? unknown : counts.load.waiting(),
                                waits == null ? unknown : waits.load.waitingTokens(),
                                uses == null ? unknown : uses.load.usedBlocks(),
                                sizes == null ? unknown : sizes.load.blocks(),
                                steps == null ? unknown : steps.load.batchTokens()),
                        new OthersLoad(
                                waits == null ? 0 : waits.others.prefillTokens(),
                                uses == null ? 0 : uses.others.blocks(),
                                counts == null ? 0 : counts.others.requests()),
                        latest,
                        entries.get(latest).atNs);
    }

    private static boolean hasCounts(Entry entry) {
        return entry.load.running() >= 0 || entry.load.waiting() >= 0;
    }

    private static boolean hasWaiting(Entry entry) {
        return entry.load.waiting() >= 0 || entry.load.waitingTokens() >= 0;
    }

    /** The latest report that says something. */
    private Entry latest(Predicate<Entry> says) {
        Entry found = null;
        for (Entry entry : entries.values()) {
            if (says.test(entry) && (found == null || entry.atNs - found.atNs >= 0)) {
                found = entry;
            }
        }
        return found;
    }

    private boolean isLater(LoadSource one, LoadSource other) {
        return entries.get(one).atNs - entries.get(other).atNs >= 0;
    }
}
