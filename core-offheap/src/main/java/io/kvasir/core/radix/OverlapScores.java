package io.kvasir.core.radix;

import java.util.Arrays;
import java.util.Objects;
import java.util.function.IntToLongFunction;

/**
 * How many leading blocks of one prompt each worker slot holds: the result of a match. Owned and
 * reused by the caller; one thread at a time.
 *
 * <p>Where many slots hold the same, as of a system prompt, they are a <em>set</em> with one depth:
 * bits, not numbers. The other slots are listed. {@link #depth}, {@link #matchedSlots} and {@link
 * #slotAt} do not tell the difference; a caller that reads all slots is faster with {@link #sets}
 * and {@link #listedSlots}.
 */
public final class OverlapScores {
    /** Slots in a word of a set. */
    public static final int GROUP_SLOTS = Long.SIZE;

    /** From a sixteenth of the slots on, clearing all of them is faster than one by one. */
    private static final int FILL_SHIFT = 4;

    private static final int MAX_SETS = 8;

    /** As many slots are listed faster than kept as a set. */
    private static final int FEW = 8;

    final int[] depths; // of the listed
    final int[] slots; // the listed
    int listed;
    int deepest;
    private int matched;

    private final int groups;
    private final long[] bits; // row s has set s; after them the slots that are left, and the next
    private final int[] setDepths = new int[MAX_SETS];
    private int sets;

    /** Without meaning; keeps loads alive that only warm the cache. */
    long touched;

    // -- while a match runs: the run that is read now

    /** Whether the slots that held everything so far are a set, in row {@link #sets}. */
    boolean shared;

    /** Slots that hold everything up to the end of the run. */
    int fullHolders;

    private int sharedDepth;
    private int runDepth;
    private int listedBefore;
    private boolean mapRead;

    /**
     * Makes an empty result.
     *
     * @param maxSlots worker slots that it has room for; at least the index's
     * @throws IllegalArgumentException if {@code maxSlots} is outside 1..{@value
     *     RadixTree#MAX_WORKER_SLOTS}
     */
    public OverlapScores(int maxSlots) {
        if (maxSlots < 1 || maxSlots > RadixTree.MAX_WORKER_SLOTS) {
            throw new IllegalArgumentException(
                    "maxSlots out of range: value="
                            + maxSlots
                            + ", limits=1.."
                            + RadixTree.MAX_WORKER_SLOTS);
        }
        depths = new int[maxSlots];
        slots = new int[maxSlots];
        groups = (maxSlots + GROUP_SLOTS - 1) / GROUP_SLOTS;
        bits = new long[(MAX_SETS + 1) * groups];
    }

    /** Forgets everything. */
    public void clear() {
        if (listed > depths.length >> FILL_SHIFT) {
            Arrays.fill(depths, 0);
        } else {
            for (int i = 0; i < listed; i++) {
                depths[slots[i]] = 0;
            }
        }
        listed = 0;
        matched = 0;
        deepest = 0;
        sets = 0;
        shared = false;
    }

    /**
     * Records a slot that was not found by a match, as a listed one.
     *
     * @param slot worker slot, not recorded yet
     * @param depth leading blocks that it holds, at least 1
     * @throws IllegalArgumentException if the slot is recorded already or {@code depth} is not
     *     positive
     */
    public void add(int slot, int depth) {
        if (depth < 1 || depth(slot) != 0) {
            throw new IllegalArgumentException(
                    "slot is recorded once, with a positive depth: slot="
                            + slot
                            + ", depth="
                            + depth
                            + ", recorded="
                            + depth(slot));
        }
        list(slot, depth);
        matched++;
    }

