package io.kvasir.pipeline.source;

import static io.kvasir.pipeline.source.Messages.batch;
import static io.kvasir.pipeline.source.Messages.cleared;
import static io.kvasir.pipeline.source.Messages.pack;
import static io.kvasir.pipeline.source.Messages.range;
import static io.kvasir.pipeline.source.Messages.removed;
import static io.kvasir.pipeline.source.Messages.stored;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.kvasir.core.index.PrefixIndex;
import io.kvasir.core.index.PrefixIndexConfig;
import io.kvasir.pipeline.events.IndexApplier;
import io.kvasir.pipeline.wire.KvBatch;

import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import org.junit.jupiter.params.provider.MethodSource;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayDeque;
import java.util.Arrays;
import java.util.EnumMap;
import java.util.List;
import java.util.Map;
import java.util.Queue;
import java.util.Set;
import java.util.concurrent.TimeUnit;
import java.util.function.UnaryOperator;

/** The table of causes in {@code docs/operations/index-truth.md}: each row begins and ends. */
class IndexTruthTest {
    private static final Path PAGE =
            Path.of(System.getProperty("kvasir.root"), "docs/operations/index-truth.md");
    private static final int SLOT = 1;
    private static final int BLOCK = 4;
    private static final double HALF = 0.5;
    private static final Set<IndexCause> NOT_WRONG =
            Set.of(
                    IndexCause.NONE,
                    IndexCause.CLOSED,
                    IndexCause.NOT_LOADED,
                    IndexCause.GAP,
                    IndexCause.NOT_APPLIED);
    private static final String OTHER_TEST = "TruthTest";

    private final PrefixIndex index = new PrefixIndex(new PrefixIndexConfig(4, 64, 64));
    private final IndexApplier applier = new IndexApplier(index);
    private final Queue<KvBatch> waiting = new ArrayDeque<>();
    private boolean late;
    private boolean failing;
    private long nowNs = 1;
    private EngineStream stream;

    /** A row of the table. */
    record Row(String cause, String state, String credit, String test) {}

    @AfterEach
    void closeIndex() {
        index.close();
    }

    static List<Row> rows() throws IOException {
        return Files.readAllLines(PAGE).stream()
                .filter(line -> line.startsWith("| `"))
                .map(line -> line.split(" *\\| *"))
                .map(cell -> new Row(cell[1].replace("`", ""), cell[2], cell[3], cell[8]))
                .toList();
    }

    private static Map<IndexCause, Row> byCause() throws IOException {
        final Map<IndexCause, Row> found = new EnumMap<>(IndexCause.class);
        for (Row row : rows()) {
            final IndexCause cause =
                    Arrays.stream(IndexCause.values())
                            .filter(each -> each.spelling().equals(row.cause))
                            .findFirst()
                            .orElseThrow(() -> new AssertionError("no cause " + row));
            assertEquals(null, found.put(cause, row), "twice: " + row);
        }
        return found;
    }

    @Test
    void everyCauseHasOneRowInTheOrderOfPrecedence() throws IOException {
        assertEquals(
                Arrays.stream(IndexCause.values()).map(IndexCause::spelling).toList(),
                rows().stream().map(Row::cause).toList());
        for (Map.Entry<IndexCause, Row> each : byCause().entrySet()) {
            assertEquals(each.getKey().state().name(), each.getValue().state);
        }
    }

    @ParameterizedTest
    @EnumSource(IndexCause.class)
    void everyCauseBeginsCostsAndEndsAsTheTableSays(IndexCause cause) throws IOException {
        final Row row = byCause().get(cause);
        if (row.test.equals(OTHER_TEST)) {
            assertEquals(IndexCause.NO_EVENTS, cause); // it has no stream
            return;
        }
        begin(cause);
        assertEquals(cause, stream.status().cause(), stream.status().problem());
        assertEquals(cause.state(), stream.state());
        assertEquals(cause.state(), stream.status().state());
        assertEquals(NOT_WRONG.contains(cause), stream.status().problem().isEmpty(), row.cause);
        assertCredit(row.credit);
        end(cause);
        assertEquals(IndexCause.NONE, stream.status().cause(), stream.status().problem());
        assertEquals(IndexState.EXACT, stream.state());
        assertEquals(1, stream.credit(HALF));
    }

