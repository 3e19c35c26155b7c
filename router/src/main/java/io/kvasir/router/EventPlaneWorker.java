package io.kvasir.router;

/**
 * What a worker is called on an event plane.
 *
 * @param workerId its number in the events, 64 unsigned bits
 * @param dpRank its data-parallel rank in the events
 */
public record EventPlaneWorker(long workerId, int dpRank) {
    /** Checks the rank. */
    public EventPlaneWorker {
        if (dpRank < 0) {
            throw new IllegalArgumentException(
                    "rank " + dpRank + " on the event plane is negative");
        }
    }

    /** Another rank of the same worker. */
    public EventPlaneWorker plus(int ranks) {
        return new EventPlaneWorker(workerId, dpRank + ranks);
    }

    @Override
    public String toString() {
        return Long.toUnsignedString(workerId) + "/" + dpRank;
    }
}
