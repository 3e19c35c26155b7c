package io.kvasir.pipeline.wire;

import io.kvasir.core.index.CopyRule;
import io.kvasir.core.index.StorageTier;

import java.util.Arrays;
import java.util.Objects;

/**
 * The index operations of one engine message, in order, in one flat array that grows as needed.
 * Layout: {@link BatchDescriptor}.
 *
 * <p>A message is the unit that engines number, so it is also the unit that is handed on: all of a
 * batch reaches the index or nothing does. Operations are read with a cursor:
 *
 * <pre>{@code
 * for (int at = batch.first(); at >= 0; at = batch.next(at)) {
 *     switch (batch.kind(at)) { ... }
 * }
 * }</pre>
 *
 * <p>Owned by one thread at a time.
 */
public final class KvBatch {
    /** The operations. */
    public enum Kind {
        /** Blocks were stored after a parent, or at the root. */
        STORED(0),
        /** One physical copy of each block was removed. */
        REMOVED(1),
        /** A block was removed and the engine says how many copies are left. */
        REMOVED_TO(2),
        /** Every block of the slot was removed. */
        CLEARED(3),
        /** Stores that follow give back what there was no room for; with count 1: have done so. */
        REFILL(4),
        /** Blocks were stored in a lower tier, of which the engine says the names only. */
        NAMED(5),
        /** Every block of the slot in one tier was removed. */
        TIER_CLEARED(6);

        private final long code;

        Kind(long code) {
            this.code = code;
        }

        private static Kind of(long word) {
            return switch ((int) (word >>> BatchDescriptor.KIND_SHIFT)) {
                case 0 -> STORED;
                case 1 -> REMOVED;
                case 2 -> REMOVED_TO;
                case 3 -> CLEARED;
                case 4 -> REFILL;
                case 5 -> NAMED;
                case 6 -> TIER_CLEARED;
                default -> throw new IllegalArgumentException("not an operation: " + word);
            };
        }
    }

    /** Sequence of a batch that answers no message, such as a clear on restart. */
    public static final long NO_SEQUENCE = -1;

    private static final int INITIAL_WORDS = 64;

    private int slot;
    private long sequence;
    private CopyRule copyRule = CopyRule.PHYSICAL;
    private boolean rootStoresRefresh;
    private boolean eagle;
    private boolean ofMessage;
    private long content;
    private boolean complete;
    private boolean leavesOut;
    private boolean learnedEagle;
    private boolean salted;
    private long mainGroup;
    private long position;
    private ApplyListener listener = ApplyListener.NONE;
    private int operations;
    private int length;
    private long[] words;

    /** Creates an empty batch. */
    public KvBatch() {
        this(INITIAL_WORDS);
    }

    /**
     * Creates an empty batch with room for some words.
     *
     * @param words room in 8-byte words; grows when needed
     */
    public KvBatch(int words) {
        this.words = new long[words];
    }

    /**
     * Empties the batch and says whose it is.
     *
     * @param workerSlot slot that the operations belong to
     * @param messageSequence the engine's number of the message, or {@link #NO_SEQUENCE}
     * @param rule what a removal removes
     * @param refresh whether a root store of blocks already held is only a report of them
     * @param applyListener notified of what became of the batch, on the thread that applies it
     */
    public void reset(
            int workerSlot,
            long messageSequence,
            CopyRule rule,
            boolean refresh,
            ApplyListener applyListener) {
        slot = workerSlot;
        sequence = messageSequence;
        copyRule = Objects.requireNonNull(rule);
        rootStoresRefresh = refresh;
        listener = Objects.requireNonNull(applyListener);
        eagle = false;
        ofMessage = false;
        content = 0;
        complete = false;
        leavesOut = false;
        learnedEagle = false;
        salted = false;
        mainGroup = DecoderMemory.NONE.mainGroup();
        position = 0;
        operations = 0;
        length = 0;
    }

    /**
     * Says of which message the batch is all.
     *
     * @param messageContent what stands for the message's bytes, by which it is known again
     * @param viewComplete whether nothing that was announced up to it is missing
     */
    public void ofMessage(long messageContent, boolean viewComplete) {
        ofMessage = true;
        content = messageContent;
        complete = viewComplete;
    }

