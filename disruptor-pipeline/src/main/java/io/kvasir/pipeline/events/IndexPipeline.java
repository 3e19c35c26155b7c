package io.kvasir.pipeline.events;

import io.kvasir.core.index.CopyRule;
import io.kvasir.core.index.HeldRunVisitor;
import io.kvasir.core.index.LowerTiers;
import io.kvasir.core.index.PrefixIndex;
import io.kvasir.core.index.StorageTier;
import io.kvasir.core.memory.ClosedException;
import io.kvasir.pipeline.ring.WriterRing;
import io.kvasir.pipeline.ring.WriterThread;
import io.kvasir.pipeline.source.EngineStream;
import io.kvasir.pipeline.source.EventSource;
import io.kvasir.pipeline.source.EventSources;
import io.kvasir.pipeline.source.PlanePosition;
import io.kvasir.pipeline.source.SourceConfig;
import io.kvasir.pipeline.source.StreamStart;
import io.kvasir.pipeline.wire.ApplyListener;
import io.kvasir.pipeline.wire.KvBatch;
import io.kvasir.pipeline.wire.KvEventSink;

import org.agrona.ErrorHandler;

import java.util.List;
import java.util.Objects;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicIntegerArray;
import java.util.concurrent.atomic.AtomicLong;
import java.util.function.IntUnaryOperator;

/**
 * Pipeline from event sources to the index: many sources, one ring, one writer thread. From its
 * construction on, that thread is the only one that may write the index.
 *
 * <p>One ring record is one engine message. A source that finds the ring full does not wait: the
 * message counts as missing and the source asks the engine for it again.
 *
 * <p>All methods may be called by any thread.
 */
public final class IndexPipeline implements AutoCloseable {
    private static final long VISIT_CHECK_MS = 100;
    private static final int LOAD_WORDS = 8; // of a batch beside its hashes

    private final PrefixIndex index;
    private final Set<StorageTier> tiers; // below the device that are indexed
    private final SpareBatches spares;
    private final WriterThread thread;
    private final WriterMailbox mailbox = new WriterMailbox();
    private final AtomicBoolean damageWaits = new AtomicBoolean(); // for the writer
    private final AtomicIntegerArray generations; // of the streams that are opened now
    private final IndexWriter writer;
    private final WriterRing<IndexCommand> ring;
    private final AtomicLong published = new AtomicLong();
    private final AtomicLong refused = new AtomicLong();
    private final EventSources sources;
    private final List<KeptSlot> keptSlots;
    private final PlanePosition keptPositionOrNull;
    private volatile boolean eagle;

    /**
     * Starts the writer thread.
     *
     * @param config sizes and times
     * @param index the index to write; not closed by this class. Its memory stays until the writer
     *     thread has ended
     * @throws io.kvasir.core.memory.ClosedException if the index is closed
     * @throws IllegalStateException if another pipeline writes the index
     */
    public IndexPipeline(IndexPipelineConfig config, PrefixIndex index) {
        this(config, index, _ -> {});
    }

    /**
     * Starts the writer thread.
     *
     * @param config sizes and times
     * @param index the index to write; not closed by this class. Its memory stays until the writer
     *     thread has ended
     * @param errors takes what goes wrong on the writer thread, beside the log
     * @throws io.kvasir.core.memory.ClosedException if the index is closed
     * @throws IllegalStateException if another pipeline writes the index
     */
    public IndexPipeline(IndexPipelineConfig config, PrefixIndex index, ErrorHandler errors) {
        this(config, index, null, errors);
    }

