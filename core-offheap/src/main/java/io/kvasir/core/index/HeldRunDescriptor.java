package io.kvasir.core.index;

import io.kvasir.core.radix.RadixTree;

/**
 * Layout of one held run, what one worker slot holds of one array of hashes, and of positions.
 *
 * <pre>
 *   0      4      8     10     12     14     16      20          24             28         32             64
 *   +------+------+-----+------+------+------+-------+-----------+--------------+----------+--------------+
 *   |above | run  | low | high | held |unused| birth | held bits | above: birth | below    | names 0 … 7  |
 *   +------+------+-----+------+------+------+-------+-----------+--------------+----------+--------------+
 *   above      number of the slot's held run that this one continues, + 1; 0 = none; another one has
 *              the number by now unless its birth is the one that stands here
 *   run        a segment of the array that the slot holds
 *   low, high  first held offset of the array, and the one after the last
 *   held       held blocks
 *   birth      number of held runs that the slot had had before this one
 *   held bits  line of one bit per block, 0 = all between low and high are held
 *   below      [ stored since it was last looked at:1 | held runs that go on from this one:31 ]
 *   names n    line of the slot's names of the blocks 64·n to 64·n + 63, 0 = none needed
 *
 *   position   [ 0:1 | held run:22 | array offset:9 ]
 * </pre>
 */
final class HeldRunDescriptor {
    /** Names of one block of memory. */
    static final int NAMES_PER_CHUNK = 64;

    static final int CHUNKS = RadixTree.MAX_RUN / NAMES_PER_CHUNK;

    static final int ABOVE_OFFSET = 0;
    static final int RUN_OFFSET = ABOVE_OFFSET + Integer.BYTES;
    static final int LOW_OFFSET = RUN_OFFSET + Integer.BYTES;
    static final int HIGH_OFFSET = LOW_OFFSET + Short.BYTES;
    static final int HELD_OFFSET = HIGH_OFFSET + Short.BYTES;
    private static final int UNUSED_OFFSET = HELD_OFFSET + Short.BYTES;
    static final int BIRTH_OFFSET = UNUSED_OFFSET + Short.BYTES;
    static final int BITS_OFFSET = BIRTH_OFFSET + Integer.BYTES;
    static final int ABOVE_BIRTH_OFFSET = BITS_OFFSET + Integer.BYTES;
    static final int BELOW_OFFSET = ABOVE_BIRTH_OFFSET + Integer.BYTES;
    static final int NAMES_OFFSET = BELOW_OFFSET + Integer.BYTES;
    static final int LENGTH = NAMES_OFFSET + CHUNKS * Integer.BYTES;

    /** No position; a position is 0 or more. */
    static final int NO_POSITION = -1;

    private static final int ARRAY_OFFSET_BITS = 9;
    private static final int HELD_RUN_BITS = 22;

    /** HeldRuns of one slot at most. */
    static final int MAX_HELD_RUNS = 1 << HELD_RUN_BITS;

    private HeldRunDescriptor() {}

    /** Offset, in a held run, of the line with the names of a chunk. */
    static int chunkOffset(int chunk) {
        return NAMES_OFFSET + chunk * Integer.BYTES;
    }

    static int position(int heldRun, int arrayOffset) {
        return heldRun << ARRAY_OFFSET_BITS | arrayOffset;
    }

    static int heldRun(int position) {
        return position >>> ARRAY_OFFSET_BITS;
    }

    static int arrayOffset(int position) {
        return position & ((1 << ARRAY_OFFSET_BITS) - 1);
    }
}
