package io.kvasir.pipeline.source;

import static io.kvasir.pipeline.source.Messages.batch;
import static io.kvasir.pipeline.source.Messages.cleared;
import static io.kvasir.pipeline.source.Messages.range;
import static io.kvasir.pipeline.source.Messages.removed;
import static io.kvasir.pipeline.source.Messages.stored;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.kvasir.core.hash.BlockHasher;
import io.kvasir.core.index.LowerTiers;
import io.kvasir.core.index.LowerTiersConfig;
import io.kvasir.core.index.PrefixIndex;
import io.kvasir.core.index.PrefixIndexConfig;
import io.kvasir.core.index.StorageTier;
import io.kvasir.core.memory.MemoryGate;
import io.kvasir.core.radix.OverlapScores;
import io.kvasir.pipeline.events.IndexApplier;
import io.kvasir.pipeline.source.EngineStream.ReplayStep;
import io.kvasir.pipeline.wire.KvEventSink;
import io.kvasir.pipeline.wire.LoraNumbers;

import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;

/** Blocks of adapters that events name by number alone. */
class LoraNumbersTest {
    private static final int SLOT = 2;
    private static final int BLOCK = 4;
    private static final double DEGRADED_CREDIT = 0.25;

    private final PrefixIndex index = new PrefixIndex(new PrefixIndexConfig(4, 1 << 15, 1 << 15));
    private final List<byte[]> sent = new ArrayList<>(); // of this life of the engine
    private EngineStream stream = stream(true, Map.of());

    private EngineStream stream(boolean replays, Map<Long, String> configured) {
        final SourceConfig config =
                SourceConfig.of("w", SLOT, BLOCK, "").withLoraNumbers(configured);
        return stream(
                replays ? config.withReplayEndpoint("direct") : config, new IndexApplier(index));
    }

    /** Keeps the blocks of the host, too. */
    private EngineStream streamOfHost() {
        final MemoryGate gate = index.gate();
        final LowerTiersConfig lower =
                new LowerTiersConfig(Set.of(StorageTier.HOST), index.config());
        return stream(
                SourceConfig.of("w", SLOT, BLOCK, "").withTiers(Set.of(StorageTier.HOST)),
                new IndexApplier(index, new LowerTiers(index, lower, gate)));
    }

    private static EngineStream stream(SourceConfig config, KvEventSink sink) {
        return new EngineStream(config, sink, () -> 0);
    }

    private EngineStream stream(RemovalRule rule) {
        return stream(
                SourceConfig.of("w", SLOT, BLOCK, "").withRemovals(rule), new IndexApplier(index));
    }

    @AfterEach
    void closeIndex() {
        index.close();
    }

    private void send(Object... events) {
        sent.add(batch(events));
        stream.onMessage(sent.size() - 1, sent.getLast());
    }

    /** One root block of an adapter, named by its number alone. */
    private static Map<String, Object> store(int hash, int number, Object... more) {
        final List<Object> all = new ArrayList<>(List.of("lora_id", number));
        all.addAll(List.of(more));
        return stored(List.of(hash), null, tokens(hash), BLOCK, all.toArray());
    }

    private static List<Integer> tokens(int hash) {
        return range(hash * 10, hash * 10 + BLOCK - 1);
    }

    /** Answers what the stream asks for, until it asks for nothing. */
    private void replay() {
        for (long from = stream.replayFrom();
                from != EngineStream.NO_REPLAY;
                from = stream.replayFrom()) {
            boolean goesOn = true;
            for (int i = (int) from; i < sent.size() && goesOn; i++) {
                goesOn = stream.onReplayed(i, sent.get(i)) == ReplayStep.CONTINUE;
            }
            if (goesOn) {
                stream.replayEnded();
            }
        }
    }

    private boolean holds(int hash, String adapterOrNull) {
        final int[] ids = tokens(hash).stream().mapToInt(i -> i).toArray();
        final long[] locals = new long[1];
        BlockHasher.localHashes(
                ids, 0, BLOCK, BLOCK, BlockHasher.seed(adapterOrNull, null), locals);
        return index.match(locals, 1, new OverlapScores(4)) == 1;
    }

    @Test
    void aConfiguredNumberIsTheAdapterOfItsBlocks() {
        stream = stream(false, Map.of(7L, "a"));
        send(store(1, 7), store(2, 0), store(3, 7, "extra_keys", List.of(List.of("a"))));
        assertTrue(holds(1, "a") && holds(2, null) && holds(3, "a"));
        assertTrue(!holds(1, null) && !holds(1, "b"));
        assertEquals(IndexState.EXACT, stream.state());
        assertEquals(Map.of(), stream.status().drops());
    }

