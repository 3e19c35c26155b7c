package io.kvasir.nats.events;

import io.kvasir.core.hash.BlockHasher;
import io.kvasir.pipeline.events.SlotSnapshot;
import io.kvasir.pipeline.snapshot.SnapshotWriter;
import io.kvasir.pipeline.snapshot.WorkerSection;
import io.kvasir.pipeline.source.EventSource;
import io.kvasir.pipeline.source.IndexState;
import io.kvasir.router.EventPlaneWorker;
import io.kvasir.router.KvRouter;
import io.kvasir.router.Worker;
import io.kvasir.router.spi.StateStore;
import io.kvasir.router.state.SnapshotCause;
import io.kvasir.router.state.WorkerSnapshots;

import java.io.IOException;
import java.io.InputStream;
import java.io.InterruptedIOException;
import java.io.OutputStream;
import java.util.HashSet;
import java.util.Map;
import java.util.Set;

/**
 * Writes one snapshot of an event plane: the workers of a router, and what an earlier snapshot has
 * of workers that the router has not now. One thread.
 */
final class PlaneSnapshotWriter {
    private final KvRouter router;
    private final StateStore store;
    private final int blockSize;
    private final long seenUpTo;
    private final long purgedUpTo;
    private final long takenMs;
    private final Set<EventPlaneWorker> done = new HashSet<>();
    private long bytes;
    private int workers;

    /** A worker's state could not be had; there is to be no snapshot without it. */
    static final class GivenUpException extends IOException {
        private static final long serialVersionUID = 1;

        private final SnapshotCause snapshotCause;

        GivenUpException(SnapshotCause snapshotCause, String message) {
            super(message);
            this.snapshotCause = snapshotCause;
        }

        SnapshotCause snapshotCause() {
            return snapshotCause;
        }
    }

    /**
     * @param store of the earlier snapshot
     * @param seenUpTo message up to which all are in the index
     * @param purgedUpTo message up to which the stream is purged once the snapshot is there
     * @param takenMs time of day, in ms since 1970
     */
    PlaneSnapshotWriter(
            KvRouter router,
            StateStore store,
            int blockSize,
            long seenUpTo,
            long purgedUpTo,
            long takenMs) {
        this.router = router;
        this.store = store;
        this.blockSize = blockSize;
        this.seenUpTo = seenUpTo;
        this.purgedUpTo = purgedUpTo;
        this.takenMs = takenMs;
    }

    /**
     * Writes all.
     *
     * @param saved what is in the store
     * @throws GivenUpException if something of a worker cannot be had
     */
    void write(OutputStream out, SnapshotCatalogue saved) throws IOException {
        final SnapshotWriter writer =
                new SnapshotWriter(out, blockSize, BlockHasher.BASE_SEED, takenMs);
        try {
            for (Worker worker : router.workers()) {
                if (worker.planeOrNull() != null && worker.source() != null) {
                    write(writer, worker);
                }
            }
            for (Map.Entry<EventPlaneWorker, SnapshotCatalogue.Found> entry :
                    saved.all().entrySet()) {
                if (isKept(entry.getKey(), entry.getValue().section())) {
                    copy(writer, entry.getKey(), entry.getValue());
                }
            }
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            throw new InterruptedIOException("a snapshot was interrupted");
        }
        writer.end();
        bytes = writer.bytes();
        workers = writer.workers();
    }

    private void write(SnapshotWriter writer, Worker worker)
            throws IOException, InterruptedException {
        final EventSource source = worker.source();
        final EventPlaneWorker named = worker.planeOrNull();
        try (SlotSnapshot snapshot = router.indexPipeline().snapshot(worker.slot())) {
            if (worker.state() == IndexState.GONE) {
                return; // the slot may be another worker's
            }
            final SlotSnapshot.Outcome outcome =
                    WorkerSnapshots.write(
                            writer,
                            SnapshotCatalogue.nameOf(named),
                            named.dpRank(),
                            source,
                            snapshot,
                            marked ->
                                    router.eventPlane()
                                            .heldUpTo(
                                                    named.workerId(),
                                                    named.dpRank(),
                                                    marked,
                                                    seenUpTo),
                            takenMs);
            if (outcome == SlotSnapshot.Outcome.WHOLE
                    || outcome == SlotSnapshot.Outcome.NO_MESSAGE) { // it holds nothing
                done.add(named);
                return;
            }
            final SnapshotCause cause = SnapshotCause.of(outcome);
            if (cause == null) {
                throw new IOException("the snapshot of worker " + worker + " ended: " + outcome);
            }
            throw new GivenUpException(cause, "worker " + worker + ": " + cause.label());
        }
    }

    private boolean isKept(EventPlaneWorker worker, WorkerSection section) {
        return !done.contains(worker)
                && takenMs - section.followedMs() < WorkerSnapshots.FOLLOWED.toMillis()
                && positionOf(worker, section) >= purgedUpTo; // else nothing has what follows
    }

    /** A worker that was removed after it had spoken has less than all. */
    private long positionOf(EventPlaneWorker worker, WorkerSection section) {
        final long saved = section.mark().position();
        return router.eventPlane().isSilentAfter(worker.workerId(), worker.dpRank(), saved)
                ? Math.max(saved, seenUpTo)
                : saved;
    }

    private void copy(SnapshotWriter writer, EventPlaneWorker worker, SnapshotCatalogue.Found found)
            throws IOException, InterruptedException {
        final WorkerSection section = found.section();
        try (InputStream in = store.get(found.object().toString(), section.offset())) {
            if (in == null) {
                throw new IOException(found.object() + " is not there any more");
            }
            WorkerSnapshots.copy(writer, in, section, positionOf(worker, section));
        }
    }

    /** Bytes of the snapshot. */
    long bytes() {
        return bytes;
    }

    /** Workers in it. */
    int workers() {
        return workers;
    }
}
