package io.kvasir.core.index;

import io.kvasir.core.radix.RadixTree;

import java.util.Arrays;

/**
 * Some blocks that follow each other in a prompt, as {@link SlotExport} shows what one worker slot
 * holds and {@link SlotImport} takes it. A block is held, under an engine hash, or a <em>hole</em>:
 * a missing one before others that are held. The holes of one slot are numbered from 0, in the
 * order in which its paths are shown, so that the blocks after a hole can be named.
 *
 * <p>A view that is filled again and again; owned by one thread at a time.
 */
public final class SlotPath {
    /** Blocks of one path at most. */
    public static final int MAX_BLOCKS = RadixTree.MAX_RUN;

    /** What the first block of a path comes after. */
    public enum Parent {
        /** Nothing: it is the first of a prompt. */
        ROOT,
        /** A block that was shown as held, or as an alias. */
        BLOCK,
        /** A hole that was shown. */
        HOLE
    }

    private final long[] localHashes = new long[MAX_BLOCKS];
    private final long[] engineHashes = new long[MAX_BLOCKS];
    private final long[] held = new long[MAX_BLOCKS / Long.SIZE];
    private Parent parentKind = Parent.ROOT;
    private long parent;
    private int count;
    private int holes;

    /**
     * Empties the path.
     *
     * @param kind what the first block comes after
     * @param of the engine hash of that block, or the number of that hole; nothing for the root
     */
    public void begin(Parent kind, long of) {
        parentKind = kind;
        parent = of;
        count = 0;
        holes = 0;
        Arrays.fill(held, 0);
    }

    /**
     * Adds a held block.
     *
     * @throws IndexOutOfBoundsException if there are {@value #MAX_BLOCKS} already
     */
    public void addBlock(long localHash, long engineHash) {
        localHashes[count] = localHash;
        engineHashes[count] = engineHash;
        held[count / Long.SIZE] |= 1L << count;
        count++;
    }

    /**
     * Adds a hole.
     *
     * @throws IndexOutOfBoundsException if there are {@value #MAX_BLOCKS} already
     */
    public void addHole(long localHash) {
        localHashes[count] = localHash;
        engineHashes[count] = 0;
        count++;
        holes++;
    }

    /** What the first block comes after. */
    public Parent parentKind() {
        return parentKind;
    }

    /** Engine hash of that block, or number of that hole. */
    public long parent() {
        return parent;
    }

    /** Blocks and holes. */
    public int count() {
        return count;
    }

    /** Holes. */
    public int holes() {
        return holes;
    }

    /** Whether block {@code i} is held, and no hole. */
    public boolean isHeld(int i) {
        return (held[i / Long.SIZE] & 1L << i) != 0;
    }

    /** Whether 64 blocks from {@code 64 * word} on are held, a bit each, the lowest first. */
    public long heldWord(int word) {
        return held[word];
    }

    /** Local hash of block {@code i}. */
    public long localHash(int i) {
        return localHashes[i];
    }

    /** The slot's name of block {@code i}; 0 for a hole. */
    public long engineHash(int i) {
        return engineHashes[i];
    }

    /** Local hash of block {@code i} at index {@code i}; of the path itself, not to be changed. */
    long[] localHashes() {
        return localHashes;
    }
}