    /**
     * Says that the message begins a time in which blocks that the engine announces are left out.
     *
     * @param begins whether it does
     */
    public void leavesOut(boolean begins) {
        leavesOut = begins;
    }

    /** Whether blocks are left out from this message on, and none were before. */
    public boolean leavesOut() {
        return leavesOut;
    }

    /**
     * Says how far a stream that many share has been read.
     *
     * @param inStream number up to which all messages of the slot's worker are in this batch and
     *     those before it; 0 where there is no such stream
     */
    public void at(long inStream) {
        position = inStream;
    }

    /** How far a stream that many share has been read for it; 0 where there is none. */
    public long position() {
        return position;
    }

    /** Whether the batch is all of the message of its number. */
    public boolean isOfMessage() {
        return ofMessage;
    }

    /** What stands for the bytes of that message; 0 if the batch is of none. */
    public long content() {
        return content;
    }

    /** Whether nothing that was announced up to that message is missing. */
    public boolean isComplete() {
        return complete;
    }

    /**
     * Says what the decoder knows after the message, beside the blocks; see {@link DecoderMemory}.
     *
     * @param group cache group that counts, −1 as long as none has announced itself
     * @param forEagle whether blocks are hashed for EAGLE
     * @param withSeeds whether it knows seeds of salted chains
     */
    public void learned(long group, boolean forEagle, boolean withSeeds) {
        mainGroup = group;
        learnedEagle = forEagle;
        salted = withSeeds;
    }

    /** Cache group that counts after the message; −1 as long as none has announced itself. */
    public long mainGroup() {
        return mainGroup;
    }

    /** Whether the decoder knows after the message that blocks are hashed for EAGLE. */
    public boolean learnedEagle() {
        return learnedEagle;
    }

    /** Whether the decoder knows seeds of salted chains after the message. */
    public boolean isSalted() {
        return salted;
    }

    /** Says that blocks of the batch are hashed for EAGLE: each with the token after it. */
    public void markEagle() {
        eagle = true;
    }

    /** Whether blocks of the batch are hashed for EAGLE. Not copied: for the one that takes it. */
    public boolean eagle() {
        return eagle;
    }

    /**
     * Adds a store.
     *
     * @param root whether the first block starts a prompt
     * @param parent engine hash of the block before the first one; ignored at the root
     * @param engineHashes engine hash of block {@code i} at index {@code i}; copied
     * @param localHashes local hash of block {@code i} at index {@code i}; copied
     * @param count number of blocks
     */
    public void addStored(
            boolean root, long parent, long[] engineHashes, long[] localHashes, int count) {
        addStored(root ? BatchDescriptor.ROOT_FLAG : 0, parent, engineHashes, localHashes, count);
    }

    /**
     * Adds a store in a tier.
     *
     * @param tier where the blocks are
     * @param root whether the first block starts a prompt
     * @param parent engine hash of the block before the first one; ignored at the root
     * @param engineHashes engine hash of block {@code i} at index {@code i}; copied
     * @param localHashes local hash of block {@code i} at index {@code i}; copied
     * @param count number of blocks
     */
    public void addStored(
            StorageTier tier,
            boolean root,
            long parent,
            long[] engineHashes,
            long[] localHashes,
            int count) {
        final long flags = flags(tier) | (root ? BatchDescriptor.ROOT_FLAG : 0);
        addStored(flags, parent, engineHashes, localHashes, count);
    }

    private static long flags(StorageTier tier) {
        return (long) tier.number() << BatchDescriptor.TIER_SHIFT;
    }

    /**
     * Adds a report of blocks that the engine holds: those that are held already stay as they are.
     *
     * @param root whether the first block starts a prompt
     * @param parent engine hash of the block before the first one; ignored at the root
     * @param engineHashes engine hash of block {@code i} at index {@code i}; copied
     * @param localHashes local hash of block {@code i} at index {@code i}; copied
     * @param count number of blocks
     */
    public void addReported(
            boolean root, long parent, long[] engineHashes, long[] localHashes, int count) {
        addStored(
                BatchDescriptor.REPORT_FLAG | (root ? BatchDescriptor.ROOT_FLAG : 0),
                parent,
                engineHashes,
                localHashes,
                count);
    }

