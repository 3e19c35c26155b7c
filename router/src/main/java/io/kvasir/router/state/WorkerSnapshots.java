package io.kvasir.router.state;

import io.kvasir.core.index.PrefixIndex;
import io.kvasir.pipeline.events.IndexPipeline;
import io.kvasir.pipeline.events.SlotLoad;
import io.kvasir.pipeline.events.SlotSnapshot;
import io.kvasir.pipeline.snapshot.SlotMark;
import io.kvasir.pipeline.snapshot.SnapshotReader;
import io.kvasir.pipeline.snapshot.SnapshotWriter;
import io.kvasir.pipeline.snapshot.WorkerSection;
import io.kvasir.pipeline.source.EventSource;
import io.kvasir.pipeline.source.StreamStart;

import java.io.IOException;
import java.io.InputStream;

/** What one worker holds, on its way into a snapshot and back. Stateless. */
public final class WorkerSnapshots {
    private WorkerSnapshots() {}

    /**
     * Loads an empty slot. Waits until it is in the index.
     *
     * @param fromWorker the bytes of the snapshot from the {@link WorkerSection#offset} on
     * @return where the worker's stream continues; null if the records cannot be used: then the
     *     slot is empty
     * @throws IOException if they cannot be read; the slot is empty then
     * @throws InterruptedException likewise, if the waiting thread is interrupted
     */
    public static StreamStart load(
            InputStream fromWorker,
            WorkerSection section,
            int slot,
            IndexPipeline pipeline,
            PrefixIndex index)
            throws IOException, InterruptedException {
        try (SlotLoad load = pipeline.load(slot)) {
            if (!SnapshotReader.read(fromWorker, section, load::records)
                    || !load.finish(section.mark())) {
                return null;
            }
        }
        return new StreamStart(
                section.mark().sequence(),
                section.mark().content(),
                section.mark().complete(),
                index.missingBlocks(slot),
                section.memory());
    }

    /**
     * Writes a worker into a snapshot.
     *
     * @param name of the worker
     * @param dpRank its rank
     * @param source of its events
     * @param snapshot of its slot; not closed here
     * @param seenUpTo message of a stream that many share, up to which all of the worker's are in
     *     the slot; 0 where there is no such stream
     * @param takenMs time of day, in ms since 1970
     * @return how it ended; only a whole one is in the snapshot
     * @throws IOException if it cannot be written
     * @throws InterruptedException if the waiting thread is interrupted
     */
    public static SlotSnapshot.Outcome write(
            SnapshotWriter writer,
            String name,
            int dpRank,
            EventSource source,
            SlotSnapshot snapshot,
            long seenUpTo,
            long takenMs)
            throws IOException, InterruptedException {
        final SlotMark mark = snapshot.mark();
        if (mark != null) {
            writer.beginWorker(
                    name, dpRank, mark.withPosition(Math.max(mark.position(), seenUpTo)));
            for (byte[] chunk = snapshot.take(); chunk != null; chunk = snapshot.take()) {
                writer.records(chunk);
            }
        }
        if (snapshot.outcome() == SlotSnapshot.Outcome.WHOLE) {
            // the memory is asked for after the mark: it knows that message
            writer.endWorker(source.memory(), takenMs);
        }
        return snapshot.outcome();
    }
}
