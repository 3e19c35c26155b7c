package io.kvasir.opstreams.cliffs;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.kvasir.opstreams.kvops.Figure;
import io.kvasir.opstreams.kvops.KvopsBench;
import io.kvasir.opstreams.kvops.KvopsHeader;
import io.kvasir.opstreams.kvops.KvopsResult;
import io.kvasir.opstreams.kvops.NaiveCheck;
import io.kvasir.opstreams.kvops.ReplayMode;
import io.kvasir.opstreams.kvops.ReplayPlan;

import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.List;

class CliffTest {
    private static final double SMALL = 0.004;

    @TempDir private Path dir;

    private static KvopsResult replay(Path stream, double room)
            throws IOException, InterruptedException {
        return new KvopsBench(0, List.of(), line -> {})
                .run(
                        ReplayPlan.of(stream)
                                .withMode(ReplayMode.EVENTS)
                                .withRoom(room)
                                .withWarmUp(0)
                                .withPasses(1));
    }

    @ParameterizedTest
    @EnumSource(
            value = Cliff.class,
            mode = EnumSource.Mode.EXCLUDE,
            names = {"BLOCK_BY_BLOCK", "SHARED_DROP"})
    void theAnswersOfTheStreamAreExact(Cliff cliff) throws IOException, InterruptedException {
        assertExact(cliff);
    }

    /** These stay long however small their scale is: each block, or each worker, is an event. */
    @Tag("integration")
    @ParameterizedTest
    @EnumSource(
            value = Cliff.class,
            names = {"BLOCK_BY_BLOCK", "SHARED_DROP"})
    void theAnswersOfALongStreamAreExact(Cliff cliff) throws IOException, InterruptedException {
        assertExact(cliff);
    }

    private void assertExact(Cliff cliff) throws IOException, InterruptedException {
        final Path out = dir.resolve("a.kvops");
        final KvopsHeader header = cliff.write(out, SMALL, 7);
        assertEquals(cliff.workers(), header.workers());
        assertTrue(header.removed() > 0, header.toString());
        final NaiveCheck naive = NaiveCheck.of(out);
        assertEquals(header.queries(), naive.queries());
        assertEquals(0, naive.wrong());
        assertTrue(naive.answered() > 0);
        final boolean unknownParents = cliff == Cliff.LATE_ATTACH || cliff == Cliff.BIG_WORKER;
        assertEquals(unknownParents, naive.unknownParents() > 0);

        final KvopsResult result = replay(out, 1);
        assertEquals(header.queries(), (long) result.median(Figure.QUERIES));
        assertEquals(header.stored() + header.removed(), (long) result.median(Figure.EVENTS));
        if (result.median(Figure.REFUSED_STORES) == naive.unknownParents()) {
            assertEquals(0, result.mismatches());
        }
    }

    @Test
    void atTheLimitStoresAreRefused() throws IOException, InterruptedException {
        final Path out = dir.resolve("limit.kvops");
        Cliff.INDEX_LIMIT.write(out, SMALL, 7);
        final KvopsResult result = replay(out, Cliff.INDEX_LIMIT.room());
        assertTrue(result.median(Figure.REFUSED_STORES) > 0);
    }

    @Test
    void equalSeedsGiveEqualBytes() throws IOException {
        final Path one = dir.resolve("1.kvops");
        final Path same = dir.resolve("2.kvops");
        final Path other = dir.resolve("3.kvops");
        Cliff.BIG_WORKER.write(one, SMALL, 7);
        Cliff.BIG_WORKER.write(same, SMALL, 7);
        Cliff.BIG_WORKER.write(other, SMALL, 8);
        assertArrayEquals(Files.readAllBytes(one), Files.readAllBytes(same));
        assertFalse(Arrays.equals(Files.readAllBytes(one), Files.readAllBytes(other)));
    }

    @Test
    void aScaleBeyondItsRangeIsRefused() {
        for (double scale : new double[] {0, -1, 1.5, Double.NaN}) {
            assertThrows(
                    IllegalArgumentException.class,
                    () -> Cliff.BIG_WORKER.write(dir.resolve("x"), scale, 1));
        }
    }
}