    /**
     * Starts the writer thread.
     *
     * @param config sizes and times
     * @param index the index to write; not closed by this class. Its memory stays until the writer
     *     thread has ended
     * @param lowerOrNull the tiers below the device, of that index, which the same thread writes;
     *     null where events of none are wanted
     * @param errors takes what goes wrong on the writer thread, beside the log
     * @throws io.kvasir.core.memory.ClosedException if the index is closed
     * @throws IllegalStateException if another pipeline writes the index
     */
    public IndexPipeline(
            IndexPipelineConfig config,
            PrefixIndex index,
            LowerTiers lowerOrNull,
            ErrorHandler errors) {
        this.tiers = lowerOrNull == null ? Set.of() : lowerOrNull.tiers();
        this.sources = new EventSources(config.zmq());
        this.index = index;
        this.spares = new SpareBatches(config.initialWords(), config.retainedWords());
        this.thread = new WriterThread("kvasir-index-writer", index.writer());
        try {
            this.generations = new AtomicIntegerArray(index.config().maxWorkerSlots());
            this.writer =
                    new IndexWriter(
                            index,
                            lowerOrNull,
                            spares,
                            thread,
                            mailbox,
                            config.snapshotBatches(),
                            errors);
            this.keptSlots = writer.keptSlots();
            this.keptPositionOrNull = writer.keptPosition();
            this.ring =
                    new WriterRing<>(
                            thread,
                            IndexCommand::new,
                            config.ringSize(),
                            mailbox.watchedBy(config.waitMode().strategy(), writer::work),
                            writer,
                            config.onDemand());
        } catch (Throwable t) {
            thread.abandon();
            throw t;
        }
    }

    /**
     * Opens a source that receives from a ZMQ publisher. Does not wait for a connection: what
     * cannot be reached, or whose name cannot be resolved, is tried again and named in the source's
     * status. Sources with the same address share one connection or one bound address; they are
     * distinguished by topic (the longest prefix that fits) and then by the rank in each batch.
     *
     * @param source where to connect to, or what to bind
     * @return the running source; closed with this pipeline at the latest
     * @throws IllegalArgumentException if an address is none, or cannot be bound
     * @throws ClosedException if the pipeline is closed
     */
    public EventSource openZmq(SourceConfig source) {
        return openZmq(source, null);
    }

    /**
     * The same for a slot that was {@link #load loaded}: its stream continues where the snapshot
     * ends, and finds out first whether the engine is the same.
     *
     * @param source where to connect to, or what to bind
     * @param startOrNull how far the snapshot was; null for a slot that was not loaded
     * @return the running source
     * @throws IllegalArgumentException if an address is none, or cannot be bound
     * @throws ClosedException if the pipeline is closed
     */
    public synchronized EventSource openZmq(SourceConfig source, StreamStart startOrNull) {
        checkOpen();
        recall(startOrNull);
        return sources.openZmq(source.withTiers(tiers), sink(source.slot()), startOrNull);
    }

    /**
     * The same for a slot with blocks that were {@linkplain #loadBlocks loaded}: nothing says how
     * far their index was in the engine's messages. They are cleared before anything else is
     * applied where there is a replay endpoint, or where the first message that comes has the
     * number 0, as the engine has begun anew then; else they stay and events go on from there.
     *
     * @param source where to connect to, or what to bind
     * @return the running source
     * @throws IllegalArgumentException if an address is none, or cannot be bound
     * @throws ClosedException if the pipeline is closed
     */
    public synchronized EventSource openZmqOnLoaded(SourceConfig source) {
        checkOpen();
        return sources.openZmqOnLoaded(source.withTiers(tiers), sink(source.slot()));
    }

    /**
     * Checks the addresses of a source, which is not opened; one to bind is bound for a moment.
     *
     * @param source what is to be opened later
     * @throws IllegalArgumentException if an address is none, or cannot be bound
     * @throws ClosedException if the pipeline is closed
     */
    public synchronized void checkZmq(SourceConfig source) {
        checkOpen();
        sources.checkZmq(source);
    }

    /**
     * Opens a stream that the caller feeds. With a replay endpoint in its configuration the caller
     * also answers {@link EngineStream#replayFrom()}.
     *
     * @param source whose events these are; its endpoints are not used
     * @throws ClosedException if the pipeline is closed
     */
    public EngineStream openDirect(SourceConfig source) {
        return openDirect(source, null);
    }

    /**
     * The same for a slot that was {@link #load loaded}: its stream continues where the snapshot
     * ends.
     *
     * @param source whose events these are; its endpoints are not used
     * @param startOrNull how far the snapshot was; null for a slot that was not loaded
     * @throws ClosedException if the pipeline is closed
     */
    public synchronized EngineStream openDirect(SourceConfig source, StreamStart startOrNull) {
        checkOpen();
        recall(startOrNull);
        return sources.openDirect(source.withTiers(tiers), sink(source.slot()), startOrNull);
    }

