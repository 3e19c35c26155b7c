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
import java.io.UncheckedIOException;
import java.time.Duration;
import java.util.function.LongUnaryOperator;

/** What one worker holds, on its way into a snapshot, into the next one, and back. Stateless. */
public final class WorkerSnapshots {
    /** Workers that no router has followed for so long are left out of the next snapshot. */
    public static final Duration FOLLOWED = Duration.ofHours(1);

    /** An earlier snapshot cannot be read where it has a worker. */
    public static final class UnreadableException extends IOException {
        private static final long serialVersionUID = 1;

        UnreadableException(WorkerSection section, IOException cause) {
            super("what was saved of " + section.label() + " cannot be read: " + cause, cause);
        }
    }

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
                    || !load.finish(section.mark(), section.memory().removals())) {
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
     * @param heldUpTo gives, for the position of the slot's mark, the message of a stream that many
     *     share up to which all of the worker's are in the slot; something negative where that is
     *     not known. The position itself where there is no such stream
     * @param takenMs time of day, in ms since 1970
     * @return how it ended; only a whole one is in the snapshot. Overtaken where it is not known up
     *     to which message it is whole
     * @throws IOException if it cannot be written
     * @throws InterruptedException if the waiting thread is interrupted
     */
    public static SlotSnapshot.Outcome write(
            SnapshotWriter writer,
            String name,
            int dpRank,
            EventSource source,
            SlotSnapshot snapshot,
            LongUnaryOperator heldUpTo,
            long takenMs)
            throws IOException, InterruptedException {
        final SlotMark mark = snapshot.mark();
        if (mark != null) {
            final long position = heldUpTo.applyAsLong(mark.position());
            if (position < 0) {
                return SlotSnapshot.Outcome.OVERTAKEN;
            }
            writer.beginWorker(name, dpRank, mark.withPosition(position));
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

    /**
     * Writes a worker into a snapshot as it is in an earlier one.
     *
     * @param fromWorker the bytes of the earlier one from the {@link WorkerSection#offset} on
     * @param position up to which message of a stream that many share all of the worker's are in
     *     the section; 0 where there is no such stream
     * @throws UnreadableException if they cannot be read: the worker is not in the snapshot, but
     *     others may follow
     * @throws IOException if the worker cannot be written
     * @throws InterruptedException if the thread is interrupted
     */
    public static void copy(
            SnapshotWriter writer, InputStream fromWorker, WorkerSection section, long position)
            throws IOException, InterruptedException {
        writer.beginWorker(section.name(), section.dpRank(), section.mark().withPosition(position));
        try {
            SnapshotReader.read(
                    fromWorker,
                    section,
                    records -> {
                        try {
                            writer.records(records);
                            return true;
                        } catch (IOException e) {
                            throw new UncheckedIOException(e);
                        }
                    });
        } catch (UncheckedIOException e) {
            throw e.getCause();
        } catch (IOException e) {
            throw new UnreadableException(section, e);
        }
        writer.endWorker(section.memory(), section.followedMs());
    }
}
