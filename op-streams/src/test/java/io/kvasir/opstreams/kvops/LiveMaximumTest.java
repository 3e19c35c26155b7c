package io.kvasir.opstreams.kvops;

import static org.junit.jupiter.api.Assertions.assertEquals;

import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

import java.io.IOException;
import java.nio.file.Path;

class LiveMaximumTest {
    private static final long[] A = {1};
    private static final long[] AB = {1, 2};

    @TempDir private Path dir;

    /** Names are given by hand, so flags say only how copies count. */
    private interface Events {
        void write(KvopsWriter writer) throws IOException;
    }

    private LiveMaximum of(long flags, Events events) throws IOException {
        final Path path = dir.resolve("live.kvops");
        try (KvopsWriter writer = new KvopsWriter(path, 16, 3, 10, 0, flags)) {
            events.write(writer);
        }
        return LiveMaximum.of(path);
    }

    @Test
    void blocksAreCountedOnceAndPairsPerWorker() throws IOException {
        assertEquals(
                new LiveMaximum(4, 2, 1),
                of(
                        0,
                        w -> {
                            w.storedRoot(0, 0, 0, AB, AB, 2);
                            w.storedRoot(1, 0, 1, new long[] {8, 9}, AB, 2);
                            w.removed(0, 2, AB, 2);
                            w.removed(1, 3, new long[] {9, 7}, 2);
                        }));
    }

    @Test
    void aBlockStoredTwiceGoesAtOnceUnlessCopiesAreCounted() throws IOException {
        final Events twice =
                w -> {
                    w.storedRoot(0, 0, 0, A, A, 1);
                    w.storedRoot(0, 0, 1, A, A, 1);
                    w.removed(0, 2, A, 1);
                };
        assertEquals(new LiveMaximum(1, 1, 0), of(0, twice));
        assertEquals(new LiveMaximum(1, 1, 1), of(KvopsHeader.COUNTED_COPIES, twice));
        assertEquals(
                new LiveMaximum(1, 1, 0),
                of(
                        KvopsHeader.COUNTED_COPIES,
                        w -> {
                            twice.write(w);
                            w.removed(0, 3, A, 1);
                        }));
    }

    @Test
    void whatFollowsAnUnknownParentIsNotHeldAndAClearedWorkerHoldsNothing() throws IOException {
        assertEquals(
                new LiveMaximum(2, 2, 1),
                of(
                        KvopsHeader.COUNTED_COPIES,
                        w -> {
                            w.storedRoot(0, 0, 0, A, A, 1);
                            w.stored(0, 0, 1, 99, new long[] {3}, new long[] {3}, 1);
                            w.stored(0, 0, 2, 1, new long[] {4}, new long[] {4}, 1);
                            w.storedRoot(0, 0, 3, A, A, 1);
                            w.cleared(0, 4);
                            w.storedRoot(0, 0, 5, A, A, 1);
                        }));
    }

    @Test
    void equalHashesBehindDifferentPrefixesAreDifferentBlocks() throws IOException {
        assertEquals(
                new LiveMaximum(3, 3, 3),
                of(
                        0,
                        w -> {
                            w.storedRoot(0, 0, 0, AB, new long[] {5, 5}, 2);
                            w.stored(0, 0, 1, 2, new long[] {3}, new long[] {5}, 1);
                        }));
    }
}
