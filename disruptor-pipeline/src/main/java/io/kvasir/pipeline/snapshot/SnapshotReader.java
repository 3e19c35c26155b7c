package io.kvasir.pipeline.snapshot;

import io.kvasir.pipeline.source.RemovalRule;
import io.kvasir.pipeline.source.StreamMemory;
import io.kvasir.pipeline.wire.DecoderMemory;

import java.io.EOFException;
import java.io.IOException;
import java.io.InputStream;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;

/**
 * Reads a snapshot, whatever became of its bytes: finds every worker whose chunks are all whole,
 * and says of the others what is wrong. Nothing is thrown for any bytes. One thread.
 */
public final class SnapshotReader {
    /**
     * What a snapshot has.
     *
     * @param workers those that are whole, in the order of the snapshot
     * @param problems what is wrong with the rest; empty if all of it is whole
     * @param takenMs when it was taken, in ms since 1970; 0 where that cannot be read
     */
    public record Contents(
            List<WorkerSection> workers, List<SnapshotProblem> problems, long takenMs) {
        /**
         * Those that fit a block size and a seed of local hashes.
         *
         * @return the workers that do; a problem for each other one
         */
        public Contents fitting(int blockSize, long hashSeed) {
            final List<WorkerSection> fit = new ArrayList<>();
            final List<SnapshotProblem> all = new ArrayList<>(problems);
            for (WorkerSection worker : workers) {
                if (worker.blockSize() != blockSize) {
                    all.add(
                            new SnapshotProblem(
                                    SnapshotProblem.Kind.WRONG_BLOCK_SIZE,
                                    worker.label()
                                            + " has blocks of "
                                            + worker.blockSize()
                                            + " tokens, block-size is "
                                            + blockSize));
                } else if (worker.hashSeed() != hashSeed) {
                    all.add(
                            new SnapshotProblem(
                                    SnapshotProblem.Kind.WRONG_SEED,
                                    worker.label()
                                            + " has local hashes of another hash-seed than is"
                                            + " used here"));
                } else {
                    fit.add(worker);
                }
            }
            return new Contents(List.copyOf(fit), List.copyOf(all), takenMs);
        }
    }

    private final ChunkInput in;
    private final List<WorkerSection> whole = new ArrayList<>();
    private final List<SnapshotProblem> problems = new ArrayList<>();
    private WorkerSection open; // begun and not ended; its memory is not known yet
    private int openNumber = ChunkDescriptor.NO_WORKER;
    private boolean openDamaged;
    private int openChunks;
    private long openPosition;
    private long openFollowedMs;
    private boolean ended;
    private long takenMs;

    private SnapshotReader(InputStream from) {
        in = new ChunkInput(from, 0);
    }

    /**
     * Reads all chunks.
     *
     * @param snapshot its bytes; not closed here
     * @throws IOException if they cannot be read
     */
    public static Contents scan(InputStream snapshot) throws IOException {
        final SnapshotReader reader = new SnapshotReader(snapshot);
        reader.scan();
        return new Contents(
                List.copyOf(reader.whole), List.copyOf(reader.problems), reader.takenMs);
    }

    private void scan() throws IOException {
        while (true) {
            switch (in.next()) {
                case CHUNK -> chunk();
                case DAMAGED -> damaged();
                case NO_CHUNK -> {
                    openDamaged = true;
                    problem(SnapshotProblem.Kind.CORRUPTED, "no chunk" + at());
                }
                case FUTURE -> {
                    problem(
                            SnapshotProblem.Kind.FUTURE_VERSION,
                            "version "
                                    + in.version()
                                    + at()
                                    + "; up to "
                                    + ChunkDescriptor.VERSION
                                    + " is read here");
                    return;
                }
                case TRUNCATED -> {
                    openLost(SnapshotProblem.Kind.TRUNCATED);
                    problem(SnapshotProblem.Kind.TRUNCATED, "the snapshot ends" + at());
                    return;
                }
                case END -> {
                    openLost(SnapshotProblem.Kind.TRUNCATED);
                    if (!ended) {
                        problem(SnapshotProblem.Kind.TRUNCATED, "the last chunk is not there");
                    }
                    return;
                }
            }
        }
    }

