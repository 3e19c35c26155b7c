package io.kvasir.core.index;

import io.kvasir.core.memory.BuddyArena;
import io.kvasir.core.memory.DiskRoom;
import io.kvasir.core.memory.OffHeap;
import io.kvasir.core.memory.RecoverableFile;
import io.kvasir.core.memory.RecoverableMemory;
import io.kvasir.core.memory.RecoverableMemory.Word;

import java.io.IOException;
import java.nio.file.Path;
import java.security.SecureRandom;
import java.util.List;

/**
 * Memory for a {@link PrefixIndex} that outlives the process: a mapped file, in which a later
 * process finds the index as it was at its last {@link PrefixIndex#commit}.
 *
 * <p>Given to one index, which closes it; closed by the caller only if that index is never made.
 */
public final class IndexMemory implements AutoCloseable {
    private static final long LAYOUT_VERSION = 2;

    /** Bytes of the undo log: as much as an event of some ten thousand blocks stores over. */
    private static final long LOG_LENGTH = 64L << 20;

    /** The log takes this part of the budget at most. */
    private static final int LOG_PART = 8;

    private static final long LEAST_LOG = 1 << 20;

    private static final int HASH_SEED = 0;
    private static final int TREE_SECRET = 1;
    private static final int KEY_MASK = 2;
    private static final int KEY_FACTOR = 3;

    private static final int OF_INDEX = 0;
    private static final int OF_SLOTS = 1;
    private static final int STATES = 2;
    private static final int LINES = 3;

    private final RecoverableMemory recoverable;
    private final String discardedOrNull;

    private IndexMemory(RecoverableMemory recoverable, String discardedOrNull) {
        this.recoverable = recoverable;
        this.discardedOrNull = discardedOrNull;
    }

    /**
     * Opens the memory of an index beside which nothing is saved; else the same.
     *
     * @throws IllegalStateException if another has the file open
     * @throws IOException if the disk has no room for it, or refuses it
     */
    public static IndexMemory open(
            Path file,
            PrefixIndexConfig config,
            int blockSize,
            Long hashSeedOrNull,
            long newHashSeed)
            throws IOException {
        return open(file, config, blockSize, hashSeedOrNull, newHashSeed, 0);
    }

    /**
     * Opens the memory of an index, or makes an empty one: where there is none, or it was made for
     * another index, cannot be trusted, or is older than what was saved beside it.
     *
     * @param file in a folder on a local disk, or in memory
     * @param config of the index; its limits and budget must be as they were
     * @param blockSize tokens per block; must be as it was
     * @param hashSeedOrNull seed of the local hashes, which must be as it was; null to take it over
     * @param newHashSeed seed where none is given and none taken over
     * @param savedMs when what was saved of the index elsewhere was true, in ms since 1970: a
     *     memory with which engines were {@link PrefixIndex#followed followed} last before is not
     *     used; 0 where nothing was saved
     * @throws IllegalStateException if another has the file open
     * @throws IOException if the disk has no room for it, or refuses it
     */
    public static IndexMemory open(
            Path file,
            PrefixIndexConfig config,
            int blockSize,
            Long hashSeedOrNull,
            long newHashSeed,
            long savedMs)
            throws IOException {
        final RecoverableFile.Opened opened =
                RecoverableFile.open(
                        file,
                        shape(config, blockSize),
                        left -> problem(left, config, hashSeedOrNull, savedMs),
                        constants(hashSeedOrNull == null ? newHashSeed : hashSeedOrNull));
        return new IndexMemory(opened.memory(), opened.discardedOrNull());
    }

    /**
     * Checks that the memory of an index can be opened or made, and leaves all as it is. Whether
     * another process has it is not asked.
     *
     * @param room counts what a new file would take
     * @throws IOException as {@link #open} does
     */
    public static void check(Path file, PrefixIndexConfig config, int blockSize, DiskRoom room)
            throws IOException {
        RecoverableFile.check(file, shape(config, blockSize), room);
    }

