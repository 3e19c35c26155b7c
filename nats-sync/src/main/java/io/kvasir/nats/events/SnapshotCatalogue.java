package io.kvasir.nats.events;

import io.kvasir.core.hash.BlockHasher;
import io.kvasir.pipeline.snapshot.SnapshotProblem;
import io.kvasir.pipeline.snapshot.SnapshotReader;
import io.kvasir.pipeline.snapshot.WorkerSection;
import io.kvasir.router.EventPlaneWorker;
import io.kvasir.router.spi.StateStore;

import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

import java.io.EOFException;
import java.io.IOException;
import java.io.InputStream;
import java.time.ZonedDateTime;
import java.util.ArrayList;
import java.util.EnumSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/**
 * What a store has of the workers of one stream: of each the newest section that is whole. The
 * snapshots are read from the newest one on, up to the first that is whole in all. Immutable.
 */
final class SnapshotCatalogue {
    private static final Logger LOG = LoggerFactory.getLogger(SnapshotCatalogue.class);

    /** Another router has written it for other settings: nothing is damaged. */
    private static final EnumSet<SnapshotProblem.Kind> FOREIGN =
            EnumSet.of(
                    SnapshotProblem.Kind.FUTURE_VERSION,
                    SnapshotProblem.Kind.WRONG_BLOCK_SIZE,
                    SnapshotProblem.Kind.WRONG_SEED);

    /** Where the records of a worker are. */
    record Found(SnapshotName object, WorkerSection section) {}

    private final SnapshotName newestOrNull;
    private final SnapshotName wholeOrNull;
    private final Map<EventPlaneWorker, Found> found;
    private final boolean foreign;
    private final long takenMs;

    private SnapshotCatalogue(
            SnapshotName newestOrNull,
            SnapshotName wholeOrNull,
            Map<EventPlaneWorker, Found> found,
            boolean foreign,
            long takenMs) {
        this.newestOrNull = newestOrNull;
        this.wholeOrNull = wholeOrNull;
        this.found = found;
        this.foreign = foreign;
        this.takenMs = takenMs;
    }

    /**
     * Names of a store's snapshots of a stream, the newest first.
     *
     * @param made when the stream was made
     */
    static List<SnapshotName> names(StateStore store, ZonedDateTime made) throws IOException {
        final List<SnapshotName> names = new ArrayList<>();
        for (String object : store.list()) {
            final SnapshotName name = SnapshotName.orNull(object);
            if (name != null && name.isOf(made)) {
                names.add(name);
            }
        }
        names.sort(SnapshotName.NEWEST_FIRST);
        return names;
    }

    /**
     * Reads what a store has.
     *
     * @param blockSize tokens per block of this router
     * @throws IOException if the store cannot be read; a snapshot that ends too soon is damaged
     */
    static SnapshotCatalogue read(StateStore store, ZonedDateTime made, int blockSize)
            throws IOException {
        final List<SnapshotName> names = names(store, made);
        final Map<EventPlaneWorker, Found> found = new LinkedHashMap<>();
        SnapshotName whole = null;
        boolean foreign = false;
        long takenMs = 0;
        for (SnapshotName name : names) {
            final SnapshotReader.Contents contents = contents(store, name, blockSize);
            for (SnapshotProblem problem : contents.problems()) {
                LOG.warn("{} in {}: {}; it is not used", name, store, problem);
                foreign |= FOREIGN.contains(problem.kind());
            }
            for (WorkerSection section : contents.workers()) {
                final EventPlaneWorker worker = workerOrNull(section);
                if (worker != null) {
                    found.putIfAbsent(worker, new Found(name, section));
                }
            }
            takenMs = Math.max(takenMs, contents.takenMs());
            if (contents.problems().isEmpty()) {
                whole = name;
                break;
            }
        }
        return new SnapshotCatalogue(
                names.isEmpty() ? null : names.getFirst(), whole, found, foreign, takenMs);
    }

    private static SnapshotReader.Contents contents(
            StateStore store, SnapshotName name, int blockSize) throws IOException {
        try (InputStream in = store.get(name.toString(), 0)) {
            if (in != null) {
                return SnapshotReader.scan(in).fitting(blockSize, BlockHasher.BASE_SEED);
            }
            return damaged("it was deleted meanwhile");
        } catch (EOFException e) {
            return damaged(String.valueOf(e.getMessage()));
        }
    }

    private static SnapshotReader.Contents damaged(String why) {
        return new SnapshotReader.Contents(
                List.of(), List.of(new SnapshotProblem(SnapshotProblem.Kind.TRUNCATED, why)), 0);
    }

    /** Name of a worker in a snapshot; its rank has a field of its own. */
    static String nameOf(EventPlaneWorker worker) {
        return Long.toUnsignedString(worker.workerId());
    }

    private static EventPlaneWorker workerOrNull(WorkerSection section) {
        try {
            return new EventPlaneWorker(Long.parseUnsignedLong(section.name()), section.dpRank());
        } catch (IllegalArgumentException e) {
            return null; // of no event plane
        }
    }

    /** The newest snapshot, damaged or not; null if there is none. */
    SnapshotName newestOrNull() {
        return newestOrNull;
    }

    /** The newest snapshot that is whole; null if there is none. */
    SnapshotName wholeOrNull() {
        return wholeOrNull;
    }

    /**
     * Number of the message after which the stream is to be read: where the newest snapshot is
     * whole, its own; else 0, so that all is read that the stream has.
     */
    long begin() {
        return wholeOrNull != null && wholeOrNull.equals(newestOrNull) ? wholeOrNull.sequence() : 0;
    }

    /** Whether some of it is for a router with other settings. */
    boolean isForeign() {
        return foreign;
    }

    /** When the newest was taken, in ms since 1970; 0 if that is not known. */
    long takenMs() {
        return takenMs;
    }

    /** What there is of a worker; null if nothing. */
    Found of(EventPlaneWorker worker) {
        return found.get(worker);
    }

    /** All workers. */
    Map<EventPlaneWorker, Found> all() {
        return found;
    }
}
