package io.kvasir.sim.config;

/** Where a decode can be made to stand still, see {@code SimFaults.stallPulls}. */
public enum PullStage {
    /** It has taken its blocks and not yet asked the prefill engine. */
    BEFORE,
    /** Half of the bytes are moved; the prefill still holds its blocks. */
    DURING,
    /** All bytes are moved and the prefill has freed its blocks; nothing is computed yet. */
    AFTER
}
