package io.kvasir.sim.state;

/**
 * The truth about hand-offs of one rank at one moment; counts are of this life.
 *
 * @param heldPrefills prefills whose blocks wait for a decode
 * @param heldBlocks blocks that they hold, shared ones counted once per prefill
 * @param receiving requests that wait for blocks from another engine
 * @param freedByPull held prefills that were pulled
 * @param freedByNotification those that were given up by a notification
 * @param freedByLeaseEnd those whose decode did not come in time
 * @param lateNotifications ends of pulls and notifications for prefills that were not held any more
 * @param pulls requests whose blocks were received, wrong ones included
 * @param stalePulls those whose blocks were not the ones of their prompt
 * @param failedPulls requests that failed because nothing was received, or wrong blocks in strict
 *     mode
 * @param spoiledPulls those of the failed ones whose bytes were not those of their prompt
 * @param transferredBlocks blocks received
 * @param transferredBytes their bytes
 */
public record HandoffState(
        int heldPrefills,
        int heldBlocks,
        int receiving,
        long freedByPull,
        long freedByNotification,
        long freedByLeaseEnd,
        long lateNotifications,
        long pulls,
        long stalePulls,
        long failedPulls,
        long spoiledPulls,
        long transferredBlocks,
        long transferredBytes) {}