    /**
     * Records slots that were not found by a match and hold the same: as a set, or as listed ones
     * when there are too many sets already.
     *
     * @param slotBits one bit for each slot, none of them recorded yet, lowest first; not copied
     * @param depth leading blocks that they hold, at least 1
     * @throws IllegalArgumentException if {@code depth} is not positive, a slot is recorded already
     *     or is beyond {@link #maxSlots}
     */
    public void addSet(long[] slotBits, int depth) {
        for (int group = 0; group < slotBits.length; group++) {
            for (long rest = slotBits[group]; rest != 0; rest &= rest - 1) {
                final int slot = group * GROUP_SLOTS + Long.numberOfTrailingZeros(rest);
                if (depth < 1 || slot >= depths.length || depth(slot) != 0) {
                    throw new IllegalArgumentException(
                            "slots of a set are within maxSlots and recorded once, with a positive"
                                    + " depth: slot="
                                    + slot
                                    + ", depth="
                                    + depth
                                    + ", maxSlots="
                                    + depths.length);
                }
            }
        }
        final int row = sets * groups;
        Arrays.fill(bits, row, row + groups, 0);
        for (int group = 0; group < Math.min(groups, slotBits.length); group++) {
            bits[row + group] = slotBits[group];
            matched += Long.bitCount(slotBits[group]);
        }
        if (sets < MAX_SETS) {
            setDepths[sets++] = depth;
            deepest = Math.max(deepest, depth);
        } else {
            listSet(sets, depth);
        }
    }

    /**
     * Records that a slot holds more than was found, as a listed one; less changes nothing.
     *
     * @param slot worker slot, recorded or not
     * @param depth leading blocks that it holds, at least 1
     * @throws IllegalArgumentException if {@code depth} is not positive
     */
    public void raise(int slot, int depth) {
        final int before = depth(slot);
        if (before == 0) {
            add(slot, depth);
        } else if (before < depth && depths[slot] != 0) {
            depths[slot] = depth;
            deepest = Math.max(deepest, depth);
        } else if (before < depth) {
            leaveSets(slot);
            list(slot, depth);
        }
    }

    /**
     * Forgets one slot, as if it held nothing; all others stay as they are. Takes time for each
     * listed slot.
     *
     * @param slot worker slot, recorded or not
     */
    public void drop(int slot) {
        final int depth = depth(slot);
        if (depth == 0) {
            return;
        }
        if (depths[slot] != 0) {
            unlist(slot);
        } else {
            leaveSets(slot);
        }
        matched--;
        if (depth == deepest) {
            deepest = deepestOfAll();
        }
    }

    /**
     * Takes a block from what each of some slots holds of the first {@code most} blocks; of one
     * that held a single block nothing is left. Sets of slots stay sets as far as all of their
     * slots are named.
     *
     * @param named one bit for each slot of a group, lowest first; asked for groups from 0 on
     * @param most how many blocks count before one is taken, at least 0
     */
    public void lower(IntToLongFunction named, int most) {
        if (matched == 0) {
            return;
        }
        for (int i = listed - 1; i >= 0; i--) { // those behind i are done
            final int slot = slots[i];
            if ((named.applyAsLong(slot >> 6) >>> slot & 1) != 0) {
                depths[slot] = lowered(depths[slot], most);
                if (depths[slot] == 0) {
                    slots[i] = slots[--listed];
                    matched--;
                }
            }
        }
        for (int set = 0; set < sets; set++) {
            if (isNamed(set, named)) {
                lowerSet(set, most);
            } else {
                lowerWithin(set, named, most);
            }
        }
        deepest = deepestOfAll();
    }

    private boolean isNamed(int set, IntToLongFunction named) {
        long others = 0;
        for (int group = 0; group < groups; group++) {
            final long slotBits = bits[set * groups + group];
            others |= slotBits == 0 ? 0 : slotBits & ~named.applyAsLong(group);
        }
        return others == 0;
    }

    private static int lowered(int depth, int most) {
        return Math.max(0, Math.min(depth, most) - 1);
    }

    private void lowerSet(int set, int most) {
        setDepths[set] = lowered(setDepths[set], most);
        if (setDepths[set] > 0) {
            return;
        }
        for (int i = set * groups; i < (set + 1) * groups; i++) {
            matched -= Long.bitCount(bits[i]);
            bits[i] = 0;
        }
    }

    private void lowerWithin(int set, IntToLongFunction named, int most) {
        final int depth = lowered(setDepths[set], most);
        for (int group = 0; group < groups; group++) {
            final int at = set * groups + group;
            final long taken = bits[at] == 0 ? 0 : bits[at] & named.applyAsLong(group);
            bits[at] &= ~taken;
            if (depth == 0) {
                matched -= Long.bitCount(taken);
            }
            for (long rest = depth == 0 ? 0 : taken; rest != 0; rest &= rest - 1) {
                list(group * GROUP_SLOTS + Long.numberOfTrailingZeros(rest), depth);
            }
        }
    }