    private String at() {
        return " at byte " + in.chunkOffset();
    }

    private void problem(SnapshotProblem.Kind kind, String what) {
        problems.add(new SnapshotProblem(kind, what));
    }

    private void chunk() {
        switch (in.type()) {
            case ChunkDescriptor.BEGIN -> takenMs = time(in.payload());
            case ChunkDescriptor.WORKER -> begin();
            case ChunkDescriptor.RECORDS -> openChunks += isOfOpen() ? 1 : 0;
            case ChunkDescriptor.POSITION -> position();
            case ChunkDescriptor.WORKER_END -> end();
            case ChunkDescriptor.END -> ended = true;
            default -> {} // what a later version of no other number has added
        }
    }

    private static long time(byte[] payload) {
        return payload.length < Long.BYTES
                ? 0
                : ByteBuffer.wrap(payload).order(ByteOrder.LITTLE_ENDIAN).getLong();
    }

    private boolean isOfOpen() {
        return in.worker() == openNumber;
    }

    private void damaged() {
        openDamaged = true;
        if (in.type() == ChunkDescriptor.WORKER) {
            openLost(SnapshotProblem.Kind.TRUNCATED);
            problem(SnapshotProblem.Kind.CORRUPTED, "worker number " + in.worker() + at());
        } else if (!isOfOpen() || open == null) {
            problem(SnapshotProblem.Kind.CORRUPTED, "chunk" + at());
        }
    }

    private void begin() {
        openLost(SnapshotProblem.Kind.TRUNCATED);
        final byte[] payload = in.payload();
        if (payload.length < WorkerDescriptor.NAME_OFFSET) {
            problem(SnapshotProblem.Kind.CORRUPTED, "worker number " + in.worker() + at());
            return;
        }
        final ByteBuffer bytes = ByteBuffer.wrap(payload).order(ByteOrder.LITTLE_ENDIAN);
        final SlotMark mark =
                new SlotMark(
                        bytes.getLong(WorkerDescriptor.SEQUENCE_OFFSET),
                        bytes.getLong(WorkerDescriptor.CONTENT_OFFSET),
                        (bytes.getInt(WorkerDescriptor.FLAGS_OFFSET) & WorkerDescriptor.COMPLETE)
                                != 0,
                        bytes.getLong(WorkerDescriptor.HELD_OFFSET),
                        bytes.getLong(WorkerDescriptor.MISSING_OFFSET),
                        bytes.getLong(WorkerDescriptor.TURNOVER_OFFSET));
        open =
                new WorkerSection(
                        new String(
                                payload,
                                WorkerDescriptor.NAME_OFFSET,
                                payload.length - WorkerDescriptor.NAME_OFFSET,
                                StandardCharsets.UTF_8),
                        bytes.getInt(WorkerDescriptor.RANK_OFFSET),
                        bytes.getInt(WorkerDescriptor.BLOCK_SIZE_OFFSET),
                        bytes.getLong(WorkerDescriptor.SEED_OFFSET),
                        mark,
                        new StreamMemory(RemovalRule.PHYSICAL, DecoderMemory.NONE),
                        in.chunkOffset(),
                        0,
                        0);
        openNumber = in.worker();
        openDamaged = mark.sequence() < 0;
        openChunks = 0;
        openPosition = 0;
        openFollowedMs = 0;
    }

    private void position() {
        final byte[] payload = in.payload();
        if (isOfOpen() && payload.length >= WorkerDescriptor.POSITION_LENGTH) {
            final ByteBuffer bytes = ByteBuffer.wrap(payload).order(ByteOrder.LITTLE_ENDIAN);
            openPosition = bytes.getLong(WorkerDescriptor.POSITION_OFFSET);
            openFollowedMs = bytes.getLong(WorkerDescriptor.FOLLOWED_OFFSET);
        }
    }