    @Test
    void aNumberWithoutANameLeavesTheViewDegradedAndTheRestOfItInFullCredit() {
        send(store(1, 0), store(2, 7));
        assertEquals(IndexState.DEGRADED, stream.state());
        assertEquals(1, stream.credit(DEGRADED_CREDIT));
        assertEquals(Map.of("unnamed_lora", 1L), stream.status().drops());
        assertEquals(
                "the adapter of lora_id 7 is not known: 1 blocks that name it are left out; set"
                        + " lora-ids=NAME:7 of the worker",
                stream.status().problem());
        assertTrue(holds(1, null));
    }

    @Test
    void theNameThatComesLaterBringsTheBlocksByAReplay() {
        send(store(1, 0), store(2, 7));
        send(stored(List.of(3), 2, tokens(3), BLOCK, "lora_id", 7));
        stream.loraNumbers(Map.of(8L, "b"));
        assertEquals(EngineStream.NO_REPLAY, stream.replayFrom());
        stream.loraNumbers(Map.of(7L, "a"));
        replay();
        assertEquals(IndexState.EXACT, stream.state());
        assertEquals(1, stream.credit(DEGRADED_CREDIT));
        assertTrue(holds(1, null) && holds(2, "a"));
        assertEquals("", stream.status().problem());
    }

    @Test
    void anEventWithBothSaysTheNameOfTheOthers() {
        send(store(1, 7, "lora_name", "a"));
        send(store(2, 7));
        assertTrue(holds(2, "a"));
        assertEquals(IndexState.EXACT, stream.state());
    }

    @Test
    void withoutAReplayTheViewIsExactWhenTheBlocksAreGone() {
        stream = stream(false, Map.of());
        send(store(1, 7), store(2, 7));
        send(stored(List.of(3), 2, tokens(3), BLOCK, "lora_id", 7));
        stream.loraNumbers(Map.of(7L, "a"));
        // goes on where nothing is: left out too, and no unknown parent
        send(stored(List.of(4), 3, tokens(4), BLOCK, "lora_id", 7));
        assertEquals(IndexState.DEGRADED, stream.state());
        assertEquals(1, stream.credit(DEGRADED_CREDIT));
        send(removed(List.of(4, 3)));
        send(removed(List.of(1)));
        assertEquals(IndexState.DEGRADED, stream.state());
        send(store(2, 7)); // announced again, now with a name
        assertTrue(holds(2, "a"));
        assertEquals(IndexState.DEGRADED, stream.state()); // of one copy the index does not know
        send(removed(List.of(2)));
        assertEquals(IndexState.EXACT, stream.state());
        assertTrue(holds(2, "a"));
    }

    @Test
    void aBlockThatWasLeftOutTwiceIsMissingUntilBothCopiesAreGone() {
        stream = stream(RemovalRule.PHYSICAL);
        send(store(5, 7));
        send(store(5, 7));
        send(removed(List.of(5)));
        assertEquals(IndexState.DEGRADED, stream.state());
        send(removed(List.of(5)));
        assertEquals(IndexState.EXACT, stream.state());
    }

    @Test
    void whereARemovalMeansTheLastCopyOneIsEnough() {
        stream = stream(RemovalRule.LAST_COPY);
        send(store(5, 7));
        send(store(5, 7));
        send(removed(List.of(5)));
        assertEquals(IndexState.EXACT, stream.state());
        send(store(5, 7));
        send(store(5, 7, "lora_name", "a"));
        assertEquals(IndexState.EXACT, stream.state());
        send(removed(List.of(5)));
        assertTrue(!holds(5, "a"));
    }

    @Test
    void copiesLeftOutBeforeTheNameAreTheFirstThatGo() {
        stream = stream(RemovalRule.PHYSICAL);
        send(store(5, 7));
        send(store(5, 7, "lora_name", "a"));
        assertEquals(IndexState.DEGRADED, stream.state());
        send(stored(List.of(6), 5, tokens(6), BLOCK, "lora_id", 7)); // its parent is there
        assertEquals(Map.of("unnamed_lora", 1L), stream.status().drops());
        send(removed(List.of(6, 5)));
        assertEquals(IndexState.EXACT, stream.state());
        assertTrue(holds(5, "a"));
        send(removed(List.of(5)));
        assertTrue(!holds(5, "a"));
        assertEquals(0, index.heldBlocks());
        assertEquals(IndexState.EXACT, stream.state());
    }

    @Test
    void theCopiesThatAreSaidToBeLeftSettleIt() {
        stream = stream(RemovalRule.PHYSICAL);
        send(store(5, 7));
        send(store(5, 7));
        send(store(5, 7, "lora_name", "a"));
        send(removed(List.of(5), "remaining_copy_counts", List.of(2)));
        assertEquals(IndexState.DEGRADED, stream.state());
        send(removed(List.of(5), "remaining_copy_counts", List.of(1)));
        assertEquals(IndexState.EXACT, stream.state());
        assertTrue(holds(5, "a"));
        send(removed(List.of(5), "remaining_copy_counts", List.of(0)));
        assertEquals(0, index.heldBlocks());
    }

