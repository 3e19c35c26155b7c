package io.kvasir.sim.batch;

import java.util.List;
import java.util.function.Supplier;

/**
 * What a request shall pull from another engine before it is computed, and how far that is. The
 * order is fixed, the progress belongs to the step loop.
 */
public final class KvPull {
    /**
     * Carries orders to the other engine; called on the step loop, must not block but for giving
     * up.
     */
    public interface Carrier {
        /** Sends the order; its answer comes as {@link PullQueue#offered}. */
        void begin(SimRequest request);

        /** Says that the blocks are here; the answer comes as {@link PullQueue#confirmed}. */
        void moved(SimRequest request);

        /**
         * Gives up; no answer comes any more, or one that is ignored. Nothing is written to the
         * request's blocks when this returns.
         */
        void cancel(SimRequest request);
    }

    /** How far a pull is; each stage but the last ends at a due time. */
    enum Stage {
        /** Blocks are taken; the order is not sent yet. */
        TAKEN,
        /** The order is under way; when it is due, the patience has ended. */
        ORDERED,
        /** Bytes are on the way. */
        MOVING,
        /** The other engine is notified; when it is due, it stays silent. */
        CONFIRMING,
        /** All is here, and is used when it is due. */
        ARRIVED,
        /** Used, or given up. */
        ENDED
    }

    final String host;
    final int port;
    final PullOrder order;
    final List<Integer> namedBlocks;
    final Supplier<Completion> otherText;

    // step loop only
    Stage stage;
    long dueNs;
    long number = -1;
    int blocks;
    PullStalls stalls = PullStalls.NONE;
    String problem;
    String stale;

    /**
     * Describes a pull.
     *
     * @param host where the other engine's side port is
     * @param namedBlocks ids that the request gives to the blocks, or null
     * @param otherText what the model says when the blocks are not those of the prompt
     * @param stale why the hand-off is known to be wrong, or null
     */
    public KvPull(
            String host,
            int port,
            PullOrder order,
            List<Integer> namedBlocks,
            Supplier<Completion> otherText,
            String stale) {
        this.host = host;
        this.port = port;
        this.order = order;
        this.namedBlocks = namedBlocks;
        this.otherText = otherText;
        this.stale = stale;
    }

    boolean ended() {
        return stage == Stage.ENDED;
    }
}
