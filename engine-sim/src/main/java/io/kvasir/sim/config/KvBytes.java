package io.kvasir.sim.config;

/**
 * Real keys and values of an engine's blocks.
 *
 * @param layers layers that move one after the other; 0 for blocks without bytes
 * @param rowBytes bytes of one token in one layer, a multiple of 8
 * @param nixl whether NIXL moves them, which must then be there; otherwise shared memory does
 */
public record KvBytes(int layers, int rowBytes, boolean nixl) {
    /** Blocks without bytes. */
    public static final KvBytes NONE = new KvBytes(0, 8, false);

    /** Small blocks: two layers of 64 bytes a token, moved by shared memory. */
    public static final KvBytes SMALL = new KvBytes(2, 64, false);

    /**
     * Checks the values.
     *
     * @throws IllegalArgumentException naming the value and its limit
     */
    public KvBytes {
        if (layers < 0) {
            throw new IllegalArgumentException("layers=" + layers + " must be at least 0");
        }
        if (rowBytes < Long.BYTES || rowBytes % Long.BYTES != 0) {
            throw new IllegalArgumentException(
                    "rowBytes=" + rowBytes + " must be a multiple of " + Long.BYTES);
        }
    }

    /** Whether blocks have bytes. */
    public boolean exist() {
        return layers > 0;
    }
}
