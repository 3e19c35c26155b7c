package io.kvasir.router.state;

import io.kvasir.pipeline.events.SlotSnapshot;

import java.util.Locale;

/** Why a snapshot, or one worker of it, was given up though nothing had failed. */
public enum SnapshotCause {
    /** More messages of the worker came than may wait. */
    OVERTAKEN,
    /** The worker's slot is set aside after an error. */
    SET_ASIDE,
    /** The worker was removed meanwhile. */
    RETIRED,
    /** Another replica has the lock. */
    LOCKED,
    /** Another replica took the lock meanwhile. */
    LOCK_LOST,
    /** Others have saved what this router has not read yet, or events were left out. */
    BEHIND,
    /** What was saved could not be restored, so that this router knows less. */
    UNRESTORED;

    /** Its name in metrics and log lines. */
    public String label() {
        return name().toLowerCase(Locale.ROOT).replace('_', '-');
    }

    /** For a worker's snapshot that ended so; null for an outcome that gives nothing up. */
    public static SnapshotCause of(SlotSnapshot.Outcome outcome) {
        return switch (outcome) {
            case OVERTAKEN -> OVERTAKEN;
            case SET_ASIDE -> SET_ASIDE;
            case RETIRED -> RETIRED;
            case WHOLE, NO_MESSAGE, CANCELLED, FAILED, CLOSED -> null;
        };
    }
}