    private void unlist(int slot) {
        int at = 0;
        while (slots[at] != slot) {
            at++;
        }
        slots[at] = slots[--listed];
        depths[slot] = 0;
    }

    private void leaveSets(int slot) {
        for (int set = 0; set < sets; set++) {
            bits[set * groups + (slot >> 6)] &= ~(1L << slot);
        }
    }

    private int deepestOfAll() {
        int most = 0;
        for (int i = 0; i < listed; i++) {
            most = Math.max(most, depths[slots[i]]);
        }
        for (int set = 0; set < sets; set++) {
            most = isEmpty(set) ? most : Math.max(most, setDepths[set]);
        }
        return most;
    }

    private boolean isEmpty(int set) {
        long any = 0;
        for (int i = set * groups; i < (set + 1) * groups; i++) {
            any |= bits[i];
        }
        return any == 0;
    }

    private void list(int slot, int depth) {
        depths[slot] = depth;
        slots[listed++] = slot;
        deepest = Math.max(deepest, depth);
    }

    /** Leading blocks that a slot holds; 0 when it does not hold the first one. */
    public int depth(int slot) {
        int depth = depths[slot];
        for (int set = 0; depth == 0 && set < sets; set++) {
            if ((bits[set * groups + (slot >> 6)] >>> slot & 1) != 0) {
                depth = setDepths[set];
            }
        }
        return depth;
    }

    /** Largest depth of any slot. */
    public int deepest() {
        return deepest;
    }

    /** Number of slots with a depth above 0. */
    public int matchedSlots() {
        return matched;
    }

    /**
     * A slot with a depth above 0; in no particular order. From the first call for one of a set on,
     * all slots are listed ones.
     *
     * @param i 0..{@link #matchedSlots()} - 1
     */
    public int slotAt(int i) {
        if (i >= matched) {
            throw new IndexOutOfBoundsException("i=" + i + ", matchedSlots=" + matched);
        }
        if (i >= listed) {
            listAll();
        }
        return slots[i];
    }

    private void listAll() {
        for (int set = 0; set < sets; set++) {
            listSet(set, setDepths[set]);
        }
        sets = 0;
    }

    private void listSet(int row, int depth) {
        for (int group = 0; group < groups; group++) {
            for (long rest = bits[row * groups + group]; rest != 0; rest &= rest - 1) {
                list(group * GROUP_SLOTS + Long.numberOfTrailingZeros(rest), depth);
            }
        }
    }

    /**
     * Number of sets of slots that hold the same; they have no slot in common, and one may be empty
     * after {@link #raise}, {@link #drop} or {@link #lower}.
     */
    public int sets() {
        return sets;
    }

    /**
     * Leading blocks that each slot of a set holds.
     *
     * @param set 0..{@link #sets()} - 1
     */
    public int setDepth(int set) {
        return setDepths[Objects.checkIndex(set, sets)];
    }

    /**
     * Slots of a set among 64.
     *
     * @param set 0..{@link #sets()} - 1
     * @param group the slots from 64 · group on
     * @return one bit each, lowest first
     */
    public long setSlots(int set, int group) {
        Objects.checkIndex(set, sets);
        return group < groups ? bits[set * groups + group] : 0;
    }

    /**
     * Copies the depths of groups of 64 slots to where they are in an array; of slots that there
     * are not, 0.
     *
     * @param group the slots from 64 · group on
     * @param end the slots below 64 · end
     * @param out depth of slot {@code i} at index {@code i}
     */
    public void copyDepths(int group, int end, int[] out) {
        final int from = group * GROUP_SLOTS;
        final int to = end * GROUP_SLOTS;
        final int known = Math.clamp(depths.length, from, to);
        System.arraycopy(depths, Math.min(from, depths.length), out, from, known - from);
        Arrays.fill(out, known, to, 0);
        for (int set = 0; set < sets; set++) {
            for (int i = group; i < end; i++) {
                for (long rest = setSlots(set, i); rest != 0; rest &= rest - 1) {
                    out[i * GROUP_SLOTS + Long.numberOfTrailingZeros(rest)] = setDepths[set];
                }
            }
        }
    }

    /** Number of slots with a depth above 0 that are in no set: the first of {@link #slotAt}. */
    public int listedSlots() {
        return listed;
    }

