package io.kvasir.router;

import io.kvasir.core.index.PrefixIndex;
import io.kvasir.pipeline.events.IndexPipeline;
import io.kvasir.pipeline.source.PlanePosition;
import io.kvasir.pipeline.source.StreamStart;
import io.kvasir.router.state.SnapshotStatus;

/**
 * What the workers of an event plane hold, saved where all routers over the same plane find it.
 * {@link #restore} is called by any thread, the others once.
 */
public interface PlaneState extends AutoCloseable {
    /**
     * How far a restored worker is.
     *
     * @param start where its stream continues
     * @param seen message of the plane's transport, up to which nothing of the worker is missing
     */
    record Restored(StreamStart start, PlanePosition seen) {}

    /**
     * Loads the empty slot of a worker with what was saved of it. Waits until it is in the index.
     * If this throws, the worker is not registered; one that {@linkplain KvRouter#rejoinPlane joins
     * anew} does so without what was saved.
     *
     * @param worker as the plane names it
     * @param slot its slot
     * @return how far it is; null if nothing was saved of it, or it cannot be used: then the slot
     *     is empty
     */
    Restored restore(EventPlaneWorker worker, int slot, IndexPipeline pipeline, PrefixIndex index);

    /** Begins to save what a router's workers hold, until the close. */
    void start(KvRouter router);

    /** What became of snapshots so far. */
    SnapshotStatus status();

    /** Saves nothing any more; what was saved stays. A second call does nothing. */
    @Override
    void close();
}
