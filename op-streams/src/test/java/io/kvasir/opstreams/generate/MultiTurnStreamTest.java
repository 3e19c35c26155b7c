package io.kvasir.opstreams.generate;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.kvasir.opstreams.kvops.Figure;
import io.kvasir.opstreams.kvops.KvopsBench;
import io.kvasir.opstreams.kvops.KvopsHeader;
import io.kvasir.opstreams.kvops.KvopsResult;
import io.kvasir.opstreams.kvops.NaiveCheck;
import io.kvasir.opstreams.kvops.ReplayPlan;

import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.List;

class MultiTurnStreamTest {
    @TempDir private Path dir;

    private static MultiTurnOptions small(double turns, double branch) {
        return new MultiTurnOptions(400, turns, 4, 20, 96, 4, branch, 0, 4, 2, 7);
    }

    /** Trace blocks are blocks: one hash id each. */
    private static GeneratorOptions workers(int count, int capacity, boolean salted) {
        return new GeneratorOptions(
                count, capacity, 16, 16, 1, 1, 1000, 20000, 15, 8192, true, 1, 7, salted);
    }

    @ParameterizedTest
    @ValueSource(booleans = {false, true})
    void theAnswersAreExact(boolean salted) throws IOException, InterruptedException {
        final Path out = dir.resolve("mt.kvops");
        final KvopsHeader header =
                MultiTurnStream.generate(small(5, 0.3), workers(4, 1500, salted), out)
                        .made()
                        .header();
        assertEquals(400, header.queries());
        assertTrue(header.removed() > 0, "nothing was evicted");
        final NaiveCheck naive = NaiveCheck.of(out);
        assertEquals(0, naive.wrong());
        assertTrue(naive.answered() > 300, naive.toString());

        final KvopsResult result =
                new KvopsBench(0, List.of(), line -> {}).run(ReplayPlan.of(out).withWarmUp(0));
        assertEquals(0, result.mismatches());
        assertEquals(400, result.median(Figure.QUERIES));
    }

    @Test
    void aNextTurnHoldsTheWholeConversationBeforeIt() {
        final List<TraceRequest> trace = MultiTurnTrace.of(small(6, 0), 16, 15);
        int goneOn = 0;
        for (TraceRequest request : trace) {
            final long[] before = request.hashIds();
            final long[] all = Arrays.copyOf(before, before.length + request.outputIds().length);
            System.arraycopy(
                    request.outputIds(), 0, all, before.length, request.outputIds().length);
            goneOn +=
                    (int)
                            trace.stream()
                                    .filter(next -> next.timestamp() > request.timestamp())
                                    .filter(next -> next.hashIds().length > all.length)
                                    .filter(
                                            next ->
                                                    Arrays.mismatch(next.hashIds(), all)
                                                            == all.length)
                                    .limit(1)
                                    .count();
        }
        assertTrue(goneOn > 250, "gone on " + goneOn); // 5 of 6 but those that the end cuts off
    }

    @Test
    void branchesAskAgainOrChangeAnEarlierTurn() {
        final List<TraceRequest> trace = MultiTurnTrace.of(small(6, 0.5), 16, 15);
        final long distinct =
                trace.stream()
                        .map(request -> Arrays.hashCode(request.hashIds()))
                        .distinct()
                        .count();
        assertTrue(distinct < 370, "no prompt is asked again: " + distinct);
        final List<TraceRequest> straight = MultiTurnTrace.of(small(6, 0), 16, 15);
        assertEquals(
                400,
                straight.stream()
                        .map(request -> Arrays.hashCode(request.hashIds()))
                        .distinct()
                        .count());
    }

    @Test
    void promptsHaveTheLengthAskedFor() {
        final MultiTurnOptions options =
                new MultiTurnOptions(4000, 4, 32, 200, 960, 24, 0.2, 0.3, 20, 10, 3);
        final double mean =
                MultiTurnTrace.of(options, 16, 15).stream()
                        .mapToInt(request -> request.hashIds().length)
                        .average()
                        .orElseThrow();
        assertEquals(960, mean, 40);
        final List<TraceRequest> trace = MultiTurnTrace.of(options, 16, 15);
        for (int i = 1; i < trace.size(); i++) {
            assertTrue(trace.get(i - 1).timestamp() <= trace.get(i).timestamp());
        }
    }

    @Test
    void theHitRateAskedForIsFound() throws IOException {
        for (double wanted : new double[] {0.3, 0.6}) {
            final MultiTurnStream.Result result =
                    MultiTurnStream.generate(
                            small(5, 0.1),
                            wanted,
                            workers(4, 20_000, false),
                            dir.resolve("hits.kvops"));
            assertEquals(wanted, result.made().hitRatio(), 0.04);
            assertTrue(result.options().cold() > 0);
        }
    }

    @Test
    void aHitRateBeyondTheConversationsIsNotReached() throws IOException {
        final MultiTurnStream.Result result =
                MultiTurnStream.generate(
                        small(2, 0), 0.99, workers(4, 20_000, false), dir.resolve("few.kvops"));
        assertTrue(result.made().hitRatio() < 0.99);
        assertEquals(0, result.options().cold());
    }

    @Test
    void equalOptionsGiveEqualBytes() throws IOException {
        final byte[][] files = new byte[3][];
        for (int i = 0; i < 3; i++) {
            final Path out = dir.resolve(i + ".kvops");
            final MultiTurnOptions options = i < 2 ? small(5, 0.3) : small(6, 0.3);
            MultiTurnStream.generate(options, workers(4, 1500, false), out);
            files[i] = Files.readAllBytes(out);
        }
        assertArrayEquals(files[0], files[1]);
        assertNotEquals(Arrays.hashCode(files[0]), Arrays.hashCode(files[2]));
    }

    @Test
    void lengthsThatLeaveNothingForTheUserAreRefused() {
        final IllegalArgumentException refused =
                assertThrows(
                        IllegalArgumentException.class,
                        () -> new MultiTurnOptions(1, 20, 1, 200, 300, 24, 0, 0, 1, 1, 1));
        assertTrue(refused.getMessage().startsWith("prompt-blocks out of range"));
    }
}