    private void assertCredit(String said) {
        switch (said) {
            case "0" -> assertEquals(0, stream.credit(HALF));
            case "1" -> assertEquals(1, stream.credit(HALF));
            case "degraded" -> assertEquals(HALF, stream.credit(HALF));
            case "→ 0" -> {
                assertTrue(stream.credit(HALF) > 0, "at once: " + stream.credit(HALF));
                nowNs += FreshnessLimits.DEFAULT.decayNs() / 2;
                assertEquals(HALF, stream.credit(1), 0.01);
                pass(60);
                assertEquals(0, stream.credit(HALF));
            }
            default -> throw new AssertionError("credit " + said);
        }
    }

    private void begin(IndexCause cause) {
        switch (cause) {
            case NOT_LOADED -> stream = open(c -> c.withReplayEndpoint("direct"));
            case GAP -> {
                seen(c -> c.withReplayEndpoint("direct"));
                stream.onMessage(2, store(3));
            }
            case FOREIGN_RANK -> {
                stream = open(c -> c);
                stream.onMessage(0, storeOfRank(3));
            }
            case INDEX_FULL -> {
                seen(c -> c);
                for (int i = 1; stream.status().missingBlocks() == 0; i++) {
                    stream.onMessage(i, store(i + 1));
                }
            }
            case FORECASTS -> {
                seen(c -> c);
                for (int i = 0; i < ForecastWatch.TOO_LOW; i++) {
                    assertEquals(IndexState.EXACT, stream.state());
                    stream.reportEngineHit(0, 2 * BLOCK, true);
                }
            }
            default -> {
                seen(c -> c);
                beginOfLoaded(cause);
            }
        }
    }

    private void beginOfLoaded(IndexCause cause) {
        switch (cause) {
            case CLOSED -> stream.close();
            case NO_CONNECTION -> stream.onDisconnected("reset by peer");
            case SILENT -> serve(FreshnessLimits.DEFAULT.servedPrompts(), false);
            case NO_STORES -> serve(8 * FreshnessLimits.DEFAULT.servedPrompts(), true);
            case UNPROVEN_ENGINE -> {
                stream.onDisconnected("reset by peer");
                stream.onConnected();
            }
            case BLOCK_SIZE ->
                    stream.onMessage(
                            1, batch(stored(List.of(2), null, range(1, 2 * BLOCK), 2 * BLOCK)));
            case UNUSABLE_EVENTS ->
                    stream.onMessage(1, batch(stored(List.of(2), null, range(1, 3), BLOCK)));
            case LOST_MESSAGES -> stream.onMessage(7, store(8));
            case REFUSED_STORES ->
                    stream.onMessage(1, batch(stored(List.of(2), 77, range(1, BLOCK), BLOCK)));
            case INDEX_ERROR -> {
                failing = true;
                stream.onMessage(1, store(2));
                failing = false;
            }
            case UNNAMED_ADAPTERS ->
                    stream.onMessage(
                            1, batch(stored(List.of(2), null, range(1, 4), BLOCK, "lora_id", 7)));
            case NOT_APPLIED -> {
                late = true;
                stream.onMessage(1, store(2));
            }
            case NONE -> {}
            case NOT_LOADED, GAP, FOREIGN_RANK, INDEX_FULL, FORECASTS, NO_EVENTS ->
                    throw new AssertionError(cause);
        }
    }

    private void end(IndexCause cause) {
        switch (cause) {
            case CLOSED -> seen(c -> c);
            case NO_CONNECTION -> stream.onCaughtUp();
            case SILENT, NO_STORES -> stream.onMessage(stream.lastNumber() + 1, store(9));
            case UNPROVEN_ENGINE -> stream.onMessage(0, store(1));
            case FOREIGN_RANK, NOT_LOADED -> {
                stream.onMessage(0, store(1));
                stream.replayEnded();
            }
            case GAP -> stream.onMessage(1, store(2));
            case BLOCK_SIZE,
                    UNUSABLE_EVENTS,
                    LOST_MESSAGES,
                    REFUSED_STORES,
                    INDEX_ERROR,
                    INDEX_FULL,
                    UNNAMED_ADAPTERS ->
                    stream.onMessage(stream.lastNumber() + 1, batch(cleared()));
            case FORECASTS -> {
                for (int i = 0; i < ForecastWatch.RECENT - 1; i++) {
                    assertEquals(IndexState.DEGRADED, stream.state());
                    stream.reportEngineHit(2 * BLOCK, 2 * BLOCK, true);
                }
            }
            case NOT_APPLIED -> waiting.forEach(applier::offer);
            case NONE -> {}
            case NO_EVENTS -> throw new AssertionError(cause);
        }
    }

