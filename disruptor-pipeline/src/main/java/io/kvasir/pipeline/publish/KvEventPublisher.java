package io.kvasir.pipeline.publish;

import io.kvasir.core.hash.BlockHasher;
import io.kvasir.core.index.CopyRule;
import io.kvasir.core.index.StorageTier;
import io.kvasir.pipeline.wire.ApplyListener;
import io.kvasir.pipeline.wire.KvBatch;

import java.io.IOException;
import java.util.Arrays;
import java.util.Objects;

/**
 * Publishes what one worker and rank has in its cache as router events, numbered from 1 without a
 * gap. Local hashes are made of the tokens, public ones.
 *
 * <p>An event that could not be published has used its number up: readers see a gap and know that
 * something is missing, or ask the {@link LocalIndexer} for it where there is one. Messages hold at
 * most {@value #MESSAGE_EVENTS} events and {@value #MESSAGE_BLOCKS} blocks, or as many as fit into
 * a message of the transport; longer stores and removals become several events.
 *
 * <p>Readers count a removal as the end of all copies of a block: an engine that holds several
 * announces the last one's removal only.
 *
 * <p>Any thread may call any method; a lock orders them. Waits as its transport does.
 */
public final class KvEventPublisher implements AutoCloseable {
    static final int MESSAGE_EVENTS = 128;
    static final int MESSAGE_BLOCKS = 8_192;

    /** Most bytes of what is around a message's events, in the longest of the forms. */
    private static final int MESSAGE_BYTES = 512;

    private static final int EVENT_BYTES = 256; // at most, without its blocks
    private static final int BLOCK_BYTES = 80; // at most

    private final long workerId;
    private final int dpRank;
    private final int blockSize;
    private final RouterEventTransport transport;
    private final LocalIndexer indexerOrNull; // null where nothing is remembered
    private final KvBatch message = new KvBatch();
    private long[] engineHashes = new long[0];
    private long[] localHashes = new long[0];
    private int messageBlocks;
    private long maxMessageBytes; // of all events of the message
    private long nextEventId = 1;
    private volatile boolean closed; // not under the lock, which a transport that waits holds

    /**
     * Creates a publisher whose first event has number 1.
     *
     * @param workerId the worker, 64 unsigned bits; another one in each life of the worker
     * @param dpRank its data-parallel rank
     * @param blockSize tokens per block
     * @param transport carries the events; closed with this publisher
     */
    public KvEventPublisher(
            long workerId, int dpRank, int blockSize, RouterEventTransport transport) {
        this(workerId, dpRank, blockSize, transport, null);
    }

    /**
     * Creates a publisher whose events are remembered for readers that miss some.
     *
     * @param blockSize tokens per block
     * @param transport carries the events; closed with this publisher
     * @param indexer remembers them, of this publisher alone
     */
    public KvEventPublisher(int blockSize, RouterEventTransport transport, LocalIndexer indexer) {
        this(indexer.workerId(), indexer.dpRank(), blockSize, transport, indexer);
    }

    private KvEventPublisher(
            long workerId,
            int dpRank,
            int blockSize,
            RouterEventTransport transport,
            LocalIndexer indexerOrNull) {
        if (dpRank < 0 || blockSize <= 0) {
            throw new IllegalArgumentException(
                    "dpRank="
                            + dpRank
                            + " must not be negative, blockSize="
                            + blockSize
                            + " must be positive");
        }
        this.workerId = workerId;
        this.dpRank = dpRank;
        this.blockSize = blockSize;
        this.transport = Objects.requireNonNull(transport);
        this.indexerOrNull = indexerOrNull;
    }

    /** The worker, 64 unsigned bits. */
    public long workerId() {
        return workerId;
    }

    /** The worker's data-parallel rank. */
    public int dpRank() {
        return dpRank;
    }

    /** Tokens per block. */
    public int blockSize() {
        return blockSize;
    }

    /** Number of the last event, 0 before the first. */
    public synchronized long lastEventId() {
        return nextEventId - 1;
    }