    @Test
    void aBlockIsMissingFromEachTierByItself() {
        stream = streamOfHost();
        send(store(5, 7));
        send(store(5, 7, "medium", "CPU"));
        send(removed(List.of(5), "medium", "CPU"));
        assertEquals(IndexState.DEGRADED, stream.state());
        send(removed(List.of(5)));
        assertEquals(IndexState.EXACT, stream.state());
    }

    @Test
    void aNamedStoreInOneTierLeavesTheBlockMissingFromTheOther() {
        stream = streamOfHost();
        send(store(5, 7));
        send(store(5, 7, "medium", "CPU", "lora_name", "a"));
        assertEquals(IndexState.DEGRADED, stream.state());
        send(removed(List.of(5)));
        assertEquals(IndexState.EXACT, stream.state());
    }

    @Test
    void aStoreByNameAloneOfABlockThatWasLeftOutIsMissingToo() {
        stream = streamOfHost();
        send(store(5, 7));
        send(Map.of("type", "BlockStored", "block_hashes", List.of(5), "medium", "CPU"));
        send(removed(List.of(5)));
        assertEquals(IndexState.DEGRADED, stream.state());
        send(removed(List.of(5), "medium", "CPU"));
        assertEquals(IndexState.EXACT, stream.state());
    }

    @Test
    void copiesLeftInALowerTierSettleNoOtherBlock() {
        stream = streamOfHost();
        send(store(5, 7, "medium", "CPU"), store(6, 7, "medium", "CPU"));
        send(removed(List.of(5, 6), "medium", "CPU", "remaining_copy_counts", List.of(1, 0)));
        assertEquals(IndexState.DEGRADED, stream.state());
        send(removed(List.of(5), "medium", "CPU", "remaining_copy_counts", List.of(0)));
        assertEquals(IndexState.EXACT, stream.state());
    }

    @Test
    void aMessageThatIsDecodedAgainLeavesItsBlocksOutOnce() {
        final IndexApplier applier = new IndexApplier(index);
        final int[] refusals = {2};
        stream =
                stream(
                        SourceConfig.of("w", SLOT, BLOCK, "").withReplayEndpoint("direct"),
                        batch -> refusals[0]-- <= 0 && applier.offer(batch));
        send(store(5, 7));
        replay();
        replay();
        assertTrue(refusals[0] < 0);
        assertEquals(IndexState.DEGRADED, stream.state());
        send(removed(List.of(5)));
        assertEquals(IndexState.EXACT, stream.state());
    }

    @Test
    void aClearEndsIt() {
        stream = stream(false, Map.of());
        send(store(1, 7));
        send(cleared());
        assertEquals(IndexState.EXACT, stream.state());
        assertEquals("", stream.status().problem());
    }

    @Test
    void aRestartForgetsWhatWasLearnedAndKeepsWhatIsConfigured() {
        stream = stream(true, Map.of(1L, "fixed"));
        stream.loraNumbers(Map.of(7L, "a"));
        send(store(1, 7), store(2, 1));
        assertTrue(holds(1, "a") && holds(2, "fixed"));
        sent.clear();
        stream.onRestart("another publisher");
        send(store(3, 7), store(4, 1));
        assertTrue(!holds(3, "a") && holds(4, "fixed"));
        assertEquals(IndexState.DEGRADED, stream.state());
        stream.loraNumbers(Map.of(7L, "b"));
        replay();
        assertTrue(holds(3, "b"));
        assertEquals(IndexState.EXACT, stream.state());
    }

    @Test
    void aNumberThatGetsAnotherMeaningGivesNoWrongHits() {
        stream.loraNumbers(Map.of(7L, "a", 8L, "c"));
        send(store(1, 7), store(2, 8), store(3, 0));
        // "a" was unloaded and "b" has its number, which the router does not know yet
        send(store(4, 7));
        assertTrue(holds(4, "a"));
        stream.loraNumbers(Map.of(7L, "b", 8L, "c"));
        replay();
        assertTrue(holds(2, "c") && holds(3, null));
        for (int hash : new int[] {1, 4}) {
            assertTrue(!holds(hash, "a") && !holds(hash, "b"));
        }
        assertEquals(IndexState.DEGRADED, stream.state());
        assertTrue(stream.status().problem().startsWith("lora_id 7 has meant two adapters"));
        send(store(5, 7));
        assertTrue(!holds(5, "a") && !holds(5, "b"));

        send(cleared());
        send(store(6, 7));
        assertTrue(holds(6, "b"));
        assertEquals(IndexState.EXACT, stream.state());
    }