    /** Those of a model whose layers all have a window are left out: its worker is never exact. */
    @Test
    void anEngineThatStoresBlocksOfWindowsAloneIsMuteAndTheProblemSaysWhy() {
        seen(c -> c);
        stream.onMessage(
                1,
                batch(
                        stored(
                                List.of(2),
                                null,
                                range(1, BLOCK),
                                BLOCK,
                                "group_idx",
                                0,
                                "kv_cache_spec_kind",
                                "sliding_window")));
        for (int i = 2; i < 2 + 8 * FreshnessLimits.DEFAULT.servedPrompts(); i++) {
            stream.onMessage(i, batch(removed(List.of(1_000 + i))));
            nowNs += FreshnessLimits.DEFAULT.silentAfterNs();
            stream.reportServed(stream.activityMark());
        }
        assertEquals(IndexCause.NO_STORES, stream.status().cause());
        assertTrue(
                stream.status().problem().contains("of kind sliding_window, which is not indexed"),
                stream.status().problem());
    }

    /** The engine serves prompts with new blocks, for longer than it may be silent. */
    private void serve(int prompts, boolean activeMeanwhile) {
        for (int i = 1; i <= prompts; i++) {
            assertEquals(IndexState.EXACT, stream.state());
            if (activeMeanwhile) {
                stream.onMessage(i, batch(removed(List.of(1_000 + i))));
            }
            if (i == prompts) {
                nowNs += FreshnessLimits.DEFAULT.silentAfterNs();
            }
            stream.reportServed(stream.activityMark());
        }
    }

    private void seen(UnaryOperator<SourceConfig> change) {
        stream = open(change);
        stream.onMessage(0, store(1));
        stream.replayEnded();
    }

    private EngineStream open(UnaryOperator<SourceConfig> change) {
        return new EngineStream(
                change.apply(SourceConfig.of("w", SLOT, BLOCK, "")), this::offer, () -> nowNs);
    }

    private boolean offer(KvBatch batch) {
        if (failing) {
            batch.listener().failed();
            return true;
        }
        if (!late) {
            return applier.offer(batch);
        }
        final KvBatch copy = new KvBatch();
        copy.copyFrom(batch);
        return waiting.add(copy);
    }

    private void pass(long seconds) {
        nowNs += TimeUnit.SECONDS.toNanos(seconds);
    }

    private static byte[] store(int hash) {
        return batch(stored(List.of(hash), null, range(hash * 10, hash * 10 + 3), BLOCK));
    }

    private static byte[] storeOfRank(int rank) {
        return pack(List.of(1.5, List.of(stored(List.of(1), null, range(1, BLOCK), BLOCK)), rank));
    }

    @Test
    void anEngineThatStoresNothingAsItsBlocksAreOfAnotherSizeIsSaidToBeThat() {
        stream = open(c -> c);
        stream.onMessage(0, batch(cleared()));
        final int prompts = 8 * FreshnessLimits.DEFAULT.servedPrompts();
        for (int i = 1; i <= prompts; i++) {
            stream.onMessage(i, batch(stored(List.of(i), null, range(1, 2 * BLOCK), 2 * BLOCK)));
            if (i == prompts) {
                assertEquals(IndexState.DEGRADED, stream.state());
                nowNs += FreshnessLimits.DEFAULT.silentAfterNs();
            }
            stream.reportServed(stream.activityMark());
        }
        assertEquals(IndexState.STALE, stream.state());
        pass(3_600);
        assertEquals(0, stream.credit(HALF), "nothing can match");
        assertEquals(IndexCause.BLOCK_SIZE, stream.status().cause());
        final String problem = stream.status().problem();
        assertTrue(problem.startsWith("no event stored a block since"), problem);
        assertTrue(problem.contains("set block-size=8"), problem);
    }