    /**
     * Publishes that consecutive blocks were stored.
     *
     * @param tokenIds tokens of all blocks, in order
     * @param numBlockTokens tokens of each block; null if all are whole. A block that is not whole
     *     ends the store: it and those after it are not announced
     * @param blockHashes the engine's own hash of each block
     * @param loraId number of the adapter, 0 for none
     * @param loraName name of the adapter, null or empty for none: it is what the hashes contain
     * @param parentHash hash of the block before the first one; null at the start of a prompt
     * @return number of the last event; that of the one before if no block is whole
     * @throws IllegalArgumentException if the counts do not fit each other, or an adapter has a
     *     number and no name
     * @throws IllegalStateException if the publisher is closed: nothing is published then, and no
     *     number used
     * @throws IOException if the event is not published
     */
    public synchronized long publishStored(
            int[] tokenIds,
            int[] numBlockTokens,
            long[] blockHashes,
            long loraId,
            String loraName,
            Long parentHash)
            throws IOException {
        checkOpen();
        final int count = wholeBlocks(numBlockTokens, blockHashes.length);
        if (tokenIds.length < (long) count * blockSize) {
            throw new IllegalArgumentException(
                    tokenIds.length + " tokens are less than " + count + " blocks of " + blockSize);
        }
        final boolean named = loraName != null && !loraName.isEmpty();
        if (loraId != 0 && !named) {
            throw new IllegalArgumentException(
                    "adapter " + loraId + " has no name, which the hashes of its blocks contain");
        }
        if (count == 0) {
            return lastEventId();
        }
        final long[] locals = new long[count];
        BlockHasher.localHashes(
                tokenIds,
                0,
                count * blockSize,
                blockSize,
                named
                        ? BlockHasher.seed(BlockHasher.BASE_SEED, loraName, null)
                        : BlockHasher.BASE_SEED,
                locals);
        begin();
        addStored(
                parentHash == null,
                parentHash == null ? 0 : parentHash,
                blockHashes,
                locals,
                count);
        flush();
        return lastEventId();
    }

    /** The same for whole blocks of no adapter. */
    public long publishStored(int[] tokenIds, long[] blockHashes, Long parentHash)
            throws IOException {
        return publishStored(tokenIds, null, blockHashes, 0, null, parentHash);
    }

    private int wholeBlocks(int[] numBlockTokens, int blocks) {
        if (numBlockTokens == null) {
            return blocks;
        }
        if (numBlockTokens.length != blocks) {
            throw new IllegalArgumentException(
                    numBlockTokens.length + " counts of tokens for " + blocks + " blocks");
        }
        int whole = 0;
        while (whole < blocks && numBlockTokens[whole] == blockSize) {
            whole++;
        }
        return whole;
    }

    /**
     * Publishes that blocks are not held any more, in no copy.
     *
     * @param blockHashes their hashes
     * @return number of the last event
     * @throws IllegalStateException if the publisher is closed: nothing is published then, and no
     *     number used
     * @throws IOException if the event is not published
     */
    public synchronized long publishRemoved(long... blockHashes) throws IOException {
        begin();
        addRemoved(blockHashes, blockHashes.length);
        flush();
        return lastEventId();
    }

    /**
     * Publishes that no block is held any more.
     *
     * @return number of the event
     * @throws IllegalStateException if the publisher is closed: nothing is published then, and no
     *     number used
     * @throws IOException if the event is not published
     */
    public synchronized long publishAllCleared() throws IOException {
        begin();
        message.addCleared();
        flush();
        return lastEventId();
    }

