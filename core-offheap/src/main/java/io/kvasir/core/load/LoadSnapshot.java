package io.kvasir.core.load;

import java.util.Arrays;
import java.util.Objects;

/**
 * One reader's copy of a {@link LoadBoard}, with the least loaded slots of each group of 64. Owned
 * and reused by the caller; one thread at a time.
 *
 * <p>{@link #refresh} copies only groups that have changed since the last time, so its cost grows
 * with the changes and a sixty-fourth of the slots. Between two refreshes the numbers stand still:
 * what was chosen by can be looked at afterwards.
 *
 * <p>The weighted load of a slot is {@code tokenWeight · prefillTokens + activeBlocks}; infinite
 * where the slot is closed.
 */
public final class LoadSnapshot {
    private static final int GROUP_SLOTS = LoadBoardDescriptor.GROUP_SLOTS;
    private static final long NEVER = -1;

    private static final int[] REPORT_FIELDS = {
        LoadBoardDescriptor.OTHERS_PREFILL_TOKENS_OFFSET,
        LoadBoardDescriptor.OTHERS_BLOCKS_OFFSET,
        LoadBoardDescriptor.OTHERS_REQUESTS_OFFSET,
        LoadBoardDescriptor.ENGINE_RUNNING_OFFSET,
        LoadBoardDescriptor.ENGINE_WAITING_OFFSET,
        LoadBoardDescriptor.ENGINE_USED_BLOCKS_OFFSET,
        LoadBoardDescriptor.ENGINE_BLOCKS_OFFSET
    };

    // indices of fields of the reports
    private static final int OTHERS_PREFILL_TOKENS = 0;
    private static final int OTHERS_BLOCKS = 1;
    private static final int OTHERS_REQUESTS = 2;
    private static final int ENGINE_RUNNING = 3;
    private static final int ENGINE_WAITING = 4;
    private static final int ENGINE_USED_BLOCKS = 5;
    private static final int ENGINE_BLOCKS = 6;

    /** Whole loads end here: with two depths taken off, it is still an int. */
    private static final int MAX_WHOLE = 1 << 30;

    private final int slots;
    private final int groups;
    private final long[] versions;
    private final long[] openSlots;
    private final long[] prefillTokens;
    private final long[] activeBlocks;
    private final long[] activeRequests;
    private final double[] weighted;
    private final int[] whole; // the weighted, rounded down
    private final double[] least;
    private final long[] leastSlots;
    private final long[] reportedSlots; // when their group was copied
    private long[][] reports; // by field of the reports; null before the first
    private LoadBoard board;
    private double tokenWeight;

    /**
     * Makes an empty mirror.
     *
     * @param maxSlots most slots of a board that it can follow
     */
    public LoadSnapshot(int maxSlots) {
        slots = maxSlots;
        groups = LoadBoardDescriptor.groups(maxSlots);
        versions = new long[groups];
        openSlots = new long[groups];
        prefillTokens = new long[groups * GROUP_SLOTS];
        activeBlocks = new long[groups * GROUP_SLOTS];
        activeRequests = new long[groups * GROUP_SLOTS];
        weighted = new double[groups * GROUP_SLOTS];
        whole = new int[groups * GROUP_SLOTS];
        least = new double[groups];
        leastSlots = new long[groups];
        reportedSlots = new long[groups];
    }

    /**
     * Takes over what has changed.
     *
     * @param source the board; another one than last time is copied as a whole
     * @param weight blocks that a token to prefill counts; another one than last time costs a copy
     *     of the whole board
     * @throws IllegalArgumentException if the board has another number of slots than this mirror
     */
    public void refresh(LoadBoard source, double weight) {
        if (source != board || weight != tokenWeight) {
            if (source.slots() != slots) {
                throw new IllegalArgumentException(
                        "mirror of " + slots + " slots for a board of " + source.slots());
            }
            Arrays.fill(versions, NEVER);
            board = source;
            tokenWeight = weight;
        }
        for (int group = source.changed(0, versions);
                group < groups;
                group = source.changed(group + 1, versions)) {
            versions[group] = source.version(group);
            copy(source, group); // a change during the copy shows at the next refresh
        }
    }