    /** What speaks against going on with what an earlier process has left; null if nothing does. */
    static String problem(
            RecoverableMemory left, PrefixIndexConfig config, Long hashSeedOrNull, long savedMs) {
        if (hashSeedOrNull != null && hashSeedOrNull != left.constant(HASH_SEED)) {
            return "its hashes have another seed";
        }
        final OffHeap index = left.area(OF_INDEX);
        final long followedMs = index.getLong(IndexCheckpointDescriptor.FOLLOWED_OFFSET);
        if (followedMs != 0 && followedMs < savedMs) { // 0: of a version that did not keep it
            return "a snapshot is "
                    + (savedMs - followedMs)
                    + " ms newer: a router went on without the file";
        }
        final int lines = BuddyArena.lines(config.budgetBytes());
        final boolean sound =
                isIn(index.getLong(IndexCheckpointDescriptor.ROOT_OFFSET), 1, lines)
                        && isIn(
                                index.getLong(IndexCheckpointDescriptor.USED_LINES_OFFSET),
                                1,
                                lines)
                        && isIn(
                                index.getLong(IndexCheckpointDescriptor.UNTOUCHED_OFFSET),
                                1,
                                lines);
        long held = 0;
        for (int slot = 0; sound && slot < config.maxWorkerSlots(); slot++) {
            final long ofSlot =
                    left.area(OF_SLOTS)
                            .getLong(
                                    IndexCheckpointDescriptor.slotOffset(slot)
                                            + IndexCheckpointDescriptor.HELD_OFFSET);
            held = isIn(ofSlot, 0, config.maxHeldBlocks()) ? held + ofSlot : Long.MAX_VALUE / 2;
        }
        return sound && held <= config.maxHeldBlocks() ? null : "its numbers contradict each other";
    }

    private static boolean isIn(long value, long least, long most) {
        return least <= value && value <= most;
    }

    /** Of a memory that is no file, with the shape and constants that it gives; for tests. */
    static IndexMemory of(RecoverableMemory recoverable) {
        return new IndexMemory(recoverable, null);
    }

    /** Sizes of the memory of an index, and what must be the same. */
    static RecoverableMemory.Shape shape(PrefixIndexConfig config, int blockSize) {
        final int lines = BuddyArena.lines(config.budgetBytes());
        final long slots = config.maxWorkerSlots();
        return new RecoverableMemory.Shape(
                Math.clamp(config.budgetBytes() / LOG_PART, LEAST_LOG, LOG_LENGTH),
                new long[] {
                    IndexCheckpointDescriptor.INDEX_LENGTH,
                    slots * IndexCheckpointDescriptor.SLOT_LENGTH,
                    lines,
                    (long) lines * BuddyArena.LINE_LENGTH
                },
                List.of(
                        new Word("layout version", LAYOUT_VERSION),
                        new Word("max-workers", slots),
                        new Word("max-blocks", config.maxBlocks()),
                        new Word("max-held-blocks", config.maxHeldBlocks()),
                        new Word("block-size", blockSize)));
    }

    /** Constants of a new memory. */
    static long[] constants(long hashSeed) {
        final SecureRandom random = new SecureRandom();
        return new long[] {hashSeed, random.nextLong(), random.nextLong(), random.nextLong()};
    }

    /** Seed of the local hashes in it, and of those to come. */
    public long hashSeed() {
        return recoverable.constant(HASH_SEED);
    }

    /** Whether it has what an earlier process had committed. */
    public boolean isReopened() {
        return recoverable.isReopened();
    }

    /** Whether that process ended without closing it. */
    public boolean wasKilled() {
        return recoverable.wasKilled();
    }

    /** Words of an unfinished change that were taken back. */
    public long wordsTakenBack() {
        return recoverable.restoredLongs();
    }

    /** Why what was there is not used; null if nothing was there, or it is used. */
    public String discardedOrNull() {
        return discardedOrNull;
    }

    /**
     * Changes so far that stored over more than the undo log has room for: a kill in the middle of
     * one would have cost the index. Writer thread.
     */
    public long changesWithoutLog() {
        return recoverable.incompleteChanges();
    }

    /** Bytes of the file. */
    public long length() {
        return recoverable.length();
    }

    long treeSecret() {
        return recoverable.constant(TREE_SECRET);
    }

    EngineHashIndex.Key key() {
        return new EngineHashIndex.Key(
                recoverable.constant(KEY_MASK), recoverable.constant(KEY_FACTOR));
    }

    /** Root of the tree in it, 0 in an empty one. */
    int root() {
        return (int) ofIndex().getLong(IndexCheckpointDescriptor.ROOT_OFFSET);
    }

    BuddyArena arena() {
        return new BuddyArena(recoverable.area(LINES), recoverable.area(STATES));
    }

    OffHeap ofIndex() {
        return recoverable.area(OF_INDEX);
    }

    OffHeap ofSlots() {
        return recoverable.area(OF_SLOTS);
    }

    RecoverableMemory recoverable() {
        return recoverable;
    }

    @Override
    public void close() {
        recoverable.close();
    }
}