    @Test
    void theEnginesOwnBlockSizeCountsUntilAnEventNamesOne() {
        stream = open(c -> c);
        stream.reportBlockSize(2 * BLOCK);
        stream.onMessage(0, batch(cleared()));
        assertEquals(IndexCause.BLOCK_SIZE, stream.status().cause());
        assertEquals(IndexState.DEGRADED, stream.state());
        assertEquals(HALF, stream.credit(HALF));
        assertTrue(
                stream.status().problem().contains("set block-size=8"), stream.status().problem());
        stream.reportBlockSize(0); // it does not say any more
        assertEquals(IndexState.EXACT, stream.state());
        stream.reportBlockSize(2 * BLOCK);
        assertEquals(IndexState.DEGRADED, stream.state());
        stream.onMessage(1, store(1)); // what counts are the blocks of its events
        assertEquals(IndexState.EXACT, stream.state());
        stream.reportBlockSize(2 * BLOCK);
        assertEquals(IndexState.EXACT, stream.state());
    }

    @Test
    void aRestartedEngineIsNotBelievedToHaveTheBlockSizeOfTheOneBefore() {
        seen(c -> c);
        assertEquals(BLOCK, stream.status().learnedBlockSize());
        stream.onRestart("another publisher");
        assertEquals(0, stream.status().learnedBlockSize());
        stream.reportBlockSize(2 * BLOCK); // it was started with other blocks, says its /metrics
        stream.onMessage(0, batch(cleared()));
        assertEquals(IndexCause.BLOCK_SIZE, stream.status().cause());
        stream.onMessage(1, store(1));
        assertEquals(IndexState.EXACT, stream.state());
    }

    @Test
    void storesOfAnotherSizeAreNeverHeld() {
        seen(c -> c);
        stream.onMessage(1, batch(cleared()));
        stream.onMessage(2, batch(stored(List.of(2), null, range(1, 8), 2 * BLOCK)));
        assertEquals(0, index.heldBlocks(SLOT));
        assertEquals(IndexState.DEGRADED, stream.state());
        assertEquals(8, stream.status().learnedBlockSize());
    }

    @ParameterizedTest
    @MethodSource("slowWorkers")
    void aWorkerThatAnnouncesWhatItServesIsFreshHoweverSlow(long secondsEach) {
        seen(c -> c);
        for (int i = 1; i <= 100; i++) {
            pass(secondsEach);
            stream.onMessage(
                    i, batch(removed(List.of(i)), stored(List.of(i + 1), null, tokens(i), BLOCK)));
            stream.reportServed(stream.activityMark());
            stream.tick();
            assertEquals(IndexState.EXACT, stream.state());
        }
    }

    /** Engines announce blocks as they compute them, of several prompts in one message. */
    @Test
    void promptsThatWereAnnouncedBeforeTheirAnswersWereThereAreNoSilence() {
        seen(c -> c);
        final long booked = stream.activityMark();
        stream.onMessage(1, store(2));
        for (int i = 0; i < 100; i++) {
            stream.reportServed(booked);
        }
        pass(3_600);
        stream.tick();
        assertEquals(IndexState.EXACT, stream.state());
        for (int i = 0; i < 3; i++) {
            stream.reportServed(stream.activityMark());
        }
        pass(60);
        stream.tick();
        assertEquals(IndexCause.SILENT, stream.status().cause());
    }

    /** The same for messages that store nothing. */
    @Test
    void promptsThatWereStoredBeforeTheirAnswersWereThereMakeNoEngineMute() {
        seen(c -> c);
        final long booked = stream.activityMark();
        stream.onMessage(1, store(2));
        for (int i = 0; i < 100; i++) {
            stream.reportServed(booked);
        }
        stream.onMessage(2, batch(removed(List.of(1))));
        pass(3_600);
        stream.tick();
        assertEquals(IndexState.EXACT, stream.state());
    }

    static List<Long> slowWorkers() {
        return List.of(0L, 1L, 60L, 3_600L);
    }

    private static List<Integer> tokens(int i) {
        return range(10 * i, 10 * i + BLOCK - 1);
    }

