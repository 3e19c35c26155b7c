package io.kvasir.pipeline.events;

import io.kvasir.core.index.HeldRunVisitor;
import io.kvasir.core.index.PrefixIndex;

import org.agrona.collections.LongHashSet;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.Comparator;
import java.util.List;

/**
 * What a worker slot holds as stores that would build it, parents before children.
 *
 * <p>The blocks are collected in parts, between which events are applied; then what is not reached
 * through its parents any more is left out. Blocks after a hole are left out, too: nothing could be
 * stored there. All hashes of the slot are in memory meanwhile, 16 bytes a block.
 */
public final class SlotRuns {
    /** The index writer is held up for so many blocks at a time: some hundred microseconds. */
    private static final int BLOCKS_PER_PART = 8_192;

    /** Shows a part of a slot, as {@link IndexPipeline#visitRuns} does. */
    @FunctionalInterface
    public interface Source {
        /**
         * Shows the next blocks.
         *
         * @param from 0, then what the call before returned
         * @param mostBlocks about as many blocks
         * @param visitor takes what is held, perhaps on another thread
         * @return where to go on; {@link PrefixIndex#NO_MORE_RUNS} at the end
         * @throws InterruptedException if the waiting thread is interrupted
         */
        int visit(int from, int mostBlocks, HeldRunVisitor visitor) throws InterruptedException;
    }

    /**
     * Consecutive blocks of one path.
     *
     * @param depth blocks of the prompt before the first one; 0: it has no parent
     * @param parent engine hash of the block before the first one; without meaning at depth 0
     * @param engineHashes engine hashes of the blocks
     * @param localHashes local hashes of the blocks, as many
     */
    @SuppressWarnings("ArrayRecordComponent") // never compared
    public record Run(int depth, long parent, long[] engineHashes, long[] localHashes) {}

    private SlotRuns() {}

    /**
     * Collects what a slot holds.
     *
     * @param source shows it
     * @return in the order in which it can be stored
     * @throws InterruptedException if the waiting thread is interrupted
     * @throws io.kvasir.core.memory.ClosedException if the source ends meanwhile
     */
    public static List<Run> collect(Source source) throws InterruptedException {
        final List<Run> shown = new ArrayList<>();
        final HeldRunVisitor keep =
                (depth, parent, names, locals, count) -> {
                    if (depth != HeldRunVisitor.BEHIND_HOLE) {
                        final long[] engineHashes = Arrays.copyOf(names, count);
                        final long[] localHashes = Arrays.copyOf(locals, count);
                        shown.add(new Run(depth, parent, engineHashes, localHashes));
                    }
                };
        int from = 0;
        while (from != PrefixIndex.NO_MORE_RUNS) {
            from = source.visit(from, BLOCKS_PER_PART, keep);
        }
        shown.sort(Comparator.comparingInt(Run::depth));
        return reached(shown);
    }

    private static List<Run> reached(List<Run> byDepth) {
        final LongHashSet held = new LongHashSet();
        final List<Run> reached = new ArrayList<>(byDepth.size());
        for (Run run : byDepth) {
            if (run.depth == 0 || held.contains(run.parent)) {
                for (long name : run.engineHashes) {
                    held.add(name);
                }
                reached.add(run);
            }
        }
        return reached;
    }
}
