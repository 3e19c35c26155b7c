package io.kvasir.opstreams.kvops;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.kvasir.opstreams.generate.SmallTrace;

import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.api.parallel.Execution;
import org.junit.jupiter.api.parallel.ExecutionMode;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

import java.io.IOException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Collections;
import java.util.EnumSet;
import java.util.List;
import java.util.Set;

@Execution(ExecutionMode.CONCURRENT) // each waits for processes of its own
class ReplayTest {
    private static final Set<Figure> EVERYWHERE =
            EnumSet.range(Figure.QUERY_MEAN_US, Figure.QUERY_RAW_P9999_US);
    private static final Set<Figure> EVENTS = EnumSet.range(Figure.EVENT_MEAN_US, Figure.EVENTS);

    @TempDir private Path dir;
    private Path stream;

    @BeforeEach
    void makeAStream() throws IOException {
        stream = dir.resolve("small.kvops");
        SmallTrace.write(stream, true);
    }

    static List<String> indexes() {
        return Indexes.names();
    }

    /** What a plan is by default, but for as short a warm-up as there is. */
    private ReplayPlan plan() {
        return ReplayPlan.of(stream).withWarmUpSeconds(0);
    }

    private static KvopsResult run(ReplayPlan plan) throws IOException, InterruptedException {
        return new KvopsBench(0, List.of(), line -> {}).run(plan);
    }

    @ParameterizedTest
    @MethodSource("indexes")
    void everyIndexAnswersEveryQueryInOrder(String index) throws IOException, InterruptedException {
        final KvopsResult result = run(plan().withIndex(index));
        assertEquals(0, result.mismatches());
        assertEquals(180, result.median(Figure.QUERIES));
        assertTrue(result.latencies().getTotalCount() <= 180); // less those that lost a core
        assertTrue(result.figures().containsAll(EVERYWHERE), result.figures().toString());
        assertTrue(Collections.disjoint(EVENTS, result.figures()), result.figures().toString());
        assertTrue(result.median(Figure.APPLY_NS_PER_BLOCK) > 0);
        assertEquals(result.header().eventBlocks(), (long) result.median(Figure.EVENT_BLOCKS));
        assertEquals(result.live().lastPairs(), (long) result.median(Figure.HELD_PAIRS));
    }

    @Test
    void theWarmUpIsNotMeasuredAndMayBePartOfTheStream() throws IOException, InterruptedException {
        for (long warmUp : new long[] {0, 10, ReplayPlan.WHOLE}) {
            final KvopsResult result = run(plan().withWarmUp(warmUp));
            assertEquals(180, result.median(Figure.QUERIES));
            assertEquals(0, result.mismatches());
        }
        assertEquals("none", plan().withWarmUp(0).warmUpText());
        assertTrue(plan().warmUpText().contains("whole stream"));
    }

    @ParameterizedTest
    @MethodSource("indexes")
    void eachEventHasItsOwnTimeInModeEvents(String index) throws IOException, InterruptedException {
        final ReplayPlan plan =
                plan().withIndex(index).withMode(ReplayMode.EVENTS).withWarmUp(50).withPasses(2);
        final KvopsResult result = run(plan);
        assertTrue(result.figures().containsAll(EVENTS), result.figures().toString());
        assertEquals(0, result.mismatches());
        assertEquals(2 * 180, result.median(Figure.QUERIES));
        assertEquals(
                result.header().stored() + result.header().removed(),
                (long) result.median(Figure.EVENTS));
        assertEquals(1, result.median(Figure.REPLAYED_SHARE));
        assertTrue(result.median(Figure.EVENT_P50_US) <= result.median(Figure.EVENT_MAX_US));
        assertTrue(result.median(Figure.EVENT_MAX_US) <= result.median(Figure.EVENT_RAW_MAX_US));
        assertTrue(result.median(Figure.EVENT_MAX_BLOCKS) >= 1);
        assertFalse(result.figures().contains(Figure.APPLY_NS_PER_BLOCK));
    }

