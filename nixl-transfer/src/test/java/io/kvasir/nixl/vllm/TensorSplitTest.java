package io.kvasir.nixl.vllm;

import static io.kvasir.nixl.vllm.Refusals.refused;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.kvasir.nixl.memory.BlockSlice;
import io.kvasir.nixl.vllm.TensorSplit.Source;

import org.junit.jupiter.api.Test;

import java.util.ArrayList;
import java.util.List;
import java.util.stream.IntStream;

class TensorSplitTest {
    private static final int[] SIZES = {1, 2, 4, 8, 16};

    @Test
    void equalSizesReadTheirTwin() {
        assertEquals(
                new TensorSplit(
                        List.of(new Source(3, BlockSlice.WHOLE, BlockSlice.WHOLE)), List.of(3), 1),
                TensorSplit.of(new TensorRank(3, 4, 8), 4));
    }

    @Test
    void moreRanksHereReadAPartOfOne() {
        assertEquals(
                new TensorSplit(
                        List.of(new Source(1, new BlockSlice(1, 2), BlockSlice.WHOLE)),
                        List.of(1),
                        2),
                TensorSplit.of(new TensorRank(3, 4, 8), 2));
    }

    @Test
    void fewerRanksHerePutThePartsOfSeveralTogether() {
        assertEquals(
                new TensorSplit(
                        List.of(
                                new Source(2, BlockSlice.WHOLE, new BlockSlice(0, 2)),
                                new Source(3, BlockSlice.WHOLE, new BlockSlice(1, 2))),
                        List.of(2, 3),
                        1),
                TensorSplit.of(new TensorRank(1, 2, 8), 4));
    }

    @Test
    void headsThatSeveralRanksHoldAreReadOnceAndAllAreTold() {
        assertEquals(
                new TensorSplit(
                        List.of(
                                new Source(0, BlockSlice.WHOLE, new BlockSlice(0, 2)),
                                new Source(4, BlockSlice.WHOLE, new BlockSlice(1, 2))),
                        List.of(0, 1, 2, 3, 4, 5, 6, 7),
                        1),
                TensorSplit.of(TensorRank.only(2), 8));
    }

    @Test
    void latentAttentionIsReadWholeFromOneRank() {
        assertEquals(
                new TensorSplit(
                        List.of(new Source(2, BlockSlice.WHOLE, BlockSlice.WHOLE)),
                        List.of(2, 3),
                        1),
                TensorSplit.of(new TensorRank(1, 4, 1), 8));
    }

    /**
     * Whatever the sizes: each head here is filled once, from where it lies, and readers add up.
     */
    @Test
    void everyHeadIsFilledOnceAndEveryRankHearsOfAllItsReaders() {
        for (int heads : new int[] {1, 2, 4, 8, 16, 32}) {
            for (int localSize : SIZES) {
                for (int remoteSize : SIZES) {
                    check(heads, localSize, remoteSize);
                }
            }
        }
    }

    private static void check(int heads, int localSize, int remoteSize) {
        final String what = heads + " heads, " + localSize + " ranks here, " + remoteSize;
        final int[] told = new int[remoteSize];
        for (int rank = 0; rank < localSize; rank++) {
            final TensorRank local = new TensorRank(rank, localSize, heads);
            final TensorSplit split = TensorSplit.of(local, remoteSize);
            split.ranks().forEach(remote -> told[remote]++);
            final List<Integer> filled = new ArrayList<>();
            for (Source source : split.sources()) {
                final TensorRank remote = new TensorRank(source.rank(), remoteSize, heads);
                assertTrue(split.ranks().contains(source.rank()), what);
                final List<Integer> from = part(remote.firstHead(), remote.heads(), source.there());
                final List<Integer> to = part(local.firstHead(), local.heads(), source.here());
                assertEquals(to, from, what);
                filled.addAll(to);
            }
            assertEquals(part(local.firstHead(), local.heads(), BlockSlice.WHOLE), filled, what);
            assertEquals(Math.max(1, localSize / remoteSize), split.consumers(), what);
        }
        final int readers = Math.max(1, localSize / remoteSize);
        for (int times : told) {
            assertEquals(readers, times, what);
        }
    }

    private static List<Integer> part(int first, int heads, BlockSlice slice) {
        final int each = heads / slice.count();
        assertEquals(heads, each * slice.count());
        final int from = first + slice.index() * each;
        return IntStream.range(from, from + each).boxed().toList();
    }

    @Test
    void sizesThatCannotBeDealtOutAreRefused() {
        refused(
                VllmPeerException.Kind.UNSUPPORTED,
                () -> TensorSplit.of(new TensorRank(0, 3, 12), 2),
                "sizes 3 here and 2 at the engine");
        refused(
                VllmPeerException.Kind.UNSUPPORTED,
                () -> TensorSplit.of(new TensorRank(0, 2, 12), 3),
                "sizes 2 here and 3 at the engine");
        refused(
                VllmPeerException.Kind.UNSUPPORTED,
                () -> TensorSplit.of(TensorRank.only(6), 4),
                "6 KV heads cannot be shared equally by 4 ranks");
        assertThrows(IllegalArgumentException.class, () -> new TensorRank(0, 0, 1));
        assertThrows(IllegalArgumentException.class, () -> new TensorRank(2, 2, 2));
        assertThrows(IllegalArgumentException.class, () -> new TensorRank(-1, 2, 2));
        assertThrows(IllegalArgumentException.class, () -> TensorRank.only(0));
        assertThrows(IllegalArgumentException.class, () -> new TensorRank(0, 4, 6));
    }
}