    private void end() {
        final byte[] payload = in.payload();
        if (open == null || !isOfOpen()) {
            return; // its beginning is damaged, which was said
        }
        final ByteBuffer bytes = ByteBuffer.wrap(payload).order(ByteOrder.LITTLE_ENDIAN);
        if (openDamaged
                || payload.length < WorkerDescriptor.SEEDS_OFFSET
                || (payload.length - WorkerDescriptor.SEEDS_OFFSET) % (2 * Long.BYTES) != 0
                || bytes.getInt(WorkerDescriptor.CHUNKS_OFFSET) != openChunks) {
            openLost(SnapshotProblem.Kind.CORRUPTED);
            return;
        }
        final int flags = bytes.getInt(WorkerDescriptor.END_FLAGS_OFFSET);
        final long[] seeds =
                new long[(payload.length - WorkerDescriptor.SEEDS_OFFSET) / Long.BYTES];
        bytes.position(WorkerDescriptor.SEEDS_OFFSET)
                .slice()
                .order(ByteOrder.LITTLE_ENDIAN)
                .asLongBuffer()
                .get(seeds);
        whole.add(
                new WorkerSection(
                        open.name(),
                        open.dpRank(),
                        open.blockSize(),
                        open.hashSeed(),
                        open.mark().withPosition(openPosition),
                        new StreamMemory(
                                (flags & WorkerDescriptor.LAST_COPY) != 0
                                        ? RemovalRule.LAST_COPY
                                        : RemovalRule.PHYSICAL,
                                new DecoderMemory(
                                        bytes.getLong(WorkerDescriptor.MAIN_GROUP_OFFSET),
                                        (flags & WorkerDescriptor.EAGLE) != 0,
                                        seeds)),
                        open.offset(),
                        openChunks,
                        openFollowedMs));
        open = null;
        openNumber = ChunkDescriptor.NO_WORKER;
    }

    /** Says that the worker whose chunks were being read is not whole. */
    private void openLost(SnapshotProblem.Kind kind) {
        if (open != null) {
            problem(
                    openDamaged ? SnapshotProblem.Kind.CORRUPTED : kind,
                    "the records of " + open.label());
            open = null;
            openNumber = ChunkDescriptor.NO_WORKER;
        }
    }

    /** Passes over what a later version of no other number has added. */
    private static ChunkInput.Found nextKnown(ChunkInput in) throws IOException {
        ChunkInput.Found found = in.next();
        while (found == ChunkInput.Found.CHUNK && in.type() > ChunkDescriptor.LAST_TYPE) {
            found = in.next();
        }
        return found;
    }

    /** Takes the chunks of one worker. */
    @FunctionalInterface
    public interface ChunkVisitor {
        /**
         * Called for each chunk of records, in order.
         *
         * @param records the visitor's from now on
         * @return false to stop
         * @throws InterruptedException if the visitor waits and is interrupted
         */
        boolean records(byte[] records) throws InterruptedException;
    }

    /**
     * Reads the records of one worker again.
     *
     * @param fromWorker the bytes of the snapshot from the {@link WorkerSection#offset} on
     * @param visitor takes them
     * @return false if the visitor has stopped
     * @throws IOException if they cannot be read, or are not those that were scanned
     * @throws InterruptedException if the visitor was interrupted
     */
    public static boolean read(InputStream fromWorker, WorkerSection worker, ChunkVisitor visitor)
            throws IOException, InterruptedException {
        final ChunkInput in = new ChunkInput(fromWorker, worker.offset());
        for (int chunk = -1; chunk < worker.chunks(); chunk++) {
            final byte wanted = chunk < 0 ? ChunkDescriptor.WORKER : ChunkDescriptor.RECORDS;
            if (nextKnown(in) != ChunkInput.Found.CHUNK || in.type() != wanted) {
                throw new EOFException(
                        "the records of " + worker.label() + " have changed since they were read");
            }
            if (chunk >= 0 && !visitor.records(in.payload())) {
                return false;
            }
        }
        return true;
    }
}