    @Test
    void aNumberThatWasTakenAwayMeansNothingUntilItIsGivenAgain() {
        stream.loraNumbers(Map.of(7L, "a"));
        send(store(1, 7));
        stream.loraNumbers(Map.of());
        send(store(2, 7));
        assertTrue(!holds(2, "a"));
        assertEquals(IndexState.DEGRADED, stream.state());
        stream.loraNumbers(Map.of(7L, "b"));
        replay();
        assertTrue(!holds(1, "a") && !holds(1, "b") && !holds(2, "b"));
        send(cleared(), store(3, 0));
        send(store(4, 7));
        assertTrue(holds(4, "b"));
        assertEquals(IndexState.EXACT, stream.state());
    }

    @Test
    void aClearBeforeTheChangeDoesNotSettleItInAReplay() {
        stream.loraNumbers(Map.of(7L, "a"));
        send(cleared());
        send(store(1, 7));
        stream.loraNumbers(Map.of(7L, "b"));
        replay();
        assertTrue(!holds(1, "a") && !holds(1, "b"));
        assertEquals(IndexState.DEGRADED, stream.state());
    }

    @Test
    void anEventThatContradictsWhatWasStoredByNumberDropsIt() {
        stream.loraNumbers(Map.of(7L, "a"));
        send(store(1, 7));
        send(store(2, 7, "lora_name", "b"));
        replay();
        assertTrue(!holds(1, "a") && !holds(1, "b") && holds(2, "b"));
        assertEquals(IndexState.DEGRADED, stream.state());
        stream.onRestart("another publisher");
        sent.clear();
        send(store(3, 7, "lora_name", "b"));
        send(store(4, 7));
        assertTrue(holds(4, "b"));
        assertEquals(IndexState.EXACT, stream.state());
    }

    @Test
    void anotherMeaningWithoutAReplayDropsTheViewUntilAClear() {
        stream = stream(false, Map.of());
        stream.loraNumbers(Map.of(7L, "a"));
        send(store(1, 7), store(2, 0));
        stream.loraNumbers(Map.of(7L, "b"));
        assertTrue(!holds(1, "a") && !holds(2, null));
        assertEquals(IndexState.DEGRADED, stream.state());
        send(cleared());
        send(store(3, 7));
        assertTrue(holds(3, "b"));
        assertEquals(IndexState.EXACT, stream.state());
    }

    @Test
    void moreBlocksThanAreRememberedEndWithAReplayOrAClear() {
        stream = stream(true, Map.of());
        for (int i = 0; i < 20; i++) {
            final List<Integer> hashes = range(1_000 * i, 1_000 * i + 999);
            send(stored(hashes, null, range(1, 4_000), BLOCK, "lora_id", 7));
        }
        for (int i = 0; i < 20; i++) {
            send(removed(range(1_000 * i, 1_000 * i + 999)));
        }
        assertEquals(IndexState.DEGRADED, stream.state());
        send(cleared());
        assertEquals(IndexState.EXACT, stream.state());
    }

    @Test
    void tenThousandNumbersAreNoMoreThanTheirLimit() {
        for (int i = 1; i <= 10_000; i++) {
            send(store(i, i));
        }
        assertEquals(IndexState.DEGRADED, stream.state());
        final Map<Long, String> names = new HashMap<>();
        for (long number = 1; number <= 4_097; number++) {
            names.put(number, "a" + number);
        }
        assertThrows(IllegalArgumentException.class, () -> stream.loraNumbers(names));
        names.remove(4_097L);
        stream.loraNumbers(names);
        replay();
        assertTrue(holds(4_096, "a4096"));
        assertEquals(IndexState.DEGRADED, stream.state());
    }

    @Test
    void aListIsNamesWithNumbers() {
        assertEquals(Map.of(7L, "a", -9L, "b:c"), LoraNumbers.parse("a:7;b:c:-9"));
        assertEquals(Map.of(), LoraNumbers.parse(""));
        for (String bad : List.of("a", "a:", ":7", "a:0", "a:x", "a:7;", "a:7;b:7", "a:1.5")) {
            assertTrue(
                    assertThrows(IllegalArgumentException.class, () -> LoraNumbers.parse(bad))
                            .getMessage()
                            .startsWith(bad));
        }
    }

    @Test
    void numbersAndNamesThatAreNoneAreRefused() {
        assertThrows(IllegalArgumentException.class, () -> stream.loraNumbers(Map.of(0L, "base")));
        assertThrows(IllegalArgumentException.class, () -> stream.loraNumbers(Map.of(1L, "")));
        assertThrows(IllegalArgumentException.class, () -> stream(true, Map.of(0L, "base")));
        stream.close();
        stream.loraNumbers(Map.of(1L, "a")); // nothing
    }
}
