package io.kvasir.opstreams.kvops;

import io.kvasir.opstreams.alternatives.flat.FlatIndex;

/** The flat table of sequence hashes, for replays. */
final class FlatBlockIndex implements BlockIndex {
    private final FlatIndex index;
    private final int workers;

    /**
     * Makes an empty index.
     *
     * @param workers workers
     * @param countCopies whether copies of a block count
     * @param live what it must have room for
     */
    FlatBlockIndex(int workers, boolean countCopies, LiveMaximum live) {
        this.workers = workers;
        this.index =
                new FlatIndex(
                        workers,
                        countCopies,
                        Math.max(1, live.blocks()),
                        Math.max(1, live.pairs()));
    }

    @Override
    public boolean store(
            int worker, boolean root, long parent, long[] names, long[] localHashes, int count) {
        return index.store(worker, root, parent, names, localHashes, count);
    }

    @Override
    public void remove(int worker, long[] names, int count) {
        index.remove(worker, names, count);
    }

    @Override
    public void clear(int worker) {
        index.clear(worker);
    }

    @Override
    public Reader reader() {
        final FlatIndex.Reader reader = index.reader();
        return new Reader() {
            @Override
            public int match(long[] localHashes, int count) {
                return reader.match(localHashes, count);
            }

            @Override
            public long checksum() {
                long sum = 0;
                for (int worker = 0; worker < workers; worker++) {
                    if (reader.depth(worker) > 0) {
                        sum += AnswerChecksum.of(worker, reader.depth(worker));
                    }
                }
                return sum;
            }
        };
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
    public void close() {
        index.close();
    }
}
