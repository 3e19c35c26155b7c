package io.kvasir.core.load;

import io.kvasir.core.memory.SharedCells;
import io.kvasir.core.radix.RadixTree;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Objects;
import java.util.concurrent.atomic.LongAdder;
import java.util.function.Consumer;

/**
 * Load of every worker slot, in cells that any thread adds to atomically, and which slots take
 * requests. The cells are on the heap, so that gauges outlive the router: what was read last is
 * read again.
 *
 * <p>A caller adds what it expects of a request before the request is booked, so that concurrent
 * callers see each other; the {@link ActiveRequests} corrects the difference when it knows. The
 * three values of a slot are exact each by itself, not as a snapshot of all three. Callers that use
 * {@link #addProvisional} let the table find and correct what went wrong with a slot. A reader of
 * many slots keeps a {@link LoadSnapshot}: every change is followed by a new version of its group.
 * Every method throws {@link IndexOutOfBoundsException} for a slot out of range.
 */
public final class LoadBoard implements AutoCloseable {
    private static final RoomListener[] NO_LISTENERS = {};

    private final int slots;
    private final SharedCells memory;
    private final Consumer<Throwable> errors;
    private final LongAdder listenerFailures = new LongAdder();
    private volatile RoomListener[] listeners = NO_LISTENERS; // written under this

    /**
     * Allocates zeros; all slots are closed. What a listener throws is counted, and no more.
     *
     * @param maxWorkerSlots worker slots
     * @throws IllegalArgumentException if {@code maxWorkerSlots} is outside 1..{@value
     *     RadixTree#MAX_WORKER_SLOTS}
     */
    public LoadBoard(int maxWorkerSlots) {
        this(maxWorkerSlots, _ -> {});
    }

    /**
     * Allocates zeros; all slots are closed.
     *
     * @param maxWorkerSlots worker slots
     * @param errors takes what a listener throws, after it was counted
     * @throws IllegalArgumentException if {@code maxWorkerSlots} is outside 1..{@value
     *     RadixTree#MAX_WORKER_SLOTS}
     */
    public LoadBoard(int maxWorkerSlots, Consumer<Throwable> errors) {
        if (maxWorkerSlots < 1 || maxWorkerSlots > RadixTree.MAX_WORKER_SLOTS) {
            throw new IllegalArgumentException(
                    "maxWorkerSlots out of range: value="
                            + maxWorkerSlots
                            + ", limits=1.."
                            + RadixTree.MAX_WORKER_SLOTS);
        }
        this.slots = maxWorkerSlots;
        this.errors = errors;
        this.memory =
                new SharedCells(
                        LoadBoardDescriptor.groupOffset(
                                LoadBoardDescriptor.groups(maxWorkerSlots)));
    }

    /**
     * Adds to all three values of a slot: what a booking costs, or its opposite. Any thread.
     *
     * @param prefillTokens tokens to prefill, more or less
     * @param activeBlocks blocks in use, more or less
     * @param activeRequests running requests, more or less
     */
    public void add(int slot, long prefillTokens, long activeBlocks, long activeRequests) {
        final long group = group(slot);
        addTo(group, LoadBoardDescriptor.PREFILL_TOKENS_OFFSET, slot, prefillTokens);
        addTo(group, LoadBoardDescriptor.ACTIVE_BLOCKS_OFFSET, slot, activeBlocks);
        addTo(group, LoadBoardDescriptor.ACTIVE_REQUESTS_OFFSET, slot, activeRequests);
        changed(group);
        if (prefillTokens < 0 || activeBlocks < 0 || activeRequests < 0) {
            roomMayBe(slot);
        }
    }

    /**
     * Notifies a listener from now on of slots that may have room for more: whose load has become
     * less, that were opened or closed, or of which something else is known. Any thread.
     *
     * @param listener called after the change, by the thread that makes it; never under a lock that
     *     a reader of the board needs. The change and the other listeners are not affected by what
     *     it throws; see {@link #listenerFailures}
     */
    public synchronized void addListener(RoomListener listener) {
        final RoomListener[] more = Arrays.copyOf(listeners, listeners.length + 1);
        more[listeners.length] = listener;
        listeners = more;
    }

    /** Ends the notification of a listener; a call to it that is under way ends by itself. */
    public synchronized void removeListener(RoomListener listener) {
        final List<RoomListener> fewer = new ArrayList<>(List.of(listeners));
        fewer.remove(listener);
        listeners = fewer.toArray(NO_LISTENERS);
    }

    /** Says that a slot may have room for a reason that is not on the board. Any thread. */
    public void roomMayBe(int slot) {
        final RoomListener[] all = listeners;
        for (int i = 0; i < all.length; i++) { // without an iterator: the callers allocate nothing
            try {
                all[i].roomMayBe(slot);
            } catch (Throwable error) { // the caller is in the middle of a change
                failed(error);
            }
        }
    }

