package io.kvasir.sim.batch;

/** Counters of hand-offs in one life of one rank. Owned by the thread of the step loop. */
final class HandoffStats {
    long freedByPull;
    long freedByNotification;
    long freedByLeaseEnd;
    long lateNotifications;
    long pulls;
    long stalePulls;
    long failedPulls;
    long spoiledPulls;
    long transferredBlocks;
    long transferredBytes;
    long queriedTokens;
    long receivedTokens;
}
