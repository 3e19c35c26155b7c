package io.kvasir.nixl.vllm;

import io.kvasir.nixl.memory.BlockSlice;

import java.util.ArrayList;
import java.util.List;
import java.util.stream.IntStream;

/**
 * Which ranks of an engine hold the heads of a rank here, and in which part of their blocks. As
 * vLLM's own connector decides, so that each rank can be sent its number of readers. Immutable.
 *
 * <pre>
 *   engine of 2 ranks, one rank here       engine of one rank, rank 1 of 2 here
 *     rank 0 | heads 0 1 | -&gt; 0 of 2         rank 0 | heads 0 1 : heads 2 3 |
 *     rank 1 | heads 2 3 | -&gt; 1 of 2                              1 of 2 -&gt; | heads 2 3 |
 * </pre>
 *
 * @param sources what to read, each head once, in the order of heads
 * @param ranks ranks that wait for this rank's notification, those that are not read too
 * @param consumers ranks here that read each of them; it frees blocks when all have notified it
 */
record TensorSplit(List<Source> sources, List<Integer> ranks, int consumers) {
    /**
     * A part of another rank's blocks.
     *
     * @param rank the other rank
     * @param there which part of its blocks
     * @param here which part of the blocks here it fills
     */
    record Source(int rank, BlockSlice there, BlockSlice here) {
        /** Whether the order of axes matters; whole blocks are copied whatever it is. */
        boolean isPart() {
            return there.count() > 1 || here.count() > 1;
        }
    }

    TensorSplit {
        sources = List.copyOf(sources);
        ranks = List.copyOf(ranks);
    }

    /**
     * Decides.
     *
     * @param local the rank here
     * @param remoteSize tensor parallel ranks of the engine
     * @throws VllmPeerException of kind {@code UNSUPPORTED} if one's ranks cannot be dealt out
     *     equally among the other's
     */
    static TensorSplit of(TensorRank local, int remoteSize) {
        if (local.size() >= remoteSize) {
            requireMultiple(local.size(), remoteSize, local);
            final int readers = local.size() / remoteSize;
            final TensorRank remote = rank(local.rank() / readers, remoteSize, local);
            final BlockSlice there =
                    new BlockSlice(
                            (local.firstHead() - remote.firstHead()) / local.heads(),
                            remote.heads() / local.heads());
            return new TensorSplit(
                    List.of(new Source(remote.rank(), there, BlockSlice.WHOLE)),
                    List.of(remote.rank()),
                    readers);
        }
        requireMultiple(remoteSize, local.size(), local);
        final int each = remoteSize / local.size();
        final List<Integer> ranks =
                IntStream.range(local.rank() * each, (local.rank() + 1) * each).boxed().toList();
        final List<Source> sources = new ArrayList<>();
        int nextHead = local.firstHead();
        for (int r : ranks) {
            final TensorRank remote = rank(r, remoteSize, local);
            if (remote.firstHead() == nextHead) { // a neighbour with the same head is not read
                final BlockSlice here =
                        new BlockSlice(
                                (nextHead - local.firstHead()) / remote.heads(),
                                local.heads() / remote.heads());
                sources.add(new Source(r, BlockSlice.WHOLE, here));
                nextHead += remote.heads();
            }
        }
        return new TensorSplit(sources, ranks, 1);
    }

    private static TensorRank rank(int rank, int size, TensorRank local) {
        try {
            return new TensorRank(rank, size, local.kvHeads());
        } catch (IllegalArgumentException e) {
            throw new VllmPeerException(
                    VllmPeerException.Kind.UNSUPPORTED, "the engine: " + e.getMessage(), e);
        }
    }

    private static void requireMultiple(int more, int fewer, TensorRank local) {
        if (more % fewer != 0) {
            throw new VllmPeerException(
                    VllmPeerException.Kind.UNSUPPORTED,
                    "tensor parallel sizes "
                            + local.size()
                            + " here and "
                            + (more == local.size() ? fewer : more)
                            + " at the engine: one must be a multiple of the other");
        }
    }
}