    @Test
    void aWorkerThatServesOnlyWhatItHoldsIsNotSuspectedHoweverLong() {
        seen(c -> c);
        for (int i = 0; i < 10_000; i++) { // nothing new is served: nothing is reported
            pass(3_600);
            stream.tick();
            stream.reportEngineHit(BLOCK, BLOCK, true);
        }
        assertEquals(IndexState.EXACT, stream.state());
        assertEquals(1, stream.credit(HALF));
    }

    @Test
    void aDeadPublisherOfAWorkerThatHasEvictedShowsInItsHits() {
        seen(c -> c.withRemovals(RemovalRule.LAST_COPY));
        for (int i = 0; i < ForecastWatch.TOO_HIGH; i++) {
            stream.reportEngineHit(BLOCK, 0, true);
        }
        assertEquals(IndexState.DEGRADED, stream.state());
        assertEquals(0, index.heldBlocks(SLOT)); // what the engine has not is not believed
    }

    @Test
    void ofTwoRanksTheSilentOneAloneIsStale() {
        seen(c -> c);
        final EngineStream other = open(c -> c.withDpRank(1).withSlot(2));
        other.onMessage(0, pack(List.of(1.5, List.of(), 1)));
        for (int i = 1; i <= 3; i++) {
            pass(3);
            stream.reportServed(stream.activityMark());
            other.reportServed(other.activityMark());
            stream.onMessage(i, store(i + 1));
        }
        assertEquals(IndexState.EXACT, stream.state());
        assertEquals(IndexState.STALE, other.state());
        assertEquals(IndexCause.SILENT, other.status().cause());
    }

    @Test
    void whileMessagesWaitForAReplayNobodyIsCalledMute() {
        stream = open(c -> c.withReplayEndpoint("direct"));
        stream.onConnected();
        for (int i = 5; i < 100; i++) {
            stream.reportServed(stream.activityMark());
            stream.onMessage(i, store(i + 1));
            pass(1);
            stream.tick();
        }
        assertEquals(IndexCause.NOT_LOADED, stream.status().cause());
    }

    @Test
    void wrongForecastsHaveEverythingAskedForOnceAndAreWrongUntilTheyAreRight() {
        seen(c -> c.withReplayEndpoint("direct"));
        for (int i = 0; i < ForecastWatch.TOO_LOW; i++) {
            stream.reportEngineHit(0, 2 * BLOCK, true);
        }
        assertEquals(IndexCause.FORECASTS, stream.status().cause());
        assertTrue(
                stream.status().problem().contains("prediction-check"), stream.status().problem());
        assertEquals(1, asked()); // once, however long it takes
        assertEquals(IndexCause.FORECASTS, stream.status().cause());
        assertEquals(1, index.heldBlocks(SLOT));
        for (int i = 1; i < ForecastWatch.RECENT; i++) {
            assertEquals(IndexState.DEGRADED, stream.state());
            stream.reportEngineHit(BLOCK, BLOCK, true);
        }
        assertEquals(IndexState.EXACT, stream.state());
        assertEquals(0, asked());
    }

    /** How often everything was asked for in an hour; the engine has it. */
    private int asked() {
        int asked = 0;
        for (int i = 0; i < 500; i++) {
            pass(1);
            stream.tick();
            if (stream.replayFrom() >= 0) {
                asked++;
                stream.onReplayed(0, store(1));
                stream.replayEnded();
            }
        }
        return asked;
    }

    @Test
    void whatIsKnownToBeMissingIsNoMatterOfForecasts() {
        seen(c -> c);
        stream.onMessage(7, store(8));
        for (int i = 0; i < 100; i++) {
            stream.reportEngineHit(0, 2 * BLOCK, true);
        }
        assertEquals(IndexCause.LOST_MESSAGES, stream.status().cause());
        stream.onMessage(8, batch(cleared()));
        assertEquals(IndexState.EXACT, stream.state());
    }

    @Test
    void aRestartedEngineIsNotJudgedByTheOneBefore() {
        seen(c -> c);
        for (int i = 0; i < ForecastWatch.TOO_LOW; i++) {
            stream.reportEngineHit(0, 2 * BLOCK, true);
        }
        assertEquals(IndexState.DEGRADED, stream.state());
        stream.onRestart("another process");
        stream.onMessage(0, store(1));
        assertEquals(IndexState.EXACT, stream.state());
        assertFalse(stream.status().problem().contains("prediction-check"));
    }
}