    /** Number of slots that it has room for. */
    public int maxSlots() {
        return depths.length;
    }

    @Override
    public String toString() {
        final StringBuilder text = new StringBuilder("{");
        for (int slot = 0; slot < depths.length; slot++) {
            if (depth(slot) > 0) {
                text.append(text.length() == 1 ? "" : ", ")
                        .append(slot)
                        .append('=')
                        .append(depth(slot));
            }
        }
        return text.append('}').toString();
    }

    /** Empties the result for an index with that many slots. */
    void begin(int workerSlots) {
        if (workerSlots > depths.length) {
            throw new IllegalArgumentException(
                    "overlap scores are too small: maxSlots="
                            + depths.length
                            + ", worker slots of the index="
                            + workerSlots);
        }
        clear();
    }

    /** Keeps the depth at which a run begins, before anything of it is credited. */
    void beginRun(int depth) {
        runDepth = depth;
        listedBefore = listed;
        fullHolders = 0;
        mapRead = false;
    }

    /**
     * Gives a slot blocks of the run, if it held everything before.
     *
     * @param held leading blocks, 1..{@code all}
     * @param all blocks of the run that match
     */
    void credit(int slot, int held, int all) {
        if (shared) {
            final int word = sets * groups + (slot >> 6);
            if ((bits[word] >>> slot & 1) == 0) {
                return;
            }
            bits[word] &= ~(1L << slot);
        } else if (depths[slot] != runDepth) {
            return;
        }
        if (shared || runDepth == 0) {
            slots[listed++] = slot;
        }
        depths[slot] = runDepth + held;
        fullHolders += held == all ? 1 : 0;
        deepest = Math.max(deepest, runDepth + held);
    }

    /** Slots of a group that held everything before the run. */
    long candidates(int group) {
        return runDepth == 0 ? -1 : bits[sets * groups + group];
    }

    /** Records which of the candidates of a group hold all of the run that matches. */
    void keep(int group, long kept) {
        bits[nextRow() + group] = kept;
        fullHolders += Long.bitCount(kept);
    }

    /** After all groups of a map were kept. */
    void kept(int mapGroups, int all) {
        Arrays.fill(bits, nextRow() + mapGroups, nextRow() + groups, 0);
        mapRead = true;
        if (fullHolders > 0) {
            deepest = Math.max(deepest, runDepth + all);
        }
    }

    private int nextRow() {
        return (shared ? sets + 1 : sets) * groups;
    }

    /** Makes what was credited of the run final. */
    void endRun(int all) {
        if (all == 0) {
            return;
        }
        if (shared) {
            if (mapRead) {
                leave();
            } else {
                endSet(); // the slots that go on are listed
            }
        }
        shared = mapRead && fullHolders > 0;
        sharedDepth = runDepth + all;
    }

    /** Parts the slots that are left from those that held everything up to this run only. */
    private void leave() {
        final int row = sets * groups;
        int dropped = 0;
        for (int i = row; i < row + groups; i++) {
            bits[i] &= ~bits[i + groups];
            dropped += Long.bitCount(bits[i]);
        }
        if (dropped > FEW && sets < MAX_SETS - 1) {
            endSet();
            return;
        }
        if (dropped > 0) {
            listSet(sets, sharedDepth);
        }
        System.arraycopy(bits, row + groups, bits, row, groups);
    }

    private void endSet() {
        setDepths[sets++] = sharedDepth;
    }

    /** Takes back what was credited of the run. */
    void takeBack() {
        for (int i = listedBefore; i < listed; i++) {
            final int slot = slots[i];
            depths[slot] = 0;
            if (shared) {
                bits[sets * groups + (slot >> 6)] |= 1L << slot;
            }
        }
        listed = listedBefore;
        for (int i = 0; !shared && i < listed; i++) {
            depths[slots[i]] = Math.min(depths[slots[i]], runDepth);
        }
        deepest = Math.min(deepest, runDepth);
        fullHolders = 0;
    }

    /** Completes a match. */
    void finish() {
        if (shared) {
            endSet();
            shared = false;
        }
        matched = listed;
        for (int i = 0; i < sets * groups; i++) {
            matched += Long.bitCount(bits[i]);
        }
    }
}
