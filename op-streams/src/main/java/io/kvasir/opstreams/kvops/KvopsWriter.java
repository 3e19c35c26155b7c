package io.kvasir.opstreams.kvops;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.channels.FileChannel;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;

/**
 * Writes a KVOPS v1 file: records in the order of the calls, the header at the end. A file that was
 * not closed has no header and is refused by readers. One thread.
 */
public final class KvopsWriter implements AutoCloseable {
    private static final int BUFFER_LENGTH = 1 << 20;

    private final FileChannel channel;
    private final ByteBuffer buffer =
            ByteBuffer.allocateDirect(BUFFER_LENGTH).order(ByteOrder.LITTLE_ENDIAN);
    private final int blockTokens;
    private final int workers;
    private final long capacity;
    private final long seed;
    private final long flags;
    private final long[] records = new long[KvopsDescriptor.DECODE_BLOCK + 1];
    private final long[] blocks = new long[KvopsDescriptor.DECODE_BLOCK + 1];
    private int maxQuery;
    private int maxEvent;
    private boolean closed;

    /**
     * Creates or overwrites a file.
     *
     * @param path the file
     * @param blockTokens tokens per block
     * @param workers workers; their numbers are 0..workers-1
     * @param capacity blocks that one worker's cache holds
     * @param seed of the generator
     * @param flags sum of the flags of {@link KvopsHeader}
     * @throws IOException if it cannot be written
     */
    public KvopsWriter(
            Path path, int blockTokens, int workers, long capacity, long seed, long flags)
            throws IOException {
        this.blockTokens = blockTokens;
        this.workers = workers;
        this.capacity = capacity;
        this.seed = seed;
        this.flags = flags;
        this.channel =
                FileChannel.open(
                        path,
                        StandardOpenOption.CREATE,
                        StandardOpenOption.TRUNCATE_EXISTING,
                        StandardOpenOption.WRITE);
        buffer.put(new byte[KvopsDescriptor.HEADER_LENGTH]); // its place
    }

    /**
     * Writes a query.
     *
     * @param request number of the request
     * @param timeUs stream time
     * @param checksum of its answer, see {@link AnswerChecksum}
     * @param localHashes local hashes of the prompt's blocks, [count]
     * @param count blocks
     * @throws IOException if it cannot be written
     */
    public void query(int request, long timeUs, long checksum, long[] localHashes, int count)
            throws IOException {
        head(KvopsDescriptor.QUERY, 0, count, 0, request, checksum, timeUs);
        for (int i = 0; i < count; i++) {
            word(localHashes[i]);
        }
        maxQuery = Math.max(maxQuery, count);
    }

    /**
     * Writes a store whose run starts a prompt.
     *
     * @param worker number of the worker
     * @param request number of the request
     * @param timeUs stream time
     * @param names the worker's names of the blocks, [count]
     * @param localHashes local hashes of the blocks, [count]
     * @param count blocks
     * @throws IOException if it cannot be written
     */
    public void storedRoot(
            int worker, int request, long timeUs, long[] names, long[] localHashes, int count)
            throws IOException {
        head(KvopsDescriptor.STORED, 0, count, worker, request, 0, timeUs);
        run(names, localHashes, count);
    }

    /**
     * Writes a store whose run follows a block.
     *
     * @param worker number of the worker
     * @param request number of the request
     * @param timeUs stream time
     * @param parent the worker's name of the block before the run
     * @param names the worker's names of the blocks, [count]
     * @param localHashes local hashes of the blocks, [count]
     * @param count blocks
     * @throws IOException if it cannot be written
     */
    public void stored(
            int worker,
            int request,
            long timeUs,
            long parent,
            long[] names,
            long[] localHashes,
            int count)
            throws IOException {
        head(
                KvopsDescriptor.STORED,
                KvopsDescriptor.HAS_PARENT,
                count,
                worker,
                request,
                parent,
                timeUs);
        run(names, localHashes, count);
    }

    private void run(long[] names, long[] localHashes, int count) throws IOException {
        for (int i = 0; i < count; i++) {
            word(names[i]);
            word(localHashes[i]);
        }
        maxEvent = Math.max(maxEvent, count);
    }

    /**
     * Writes a removal.
     *
     * @param worker number of the worker
     * @param timeUs stream time
     * @param names the worker's names of the blocks, [count]
     * @param count blocks
     * @throws IOException if it cannot be written
     */
    public void removed(int worker, long timeUs, long[] names, int count) throws IOException {
        head(KvopsDescriptor.REMOVED, 0, count, worker, KvopsDescriptor.NO_REQUEST, 0, timeUs);
        for (int i = 0; i < count; i++) {
            word(names[i]);
        }
        maxEvent = Math.max(maxEvent, count);
    }

