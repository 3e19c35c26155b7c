package io.kvasir.opstreams.kvops;

import io.kvasir.core.index.CopyRule;
import io.kvasir.core.index.PrefixIndex;
import io.kvasir.core.index.PrefixIndexConfig;
import io.kvasir.core.index.StoreResult;
import io.kvasir.core.radix.OverlapScores;

/** The product's index. Worker numbers are its slots. The only class here that knows it. */
final class PrefixBlockIndex implements BlockIndex {
    private final PrefixIndex index;
    private final int workers;
    private final boolean refreshHeld;
    private final CopyRule rule;

    /**
     * Makes an empty index.
     *
     * @param workers workers
     * @param countCopies whether copies of a block count
     * @param live what it must have room for
     * @param shortPrompts whether it has memory for prompts of a few blocks, too
     */
    PrefixBlockIndex(int workers, boolean countCopies, LiveMaximum live, boolean shortPrompts) {
        this.workers = workers;
        this.index = new PrefixIndex(config(workers, live, shortPrompts));
        this.refreshHeld = !countCopies;
        this.rule = countCopies ? CopyRule.PHYSICAL : CopyRule.LAST_COPY;
    }

    /**
     * The one place that sizes the index: limits of exactly the live maximum, and the memory that
     * prompts of some 30 blocks and more need for it. By its own rule, for short prompts, an index
     * would reserve what prompts of 8 blocks need, of which most streams would touch half.
     */
    private static PrefixIndexConfig config(int workers, LiveMaximum live, boolean shortPrompts) {
        final PrefixIndexConfig limits =
                new PrefixIndexConfig(
                        workers, Math.max(1, live.blocks()), Math.max(1, live.pairs()));
        return shortPrompts ? limits : limits.forLongPrompts();
    }

    @Override
    public boolean store(
            int worker, boolean root, long parent, long[] names, long[] localHashes, int count) {
        return index.store(worker, root, parent, names, localHashes, count, refreshHeld)
                == StoreResult.STORED;
    }

    @Override
    public void remove(int worker, long[] names, int count) {
        index.remove(worker, names, count, rule);
    }

    @Override
    public void clear(int worker) {
        index.clear(worker);
    }

    @Override
    public Reader reader() {
        return new ScoresReader(index, workers);
    }

    @Override
    public long heldBlocks() {
        return index.heldBlocks();
    }

    @Override
    public long bytes() {
        return index.bytes();
    }

    @Override
    public long usedBytes() {
        return index.usedBytes();
    }

    @Override
    public void close() {
        index.close();
    }

    private static final class ScoresReader implements Reader {
        private final PrefixIndex index;
        private final OverlapScores scores;

        ScoresReader(PrefixIndex index, int workers) {
            this.index = index;
            this.scores = new OverlapScores(workers);
        }

        @Override
        public int match(long[] localHashes, int count) {
            return index.match(localHashes, count, scores);
        }

        @Override
        public long checksum() {
            long sum = 0;
            for (int i = 0; i < scores.matchedSlots(); i++) {
                final int slot = scores.slotAt(i);
                sum += AnswerChecksum.of(slot, scores.depth(slot));
            }
            return sum;
        }
    }
}
