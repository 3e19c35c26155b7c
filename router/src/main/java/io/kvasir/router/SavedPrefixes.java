package io.kvasir.router;

import io.kvasir.core.closing.Uninterrupted;
import io.kvasir.core.index.PrefixIndex;
import io.kvasir.pipeline.events.IndexPipeline;
import io.kvasir.pipeline.events.SlotSnapshot;
import io.kvasir.pipeline.snapshot.SlotMark;
import io.kvasir.pipeline.snapshot.SnapshotProblem;
import io.kvasir.pipeline.snapshot.SnapshotReader;
import io.kvasir.pipeline.snapshot.SnapshotWriter;
import io.kvasir.pipeline.snapshot.WorkerSection;
import io.kvasir.pipeline.source.EventPlane;
import io.kvasir.pipeline.source.EventSource;
import io.kvasir.pipeline.source.PlanePosition;
import io.kvasir.pipeline.source.StreamStart;
import io.kvasir.router.spi.SavedWorker;
import io.kvasir.router.spi.StateStore;
import io.kvasir.router.state.SnapshotCause;
import io.kvasir.router.state.SnapshotCounts;
import io.kvasir.router.state.SnapshotStatus;
import io.kvasir.router.state.WorkerSnapshots;

import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

import java.io.IOException;
import java.io.InputStream;
import java.io.InterruptedIOException;
import java.time.Clock;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.HashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.function.LongUnaryOperator;

/**
 * The snapshots of one router's index in a store: finds what was saved, gives workers theirs, and
 * saves all of them. Two snapshots are kept; of each worker the newest whole one counts. What was
 * saved of a worker that has not come again is saved with the others, for an hour after it was
 * followed.
 *
 * <p>{@link #restore} is for any thread, once a worker; {@link #save} for one at a time.
 */
final class SavedPrefixes implements AutoCloseable {
    private static final Logger LOG = LoggerFactory.getLogger(SavedPrefixes.class);
    private static final String GIVEN = "the given StateStore";
    private static final String PREFIX = "prefixes-";
    private static final String SUFFIX = ".snapshot";
    private static final int KEPT = 2;

    /** What the names of sections begin with that are of workers of an event plane. */
    private static final String PLANE = "\u0001plane/";

    private final StateStore store;
    private final String storeName;
    private final int blockSize;
    private final int maxWorkers;
    private final SnapshotCounts counts = new SnapshotCounts();
    private final Map<WorkerRegistry.NamedRank, Found> found = new HashMap<>(); // guarded by this
    private PlanePosition planePosition; // of the newest snapshot; null where it has none
    private long hashSeed;
    private long lastNumber = -1;
    private long newestMs; // when the newest of what was found was followed

    /** Where the newest whole snapshot of a worker is. */
    private record Found(String object, WorkerSection section) {
        boolean isOfPlane() {
            return planeStore(section.name()) != 0;
        }
    }

    /** Nothing was to be saved. */
    private static final class NothingToSaveException extends IOException {
        private static final long serialVersionUID = 1;
    }

    /**
     * Takes the lock, and reads what there is.
     *
     * @param store closed with this, or at once if this fails
     * @param blockSize tokens per block
     * @param maxWorkers how many workers a snapshot has at most
     * @param seedOrNull seed of the hashes where one is set; null to take that of the snapshots
     * @param newSeed seed where there is none
     * @throws IllegalStateException if another has the lock
     * @throws IOException if the store cannot be read; a snapshot that cannot is not used
     */
    SavedPrefixes(StateStore store, int blockSize, int maxWorkers, Long seedOrNull, long newSeed)
            throws IOException {
        this.store = store;
        storeName = nameOf(store);
        this.blockSize = blockSize;
        this.maxWorkers = maxWorkers;
        try {
            if (!store.lock()) {
                throw new IllegalStateException(
                        "another router keeps its state in "
                                + storeName
                                + "; give each router its own"
                                + (storeName.equals(GIVEN) ? "" : " state-dir"));
            }
            hashSeed = seedOrNull == null ? newSeed : seedOrNull;
            find(seedOrNull != null);
        } catch (Throwable t) {
            close();
            throw t;
        }
    }