    private void addStored(
            long flags, long parent, long[] engineHashes, long[] localHashes, int count) {
        Objects.checkFromIndexSize(0, count, engineHashes.length);
        Objects.checkFromIndexSize(0, count, localHashes.length);
        final int at = append(Kind.STORED, flags, count);
        words[at + BatchDescriptor.PARENT_OFFSET] = parent;
        System.arraycopy(engineHashes, 0, words, at + BatchDescriptor.STORED_HASHES_OFFSET, count);
        System.arraycopy(
                localHashes, 0, words, at + BatchDescriptor.localHashesOffset(count), count);
    }

    /**
     * Adds a removal.
     *
     * @param engineHashes hashes of the removed blocks; copied
     * @param count number of blocks
     */
    public void addRemoved(long[] engineHashes, int count) {
        addRemoved(StorageTier.DEVICE, engineHashes, count);
    }

    /**
     * Adds a removal from a tier.
     *
     * @param tier where the blocks were
     * @param engineHashes hashes of the removed blocks; copied
     * @param count number of blocks
     */
    public void addRemoved(StorageTier tier, long[] engineHashes, int count) {
        addNames(Kind.REMOVED, tier, engineHashes, count);
    }

    /**
     * Adds a store that says names only.
     *
     * @param tier where the blocks are, not the device
     * @param engineHashes hashes that the engine has announced before; copied
     * @param count number of blocks
     */
    public void addNamed(StorageTier tier, long[] engineHashes, int count) {
        addNames(Kind.NAMED, tier, engineHashes, count);
    }

    private void addNames(Kind kind, StorageTier tier, long[] engineHashes, int count) {
        Objects.checkFromIndexSize(0, count, engineHashes.length);
        final int at = append(kind, flags(tier), count);
        System.arraycopy(engineHashes, 0, words, at + BatchDescriptor.REMOVED_HASHES_OFFSET, count);
    }

    /**
     * Adds a removal that says how many copies of the block are left.
     *
     * @param engineHash hash of the block
     * @param remainingCopies copies that the engine still holds, 0 = the block is removed
     */
    public void addRemovedTo(long engineHash, int remainingCopies) {
        final int at = append(Kind.REMOVED_TO, 0, remainingCopies);
        words[at + BatchDescriptor.REMOVED_HASHES_OFFSET] = engineHash;
    }

    /** Adds the removal of everything. */
    public void addCleared() {
        append(Kind.CLEARED, 0, 0);
    }

    /**
     * Adds the removal of everything in one tier.
     *
     * @param tier where nothing is left; what lies in others stays
     */
    public void addTierCleared(StorageTier tier) {
        append(Kind.TIER_CLEARED, flags(tier), 0);
    }

    /**
     * Says that what the index had no room for is stored again from here on, or that all of it has
     * been.
     *
     * @param complete whether it has been
     */
    public void addRefill(boolean complete) {
        append(Kind.REFILL, 0, complete ? 1 : 0);
    }

    private int append(Kind kind, long flags, int count) {
        if (count < 0) {
            throw new IllegalArgumentException("count must not be negative: count=" + count);
        }
        final int at = length;
        final int end = Math.addExact(at, BatchDescriptor.length(kind, count));
        reserve(end);
        length = end;
        words[at + BatchDescriptor.HEAD_OFFSET] =
                (kind.code << BatchDescriptor.KIND_SHIFT) | flags | count;
        operations++;
        return at;
    }

    private void reserve(int needed) {
        if (needed > words.length) {
            words = Arrays.copyOf(words, Math.max(needed, words.length + (words.length >> 1)));
        }
    }

    /**
     * Becomes a copy of another batch.
     *
     * @param other what to copy; not changed
     */
    public void copyFrom(KvBatch other) {
        reset(other.slot, other.sequence, other.copyRule, other.rootStoresRefresh, other.listener);
        reserve(other.length);
        System.arraycopy(other.words, 0, words, 0, other.length);
        ofMessage = other.ofMessage;
        content = other.content;
        complete = other.complete;
        leavesOut = other.leavesOut;
        learnedEagle = other.learnedEagle;
        salted = other.salted;
        mainGroup = other.mainGroup;
        position = other.position;
        operations = other.operations;
        length = other.length;
    }

