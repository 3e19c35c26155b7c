package io.kvasir.pipeline.snapshot;

import io.kvasir.pipeline.source.RemovalRule;
import io.kvasir.pipeline.source.StreamMemory;

import java.io.IOException;
import java.io.OutputStream;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.util.zip.CRC32C;

/**
 * Writes one snapshot: {@link #beginWorker}, {@link #records} and {@link #endWorker} for each
 * worker, then {@link #end}. A worker that is begun and not ended is not in the snapshot. One
 * thread.
 */
public final class SnapshotWriter {
    private final OutputStream out;
    private final int blockSize;
    private final long hashSeed;
    private final CRC32C crc = new CRC32C();
    private int worker = ChunkDescriptor.NO_WORKER;
    private int workers;
    private int chunks;
    private long position;
    private long bytes;

    /**
     * Begins a snapshot.
     *
     * @param out where to; not closed here
     * @param blockSize tokens per block
     * @param hashSeed seed of the local hashes
     * @param takenMs time of the snapshot, in ms since 1970; for people
     * @throws IOException if it cannot be written
     */
    public SnapshotWriter(OutputStream out, int blockSize, long hashSeed, long takenMs)
            throws IOException {
        this.out = out;
        this.blockSize = blockSize;
        this.hashSeed = hashSeed;
        final ByteBuffer payload = buffer(Long.BYTES).putLong(takenMs);
        chunk(ChunkDescriptor.BEGIN, ChunkDescriptor.NO_WORKER, bytesOf(payload));
    }

    private static ByteBuffer buffer(int length) {
        return ByteBuffer.allocate(length).order(ByteOrder.LITTLE_ENDIAN);
    }

    private static byte[] bytesOf(ByteBuffer full) {
        final byte[] bytes = new byte[full.capacity()];
        full.get(0, bytes);
        return bytes;
    }

    /**
     * Begins a worker.
     *
     * @throws IOException if it cannot be written
     */
    public void beginWorker(String name, int dpRank, SlotMark mark) throws IOException {
        worker++;
        chunks = 0;
        position = mark.position();
        final byte[] nameBytes = name.getBytes(StandardCharsets.UTF_8);
        final ByteBuffer payload =
                buffer(WorkerDescriptor.NAME_OFFSET + nameBytes.length)
                        .putInt(dpRank)
                        .putInt(blockSize)
                        .putLong(hashSeed)
                        .putLong(mark.sequence())
                        .putLong(mark.content())
                        .putLong(mark.heldBlocks())
                        .putLong(mark.missingBlocks())
                        .putLong(mark.turnover())
                        .putInt(mark.complete() ? WorkerDescriptor.COMPLETE : 0)
                        .put(nameBytes);
        chunk(ChunkDescriptor.WORKER, worker, bytesOf(payload));
    }

    /**
     * Writes records of the worker.
     *
     * @param records as {@link SlotRecords} makes them
     * @throws IOException if they cannot be written
     */
    public void records(byte[] records) throws IOException {
        chunk(ChunkDescriptor.RECORDS, worker, records);
        chunks++;
    }

    /**
     * Ends the worker: from now on it is in the snapshot.
     *
     * @param memory what its stream has learned, not before the message of its mark
     * @throws IOException if it cannot be written
     */
    public void endWorker(StreamMemory memory) throws IOException {
        endWorker(memory, 0);
    }

    /**
     * The same where it is known how old that is.
     *
     * @param memory what its stream has learned, not before the message of its mark
     * @param followedMs when a router last followed it, in ms since 1970; 0 where that is not known
     * @throws IOException if it cannot be written
     */
    public void endWorker(StreamMemory memory, long followedMs) throws IOException {
        if (position > 0 || followedMs > 0) {
            final ByteBuffer at =
                    buffer(WorkerDescriptor.POSITION_LENGTH).putLong(position).putLong(followedMs);
            chunk(ChunkDescriptor.POSITION, worker, bytesOf(at));
        }
        final long[] seeds = memory.decoder().chainSeeds();
        final ByteBuffer payload =
                buffer(WorkerDescriptor.SEEDS_OFFSET + seeds.length * Long.BYTES)
                        .putInt(chunks)
                        .putInt(
                                (memory.removals() == RemovalRule.LAST_COPY
                                                ? WorkerDescriptor.LAST_COPY
                                                : 0)
                                        | (memory.decoder().eagle() ? WorkerDescriptor.EAGLE : 0))
                        .putLong(memory.decoder().mainGroup());
        payload.asLongBuffer().put(seeds);
        chunk(ChunkDescriptor.WORKER_END, worker, bytesOf(payload));
        workers++;
    }

    /**
     * Ends the snapshot.
     *
     * @throws IOException if it cannot be written
     */
    public void end() throws IOException {
        final ByteBuffer payload = buffer(Integer.BYTES).putInt(workers);
        chunk(ChunkDescriptor.END, ChunkDescriptor.NO_WORKER, bytesOf(payload));
    }

    /** Bytes written. */
    public long bytes() {
        return bytes;
    }

    /** Workers that are in the snapshot. */
    public int workers() {
        return workers;
    }

    private void chunk(byte type, int of, byte[] payload) throws IOException {
        if (payload.length > ChunkDescriptor.MAX_LENGTH) {
            throw new IllegalArgumentException("chunk is too long: length=" + payload.length);
        }
        final byte[] header = new byte[ChunkDescriptor.HEADER_LENGTH];
        final ByteBuffer fields =
                ByteBuffer.wrap(header)
                        .order(ByteOrder.LITTLE_ENDIAN)
                        .putInt(ChunkDescriptor.MAGIC)
                        .put(type)
                        .put(ChunkDescriptor.VERSION)
                        .putShort((short) 0)
                        .putInt(of)
                        .putInt(payload.length)
                        .putInt(crcOf(payload, payload.length));
        fields.putInt(crcOf(header, ChunkDescriptor.HEADER_CRC_OFFSET));
        out.write(header);
        out.write(payload);
        bytes += ChunkDescriptor.HEADER_LENGTH + payload.length;
    }

    private int crcOf(byte[] of, int length) {
        crc.reset();
        crc.update(of, 0, length);
        return (int) crc.getValue();
    }
}
