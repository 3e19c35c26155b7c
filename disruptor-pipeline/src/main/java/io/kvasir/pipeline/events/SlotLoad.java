package io.kvasir.pipeline.events;

import io.kvasir.core.index.CopyRule;
import io.kvasir.core.index.PrefixIndex;
import io.kvasir.core.index.SlotImport;
import io.kvasir.core.index.SlotPath;
import io.kvasir.core.memory.ClosedException;
import io.kvasir.pipeline.snapshot.SlotMark;
import io.kvasir.pipeline.snapshot.SlotRecords;
import io.kvasir.pipeline.source.RemovalRule;

import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;

/**
 * Gives an empty slot what a snapshot has of it: {@link #records} for each chunk in order, then
 * {@link #finish}. One thread calls them; each chunk is a record of the ring, so that the events of
 * other slots go on in between. What it has put in is dropped when it fails or is {@link #close
 * closed} unfinished.
 */
public final class SlotLoad implements AutoCloseable {
    private static final long FULL_RING_PAUSE_NS = TimeUnit.MICROSECONDS.toNanos(200);
    private static final int HOLES_AT_ONCE = 1024;

    /** The last part, which may come more than once. */
    private static final byte[] END = {};

    private final IndexPipeline pipeline;
    private final int slot;
    private final int generation;
    private volatile int applied; // parts; written by the writer thread
    private volatile boolean ended; // likewise: all is in the index
    private volatile boolean failed; // likewise, or the slot has another tenant
    private int sent;
    private boolean finished;
    private SlotMark mark;
    private CopyRule rule;

    // used by the writer thread alone
    private SlotImport into;
    private SlotPath scratch;
    private int appliedParts;

    SlotLoad(IndexPipeline pipeline, int slot, int generation) {
        this.pipeline = pipeline;
        this.slot = slot;
        this.generation = generation;
    }

    int slot() {
        return slot;
    }

    int generation() {
        return generation;
    }

    /**
     * Passes a chunk on. Waits while the ring is full.
     *
     * @param chunk records; the writer thread's from now on
     * @return false if the load has failed: what is left need not be passed on
     * @throws ClosedException if the pipeline is closed
     * @throws InterruptedException if the waiting thread is interrupted
     */
    public boolean records(byte[] chunk) throws InterruptedException {
        if (chunk.length > 0) {
            send(chunk);
        }
        return !failed;
    }

    /**
     * Waits until all is in the index, and the slot at the message of the snapshot.
     *
     * @param at how far the snapshot was
     * @param removals what the stream of the snapshot had removals mean
     * @return false if the chunks contradict themselves, or another tenant has the slot: what was
     *     put in is dropped
     * @throws ClosedException if the pipeline is closed
     * @throws InterruptedException if the waiting thread is interrupted
     */
    public boolean finish(SlotMark at, RemovalRule removals) throws InterruptedException {
        mark = at;
        rule = removals.copyRule();
        while (!ended && !failed) {
            send(END); // publishes mark and rule
            awaitApplied();
        }
        finished = ended;
        return finished;
    }

    private void send(byte[] part) throws InterruptedException {
        while (!failed && !pipeline.offer(this, part)) {
            pause();
        }
        sent++;
    }

    private void awaitApplied() throws InterruptedException {
        while (!failed && applied < sent) {
            pause();
        }
    }

    private void pause() throws InterruptedException {
        pipeline.checkWrites();
        LockSupport.parkNanos(FULL_RING_PAUSE_NS);
        if (Thread.interrupted()) {
            throw new InterruptedException();
        }
    }

    /** Drops what was put in, unless {@link #finish} has said true. */
    @Override
    public void close() {
        if (!finished && sent > 0) {
            pipeline.drop(this);
        }
    }

    // -- writer thread ----------------------------------------------------------------------

    /** Puts a part in; false if the slot is to be emptied, and the load {@link #fail} then. */
    boolean apply(byte[] part, PrefixIndex index, SlotMarks marks) {
        if (failed) {
            return true;
        }
        if (into == null) {
            into = index.importInto(slot);
            scratch = new SlotPath();
        }
        boolean good = true;
        if (part.length > 0) {
            good = put(part);
        } else if (!into.removeHoles(HOLES_AT_ONCE)) {
            into.end(mark.missingBlocks(), mark.turnover(), rule);
            good =
                    index.heldBlocks(slot) + index.missingBlocks(slot)
                            == mark.heldBlocks() + mark.missingBlocks();
            if (good) {
                marks.restored(slot, mark);
                marks.keep(slot);
                index.eventApplied(slot, mark.sequence());
                ended = true;
            }
        }
        applied = ++appliedParts;
        return good;
    }

    private boolean put(byte[] part) {
        final int records =
                SlotRecords.read(
                        part,
                        scratch,
                        new SlotRecords.Reader() {
                            @Override
                            public boolean path(SlotPath path) {
                                return into.path(path);
                            }

                            @Override
                            public void copies(long engineHash, int copies) {
                                into.copies(engineHash, copies);
                            }
                        });
        return records >= 0;
    }

    /** Nothing more is put in, and what was is dropped: which callers see from here on. */
    void fail() {
        failed = true;
    }

    /** Whether nothing more is put in. */
    boolean hasFailed() {
        return failed;
    }
}