    private void recall(StreamStart startOrNull) {
        if (startOrNull != null && startOrNull.memory().decoder().eagle()) {
            eagle = true;
        }
    }

    private void checkOpen() {
        if (ring.isClosed()) {
            throw new ClosedException("the event pipeline");
        }
    }

    /** Takes batches into the ring; refuses what does not fit. */
    public KvEventSink sink() {
        return sink(this::generation);
    }

    /** The same for one slot as long as its tenant of now has it. */
    private KvEventSink sink(int slot) {
        final int generation = generation(slot);
        return sink(_ -> generation);
    }

    private KvEventSink sink(IntUnaryOperator generationOf) {
        return new KvEventSink() {
            @Override
            public boolean offer(KvBatch batch) {
                return IndexPipeline.this.offer(batch, generationOf.applyAsInt(batch.slot()));
            }

            @Override
            public long mostBlocks() {
                return index.config().maxHeldBlocks();
            }

            @Override
            public boolean hasRoom(int slot) {
                return index.hasRoom(slot);
            }

            @Override
            public void listen(int slot, ApplyListener listener) {
                final int generation = generationOf.applyAsInt(slot);
                mailbox.put(() -> writer.listen(slot, generation, listener));
                wakeWriter();
            }
        };
    }

    private int generation(int slot) {
        return slot < generations.length() ? generations.get(slot) : 0; // the writer refuses it
    }

    private boolean offer(KvBatch batch, int generation) {
        if (!ring.hasRoom()) {
            refused.getAndIncrement();
            return false;
        }
        if (batch.eagle() && !eagle) {
            // set (volatile) before the batch is published: a reader that finds one of its blocks
            // in the index, which the writer stores after the publication, reads true
            eagle = true;
        }
        // Copied, not decoded in the ring record: a claimed record holds back all later ones of
        // other sources until it is published, so nothing that takes long or may fail comes
        // between the claim and the publication; and a refused message must leave its stream
        // unchanged.
        final KvBatch copy = spares.take();
        copy.copyFrom(batch);
        final long sequence = ring.tryClaim();
        if (sequence == WriterRing.NONE) {
            refused.getAndIncrement();
            return false;
        }
        final IndexCommand event = ring.record(sequence);
        event.generation = generation;
        event.batch = copy;
        ring.publish(sequence);
        published.getAndIncrement();
        return true;
    }

    /**
     * Empties a slot and begins its next generation: what streams opened before this call have
     * published, or publish later, means nothing any more. Never waits, also when the ring is full.
     *
     * @param slot worker slot
     * @param whenSwept called on the writer thread once no reader can find a block of the slot any
     *     more; must not wait
     * @throws ClosedException if the pipeline is closed
     * @throws IndexOutOfBoundsException if the index has no such slot
     */
    public void retire(int slot, Runnable whenSwept) {
        Objects.requireNonNull(whenSwept, "whenSwept");
        checkOpen();
        generations.incrementAndGet(slot);
        mailbox.put(() -> writer.retire(slot, whenSwept));
        wakeWriter();
    }

    /**
     * Asks for a snapshot of what a slot holds. The writer makes it in slices between events, one
     * snapshot after the other; messages of the slot wait meanwhile, those of other slots do not.
     *
     * @param slot worker slot
     * @return to be taken by one thread, soon, and closed
     * @throws ClosedException if the pipeline is closed
     * @throws IndexOutOfBoundsException if the index has no such slot
     */
    public SlotSnapshot snapshot(int slot) {
        checkOpen();
        final SlotSnapshot snapshot =
                new SlotSnapshot(slot, generations.get(slot), thread::isAlive, this::remindWriter);
        mailbox.put(() -> writer.ask(snapshot));
        wakeWriter();
        return snapshot;
    }

    /**
     * Says that a reader has found the index damaged, as by a bit that is flipped in its memory:
     * all its slots are DEGRADED with {@link io.kvasir.pipeline.source.IndexCause#INDEX_ERROR}
     * until they are cleared or loaded again, and where the index is kept, a later process begins
     * with an empty one. Never waits; of calls at once one counts.
     *
     * @throws ClosedException if the pipeline is closed
     */
    public void damaged() {
        checkOpen();
        if (damageWaits.compareAndSet(false, true)) {
            mailbox.put(
                    () -> {
                        damageWaits.set(false); // first: what is found from here on counts again
                        writer.damaged();
                    });
            wakeWriter();
        }
    }

