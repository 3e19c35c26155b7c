package io.kvasir.router;

import io.kvasir.core.index.PrefixIndex;
import io.kvasir.pipeline.events.IndexPipeline;
import io.kvasir.pipeline.events.SlotLoad;
import io.kvasir.pipeline.events.SlotSnapshot;
import io.kvasir.pipeline.snapshot.SlotMark;
import io.kvasir.pipeline.snapshot.SnapshotProblem;
import io.kvasir.pipeline.snapshot.SnapshotReader;
import io.kvasir.pipeline.snapshot.SnapshotWriter;
import io.kvasir.pipeline.snapshot.WorkerSection;
import io.kvasir.pipeline.source.EventSource;
import io.kvasir.pipeline.source.StreamStart;
import io.kvasir.router.spi.StateStore;

import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

import java.io.IOException;
import java.io.InputStream;
import java.io.InterruptedIOException;
import java.io.OutputStream;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;

/**
 * The snapshots of one router's index in a store: finds what was saved, gives workers theirs, and
 * saves all of them. Two snapshots are kept; of each worker the newest whole one counts.
 *
 * <p>{@link #restore} is for any thread, once a worker; {@link #save} for one at a time.
 */
final class SavedPrefixes implements AutoCloseable {
    private static final Logger LOG = LoggerFactory.getLogger(SavedPrefixes.class);
    private static final String PREFIX = "prefixes-";
    private static final String SUFFIX = ".snapshot";
    private static final int KEPT = 2;

    private final StateStore store;
    private final int blockSize;
    private final Map<WorkerRegistry.NamedRank, Found> found = new HashMap<>(); // guarded by this
    private long hashSeed;
    private long lastNumber = -1;

    /** Where the newest whole snapshot of a worker is. */
    private record Found(String object, WorkerSection section) {}

    /** Nothing was to be saved. */
    private static final class NothingToSaveException extends IOException {
        private static final long serialVersionUID = 1;
    }

    /**
     * Takes the lock, and reads what there is.
     *
     * @param store closed with this, or at once if this fails
     * @param blockSize tokens per block
     * @param seedOrNull seed of the hashes where one is set; null to take that of the snapshots
     * @param newSeed seed where there is none
     * @throws IllegalStateException if another has the lock
     * @throws IOException if the store cannot be read
     */
    SavedPrefixes(StateStore store, int blockSize, Long seedOrNull, long newSeed)
            throws IOException {
        this.store = store;
        this.blockSize = blockSize;
        try {
            if (!store.lock()) {
                throw new IllegalStateException(
                        "another router keeps its state in "
                                + store
                                + "; give each router its own state-dir");
            }
            hashSeed = seedOrNull == null ? newSeed : seedOrNull;
            find(seedOrNull != null);
        } catch (IOException | RuntimeException e) {
            store.close();
            throw e;
        }
    }

    private void find(boolean seedGiven) throws IOException {
        boolean seedKnown = seedGiven;
        for (String object : snapshots().reversed()) {
            final SnapshotReader.Contents all;
            try (InputStream in = store.get(object, 0)) {
                if (in == null) {
                    continue;
                }
                all = SnapshotReader.scan(in);
            }
            if (!seedKnown && !all.workers().isEmpty()) {
                hashSeed = all.workers().getFirst().hashSeed();
                seedKnown = true;
            }
            final SnapshotReader.Contents fitting = all.fitting(blockSize, hashSeed);
            for (SnapshotProblem problem : fitting.problems()) {
                LOG.warn("{} in {}: {}; it is not used", object, store, problem);
            }
            for (WorkerSection section : fitting.workers()) {
                found.putIfAbsent(
                        new WorkerRegistry.NamedRank(section.name(), section.dpRank()),
                        new Found(object, section));
            }
        }
        if (!found.isEmpty()) {
            LOG.info("snapshots of {} workers are in {}", found.size(), store);
        }
    }

    /** Names of the snapshots, the oldest first. */
    private List<String> snapshots() throws IOException {
        final List<String> names = new ArrayList<>();
        for (String name : store.list()) {
            if (name.startsWith(PREFIX) && name.endsWith(SUFFIX)) {
                names.add(name);
                try {
                    final String digits =
                            name.substring(PREFIX.length(), name.length() - SUFFIX.length());
                    lastNumber = Math.max(lastNumber, Long.parseLong(digits));
                } catch (NumberFormatException e) {
                    names.removeLast(); // no snapshot of ours
                }
            }
        }
        return names;
    }

