package io.kvasir.core.index;

import io.kvasir.core.memory.BuddyArena;
import io.kvasir.core.memory.OffHeap;

import java.util.stream.IntStream;

/**
 * Numbers of blocks of the arena, in the order in which they were added, as a tree of pages: none
 * is larger than 4 lines, so that it grows in a fragmented memory, too. Writer thread only.
 *
 * <pre>
 *   page of level n      [ page of level n − 1:32 | … ]
 *   page of level 0      [ block 0:32 | block 1:32 | … ]     64 numbers
 * </pre>
 *
 * <p>The root is of level 0 for up to 64 blocks, of level 1 for up to 4,096, and so on. It alone is
 * smaller while that is enough, and is copied when it grows.
 */
final class PageTree {
    private static final int PAGE_ORDER = 2;
    private static final int PAGE_BITS =
            PAGE_ORDER + Integer.numberOfTrailingZeros(BuddyArena.LINE_LENGTH / Integer.BYTES);
    private static final int PAGE_MASK = (1 << PAGE_BITS) - 1;

    private final BuddyArena arena;
    private final OffHeap memory;
    private int root = BuddyArena.NO_LINE;

    /** Level of the root: follows from the number of blocks. */
    private int level;

    private int size;

    /** Pages taken for one more block, the lowest first. */
    private final int[] taken = new int[1 + Integer.SIZE / PAGE_BITS];

    PageTree(BuddyArena arena) {
        this.arena = arena;
        this.memory = arena.memory();
    }

    /** Line of the root page, {@link BuddyArena#NO_LINE} = there are no blocks. */
    int root() {
        return root;
    }

    /** Goes on with a tree that is in memory. */
    void restore(int rootLine, int blocks) {
        root = rootLine;
        size = blocks;
        level = level(Math.max(blocks - 1, 0));
    }

    /** Blocks added and not removed. */
    int size() {
        return size;
    }

    /** Number of a block. */
    int get(int block) {
        return memory.getInt(entry(block, 0));
    }

    /** Offset of what leads to a block from the page of a level: a line number. */
    private long entry(int block, int ofLevel) {
        int page = root;
        for (int above = level; above > ofLevel; above--) {
            page = memory.getInt(inPage(page, block, above));
        }
        return inPage(page, block, ofLevel);
    }

    private static long inPage(int page, int block, int ofLevel) {
        return BuddyArena.offset(page) + (long) index(block, ofLevel) * Integer.BYTES;
    }

    private static int index(int block, int ofLevel) {
        return (block >>> (ofLevel * PAGE_BITS)) & PAGE_MASK;
    }

    /** Level of the root when a block is the last one. */
    private static int level(int last) {
        return (Integer.SIZE - 1 - Integer.numberOfLeadingZeros(last | 1)) / PAGE_BITS;
    }

    /** Levels below the root's at which a page begins with a block. */
    private static int pagesBegun(int block, int rootLevel) {
        return Math.min(rootLevel, Integer.numberOfTrailingZeros(block) / PAGE_BITS);
    }

    /**
     * Adds a block.
     *
     * @return false when there is no memory for it; nothing has changed then
     */
    boolean add(int line) {
        final int rootLevel = level(size);
        final int pages = pagesBegun(size, rootLevel);
        if (!take(pages)) {
            return false;
        }
        if (!growRoot(rootLevel)) {
            giveBack(pages);
            return false;
        }
        int below = line;
        for (int i = 0; i < pages; i++) {
            memory.putInt(BuddyArena.offset(taken[i]), below);
            below = taken[i];
        }
        memory.putInt(entry(size, pages), below);
        size++;
        return true;
    }

    /** Takes some pages, or none. */
    private boolean take(int pages) {
        for (int i = 0; i < pages; i++) {
            taken[i] = arena.allocate(PAGE_ORDER);
            if (taken[i] == BuddyArena.NO_LINE) {
                giveBack(i);
                return false;
            }
        }
        return true;
    }

    private void giveBack(int pages) {
        for (int i = 0; i < pages; i++) {
            arena.free(taken[i]);
        }
    }

    /** Makes the root one of a level that has an entry for the next block, if it is not. */
    private boolean growRoot(int rootLevel) {
        final int order = rootOrder(size, rootLevel);
        final boolean higher = rootLevel > level;
        if (root != BuddyArena.NO_LINE && !higher && order <= arena.order(root)) {
            return true;
        }
        final int grown = higher ? arena.allocate(order) : arena.grow(root, order);
        if (grown == BuddyArena.NO_LINE) {
            return false;
        }
        if (higher) {
            memory.putInt(BuddyArena.offset(grown), root);
        }
        root = grown;
        level = rootLevel;
        return true;
    }

    /** Order of a root whose last entry leads to a block. */
    private static int rootOrder(int block, int rootLevel) {
        return BuddyArena.orderFor((index(block, rootLevel) + 1L) * Integer.BYTES);
    }

    /** Removes the block that was added last, and the pages that lead to no other. */
    int removeLast() {
        size--;
        final int pages = pagesBegun(size, level);
        int line = memory.getInt(entry(size, pages));
        for (int i = 0; i < pages; i++) {
            final int below = memory.getInt(BuddyArena.offset(line));
            arena.free(line);
            line = below;
        }
        if (size == 0) {
            arena.free(root);
            root = BuddyArena.NO_LINE;
        } else if (level(size - 1) < level) {
            final int only = memory.getInt(BuddyArena.offset(root));
            arena.free(root);
            root = only;
            level--;
        } else if (rootOrder(size - 1, level) < arena.order(root)) {
            arena.shrink(root, rootOrder(size - 1, level));
        }
        return line;
    }

    /** Lines where pages begin; for tests. */
    IntStream pages() {
        final IntStream.Builder pages = IntStream.builder();
        for (int block = 0; block < size; block++) {
            for (int below = 0; below < pagesBegun(block, level); below++) {
                pages.add(memory.getInt(entry(block, below + 1)));
            }
        }
        if (root != BuddyArena.NO_LINE) {
            pages.add(root);
        }
        return pages.build();
    }
}