    /** What a store says of itself; where it says nothing, that it was given. */
    static String nameOf(StateStore store) {
        final String said = store.toString();
        return said == null || said.startsWith(store.getClass().getName() + "@") ? GIVEN : said;
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
            } catch (IOException e) { // the list was read: it is this object
                LOG.warn("{} in {} cannot be read; it is not used", object, storeName, e);
                continue;
            }
            counts.known(all.takenMs(), Clock.systemUTC().millis() - all.takenMs());
            if (!seedKnown && !all.workers().isEmpty()) {
                hashSeed = all.workers().getFirst().hashSeed();
                seedKnown = true;
            }
            final SnapshotReader.Contents fitting = all.fitting(blockSize, hashSeed);
            for (SnapshotProblem problem : fitting.problems()) {
                LOG.warn("{} in {}: {}; it is not used", object, storeName, problem);
            }
            if (planePosition == null) {
                planePosition = planePosition(fitting.workers());
            }
            for (WorkerSection section : fitting.workers()) {
                found.putIfAbsent(
                        rank(section),
                        new Found(
                                object,
                                section.followedMs() > 0
                                        ? section
                                        : section.followed(all.takenMs())));
            }
        }
        for (Found each : found.values()) {
            newestMs = Math.max(newestMs, each.section.followedMs());
        }
        if (!found.isEmpty()) {
            LOG.info("snapshots of {} workers are in {}", found.size(), storeName);
        }
    }

    /** Up to which message all workers of an event plane are there; null if there are none. */
    private static PlanePosition planePosition(List<WorkerSection> sections) {
        PlanePosition least = null;
        for (WorkerSection section : sections) {
            final long store = planeStore(section.name());
            final long upTo = section.mark().position();
            if (store != 0 && (least == null || upTo < least.upTo())) {
                least = new PlanePosition(store, upTo);
            }
        }
        return least;
    }

    private static WorkerRegistry.NamedRank rank(WorkerSection section) {
        return new WorkerRegistry.NamedRank(section.name(), section.dpRank());
    }

    private static String planeName(long store, EventPlaneWorker worker) {
        return PLANE + store + "/" + Long.toUnsignedString(worker.workerId());
    }

    /** In which store the messages are of which a section was made; 0 if it is of no plane. */
    private static long planeStore(String name) {
        final int slash = name.lastIndexOf('/');
        if (!name.startsWith(PLANE) || slash < PLANE.length()) {
            return 0;
        }
        try {
            return Long.parseLong(name.substring(PLANE.length(), slash));
        } catch (NumberFormatException e) {
            return 0; // no name of ours
        }
    }

    /**
     * How far the newest snapshot is in the messages of an event plane.
     *
     * @return null if it has no workers of one
     */
    PlanePosition planePositionOrNull() {
        return planePosition;
    }

    /** Names of the snapshots, the oldest first. */
    private List<String> snapshots() throws IOException {
        final List<String> names = new ArrayList<>();
        final List<String> all = store.list();
        if (all == null) {
            throw new IOException("StateStore.list() has returned no list");
        }
        for (String name : all) {
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

    /**
     * Until when a router has followed a worker whose snapshot can be used, in ms since 1970; 0
     * where there is none.
     */
    long newestMs() {
        return newestMs;
    }

    /** Seed of the local hashes of the snapshots, and of all that is hashed from now on. */
    long hashSeed() {
        return hashSeed;
    }

    /** Whether no snapshot can be used; then hashes may have another seed. */
    synchronized boolean isEmpty() {
        return found.isEmpty();
    }

    /** Sets the seed of all that is hashed from now on, where there is no snapshot. */
    void hashSeed(long seed) {
        hashSeed = seed;
    }

    /** What was saved of a worker is not needed. */
    synchronized void forget(WorkerRegistry.NamedRank worker) {
        found.remove(worker);
    }

    /**
     * Loads an empty slot with what was saved of a worker of an event plane. Waits until it is in
     * the index.
     *
     * @param store in which the plane's messages are now
     * @return null if nothing was saved of it, or it could not be read: then the slot is empty
     */
    PlaneState.Restored restore(
            EventPlaneWorker worker,
            long store,
            int slot,
            IndexPipeline pipeline,
            PrefixIndex index) {
        final var named = new WorkerRegistry.NamedRank(planeName(store, worker), worker.dpRank());
        final Found saved = foundOrNull(named);
        final StreamStart start = restore(named, slot, pipeline, index);
        return start == null
                ? null
                : new PlaneState.Restored(
                        start, new PlanePosition(store, saved.section.mark().position()));
    }

    /**
     * Loads an empty slot with what was saved of a worker. Waits until it is in the index, also in
     * an interrupted thread.
     *
     * @return where the worker's stream continues; null if nothing was saved of it, or it could not
     *     be read: then the slot is empty
     */
    StreamStart restore(
            WorkerRegistry.NamedRank worker, int slot, IndexPipeline pipeline, PrefixIndex index) {
        final Found saved = foundOrNull(worker);
        if (saved == null) {
            return null;
        }
        final long startNs = System.nanoTime();
        final SlotMark mark = saved.section.mark();
        final StreamStart start = load(worker, saved, slot, pipeline, index);
        forget(worker); // not before: a save meanwhile has it still
        if (start == null) {
            counts.restoreFailed();
            return null;
        }
        counts.restored(mark.heldBlocks());
        LOG.info(
                "{}: {} blocks as of message {} restored in {} ms",
                worker,
                mark.heldBlocks(),
                mark.sequence(),
                (System.nanoTime() - startNs) / 1_000_000);
        return start;
    }

    private synchronized Found foundOrNull(WorkerRegistry.NamedRank worker) {
        return found.get(worker);
    }

    private StreamStart load(
            WorkerRegistry.NamedRank worker,
            Found saved,
            int slot,
            IndexPipeline pipeline,
            PrefixIndex index) {
        try {
            final StreamStart start =
                    Uninterrupted.call(() -> loadOnce(worker, saved, slot, pipeline, index));
            if (start == null) {
                LOG.warn("{}: what was saved in {} cannot be used", worker, saved.object);
            }
            return start;
        } catch (IOException e) {
            LOG.warn("{}: {} cannot be read", worker, saved.object, e);
            return null;
        }
    }

    /** An interrupt ends it, and leaves the slot empty. */
    private StreamStart loadOnce(
            WorkerRegistry.NamedRank worker,
            Found saved,
            int slot,
            IndexPipeline pipeline,
            PrefixIndex index)
            throws IOException, InterruptedException {
        try (InputStream in = open(worker, saved)) {
            return in == null
                    ? null
                    : WorkerSnapshots.load(in, saved.section, slot, pipeline, index);
        }
    }

    /** Where it is, or where a save has copied it to before it deleted that. */
    private InputStream open(WorkerRegistry.NamedRank worker, Found saved) throws IOException {
        final InputStream in = store.get(saved.object, saved.section.offset());
        final Found now = foundOrNull(worker);
        return in != null || now == null || now.equals(saved)
                ? in
                : store.get(now.object, now.section.offset());
    }

    /**
     * Saves what the index holds of workers with events, and with it what was saved of those that
     * have not come again; deletes what is older than the snapshot before.
     *
     * @param planeOrNull what feeds workers of an event plane, which are saved where it keeps its
     *     messages; null for none
     * @param takenMs time of day, in ms since 1970
     * @return how many workers were saved; 0 leaves everything as it was
     * @throws IOException if it cannot be saved; what was saved before is there still
     */
    int save(Iterable<Worker> workers, IndexPipeline pipeline, EventPlane planeOrNull, long takenMs)
            throws IOException {
        counts.begun();
        final List<Worker> followed = new ArrayList<>();
        workers.forEach(
                worker -> {
                    if (worker.hasEventEndpoint() || worker.isOnPlane()) {
                        followed.add(worker);
                    }
                });
        // after these workers were found on it: it is true of them all
        final PlanePosition position = planeOrNull == null ? null : planeOrNull.positionOrNull();
        final String name = PREFIX + String.format(Locale.ROOT, "%019d", lastNumber + 1) + SUFFIX;
        final long startNs = System.nanoTime();
        final List<SavedWorker> saved = new ArrayList<>();
        final Map<Found, Found> copied = new HashMap<>();
        final long[] bytes = {0};
        pipeline.followed(takenMs); // first: the writer has kept it when it shows a worker
        try {
            store.put(
                    name,
                    out -> {
                        final SnapshotWriter writer =
                                new SnapshotWriter(out, blockSize, hashSeed, takenMs);
                        write(writer, followed, pipeline, planeOrNull, position, takenMs, saved);
                        copy(writer, name, takenMs, copied);
                        writer.end();
                        if (position != null
                                && position.store() != planeOrNull.positionOrNull().store()) {
                            throw new IOException("the event plane's stream was made anew");
                        }
                        bytes[0] = writer.bytes();
                    });
        } catch (NothingToSaveException e) {
            return 0;
        } catch (Throwable t) { // of a store in another language, also what it does not declare
            counts.failed();
            throw t;
        }
        counts.taken(System.nanoTime() - startNs, bytes[0], takenMs);
        lastNumber++;
        moved(copied);
        final List<String> all = snapshots();
        for (String old : all.subList(0, Math.max(0, all.size() - KEPT))) {
            store.delete(old);
        }
        store.saved(name, saved);
        return saved.size();
    }

    private void write(
            SnapshotWriter writer,
            Iterable<Worker> workers,
            IndexPipeline pipeline,
            EventPlane planeOrNull,
            PlanePosition positionOrNull,
            long takenMs,
            List<SavedWorker> saved)
            throws IOException {
        for (Worker worker : workers) {
            final EventSource source = worker.source();
            if (source != null && (positionOrNull != null || worker.planeOrNull() == null)) {
                try (SlotSnapshot snapshot = pipeline.snapshot(worker.slot())) {
                    if (!worker.isRemoved()) { // else it may be of the slot's next tenant
                        write(
                                writer,
                                worker,
                                source,
                                snapshot,
                                planeOrNull,
                                positionOrNull,
                                takenMs,
                                saved);
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
    }

    /**
     * Copies what was saved of workers that have not come again, the newest first. Those of an
     * event plane are not copied: its stream has what they said.
     *
     * @param copied gets where each is, and where it is now
     */
    private void copy(SnapshotWriter writer, String name, long takenMs, Map<Found, Found> copied)
            throws IOException {
        for (Found old : notComeAgain(takenMs)) {
            if (writer.workers() >= maxWorkers) {
                return;
            }
            final long offset = writer.bytes();
            try (InputStream in = store.get(old.object, old.section.offset())) {
                if (in != null) {
                    WorkerSnapshots.copy(writer, in, old.section, old.section.mark().position());
                    copied.put(old, new Found(name, old.section.movedTo(offset)));
                }
            } catch (WorkerSnapshots.UnreadableException e) {
                LOG.warn("{}: {}", old.object, e.getMessage());
                forget(rank(old.section));
            } catch (InterruptedException e) {
                Thread.currentThread().interrupt();
                throw new InterruptedIOException("a snapshot was interrupted");
            }
        }
    }

    private synchronized List<Found> notComeAgain(long nowMs) {
        return found.values().stream()
                .filter(old -> !old.isOfPlane())
                .filter(
                        old ->
                                nowMs - old.section.followedMs()
                                        < WorkerSnapshots.FOLLOWED.toMillis())
                .sorted(
                        Comparator.comparingLong((Found old) -> old.section.followedMs())
                                .reversed())
                .toList();
    }

    private synchronized void moved(Map<Found, Found> copied) {
        found.replaceAll((_, old) -> copied.getOrDefault(old, old));
    }

    private void write(
            SnapshotWriter writer,
            Worker worker,
            EventSource source,
            SlotSnapshot snapshot,
            EventPlane planeOrNull,
            PlanePosition positionOrNull,
            long takenMs,
            List<SavedWorker> saved)
            throws IOException, InterruptedException {
        final EventPlaneWorker named = worker.planeOrNull();
        final SlotSnapshot.Outcome outcome =
                named == null
                        ? WorkerSnapshots.write(
                                writer,
                                worker.name(),
                                worker.dpRank(),
                                source,
                                snapshot,
                                LongUnaryOperator.identity(),
                                takenMs)
                        : WorkerSnapshots.write(
                                writer,
                                planeName(positionOrNull.store(), named),
                                named.dpRank(),
                                source,
                                snapshot,
                                marked ->
                                        planeOrNull.heldUpTo(
                                                named.workerId(),
                                                named.dpRank(),
                                                marked,
                                                positionOrNull.upTo()),
                                takenMs);
        if (outcome == SlotSnapshot.Outcome.WHOLE) {
            final SlotMark mark = snapshot.mark();
            saved.add(
                    new SavedWorker(
                            worker.name(),
                            worker.dpRank(),
                            worker.url(),
                            worker.id(),
                            worker.slotGeneration(),
                            mark.sequence(),
                            mark.content()));
            return;
        }
        if (outcome == SlotSnapshot.Outcome.NO_MESSAGE) {
            return;
        }
        LOG.warn("{} is not in the snapshot: {}", worker, outcome);
        final SnapshotCause cause = SnapshotCause.of(outcome);
        if (cause != null) {
            counts.abandoned(cause);
        } else if (outcome == SlotSnapshot.Outcome.FAILED) {
            counts.failed();
        }
    }

    /** What the store is called in messages. */
    @Override
    public String toString() {
        return storeName;
    }

    /** What became of snapshots so far. */
    SnapshotStatus status() {
        return counts.status();
    }

    /** Gives the lock back; where the store throws, that is logged. */
    @Override
    public void close() {
        try {
            store.close();
        } catch (Throwable t) {
            LOG.error("{} could not be closed", storeName, t);
        }
    }
}
