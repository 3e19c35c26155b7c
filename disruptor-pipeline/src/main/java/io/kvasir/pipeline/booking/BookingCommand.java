package io.kvasir.pipeline.booking;

/** One record of the booking ring: where the booking writer has to look. */
final class BookingCommand {
    /** What is to be done. */
    enum Kind {
        /** What the word of a booking says. */
        BOOKING,
        /** The ends of workers that are queued. */
        WORKERS_GONE,
        FORGET_PREDICTED,
        /** The steps of the replica thread that are queued. */
        REPLICA_STEPS,
        TICK
    }

    Kind kind = Kind.BOOKING;
    int index; // of a BOOKING its entry, of a FORGET_PREDICTED the slot

    void set(Kind what, int where) {
        kind = what;
        index = where;
    }
}
