package io.kvasir.nixl.memory;

/**
 * One of several equal parts of every block, such as the attention heads of one rank where a block
 * holds the heads one after another. Immutable.
 *
 * <pre>
 *   block      | heads 0, 1 | heads 2, 3 | heads 4, 5 | heads 6, 7 |
 *   1 of 4                  ^------------^
 * </pre>
 *
 * @param index which part, 0..count - 1
 * @param count how many parts a block has, at least 1
 */
public record BlockSlice(int index, int count) {
    /** Blocks as they are. */
    public static final BlockSlice WHOLE = new BlockSlice(0, 1);

    /**
     * Checks the values.
     *
     * @throws IllegalArgumentException naming the value that cannot be
     */
    public BlockSlice {
        if (count < 1) {
            throw new IllegalArgumentException("a block has at least 1 part, not " + count);
        }
        if (index < 0 || index >= count) {
            throw new IllegalArgumentException(
                    "a block of "
                            + count
                            + " parts has parts 0.."
                            + (count - 1)
                            + ", not "
                            + index);
        }
    }

    /**
     * Length of the part.
     *
     * @param region whose blocks
     * @return bytes
     * @throws IllegalArgumentException if its blocks cannot be cut into so many equal parts
     */
    long length(KvRegion region) {
        if (region.blockLength() % count != 0) {
            throw new IllegalArgumentException(
                    "blocks of region "
                            + region.name()
                            + " have "
                            + region.blockLength()
                            + " bytes: no "
                            + count
                            + " equal parts");
        }
        return region.blockLength() / count;
    }
}