    /**
     * Writes that a worker holds nothing any more.
     *
     * @throws IOException if it cannot be written
     */
    public void cleared(int worker, long timeUs) throws IOException {
        head(KvopsDescriptor.CLEARED, 0, 0, worker, 0, 0, timeUs);
    }

    /**
     * Writes where a request went; follows its query.
     *
     * @param overlap blocks of the prompt that the worker held
     * @param count blocks of the prompt
     * @throws IOException if it cannot be written
     */
    public void routed(int worker, int request, long timeUs, int overlap, int count)
            throws IOException {
        final long a = (long) count << Integer.SIZE | overlap;
        head(KvopsDescriptor.ROUTED, 0, 0, worker, request, a, timeUs);
    }

    /**
     * Writes that a request's prompt is computed.
     *
     * @throws IOException if it cannot be written
     */
    public void prefillDone(int worker, int request, long timeUs) throws IOException {
        head(KvopsDescriptor.PREFILL_DONE, 0, 0, worker, request, 0, timeUs);
    }

    /**
     * Writes that a request ended.
     *
     * @param promptBlocks blocks of its prompt
     * @throws IOException if it cannot be written
     */
    public void freed(int worker, int request, long timeUs, int promptBlocks) throws IOException {
        head(KvopsDescriptor.FREE, 0, 0, worker, request, promptBlocks, timeUs);
    }

    /**
     * Writes that a request's output filled one more block.
     *
     * @throws IOException if it cannot be written
     */
    public void decodeBlock(int worker, int request, long timeUs) throws IOException {
        head(KvopsDescriptor.DECODE_BLOCK, 0, 0, worker, request, 0, timeUs);
    }

    private void head(
            byte op, int recordFlags, int count, int worker, int request, long a, long timeUs)
            throws IOException {
        room(KvopsDescriptor.HEAD_LENGTH);
        buffer.put(op)
                .put((byte) recordFlags)
                .putShort((short) 0)
                .putInt(count)
                .putInt(worker)
                .putInt(request)
                .putLong(a)
                .putLong(timeUs);
        records[op]++;
        blocks[op] += count;
    }

    private void word(long value) throws IOException {
        room(Long.BYTES);
        buffer.putLong(value);
    }

    private void room(int length) throws IOException {
        if (buffer.remaining() < length) {
            flush();
        }
    }

    private void flush() throws IOException {
        buffer.flip();
        while (buffer.hasRemaining()) {
            channel.write(buffer);
        }
        buffer.clear();
    }

    /** What the header says, from what was written so far. */
    public KvopsHeader header() {
        long all = 0;
        for (long some : records) {
            all += some;
        }
        return new KvopsHeader(
                blockTokens,
                workers,
                capacity,
                all,
                records[KvopsDescriptor.QUERY],
                records[KvopsDescriptor.STORED],
                records[KvopsDescriptor.REMOVED],
                blocks[KvopsDescriptor.QUERY],
                blocks[KvopsDescriptor.STORED],
                blocks[KvopsDescriptor.REMOVED],
                records[KvopsDescriptor.ROUTED],
                seed,
                flags,
                maxQuery,
                maxEvent);
    }

    /** Writes the header and closes the file; a second call does nothing. */
    @Override
    public void close() throws IOException {
        if (closed) {
            return;
        }
        closed = true;
        try (channel) {
            flush();
            channel.position(0);
            buffer.put(headerBytes(header()));
            flush();
        }
    }

    private static byte[] headerBytes(KvopsHeader h) {
        return ByteBuffer.allocate(KvopsDescriptor.HEADER_LENGTH)
                .order(ByteOrder.LITTLE_ENDIAN)
                .putLong(KvopsDescriptor.MAGIC)
                .putInt(KvopsDescriptor.VERSION)
                .putInt(KvopsDescriptor.HEADER_LENGTH)
                .putInt(h.blockTokens())
                .putInt(h.workers())
                .putLong(h.capacity())
                .putLong(h.records())
                .putLong(h.queries())
                .putLong(h.stored())
                .putLong(h.removed())
                .putLong(h.queryBlocks())
                .putLong(h.storedBlocks())
                .putLong(h.removedBlocks())
                .putLong(h.routed())
                .putLong(h.seed())
                .putLong(h.flags())
                .putInt(h.maxQuery())
                .putInt(h.maxEvent())
                .array();
    }
}
