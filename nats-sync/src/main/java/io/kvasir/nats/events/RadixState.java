package io.kvasir.nats.events;

import io.kvasir.core.memory.ClosedException;
import io.kvasir.pipeline.events.IndexPipeline;
import io.kvasir.router.EventPlaneWorker;

import java.io.IOException;
import java.nio.BufferUnderflowException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;

/**
 * What the object {@value #OBJECT} of other routers (0.5 to 1.3) has: stores, parents before their
 * children, without the numbers of events. Immutable.
 *
 * <pre>
 *   u64 entries, then each
 *   u64 worker | u64 event | u32 kind, 0 = stored | parent: u8 0, or u8 1 and u64
 *              | start: u8 0, or u8 1 and u32 (since 1.2)
 *              | u64 blocks, then each  u64 engine hash | u64 local hash | objects: u8 0 (later versions)
 *              | u32 rank
 * </pre>
 *
 * All numbers little-endian. The versions have no mark: what can be read to the last byte is it.
 */
final class RadixState {
    /** Name of the object. */
    static final String OBJECT = "radix-state";

    private static final int STORED = 0;
    private static final int ENTRY_BYTES = 8 + 8 + 4 + 1 + 8 + 4; // at least
    private static final long PAUSE_NS = TimeUnit.MICROSECONDS.toNanos(200);

    /** What an entry has beside what the first version has. */
    private enum Version {
        FIRST(false, false),
        OBJECTS(false, true),
        START(true, true);

        private final boolean start;
        private final boolean objects;

        Version(boolean start, boolean objects) {
            this.start = start;
            this.objects = objects;
        }
    }

    /** A chain of blocks: each is the parent of the next. */
    private static final class Run {
        private final boolean root;
        private final long parent;
        private final long[] engineHashes;
        private final long[] localHashes;

        Run(boolean root, long parent, int count) {
            this.root = root;
            this.parent = parent;
            engineHashes = new long[count];
            localHashes = new long[count];
        }
    }

    private final Map<EventPlaneWorker, List<Run>> workers;

    private RadixState(Map<EventPlaneWorker, List<Run>> workers) {
        this.workers = workers;
    }

    /**
     * Reads the object.
     *
     * @throws IOException if it has no form that is known
     */
    static RadixState read(byte[] object) throws IOException {
        for (Version version : Version.values()) {
            final Map<EventPlaneWorker, List<Run>> workers = readOrNull(object, version);
            if (workers != null) {
                return new RadixState(workers);
            }
        }
        throw new IOException(object.length + " bytes of " + OBJECT + " have no known form");
    }

    private static Map<EventPlaneWorker, List<Run>> readOrNull(byte[] object, Version version) {
        final ByteBuffer in = ByteBuffer.wrap(object).order(ByteOrder.LITTLE_ENDIAN);
        final Map<EventPlaneWorker, List<Run>> workers = new HashMap<>();
        try {
            final long entries = in.getLong();
            if (entries < 0 || entries > in.remaining() / ENTRY_BYTES) {
                return null;
            }
            for (long i = 0; i < entries; i++) {
                if (!entry(in, version, workers)) {
                    return null;
                }
            }
        } catch (BufferUnderflowException e) {
            return null;
        }
        return in.hasRemaining() ? null : workers;
    }

    private static boolean entry(
            ByteBuffer in, Version version, Map<EventPlaneWorker, List<Run>> workers) {
        final long worker = in.getLong();
        in.getLong(); // made up by the dump
        if (in.getInt() != STORED) {
            return false;
        }
        final byte hasParent = in.get();
        final long parent = hasParent == 1 ? in.getLong() : 0;
        final byte hasStart = version.start ? in.get() : 0;
        if (hasStart == 1) {
            in.getInt();
        }
        final long count = in.getLong();
        if ((hasParent | hasStart) >>> 1 != 0 || count < 0 || count > in.remaining() / 16) {
            return false;
        }
        final Run run = new Run(hasParent == 0, parent, (int) count);
        for (int block = 0; block < count; block++) {
            run.engineHashes[block] = in.getLong();
            run.localHashes[block] = in.getLong();
            if (version.objects && in.get() != 0) {
                return false; // of pictures, which no dump of these versions had
            }
        }
        final int rank = in.getInt();
        if (rank < 0) {
            return false;
        }
        workers.computeIfAbsent(new EventPlaneWorker(worker, rank), _ -> new ArrayList<>())
                .add(run);
        return true;
    }

    /** How many workers and ranks it has. */
    int workers() {
        return workers.size();
    }

    /**
     * Loads what it has of a worker, before the events of its stream. Waits while the ring is full.
     *
     * @return blocks that were passed on
     * @throws ClosedException if the pipeline is closed
     * @throws InterruptedException if the waiting thread is interrupted
     */
    long load(EventPlaneWorker worker, int slot, IndexPipeline pipeline)
            throws InterruptedException {
        long blocks = 0;
        for (Run run : workers.getOrDefault(worker, List.of())) {
            while (!pipeline.loadBlocks(
                    slot,
                    run.root,
                    run.parent,
                    run.engineHashes,
                    run.localHashes,
                    run.engineHashes.length)) {
                LockSupport.parkNanos(PAUSE_NS);
                if (Thread.interrupted()) {
                    throw new InterruptedException();
                }
            }
            blocks += run.engineHashes.length;
        }
        return blocks;
    }
}