    @Test
    void aPassOfModeEventsEndsAtItsTimeLimit() throws IOException, InterruptedException {
        final KvopsResult result =
                run(plan().withMode(ReplayMode.EVENTS).withWarmUp(0).withPasses(2).withLimit(1e-9));
        assertTrue(result.median(Figure.REPLAYED_SHARE) < 1);
        assertTrue(result.median(Figure.EVENTS) >= 1);
    }

    @Test
    void anIndexWithHalfTheRoomRefusesStoresAndIsNotChecked()
            throws IOException, InterruptedException {
        final KvopsResult result = run(plan().withWarmUp(0).withRoom(0.5));
        assertTrue(result.median(Figure.REFUSED_STORES) > 0);
        assertEquals(0, result.mismatches());
        assertTrue(result.median(Figure.HELD_PAIRS) <= Math.ceil(result.live().pairs() * 0.5));
    }

    @Test
    void theWarmUpSaysHowLongItTook() throws IOException, InterruptedException {
        final KvopsResult result = run(plan().withWarmUp(400).withWarmUpSeconds(5));
        final double passes = result.median(Figure.WARM_UP_PASSES);
        assertTrue(passes >= 5, "passes " + passes);
        assertEquals(
                400 * passes,
                result.median(Figure.WARM_UP_EVENTS) + result.median(Figure.WARM_UP_QUERIES));
        final KvopsResult once = run(ReplayPlan.of(stream).withWarmUp(400).withWarmUpSeconds(0));
        assertEquals(0, once.median(Figure.WARM_UP_SETTLED));
    }

    @Test
    void aWrongAnswerAndARefusedStoreAreCounted() throws IOException, InterruptedException {
        final Path bad = dir.resolve("bad.kvops");
        final long[] one = {1};
        try (KvopsWriter w = new KvopsWriter(bad, 16, 2, 10, 0, KvopsHeader.CHECKSUMS)) {
            w.storedRoot(1, 0, 0, one, one, 1);
            w.query(0, 1, AnswerChecksum.of(1, 1), one, 1); // right
            w.query(0, 2, AnswerChecksum.of(0, 1), one, 1); // says another worker
            w.stored(1, 0, 3, 99, new long[] {2}, new long[] {2}, 1); // nobody knows 99
        }
        final KvopsResult result = run(ReplayPlan.of(bad).withWarmUpSeconds(0));
        assertEquals(1, result.mismatches());
        assertEquals(1, result.median(Figure.REFUSED_STORES));
    }

    @Test
    void aStreamWithoutChecksumsIsMeasuredUnchecked() throws IOException, InterruptedException {
        final Path unchecked = dir.resolve("unchecked.kvops");
        try (KvopsWriter w = new KvopsWriter(unchecked, 16, 2, 10, 0, 0)) {
            w.query(0, 1, 12345, new long[] {1}, 1);
        }
        final KvopsResult result = run(ReplayPlan.of(unchecked).withWarmUpSeconds(0));
        assertEquals(0, result.mismatches());
        assertFalse(result.isChecked());
        assertFalse(result.figures().contains(Figure.APPLY_NS_PER_BLOCK));
    }

    @Test
    void aReaderBesideAWriterIsMeasuredAtFullRateAndPaced()
            throws IOException, InterruptedException {
        final ReplayPlan plan = plan().withMode(ReplayMode.BESIDE).withBeside(2, 0, 0);
        final KvopsResult full = run(plan);
        assertTrue(full.figures().containsAll(EVERYWHERE), full.figures().toString());
        assertEquals(2 * full.header().eventBlocks(), (long) full.median(Figure.EVENT_BLOCKS));
        assertEquals(0, full.median(Figure.REFUSED_STORES));

        final double rate = full.header().eventBlocks() / 0.05; // a pass takes 50 ms
        final KvopsResult paced = run(plan.withBeside(1, rate, 8));
        assertTrue(paced.median(Figure.WALL_S) >= 0.045, "faster than asked for");
        assertTrue(paced.median(Figure.QUERIES) > 0);
    }