    /** Has the writer look again for what there is to do. */
    private void remindWriter() {
        mailbox.put(() -> {});
        wakeWriter();
    }

    /**
     * Slots of which an earlier process has left something in the memory of the index: their blocks
     * are there. Each is to be given back to its tenant ({@link #openZmq}) or {@link #retire
     * retired}.
     */
    public List<KeptSlot> keptSlots() {
        return keptSlots;
    }

    /**
     * How far an earlier process was in the messages of an event plane.
     *
     * @return null if it has kept none, or the index is not kept
     */
    public PlanePosition keptPositionOrNull() {
        return keptPositionOrNull;
    }

    /**
     * Keeps how far the messages of an event plane are in the index: every slot with a label has
     * what came for it up to there. Applied in the order of the calls, of {@link #label} and {@link
     * #retire} too; so it is given before a label of which it would not be true. Does nothing where
     * the index is not kept. Never waits.
     *
     * @param position in the store of the plane's messages; where that is another one than before,
     *     all that was published before must have been applied
     * @throws ClosedException if the pipeline is closed
     */
    public void keepPosition(PlanePosition position) {
        checkOpen();
        if (index.isKept()) {
            mailbox.put(() -> writer.keep(position));
            wakeWriter();
        }
    }

    /**
     * Keeps when engines are followed with the index, before what is saved of it elsewhere says the
     * same time. Does nothing where the index is not kept. Never waits.
     *
     * @param atMs time of day, in ms since 1970
     * @throws ClosedException if the pipeline is closed
     */
    public void followed(long atMs) {
        checkOpen();
        if (index.isKept()) {
            mailbox.put(() -> writer.followed(atMs));
            wakeWriter();
        }
    }

    /**
     * Keeps bytes with a slot, by which its tenant is known again after a restart; until it is
     * retired. Does nothing where the index is not kept. Never waits.
     *
     * @param slot worker slot
     * @param label not empty; what is too long is not kept
     * @throws ClosedException if the pipeline is closed
     */
    public void label(int slot, byte[] label) {
        checkOpen();
        if (index.isKept()) {
            mailbox.put(() -> writer.label(slot, label));
            wakeWriter();
        }
    }

    /**
     * Begins to load an empty slot, before a source is opened for it.
     *
     * @param slot worker slot
     * @return to be given what a snapshot has, and closed
     * @throws ClosedException if the pipeline is closed
     * @throws IndexOutOfBoundsException if the index has no such slot
     */
    public SlotLoad load(int slot) {
        checkOpen();
        return new SlotLoad(this, slot, generations.get(slot));
    }

    /** Passes a part of a load on; false if the ring is full. */
    boolean offer(SlotLoad load, byte[] part) {
        checkWrites();
        final long sequence = ring.tryClaim();
        if (sequence == WriterRing.NONE) {
            return false;
        }
        final IndexCommand event = ring.record(sequence);
        event.load = load;
        event.part = part;
        ring.publish(sequence);
        return true;
    }

    /** Drops what an unfinished load has put in. */
    void drop(SlotLoad load) {
        mailbox.put(() -> writer.drop(load));
        wakeWriter();
    }

    /** Throws {@link ClosedException} when nothing is applied any more. */
    void checkWrites() {
        checkOpen();
        if (!thread.isAlive()) {
            throw new ClosedException("the event pipeline");
        }
    }