    private void copy(LoadBoard source, int group) {
        source.copy(group, LoadBoardDescriptor.PREFILL_TOKENS_OFFSET, prefillTokens);
        source.copy(group, LoadBoardDescriptor.ACTIVE_BLOCKS_OFFSET, activeBlocks);
        source.copy(group, LoadBoardDescriptor.ACTIVE_REQUESTS_OFFSET, activeRequests);
        openSlots[group] = source.openSlots(group);
        reportedSlots[group] = source.reportedSlots(group);
        final int from = group * GROUP_SLOTS;
        if (reportedSlots[group] != 0) {
            addOthers(source, group);
        }
        weigh(from);
        for (long closed = ~openSlots[group]; closed != 0; closed &= closed - 1) {
            weighted[from + Long.numberOfTrailingZeros(closed)] = Double.POSITIVE_INFINITY;
        }
        round(from);
        least[group] = minimum(from);
        leastSlots[group] = equal(from, least[group]) & openSlots[group];
    }

    /** What others have sent to an engine counts as what is booked. */
    private void addOthers(LoadBoard source, int group) {
        if (reports == null) {
            reports = new long[REPORT_FIELDS.length][groups * GROUP_SLOTS];
        }
        for (long rest = reportedSlots[group]; rest != 0; rest &= rest - 1) {
            final int slot = group * GROUP_SLOTS + Long.numberOfTrailingZeros(rest);
            for (int field = 0; field < REPORT_FIELDS.length; field++) {
                reports[field][slot] = source.value(slot, REPORT_FIELDS[field]);
            }
            prefillTokens[slot] += reports[OTHERS_PREFILL_TOKENS][slot];
            activeBlocks[slot] += reports[OTHERS_BLOCKS][slot];
            activeRequests[slot] += reports[OTHERS_REQUESTS][slot];
        }
    }

    // four short loops without branches instead of one: the compiler makes vectors of two

    private void weigh(int from) {
        for (int i = from; i < from + GROUP_SLOTS; i++) {
            weighted[i] = tokenWeight * prefillTokens[i] + activeBlocks[i];
        }
    }

    private void round(int from) {
        for (int i = from; i < from + GROUP_SLOTS; i++) {
            whole[i] = (int) Math.min(weighted[i], MAX_WHOLE);
        }
    }

    private double minimum(int from) {
        double minimum = Double.POSITIVE_INFINITY;
        for (int i = from; i < from + GROUP_SLOTS; i++) {
            minimum = weighted[i] < minimum ? weighted[i] : minimum;
        }
        return minimum;
    }

    private long equal(int from, double value) {
        long equal = 0;
        for (int i = from; i < from + GROUP_SLOTS; i++) {
            equal |= (weighted[i] == value ? 1L : 0L) << i;
        }
        return equal;
    }

    /** Number of groups of 64 slots. */
    public int groups() {
        return groups;
    }

    /** Open slots of a group, one bit each, lowest first. */
    public long openSlots(int group) {
        return openSlots[group];
    }

    /** Lowest weighted load in a group; infinite when all are closed. */
    public double least(int group) {
        return least[group];
    }

    /**
     * Lowest weighted load of some slots of a group. Costs a look at each only if none of them is
     * among the group's least loaded.
     *
     * @param among the slots, one bit each
     * @return infinite when none of them is open
     */
    public double leastAmong(int group, long among) {
        if ((leastSlots[group] & among) != 0) {
            return least[group];
        }
        double lowest = Double.POSITIVE_INFINITY;
        for (long rest = openSlots[group] & among; rest != 0; rest &= rest - 1) {
            lowest =
                    Math.min(
                            lowest,
                            weighted[group * GROUP_SLOTS + Long.numberOfTrailingZeros(rest)]);
        }
        return lowest;
    }