    /**
     * Publishes operations as events, in order.
     *
     * @param batch stores with public local hashes, removals of last copies, clears; of blocks on
     *     the device
     * @return number of the last event
     * @throws IllegalStateException if the publisher is closed: nothing is published then, and no
     *     number used
     * @throws IOException if an event is not published; those before it may be
     */
    public synchronized long publish(KvBatch batch) throws IOException {
        begin(batch.eagle());
        for (int at = batch.first(); at >= 0; at = batch.next(at)) {
            final int count = batch.count(at);
            if (batch.tier(at) != StorageTier.DEVICE) {
                throw new IllegalArgumentException(
                        "blocks on the device are published alone: tier=" + batch.tier(at));
            }
            switch (batch.kind(at)) {
                case STORED -> {
                    reserve(count);
                    batch.engineHashes(at, engineHashes);
                    batch.localHashes(at, localHashes);
                    addStored(batch.isRoot(at), batch.parent(at), engineHashes, localHashes, count);
                }
                case REMOVED -> {
                    reserve(count);
                    batch.engineHashes(at, engineHashes);
                    addRemoved(engineHashes, count);
                }
                case CLEARED -> {
                    flushIfFull(0);
                    message.addCleared();
                }
                case REMOVED_TO, REFILL, NAMED, TIER_CLEARED ->
                        throw new IllegalArgumentException(batch.kind(at) + " is no event");
            }
        }
        flush();
        return lastEventId();
    }

    /**
     * Uses a number up without an event: readers see that something is missing.
     *
     * @throws IllegalStateException if the publisher is closed: no number is used then
     */
    public synchronized void skipEvent() {
        checkOpen();
        if (indexerOrNull != null) {
            indexerOrNull.skip(nextEventId);
        }
        nextEventId++;
    }

    private void reserve(int count) {
        if (engineHashes.length < count) {
            engineHashes = new long[count];
            localHashes = new long[count];
        }
    }

    private void begin() {
        begin(false);
    }

    private void checkOpen() {
        if (closed) {
            throw new IllegalStateException("the publisher is closed");
        }
    }

    private void begin(boolean eagle) {
        checkOpen();
        reset(eagle);
    }

    private void reset(boolean eagle) {
        message.reset(0, KvBatch.NO_SEQUENCE, CopyRule.LAST_COPY, false, ApplyListener.NONE);
        messageBlocks = 0;
        maxMessageBytes = transport.maxMessageBytes() - MESSAGE_BYTES;
        if (eagle) {
            message.markEagle();
        }
    }

    private void addStored(boolean root, long parent, long[] names, long[] locals, int count)
            throws IOException {
        boolean atRoot = root;
        long before = parent;
        int part;
        for (int from = 0; from < count; from += part) {
            part = Math.min(maxBlocksOfEvent(), count - from);
            flushIfFull(part);
            message.addStored(
                    atRoot, before, part(names, from, part), part(locals, from, part), part);
            messageBlocks += part;
            atRoot = false;
            before = names[from + part - 1];
        }
    }

    private void addRemoved(long[] names, int count) throws IOException {
        int part;
        for (int from = 0; from < count; from += part) {
            part = Math.min(maxBlocksOfEvent(), count - from);
            flushIfFull(part);
            message.addRemoved(part(names, from, part), part);
            messageBlocks += part;
        }
    }

    /** At least 1, which a transport that can carry no such message then refuses. */
    private int maxBlocksOfEvent() {
        return Math.clamp((maxMessageBytes - EVENT_BYTES) / BLOCK_BYTES, 1, MESSAGE_BLOCKS);
    }

    private static long[] part(long[] values, int from, int count) {
        return from == 0 ? values : Arrays.copyOfRange(values, from, from + count);
    }

    private void flushIfFull(int blocks) throws IOException {
        final int events = message.operations();
        if (events == MESSAGE_EVENTS
                || (events > 0 && !isRoomFor(events + 1, messageBlocks + blocks))) {
            flush();
        }
    }

    private boolean isRoomFor(int events, int blocks) {
        return blocks <= MESSAGE_BLOCKS
                && (long) events * EVENT_BYTES + (long) blocks * BLOCK_BYTES <= maxMessageBytes;
    }

    private void flush() throws IOException {
        if (message.operations() > 0) {
            final long first = nextEventId;
            nextEventId += message.operations();
            if (indexerOrNull != null) {
                indexerOrNull.record(first, message); // first: a reader of an event may ask for it
            }
            transport.publish(workerId, dpRank, first, message);
            reset(message.eagle());
        }
    }

    /**
     * Closes the transport. A call that runs meanwhile ends as the transport ends it; later ones
     * are refused.
     */
    @Override
    public void close() {
        closed = true;
        transport.close();
    }
}