    @Test
    void aDepthThatNoPromptHasIsRefused() {
        final ReplayPlan plan = plan().withMode(ReplayMode.BESIDE).withBeside(1, 0, 100_000);
        final IllegalArgumentException refused =
                assertThrows(IllegalArgumentException.class, () -> run(plan));
        assertTrue(refused.getMessage().contains("100000 blocks"), refused.getMessage());
    }

    @Test
    void theOpenLoopKeepsTheStreamsTimesAndCountsTheDrain()
            throws IOException, InterruptedException {
        final KvopsStream read = KvopsStream.read(stream);
        final long spanUs = read.timeUs(read.size() - 1) - read.timeUs(0);
        final KvopsResult result =
                run(plan().withMode(ReplayMode.OPENLOOP).withSpeedUp(spanUs / 100_000.0)); // 100 ms
        assertTrue(result.figures().containsAll(EVERYWHERE), result.figures().toString());
        assertTrue(
                result.figures()
                        .containsAll(
                                EnumSet.of(
                                        Figure.DRAIN_MS,
                                        Figure.EVENT_LAG_P50_US,
                                        Figure.EVENT_LAG_P99_US)));
        assertEquals(180, result.median(Figure.QUERIES));
        assertTrue(result.median(Figure.WALL_S) >= 0.1, "ended before the last event was due");
    }

    @Tag("integration") // starts processes
    @Test
    void eachForkIsAProcessOfItsOwnAndTheirFiguresComeBack()
            throws IOException, InterruptedException {
        final List<String> progress = new ArrayList<>();
        final KvopsResult result =
                new KvopsBench(2, List.of("-XX:TieredStopAtLevel=1", "-Xms64m"), progress::add)
                        .run(plan());
        assertEquals(2, result.forks().size());
        assertEquals(0, result.mismatches());
        assertEquals(180, result.median(Figure.QUERIES));
        assertTrue(
                result.min(Figure.QUERY_MEAN_US) <= result.median(Figure.QUERY_MEAN_US)
                        && result.median(Figure.QUERY_MEAN_US) <= result.max(Figure.QUERY_MEAN_US));
        assertTrue(result.latencies().getTotalCount() > 0);
        assertEquals(3, progress.size(), progress.toString());
    }

    @Test
    void aForkThatFailsIsAnErrorWithItsCommand() {
        final IOException failed =
                assertThrows(
                        IOException.class,
                        () -> new KvopsBench(1, List.of("-XX:NoSuchFlag"), line -> {}).run(plan()));
        assertTrue(failed.getMessage().contains("exit code 1"), failed.getMessage());
        assertTrue(failed.getMessage().contains("-XX:NoSuchFlag"), failed.getMessage());
    }

    @Test
    void aPlanSurvivesItsWordsAndRefusesNonsense() {
        final ReplayPlan plan =
                new ReplayPlan(
                        Path.of("dir with blanks", "a=b.kvops"),
                        Indexes.KVASIR,
                        ReplayMode.BESIDE,
                        17,
                        1.5,
                        0.5,
                        true,
                        2,
                        3,
                        1e6,
                        128,
                        2.5);
        assertEquals(plan, ReplayPlan.parse(plan.words()));
        assertThrows(IllegalArgumentException.class, () -> plan.withIndex("nonesuch"));
        assertThrows(IllegalArgumentException.class, () -> plan.withWarmUp(-1));
        assertThrows(IllegalArgumentException.class, () -> plan.withSpeedUp(Double.NaN));
        assertThrows(IllegalArgumentException.class, () -> plan.withRoom(0));
        assertThrows(IllegalArgumentException.class, () -> plan.withLimit(-1));
        assertThrows(IllegalArgumentException.class, () -> plan.withWarmUpSeconds(Double.NaN));
        assertThrows(IllegalArgumentException.class, () -> plan.withBeside(0, 0, 0));
    }
}
