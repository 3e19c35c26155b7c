package io.kvasir.nats.events;

/**
 * How snapshots of an event plane are taken.
 *
 * @param threshold messages of the stream that no snapshot has, past which one is taken; {@value
 *     #NEVER} for none
 * @param blockSize tokens per block
 * @param replicas servers of a cluster that keep the stream, where it is made
 * @param reset whether to delete all snapshots and all messages of the stream first
 */
public record PlaneSnapshotConfig(long threshold, int blockSize, int replicas, boolean reset) {
    /** No snapshots are taken; what there is is restored. */
    public static final long NEVER = 0;

    /**
     * Checks the values.
     *
     * @throws IllegalArgumentException naming the one that cannot be
     */
    public PlaneSnapshotConfig {
        if (threshold < NEVER) {
            throw new IllegalArgumentException("threshold is negative: " + threshold);
        }
        if (blockSize < 1) {
            throw new IllegalArgumentException("blockSize=" + blockSize + ", at least 1");
        }
        EventStreams.checkReplicas(replicas);
    }
}
