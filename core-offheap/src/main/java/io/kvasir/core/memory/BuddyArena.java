package io.kvasir.core.memory;

/**
 * A fixed budget of off-heap memory, handed out in blocks of 2^order lines of 64 bytes (a buddy
 * allocator). A block that is freed is merged with its free neighbour and can be handed out again
 * at once, so no sweep ever holds garbage.
 *
 * <p>A block is named by the number of its first line, from 1; it is aligned to its own length.
 * Free blocks of one order hang in a list through their first eight bytes; one byte per line says
 * what begins there:
 *
 * <pre>
 *   state byte   0 = inside a block     0x40 | order = block in use     0x80 | order = free block
 *   free block   int next, int previous: line numbers, 0 = none
 * </pre>
 *
 * <p>Blocks of the largest order that were never handed out hang in no list: nothing of them is
 * written, so that they take no memory of the machine.
 *
 * <p>One writer thread calls everything but {@link #memory}. Other threads may read the memory of
 * any line at any time; whether what they read still belongs to what they looked for is for the
 * owner of the block to tell them.
 *
 * @see <a href="https://doi.org/10.1145/365628.365655">Knowlton 1965</a> for buddy allocation
 */
public final class BuddyArena implements AutoCloseable {
    /** Bytes of a line. */
    public static final int LINE_LENGTH = 64;

    /** Bytes of the largest arena: 2^31 - 2 lines. */
    public static final long MAX_LENGTH = (Integer.MAX_VALUE - 1L) * LINE_LENGTH;

    /** No block. */
    public static final int NO_LINE = 0;

    /** Largest order of a block: 2^20 lines, 64 MiB. */
    public static final int MAX_ORDER = 20;

    private static final int USED = 0x40;
    private static final int FREE = 0x80;
    private static final int ORDER_MASK = 0x3F;

    private final OffHeap memory;
    private final OffHeap states;
    private final int lines;
    private final int[] firstFree = new int[MAX_ORDER + 1];
    private final int[] freeBlocks = new int[MAX_ORDER + 1];
    private final WriterCounter usedLines = new WriterCounter();
    private long freeOrders;

    /** Blocks of each order after {@link #untouched}; in no list, their memory never written. */
    private final int[] untouchedBlocks = new int[MAX_ORDER + 1];

    private int untouched = 1; // line 0 names nothing

    /**
     * Allocates the memory, all of it free.
     *
     * @param bytes at least two lines, at most 2^31 - 2 lines (127 GiB); rounded down to lines
     * @throws IllegalArgumentException if a limit is broken
     * @throws OutOfMemoryError if the operating system refuses the memory
     */
    public BuddyArena(long bytes) {
        lines = lines(bytes);
        memory = OffHeap.allocate((long) lines * LINE_LENGTH);
        states = OffHeap.orClose(memory, () -> OffHeap.allocate(lines));
        untouchedBlocks();
    }

    /**
     * Uses memory that there is, all of it free; or, after {@link #keep}, as it was.
     *
     * @param memory {@link #lines} times {@link #LINE_LENGTH} bytes, closed with this
     * @param states {@link #lines} bytes, zeroed or as they were; closed with this
     */
    public BuddyArena(OffHeap memory, OffHeap states) {
        this.lines = lines(memory.length());
        this.memory = memory;
        this.states = states;
        untouchedBlocks();
    }

    /**
     * Lines of an arena of so many bytes.
     *
     * @throws IllegalArgumentException if a limit is broken
     */
    public static int lines(long bytes) {
        final long count = bytes / LINE_LENGTH;
        if (count < 2 || count > Integer.MAX_VALUE - 1) {
            throw new IllegalArgumentException(
                    "arena out of range: bytes="
                            + bytes
                            + ", limits="
                            + 2 * LINE_LENGTH
                            + ".."
                            + MAX_LENGTH);
        }
        return (int) count;
    }

    private void untouchedBlocks() {
        for (int line = untouched; line < lines; line += 1 << firstOrder(line)) {
            untouchedBlocks[firstOrder(line)]++;
        }
    }

    /** Order of the block that begins at a line at first: the largest aligned one that fits. */
    private int firstOrder(int line) {
        final int aligned = Math.min(MAX_ORDER, Integer.numberOfTrailingZeros(line));
        final int fits = Integer.SIZE - 1 - Integer.numberOfLeadingZeros(lines - line);
        return Math.min(aligned, fits);
    }

    /** Names what the arena has beside its memory. */
    public void keep(KeptWords words) {
        words.keep(usedLines);
        untouched = words.keep(untouched);
        freeOrders = words.keep(freeOrders);
        for (int order = 0; order <= MAX_ORDER; order++) {
            firstFree[order] = words.keep(firstFree[order]);
            freeBlocks[order] = words.keep(freeBlocks[order]);
            untouchedBlocks[order] = words.keep(untouchedBlocks[order]);
        }
    }

    /** The memory; a line begins at {@link #offset}. */
    public OffHeap memory() {
        return memory;
    }

    /** Byte offset of a line. */
    public static long offset(int line) {
        return (long) line * LINE_LENGTH;
    }