    /** Nothing may be thrown here, whatever is left of the heap. */
    private void failed(Throwable error) {
        listenerFailures.increment();
        try {
            errors.accept(error);
        } catch (Throwable again) {
            listenerFailures.increment(); // the counter has to do
        }
    }

    /** How often a listener has thrown. Any thread. */
    public long listenerFailures() {
        return listenerFailures.sum();
    }

    /**
     * Adds what a caller expects of a request that it is about to book. Any thread. A booking, a
     * refused one too, or {@link #takeBackProvisional} must follow soon: while one is on its way,
     * the slot's load cannot be compared with what is booked.
     *
     * @param prefillTokens tokens that the worker has to prefill
     * @param blocks blocks that it will have in use in addition
     */
    public void addProvisional(int slot, long prefillTokens, long blocks) {
        // counted before it is added: see LoadLedger
        addTo(
                group(slot),
                LoadBoardDescriptor.PROVISIONS_OFFSET,
                slot,
                LoadBoardDescriptor.ONE_BEGUN);
        add(slot, prefillTokens, blocks, 1);
    }

    /**
     * Takes back what {@link #addProvisional} has added, when the request will not be booked. Any
     * thread.
     *
     * @param prefillTokens the same as there
     * @param blocks the same as there
     */
    public void takeBackProvisional(int slot, long prefillTokens, long blocks) {
        add(slot, -prefillTokens, -blocks, -1);
        addTo(
                group(slot),
                LoadBoardDescriptor.PROVISIONS_OFFSET,
                slot,
                LoadBoardDescriptor.ONE_TAKEN_BACK);
    }

    /** Adds to the tokens still to be prefilled on a slot; returns the new value. Any thread. */
    public long addPrefillTokens(int slot, long delta) {
        return add(slot, LoadBoardDescriptor.PREFILL_TOKENS_OFFSET, delta);
    }

    /** Adds to the blocks in use on a slot; returns the new value. Any thread. */
    public long addActiveBlocks(int slot, long delta) {
        return add(slot, LoadBoardDescriptor.ACTIVE_BLOCKS_OFFSET, delta);
    }

    /** Tokens still to be prefilled on a slot. Any thread. */
    public long prefillTokens(int slot) {
        return get(slot, LoadBoardDescriptor.PREFILL_TOKENS_OFFSET);
    }

    /** Blocks in use by running requests of a slot, shared ones counted once. Any thread. */
    public long activeBlocks(int slot) {
        return get(slot, LoadBoardDescriptor.ACTIVE_BLOCKS_OFFSET);
    }

    /** Running requests of a slot. Any thread. */
    public long activeRequests(int slot) {
        return get(slot, LoadBoardDescriptor.ACTIVE_REQUESTS_OFFSET);
    }

    /**
     * Says whether a slot takes requests. Any thread; takes a lock, as no method does that routing
     * calls.
     *
     * @param open false for a slot without a worker, or whose worker is not to be chosen
     */
    public void open(int slot, boolean open) {
        mark(slot, open);
        roomMayBe(slot);
    }

    private synchronized void mark(int slot, boolean open) {
        final long group = group(slot);
        final long bit = 1L << slot;
        final long before = memory.getLong(group + LoadBoardDescriptor.OPEN_SLOTS_OFFSET);
        // one word; a snapshot reads it again because of the version that follows
        memory.putLongRelease(
                group + LoadBoardDescriptor.OPEN_SLOTS_OFFSET, open ? before | bit : before & ~bit);
        changed(group);
    }

    /** Whether a slot takes requests. Any thread. */
    public boolean isOpen(int slot) {
        return (memory.getLongAcquire(group(slot) + LoadBoardDescriptor.OPEN_SLOTS_OFFSET) >>> slot
                        & 1)
                != 0;
    }

    /**
     * Takes what a slot's engine reports of itself, and what of it is not booked here: it counts in
     * every {@link LoadSnapshot} from now on, beside the booked load, until it is taken over by
     * another or {@link #clearReport cleared}. One thread at a time for one slot.
     *
     * @param load as reported
     * @param others what of it others have sent there
     */
    public void report(int slot, EngineLoad load, OthersLoad others) {
        final long group = group(slot);
        final long value = group + LoadBoardDescriptor.valueOffset(slot);
        put(value, LoadBoardDescriptor.OTHERS_PREFILL_TOKENS_OFFSET, others.prefillTokens());
        put(value, LoadBoardDescriptor.OTHERS_BLOCKS_OFFSET, others.blocks());
        put(value, LoadBoardDescriptor.OTHERS_REQUESTS_OFFSET, others.requests());
        put(value, LoadBoardDescriptor.ENGINE_RUNNING_OFFSET, load.running());
        put(value, LoadBoardDescriptor.ENGINE_WAITING_OFFSET, load.waiting());
        put(value, LoadBoardDescriptor.ENGINE_USED_BLOCKS_OFFSET, load.usedBlocks());
        put(value, LoadBoardDescriptor.ENGINE_BLOCKS_OFFSET, load.blocks());
        reported(group, slot, true); // after the values: a snapshot that sees the bit has them
        roomMayBe(slot);
    }

