package io.kvasir.opstreams.kvops;

import io.kvasir.opstreams.alternatives.HashMapIndex;

/** The index of java.util, on the heap. Collecting its garbage is not in its thread's CPU time. */
final class HashMapBlockIndex implements BlockIndex {
    private final HashMapIndex index;
    private final int workers;
    private final boolean countCopies;

    HashMapBlockIndex(int workers, boolean countCopies) {
        this.index = new HashMapIndex(workers);
        this.workers = workers;
        this.countCopies = countCopies;
    }

    @Override
    public boolean store(
            int worker, boolean root, long parent, long[] names, long[] localHashes, int count) {
        return index.store(worker, root, parent, names, localHashes, count, !countCopies);
    }

    @Override
    public void remove(int worker, long[] names, int count) {
        index.remove(worker, names, count, !countCopies);
    }

    @Override
    public void clear(int worker) {
        index.clear(worker);
    }

    @Override
    public Reader reader() {
        return new DepthsReader(index, workers);
    }

    @Override
    public long heldBlocks() {
        return index.heldBlocks();
    }

    @Override
    public long bytes() {
        return -1; // the heap does not tell
    }

    @Override
    public void close() {
        // the collector's business
    }

    private static final class DepthsReader implements Reader {
        private final HashMapIndex index;
        private final int[] depths;

        DepthsReader(HashMapIndex index, int workers) {
            this.index = index;
            this.depths = new int[workers];
        }

        @Override
        public int match(long[] localHashes, int count) {
            return index.match(localHashes, count, depths);
        }

        @Override
        public long checksum() {
            long sum = 0;
            for (int worker = 0; worker < depths.length; worker++) {
                sum += AnswerChecksum.of(worker, depths[worker]);
            }
            return sum;
        }
    }
}