    /**
     * Shows a part of what a slot holds, as {@link PrefixIndex#forEachRun} does, on the writer
     * thread between two events. Waits for it; for dumps, not for the writer thread.
     *
     * @param slot worker slot
     * @param from 0, then what the call before returned
     * @param mostBlocks about as many blocks; the writer applies nothing meanwhile
     * @param visitor takes what is held, on the writer thread; must not wait
     * @return where to go on; {@link PrefixIndex#NO_MORE_RUNS} at the end
     * @throws ClosedException if the pipeline is closed, or is closed meanwhile
     * @throws InterruptedException if the waiting thread is interrupted
     * @throws IndexOutOfBoundsException if the index has no such slot
     */
    public int visitRuns(int slot, int from, int mostBlocks, HeldRunVisitor visitor)
            throws InterruptedException {
        Objects.requireNonNull(visitor, "visitor");
        Objects.checkIndex(slot, generations.length());
        checkOpen();
        final CompletableFuture<Integer> next = new CompletableFuture<>();
        mailbox.put(
                () -> {
                    try {
                        next.complete(index.forEachRun(slot, from, mostBlocks, visitor));
                    } catch (Throwable e) {
                        next.completeExceptionally(e);
                    }
                });
        wakeWriter();
        while (true) {
            try {
                return next.get(VISIT_CHECK_MS, TimeUnit.MILLISECONDS);
            } catch (TimeoutException e) {
                checkOpen(); // a writer that has ended does not look into its mailbox
                if (!isWriterAlive()) {
                    throw new ClosedException("the event pipeline");
                }
            } catch (ExecutionException e) {
                throw e.getCause() instanceof RuntimeException known
                        ? known
                        : new IllegalStateException(e.getCause());
            }
        }
    }

    /**
     * Stores blocks whose hashes come from another index, after what was published before. Those
     * that the slot holds already stay as they are. Never waits.
     *
     * @param slot worker slot
     * @param root whether the first block starts a prompt
     * @param parent engine hash of the block before the first one; ignored at the root
     * @param engineHashes the slot's names of the blocks, [count]; copied
     * @param localHashes local hashes of the blocks by the seed of the index, [count]; copied
     * @param count number of blocks
     * @return false when the ring has no room now: nothing was taken
     * @throws ClosedException if the pipeline is closed
     * @throws IndexOutOfBoundsException if the index has no such slot, or {@code count} is beyond
     *     an array
     */
    public boolean loadBlocks(
            int slot,
            boolean root,
            long parent,
            long[] engineHashes,
            long[] localHashes,
            int count) {
        Objects.checkIndex(slot, generations.length());
        checkOpen();
        final KvBatch batch = new KvBatch(2 * count + LOAD_WORDS);
        batch.reset(slot, KvBatch.NO_SEQUENCE, CopyRule.PHYSICAL, false, ApplyListener.NONE);
        batch.addReported(root, parent, engineHashes, localHashes, count);
        return offer(batch, generation(slot));
    }

    /** Says that blocks that are loaded from now on may be hashed for EAGLE. */
    public void expectEagleBlocks() {
        eagle = true;
    }

    private void wakeWriter() {
        final long sequence = ring.tryClaim();
        if (sequence != WriterRing.NONE) {
            ring.publish(sequence); // without a batch
        }
    }

    /**
     * Whether the writer thread runs; false once closed. If it dies otherwise, nothing is applied.
     */
    public boolean isWriterAlive() {
        return thread.isAlive();
    }

    /**
     * Whether any source has announced blocks that are hashed for EAGLE, each with the token after
     * it: prompts match them by hashes of the same windows. Stays true.
     */
    public boolean hasEagleBlocks() {
        return eagle;
    }

    /** Messages taken into the ring. */
    public long published() {
        return published.get();
    }

    /** Messages that the ring had no room for. */
    public long refused() {
        return refused.get();
    }

    /** Index operations applied. */
    public long applied() {
        return writer.applied();
    }

    /** Messages that could not be applied because of an error in the index. */
    public long failures() {
        return writer.failures();
    }

    /** Messages skipped: their slot was set aside after an error, or has another tenant. */
    public long skipped() {
        return writer.skipped();
    }

    /** Slots set aside after an error and not yet loaded again. */
    public int quarantinedSlots() {
        return writer.quarantinedSlots();
    }

    /** Messages waiting in the ring. */
    public long backlog() {
        return ring.backlog();
    }

    /** Messages that fit into the ring. */
    public int ringSize() {
        return ring.size();
    }

    /**
     * Closes all sources and stops the writer at the next event; what else is in the ring is not
     * applied. Idempotent. Waits a second for the writer at most; an event that takes longer is
     * finished, and the index keeps its memory until then.
     */
    @Override
    public synchronized void close() {
        try {
            // the sources first: one that offered to a closed ring would count its message as lost
            sources.close();
        } finally {
            ring.close();
        }
    }
}