    /** Smallest order whose blocks have room for that many bytes. */
    public static int orderFor(long bytes) {
        final long needed = (bytes + LINE_LENGTH - 1) / LINE_LENGTH;
        return needed <= 1 ? 0 : Long.SIZE - Long.numberOfLeadingZeros(needed - 1);
    }

    /** Lines of the whole arena that can be handed out. */
    public int capacityLines() {
        return lines - 1;
    }

    /** Lines handed out; any thread. */
    public long usedLines() {
        return usedLines.get();
    }

    /** Off-heap bytes; constant. */
    public long bytes() {
        return memory.length() + states.length();
    }

    /**
     * Hands out a block with whatever bytes it has.
     *
     * @param order 0..{@link #MAX_ORDER}
     * @return its first line, or {@link #NO_LINE} when no free block is as large
     */
    public int allocate(int order) {
        while ((freeOrders & (-1L << order)) == 0 && untouched < lines) {
            final int next = firstOrder(untouched);
            untouchedBlocks[next]--;
            push(untouched, next);
            untouched += 1 << next;
        }
        final long larger = freeOrders & (-1L << order);
        if (larger == 0) {
            return NO_LINE;
        }
        int found = Long.numberOfTrailingZeros(larger);
        final int line = firstFree[found];
        unlink(line, found);
        while (found > order) {
            found--;
            push(line + (1 << found), found);
        }
        states.putByte(line, (byte) (USED | order));
        usedLines.add(1L << order);
        return line;
    }

    /** Whether a block of an order could be handed out now. */
    public boolean hasFree(int order) {
        return (freeOrders & (-1L << order)) != 0 || largestOrder(1) >= order;
    }

    /** Largest order of which that many blocks could be handed out now, -1 = none. */
    public int largestOrder(int blocks) {
        long available = 0;
        for (int order = MAX_ORDER; order >= 0; order--) {
            available = 2 * available + freeBlocks[order] + untouchedBlocks[order];
            if (available >= blocks) {
                return order;
            }
        }
        return -1;
    }

    /** Order of a block in use. */
    public int order(int line) {
        final int state = states.getByte(line);
        assert (state & USED) != 0 : "no block begins here: line=" + line;
        return state & ORDER_MASK;
    }

    /** Takes a block back. */
    public void free(int line) {
        int order = order(line);
        usedLines.add(-(1L << order));
        int first = line;
        while (order < MAX_ORDER) {
            final int buddy = first ^ (1 << order);
            if (buddy == NO_LINE
                    || (long) buddy + (1L << order) > lines
                    || (states.getByte(buddy) & 0xFF) != (FREE | order)) {
                break;
            }
            unlink(buddy, order);
            states.putByte(buddy, (byte) 0);
            states.putByte(first, (byte) 0);
            first &= ~(1 << order);
            order++;
        }
        push(first, order);
    }

    /**
     * Moves a block that no other thread reads to one of a larger order; the former is free then.
     *
     * @param line the block, or {@link #NO_LINE} for one with whatever bytes it has
     * @return the new block, or {@link #NO_LINE} when there is none; nothing has changed then
     */
    public int grow(int line, int order) {
        final int grown = allocate(order);
        if (grown != NO_LINE && line != NO_LINE) {
            memory.copy(offset(line), offset(grown), (long) LINE_LENGTH << order(line));
            free(line);
        }
        return grown;
    }

    /** Takes the upper part of a block back; its first 2^order lines stay as they are. */
    public void shrink(int line, int order) {
        for (int from = order(line) - 1; from >= order; from--) {
            usedLines.add(-(1L << from));
            push(line + (1 << from), from);
        }
        states.putByte(line, (byte) (USED | order));
    }

    /** State byte of a line; for tests. */
    int state(int line) {
        return states.getByte(line) & 0xFF;
    }

    /**
     * Order of the block that begins at a line, was never handed out and is in no list; -1 = none;
     * for tests.
     */
    int untouchedOrder(int line) {
        return line < untouched ? -1 : firstOrder(line);
    }

    /** First free block of an order, or {@link #NO_LINE}; for tests. */
    int firstFree(int order) {
        return firstFree[order];
    }

    /** Gives the memory back; a second call does nothing. No other call may follow or run. */
    @Override
    public void close() {
        memory.close();
        states.close();
    }

    private void push(int line, int order) {
        final int next = firstFree[order];
        memory.putInt(offset(line), next);
        memory.putInt(offset(line) + Integer.BYTES, NO_LINE);
        if (next != NO_LINE) {
            memory.putInt(offset(next) + Integer.BYTES, line);
        }
        firstFree[order] = line;
        freeBlocks[order]++;
        freeOrders |= 1L << order;
        states.putByte(line, (byte) (FREE | order));
    }

    private void unlink(int line, int order) {
        freeBlocks[order]--;
        final int next = memory.getInt(offset(line));
        final int previous = memory.getInt(offset(line) + Integer.BYTES);
        if (next != NO_LINE) {
            memory.putInt(offset(next) + Integer.BYTES, previous);
        }
        if (previous != NO_LINE) {
            memory.putInt(offset(previous), next);
        } else {
            firstFree[order] = next;
            if (next == NO_LINE) {
                freeOrders &= ~(1L << order);
            }
        }
    }
}