    /** Seed of the local hashes of the snapshots, and of all that is hashed from now on. */
    long hashSeed() {
        return hashSeed;
    }

    /**
     * Loads an empty slot with what was saved of a worker. Waits until it is in the index.
     *
     * @return where the worker's stream goes on; null if nothing was saved of it, or it could not
     *     be read: then the slot is empty
     */
    StreamStart restore(
            WorkerRegistry.NamedRank worker, int slot, IndexPipeline pipeline, PrefixIndex index) {
        final Found saved;
        synchronized (this) {
            saved = found.remove(worker);
        }
        if (saved == null) {
            return null;
        }
        final long startNs = System.nanoTime();
        final WorkerSection section = saved.section;
        try (SlotLoad load = pipeline.load(slot);
                InputStream in = store.get(saved.object, section.offset())) {
            if (in == null
                    || !SnapshotReader.read(in, section, load::records)
                    || !load.finish(section.mark())) {
                LOG.warn("{}: what was saved in {} cannot be used", worker, saved.object);
                return null;
            }
        } catch (IOException e) {
            LOG.warn("{}: {} cannot be read", worker, saved.object, e);
            return null;
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            return null;
        }
        LOG.info(
                "{}: {} blocks as of message {} restored in {} ms",
                worker,
                section.mark().heldBlocks(),
                section.mark().sequence(),
                (System.nanoTime() - startNs) / 1_000_000);
        return new StreamStart(
                section.mark().sequence(),
                section.mark().content(),
                section.mark().complete(),
                index.missingBlocks(slot),
                section.memory());
    }

    /**
     * Saves what the index holds of workers with events, and deletes what is older than the
     * snapshot before.
     *
     * @param takenMs time of day, in ms since 1970
     * @return how many workers were saved; 0 leaves everything as it was
     * @throws IOException if it cannot be saved; what was saved before is there still
     */
    int save(Iterable<Worker> workers, IndexPipeline pipeline, long takenMs) throws IOException {
        final String name = PREFIX + String.format(Locale.ROOT, "%019d", lastNumber + 1) + SUFFIX;
        final int[] saved = {0};
        try {
            store.put(name, out -> saved[0] = write(out, workers, pipeline, takenMs));
        } catch (NothingToSaveException e) {
            return 0;
        }
        lastNumber++;
        final List<String> all = snapshots();
        for (String old : all.subList(0, Math.max(0, all.size() - KEPT))) {
            store.delete(old);
        }
        return saved[0];
    }

    private int write(
            OutputStream out, Iterable<Worker> workers, IndexPipeline pipeline, long takenMs)
            throws IOException {
        final SnapshotWriter writer = new SnapshotWriter(out, blockSize, hashSeed, takenMs);
        for (Worker worker : workers) {
            final EventSource source = worker.source();
            if (source != null && worker.hasEventEndpoint()) {
                try (SlotSnapshot snapshot = pipeline.snapshot(worker.slot())) {
                    if (!worker.isRemoved()) { // else it may be of the slot's next tenant
                        write(writer, worker, source, snapshot);
                    }
                } catch (InterruptedException e) {
                    Thread.currentThread().interrupt();
                    throw new InterruptedIOException("a snapshot was interrupted");
                }
            }
        }
        if (writer.workers() == 0) {
            throw new NothingToSaveException();
        }
        writer.end();
        return writer.workers();
    }

    private static void write(
            SnapshotWriter writer, Worker worker, EventSource source, SlotSnapshot snapshot)
            throws IOException, InterruptedException {
        final SlotMark mark = snapshot.mark();
        if (mark != null) {
            writer.beginWorker(worker.name(), worker.dpRank(), mark);
            for (byte[] chunk = snapshot.take(); chunk != null; chunk = snapshot.take()) {
                writer.records(chunk);
            }
        }
        if (snapshot.outcome() == SlotSnapshot.Outcome.WHOLE) {
            writer.endWorker(source.memory()); // asked after the mark: it knows that message
        } else if (snapshot.outcome() != SlotSnapshot.Outcome.NO_MESSAGE) {
            LOG.warn("{} is not in the snapshot: {}", worker, snapshot.outcome());
        }
    }

    /** Gives the lock back. */
    @Override
    public void close() {
        store.close();
    }
}
