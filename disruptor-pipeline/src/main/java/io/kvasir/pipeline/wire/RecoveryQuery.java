package io.kvasir.pipeline.wire;

/**
 * Asks the local indexer of one worker and rank for router events that are missing, or for all that
 * the worker holds. On the wire a map in msgpack, see docs/spec/recovery.md.
 *
 * @param workerId the worker, 64 unsigned bits
 * @param dpRank its data-parallel rank
 * @param startEventId first event that is wanted; 0 = everything
 * @param endEventId last event that is wanted; {@link #NO_END} = as many as there are
 */
public record RecoveryQuery(long workerId, int dpRank, long startEventId, long endEventId) {
    /** All events from the first one on. */
    public static final long NO_END = Long.MAX_VALUE;

    private static final int MOST_BYTES = 128;

    /**
     * Checks the values.
     *
     * @throws IllegalArgumentException if a number is negative
     */
    public RecoveryQuery {
        if (dpRank < 0 || startEventId < 0 || endEventId < 0) {
            throw new IllegalArgumentException(
                    "dpRank="
                            + dpRank
                            + ", startEventId="
                            + startEventId
                            + " and endEventId="
                            + endEventId
                            + " must not be negative");
        }
    }

    /** The query as a message. */
    public byte[] toBytes() {
        final MsgpackWriter out = new MsgpackWriter(MOST_BYTES).map(4);
        out.text(RouterEventNames.WORKER_ID).unsigned(workerId);
        out.text(RouterEventNames.DP_RANK).unsigned(dpRank);
        out.text(RouterEventNames.START_EVENT_ID).unsigned(startEventId);
        out.text(RouterEventNames.END_EVENT_ID);
        return (endEventId == NO_END ? out.nil() : out.unsigned(endEventId)).toArray();
    }

    /**
     * Reads a message; unknown keys are ignored, an absent or null start or end is none.
     *
     * @param message all of it
     * @return the query; null if it is none
     */
    public static RecoveryQuery read(byte[] message) {
        final MsgpackReader in = new MsgpackReader().wrap(message, 0, message.length);
        long worker = 0;
        boolean named = false;
        long rank = 0;
        long start = 0;
        long end = NO_END;
        for (long pairs = in.openMap(); in.hasMore(pairs); pairs--) {
            if (!in.readKey()) {
                in.skip();
            } else if (in.dataEquals(RouterEventNames.WORKER_ID)) {
                worker = in.readLong();
                named = true;
            } else if (in.dataEquals(RouterEventNames.DP_RANK)) {
                rank = in.readLong();
            } else if (in.dataEquals(RouterEventNames.START_EVENT_ID)) {
                start = numberOr(in, 0);
            } else if (in.dataEquals(RouterEventNames.END_EVENT_ID)) {
                end = numberOr(in, NO_END);
            } else {
                in.skip();
            }
        }
        final boolean good =
                in.ok()
                        && named
                        && rank >= 0
                        && rank <= Integer.MAX_VALUE
                        && start >= 0
                        && end >= 0;
        return good ? new RecoveryQuery(worker, (int) rank, start, end) : null;
    }

    private static long numberOr(MsgpackReader in, long absent) {
        if (in.peek() == MsgpackReader.Kind.NIL) {
            in.skip();
            return absent;
        }
        return in.readLong();
    }

    @Override
    public String toString() {
        return Long.toUnsignedString(workerId) + "/" + dpRank + " from event " + startEventId;
    }
}