    /** Forgets what a slot's engine has reported. One thread at a time for one slot. */
    public void clearReport(int slot) {
        reported(group(slot), slot, false);
        roomMayBe(slot);
    }

    private void put(long value, int fieldOffset, long to) {
        memory.putLongRelease(value + fieldOffset, to);
    }

    /** Slots of a group share the word, and their engines report on different threads. */
    private synchronized void reported(long group, int slot, boolean is) {
        final long bit = 1L << slot;
        final long before = memory.getLong(group + LoadBoardDescriptor.REPORTED_SLOTS_OFFSET);
        memory.putLongRelease(
                group + LoadBoardDescriptor.REPORTED_SLOTS_OFFSET,
                is ? before | bit : before & ~bit);
        changed(group);
    }

    /** Slots of a group whose engine has reported, lowest first. */
    long reportedSlots(int group) {
        return memory.getLongAcquire(
                LoadBoardDescriptor.groupOffset(group) + LoadBoardDescriptor.REPORTED_SLOTS_OFFSET);
    }

    /** One field of one slot, whole by itself. */
    long value(int slot, int fieldOffset) {
        return get(slot, fieldOffset);
    }

    /** Provisional loads of a slot, begun and taken back; what is read after it is not older. */
    long provisions(int slot) {
        return get(slot, LoadBoardDescriptor.PROVISIONS_OFFSET);
    }

    /** Puts the blocks in use of the first slots into an array, with something added to each. */
    void activeBlocks(long[] out, int count, long more) {
        for (int first = 0; first < count; first += LoadBoardDescriptor.GROUP_SLOTS) {
            final long values =
                    LoadBoardDescriptor.groupOffsetOf(first)
                            + LoadBoardDescriptor.ACTIVE_BLOCKS_OFFSET;
            memory.getLongs(
                    values, out, first, Math.min(LoadBoardDescriptor.GROUP_SLOTS, count - first));
        }
        for (int slot = 0; slot < count; slot++) {
            out[slot] += more;
        }
    }

    /** Number of slots. */
    public int slots() {
        return slots;
    }

    /** Bytes of the cells; constant. */
    public long bytes() {
        return memory.length();
    }

    /** Does nothing: the cells are on the heap, and are read and written as before. */
    @Override
    public void close() {}

    /** Version of a group; what is read after it is not older. */
    long version(int group) {
        return memory.getLongAcquire(
                LoadBoardDescriptor.groupOffset(group) + LoadBoardDescriptor.VERSION_OFFSET);
    }

    /**
     * The next group, from one on, with another version than one had.
     *
     * @param versions by group
     * @return the number of versions when all are the same
     */
    int changed(int from, long[] versions) {
        final SharedCells groups = memory; // else read again after each of the ordered reads
        for (int group = from; group < versions.length; group++) {
            final long version =
                    groups.getLongAcquire(
                            LoadBoardDescriptor.groupOffset(group)
                                    + LoadBoardDescriptor.VERSION_OFFSET);
            if (version != versions[group]) {
                return group;
            }
        }
        return versions.length;
    }

    /** Slots of a group that take requests, lowest first. */
    long openSlots(int group) {
        return memory.getLong(
                LoadBoardDescriptor.groupOffset(group) + LoadBoardDescriptor.OPEN_SLOTS_OFFSET);
    }

    /** Copies one field of all slots of a group to where the group's slots are in an array. */
    void copy(int group, int fieldOffset, long[] out) {
        memory.getLongs(
                LoadBoardDescriptor.groupOffset(group) + fieldOffset,
                out,
                group * LoadBoardDescriptor.GROUP_SLOTS,
                LoadBoardDescriptor.GROUP_SLOTS);
    }

    private long add(int slot, int fieldOffset, long delta) {
        final long group = group(slot);
        final long value = addTo(group, fieldOffset, slot, delta);
        changed(group);
        if (delta < 0) {
            roomMayBe(slot);
        }
        return value;
    }

    private long addTo(long group, int fieldOffset, int slot, long delta) {
        return memory.getAndAddLong(
                        group + fieldOffset + LoadBoardDescriptor.valueOffset(slot), delta)
                + delta;
    }

    /**
     * A new version of a group, added (volatile) after the values: a {@link LoadSnapshot} acquires
     * the version before it copies, so a copy under the new version has the change.
     */
    private void changed(long group) {
        memory.getAndAddLong(group + LoadBoardDescriptor.VERSION_OFFSET, 1);
    }

    private long get(int slot, int fieldOffset) {
        return memory.getLongAcquire(
                group(slot) + fieldOffset + LoadBoardDescriptor.valueOffset(slot));
    }

    private long group(int slot) {
        return LoadBoardDescriptor.groupOffsetOf(Objects.checkIndex(slot, slots));
    }
}