    /**
     * Those of some slots of a group whose weighted load is a given one.
     *
     * @param among the slots, one bit each
     * @param load a value that {@link #leastAmong} gave
     * @return one bit each
     */
    public long slotsWith(int group, long among, double load) {
        return load == least[group]
                ? leastSlots[group] & among
                : equal(group * GROUP_SLOTS, load) & openSlots[group] & among;
    }

    /** Weighted load of a slot; infinite when it is closed. */
    public double weighted(int slot) {
        return weighted[Objects.checkIndex(slot, slots)];
    }

    /** Copies the weighted loads of a group to where its slots are in an array. */
    public void copyWeighted(int group, double[] out) {
        System.arraycopy(weighted, group * GROUP_SLOTS, out, group * GROUP_SLOTS, GROUP_SLOTS);
    }

    /**
     * Lowest weighted load of many slots, each rounded down and less two numbers of its own; in
     * whole numbers, so that the processor compares many slots at once.
     *
     * @param from first slot
     * @param end the slot after the last one; not beyond the last group
     * @param less by slot, 0..2<sup>29</sup>
     * @param most what counts of one of {@code less}
     * @param alsoLess by slot, 0..2<sup>29</sup>
     * @return a bound: no slot's load, less both, is below it
     */
    public int leastLess(int from, int end, int[] less, int most, int[] alsoLess) {
        int lowest = MAX_WHOLE;
        for (int i = from; i < end; i++) {
            lowest = Math.min(lowest, whole[i] - Math.min(less[i], most) - alsoLess[i]);
        }
        return lowest;
    }

    /** Whether a slot took requests. */
    public boolean isOpen(int slot) {
        return (openSlots[Objects.checkIndex(slot, slots) / GROUP_SLOTS] >>> slot & 1) != 0;
    }

    /** Whether the engine of a slot had reported its load. */
    public boolean isReported(int slot) {
        return (reportedSlots[Objects.checkIndex(slot, slots) / GROUP_SLOTS] >>> slot & 1) != 0;
    }

    /** Requests that the engine of a slot ran; {@link EngineLoad#UNKNOWN} where it is not said. */
    public long engineRunning(int slot) {
        return reported(ENGINE_RUNNING, slot);
    }

    /** Requests that waited in the engine of a slot; likewise. */
    public long engineWaiting(int slot) {
        return reported(ENGINE_WAITING, slot);
    }

    /** Blocks that were in use in the engine of a slot; likewise. */
    public long engineUsedBlocks(int slot) {
        return reported(ENGINE_USED_BLOCKS, slot);
    }

    /** Blocks of the cache of a slot's engine; likewise. */
    public long engineBlocks(int slot) {
        return reported(ENGINE_BLOCKS, slot);
    }

    /** Blocks that were in use on a slot by requests that are not booked here. */
    public long othersBlocks(int slot) {
        return Math.max(0, reported(OTHERS_BLOCKS, slot));
    }

    /** Tokens that were to be prefilled on a slot of requests that are not booked here. */
    public long othersPrefillTokens(int slot) {
        return Math.max(0, reported(OTHERS_PREFILL_TOKENS, slot));
    }

    /** Requests on a slot that are not booked here. */
    public long othersRequests(int slot) {
        return Math.max(0, reported(OTHERS_REQUESTS, slot));
    }

    private long reported(int field, int slot) {
        return isReported(slot) ? reports[field][slot] : EngineLoad.UNKNOWN;
    }

    /** Tokens that were to be prefilled on a slot; those of others, as reported, included. */
    public long prefillTokens(int slot) {
        return prefillTokens[Objects.checkIndex(slot, slots)];
    }

    /** Blocks that were in use on a slot; likewise. */
    public long activeBlocks(int slot) {
        return activeBlocks[Objects.checkIndex(slot, slots)];
    }

    /** Requests that were running on a slot; likewise. */
    public long activeRequests(int slot) {
        return activeRequests[Objects.checkIndex(slot, slots)];
    }

    /** Number of slots. */
    public int slots() {
        return slots;
    }
}
