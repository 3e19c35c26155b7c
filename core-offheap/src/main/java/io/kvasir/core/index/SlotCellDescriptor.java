package io.kvasir.core.index;

/**
 * Layout of what a {@link PrefixIndex} publishes about its worker slots: one column after the
 * other, so that a column can be read as a whole.
 *
 * <pre>
 *   0                              8 s                            16 s
 *   +----------+----------+-- … ---+----------+----------+-- … ---+
 *   | applied  | applied  |        | held     | held     |        |
 *   | sequence | sequence |        | blocks   | blocks   |        |
 *   | slot 0   | slot 1   |        | slot 0   | slot 1   |        |
 *   +----------+----------+-- … ---+----------+----------+-- … ---+
 * </pre>
 */
final class SlotCellDescriptor {
    private SlotCellDescriptor() {}

    /** Where the number of the last event applied for a slot is. */
    static long appliedSequenceOffset(int slot) {
        return (long) slot * Long.BYTES;
    }

    /** Where the number of engine hashes that a slot holds is, of so many slots. */
    static long heldBlocksOffset(int slots, int slot) {
        return ((long) slots + slot) * Long.BYTES;
    }

    /** Bytes of the cells of so many slots. */
    static long length(int slots) {
        return 2L * slots * Long.BYTES;
    }
}
