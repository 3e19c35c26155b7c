package io.kvasir.router.state;

import java.util.SequencedMap;

/**
 * What became of snapshots since the start.
 *
 * @param taken snapshots that were saved
 * @param failed snapshots that could not be
 * @param abandoned times that one, or a worker of one, was given up, by {@link
 *     SnapshotCause#label}; all causes, always in the same order
 * @param totalNs time that all took that were saved
 * @param lastBytes length of the last one; 0 before the first
 * @param lastTakenMs when the newest was taken that is known, in ms since 1970; 0 where there is
 *     none
 * @param lastAgeMs how old the newest is, by a clock that does not jump; -1 where there is none
 * @param restoredWorkers workers that were restored
 * @param restoredBlocks blocks that they hold by it
 * @param restoreFailures workers that were saved and could not be restored
 * @param lastFailed of {@code failed} those of the last attempt
 */
public record SnapshotStatus(
        long taken,
        long failed,
        SequencedMap<String, Long> abandoned,
        long totalNs,
        long lastBytes,
        long lastTakenMs,
        long lastAgeMs,
        long restoredWorkers,
        long restoredBlocks,
        long restoreFailures,
        long lastFailed) {}