    /**
     * Empties the batch, lets go of its listener, and of its memory when that has grown beyond a
     * limit.
     *
     * @param retainedWords most 8-byte words to keep
     */
    public void trim(int retainedWords) {
        operations = 0;
        length = 0;
        listener = ApplyListener.NONE;
        if (words.length > retainedWords) {
            words = new long[retainedWords];
        }
    }

    /** Slot that the operations belong to. */
    public int slot() {
        return slot;
    }

    /** The engine's number of the message, or {@link #NO_SEQUENCE}. */
    public long sequence() {
        return sequence;
    }

    /** What a removal removes. */
    public CopyRule copyRule() {
        return copyRule;
    }

    /** Whether a root store of blocks already held is only a report of them. */
    public boolean rootStoresRefresh() {
        return rootStoresRefresh;
    }

    /** Notified of what became of the batch. */
    public ApplyListener listener() {
        return listener;
    }

    /** Number of operations. */
    public int operations() {
        return operations;
    }

    /** Room in 8-byte words that the batch holds now. */
    public int capacityWords() {
        return words.length;
    }

    /** Cursor of the first operation, −1 if there is none. */
    public int first() {
        return length == 0 ? -1 : 0;
    }

    /**
     * Cursor of the operation after another, −1 if there is none.
     *
     * @param at cursor of an operation
     */
    public int next(int at) {
        final int next = at + BatchDescriptor.length(kind(at), count(at));
        return next < length ? next : -1;
    }

    /**
     * What an operation does.
     *
     * @param at cursor of an operation
     */
    public Kind kind(int at) {
        return Kind.of(words[at + BatchDescriptor.HEAD_OFFSET]);
    }

    /**
     * Where the blocks of a store or a removal are.
     *
     * @param at cursor of the operation
     */
    public StorageTier tier(int at) {
        final long word = words[at + BatchDescriptor.HEAD_OFFSET];
        return StorageTier.of(
                (int) (word >>> BatchDescriptor.TIER_SHIFT) & BatchDescriptor.TIER_MASK);
    }

    /**
     * Number of blocks of a store or removal; copies left for {@link Kind#REMOVED_TO}.
     *
     * @param at cursor of an operation
     */
    public int count(int at) {
        return (int) words[at + BatchDescriptor.HEAD_OFFSET];
    }

    /**
     * Whether a store starts a prompt.
     *
     * @param at cursor of a store
     */
    public boolean isRoot(int at) {
        return (words[at + BatchDescriptor.HEAD_OFFSET] & BatchDescriptor.ROOT_FLAG) != 0;
    }

    /**
     * Whether a store only reports what is held, and changes nothing of that.
     *
     * @param at cursor of a store
     */
    public boolean isReport(int at) {
        return (words[at + BatchDescriptor.HEAD_OFFSET] & BatchDescriptor.REPORT_FLAG) != 0
                || (rootStoresRefresh && isRoot(at));
    }

    /**
     * Engine hash of the block before a store.
     *
     * @param at cursor of a store
     */
    public long parent(int at) {
        return words[at + BatchDescriptor.PARENT_OFFSET];
    }

    /**
     * Engine hash of the block of {@link Kind#REMOVED_TO}.
     *
     * @param at cursor of such an operation
     */
    public long engineHash(int at) {
        return words[at + BatchDescriptor.REMOVED_HASHES_OFFSET];
    }

    /**
     * Copies the engine hashes of a store or removal.
     *
     * @param at cursor of the operation
     * @param out receives {@link #count(int)} hashes
     */
    public void engineHashes(int at, long[] out) {
        final int from =
                kind(at) == Kind.STORED
                        ? BatchDescriptor.STORED_HASHES_OFFSET
                        : BatchDescriptor.REMOVED_HASHES_OFFSET;
        System.arraycopy(words, at + from, out, 0, count(at));
    }

    /**
     * Copies the local hashes of a store.
     *
     * @param at cursor of the store
     * @param out receives {@link #count(int)} hashes
     */
    public void localHashes(int at, long[] out) {
        final int count = count(at);
        System.arraycopy(words, at + BatchDescriptor.localHashesOffset(count), out, 0, count);
    }
}
