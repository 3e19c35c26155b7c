package io.kvasir.pipeline.wire;

import static io.kvasir.pipeline.source.Messages.batch;
import static io.kvasir.pipeline.source.Messages.list;
import static io.kvasir.pipeline.source.Messages.pack;
import static io.kvasir.pipeline.source.Messages.range;
import static io.kvasir.pipeline.source.Messages.removed;
import static io.kvasir.pipeline.source.Messages.stored;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.kvasir.core.hash.BlockHasher;
import io.kvasir.core.index.CopyRule;
import io.kvasir.core.index.StorageTier;

import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

import java.math.BigInteger;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import java.util.Set;

class EngineBatchDecoderTest {
    private static final String V2 = "cb38e4d7fb2dca5c e8d3ec39b907b74c";

    private final EngineBatchDecoder decoder = new EngineBatchDecoder(4);
    private final KvBatch out = new KvBatch();

    /** Decodes a payload and tells its operations, one line each. */
    private List<String> decode(byte[] payload) {
        out.reset(0, 0, CopyRule.PHYSICAL, false, ApplyListener.NONE);
        decoder.decode(payload, 0, payload.length, out);
        return describe(out);
    }

    static List<String> describe(KvBatch batch) {
        final List<String> lines = new ArrayList<>();
        for (int at = batch.first(); at >= 0; at = batch.next(at)) {
            final int count = batch.count(at);
            final long[] hashes = new long[Math.max(1, count)];
            switch (batch.kind(at)) {
                case STORED -> {
                    final long[] locals = new long[count];
                    batch.engineHashes(at, hashes);
                    batch.localHashes(at, locals);
                    lines.add(
                            "stored "
                                    + (batch.isRoot(at) ? "root" : "behind " + batch.parent(at))
                                    + " "
                                    + Arrays.toString(hashes)
                                    + hex(locals));
                }
                case REMOVED -> {
                    batch.engineHashes(at, hashes);
                    lines.add("removed " + Arrays.toString(Arrays.copyOf(hashes, count)));
                }
                case REMOVED_TO -> lines.add("left " + batch.engineHash(at) + ": " + count);
                case CLEARED -> lines.add("cleared");
                case TIER_CLEARED -> lines.add("tier cleared");
                case REFILL -> lines.add("refill " + count);
                case NAMED -> {
                    batch.engineHashes(at, hashes);
                    lines.add("named " + Arrays.toString(Arrays.copyOf(hashes, count)));
                }
            }
            if (batch.tier(at) != StorageTier.DEVICE) {
                lines.add(batch.tier(at) + " " + lines.removeLast());
            }
        }
        return lines;
    }

    private static String hex(long[] values) {
        final StringBuilder text = new StringBuilder();
        for (long value : values) {
            text.append(' ').append(HexFormat.of().toHexDigits(value));
        }
        return text.toString();
    }

    /** Local hashes of tokens 1..8 in blocks of 4 under a seed. */
    private static String locals(long seed) {
        final long[] locals = new long[2];
        BlockHasher.localHashes(new int[] {1, 2, 3, 4, 5, 6, 7, 8}, 0, 8, 4, seed, locals);
        return hex(locals);
    }

    @ParameterizedTest
    @CsvSource({
        "vLLM 0.32 stored,"
            + " 93cb3ff80000000000009188a474797065ab426c6f636b53746f726564ac626c6f636b5f68617368"
            + "6573926566b1706172656e745f626c6f636b5f68617368c0a9746f6b656e5f69647398010203040506"
            + "0708aa626c6f636b5f73697a6504a76c6f72615f6964c0a66d656469756da3475055a96c6f72615f6e616d65c000,"
            + " stored root [101; 102] "
                + V2,
        "vLLM 0.32 removed,"
            + " 93cb3ff80000000000009183a474797065ac426c6f636b52656d6f766564ac626c6f636b5f6861736865739166a66d656469756da347505500,"
            + " removed [102]",
        "vLLM 0.32 cleared, 93cb3ff80000000000009181a474797065b0416c6c426c6f636b73436c656172656400,"
                + " cleared",
        "vLLM 0.32 cleared without rank,"
            + " 93cb3ff80000000000009181a474797065b0416c6c426c6f636b73436c6561726564c0, cleared",
        "SGLang 0.5.21 stored,"
            + " 93cb3ff80000000000009187a474797065ab426c6f636b53746f726564ac626c6f636b5f68617368"
            + "65739265fdb1706172656e745f626c6f636b5f68617368c0a9746f6b656e5f696473980102030405060708aa626c6f636b5f73697a6504a76c6f72615f6964c0a66d656469756da347505500,"
            + " stored root [101; -3] "
                + V2,
        "SGLang 0.5.21 removed,"
            + " 93cb3ff80000000000009182a474797065ac426c6f636b52656d6f766564ac626c6f636b5f68617368657391fd00,"
            + " removed [-3]"
    })
    void goldenPayloadsOfEnginesAreDecoded(String what, String hex, String expected) {
        assertEquals(
                List.of(expected.replace(';', ',')), decode(HexFormat.of().parseHex(hex)), what);
        assertEquals(Map.of(), decoder.drops().nonZero());
    }

    @Test
    void arrayEventsOfEveryAgeAreDecoded() {
        final List<Object> oldest = list("BlockStored", List.of(5, 6), null, range(1, 8), 4);
        final List<Object> old =
                list("BlockStored", List.of(5, 6), null, range(1, 8), 4, null, "GPU");
        final List<Object> last =
                list(
                        "BlockStored",
                        List.of(5, 6),
                        null,
                        range(1, 8),
                        4,
                        null,
                        "GPU",
                        null,
                        list(null, null),
                        0,
                        "full_attention",
                        null,
                        null,
                        null);
        final List<Object> withMm =
                list(
                        "BlockStored",
                        List.of(5, 6),
                        null,
                        range(1, 8),
                        4,
                        null,
                        "GPU",
                        null,
                        null,
                        null,
                        0,
                        "full_attention",
                        null,
                        null,
                        null);
        final String expected = "stored root [5, 6] " + V2;

        assertEquals(
                List.of(expected, expected, expected, expected),
                decode(batch(oldest, old, last, withMm)));
        assertEquals(
                List.of("removed [5]", "removed [6]", "cleared"),
                decode(
                        batch(
                                list("BlockRemoved", List.of(5)),
                                list("BlockRemoved", List.of(6), "GPU", 0, null, null),
                                list("AllBlocksCleared"))));
        assertEquals(Map.of(), decoder.drops().nonZero());
    }

    @Test
    void trailingFieldsOfArrayEventsAreFilters() {
        decode(
                batch(
                        list(
                                "BlockStored",
                                List.of(5),
                                null,
                                range(1, 4),
                                4,
                                null,
                                "GPU",
                                null,
                                null,
                                1,
                                "sliding_window",
                                128,
                                null,
                                null),
                        list(
                                "BlockStored",
                                List.of(5),
                                null,
                                range(1, 4),
                                4,
                                null,
                                "GPU",
                                null,
                                null,
                                0,
                                "full_attention",
                                null,
                                "REMOTE",
                                null),
                        list(
                                "BlockStored",
                                List.of(5),
                                null,
                                range(1, 4),
                                4,
                                null,
                                "GPU",
                                null,
                                null,
                                0,
                                "full_attention",
                                null,
                                "LOCAL",
                                "kvcr"),
                        list("BlockRemoved", List.of(6), "GPU", 0, "REMOTE", null)));

        assertEquals(
                Map.of(
                        "non_main_attention_kind", 1L,
                        "non_local_locality", 2L,
                        "unsupported_ownership", 1L),
                decoder.drops().nonZero());
    }

    @Test
    void batchesOfTwoThreeAndMoreElementsAndMapsAreDecoded() {
        final Map<String, Object> event = removed(List.of(7));

        assertEquals(List.of("removed [7]"), decode(pack(list(1.5, List.of(event)))));
        assertEquals(List.of("removed [7]"), decode(pack(list(1, List.of(event), 3))));
        assertEquals(List.of("removed [7]"), decode(pack(list(null, List.of(event), null, "x"))));
        assertEquals(
                List.of("removed [7]"),
                decode(pack(Map.of("ts", 1.5, "events", List.of(event), "extra", 1))));
        final Map<String, Object> ranked = new java.util.LinkedHashMap<>();
        ranked.put("attn_dp_rank", 5);
        ranked.put("events", List.of(event));
        assertEquals(List.of("removed [7]"), decode(pack(ranked)));
        assertEquals(List.of(), decode(batch()));
        assertEquals(Map.of(), decoder.drops().nonZero());
    }

    @Test
    void hashesAreIntegersOfEitherSignOrBytesWhoseLastEightCount() {
        final BigInteger big = new BigInteger("18446744073709551613");
        final byte[] digest = HexFormat.of().parseHex("ff".repeat(24) + "00000000000000aa");
        final byte[] shortHash = {1, 2};

        assertEquals(
                List.of("stored behind 170 [-3, -4] " + V2),
                decode(batch(stored(list(big, -4L), digest, range(1, 8), 4))));
        assertEquals(
                List.of("removed [170, 258, -1]"),
                decode(batch(removed(list(digest, shortHash, -1)))));
    }

    @Test
    void parentZeroMeansRootInArraysOnly() {
        assertEquals(
                List.of("stored root [5, 6] " + V2),
                decode(batch(list("BlockStored", List.of(5, 6), 0, range(1, 8), 4))));
        assertEquals(
                List.of("stored behind 0 [5, 6] " + V2),
                decode(batch(stored(List.of(5, 6), 0, range(1, 8), 4))));
    }

    @Test
    void tokenPairsAreHashedWithTheTokenBehindTheBlock() {
        final List<Object> pairs = new ArrayList<>();
        for (int token = 1; token <= 8; token++) {
            pairs.add(List.of(token, token + 1));
        }

        assertEquals(
                List.of("stored root [5, 6]  1a92ffa9004c0851 1ac55a72d61806e3".replace("  ", " ")),
                decode(batch(stored(List.of(5, 6), null, pairs, 4))));
    }

    private static Map<String, Object> lookingAhead(Object tokens) {
        return stored(List.of(5, 6), null, range(1, 8), 4, "lookahead_token_ids", tokens);
    }

    /** As vLLM announces it since 0.33 where it drafts; of several tokens the first one counts. */
    @Test
    void theTokenBehindEachBlockMayBeNamedApart() {
        final List<String> asPairs =
                List.of("stored root [5, 6] 1a92ffa9004c0851 1ac55a72d61806e3");
        assertEquals(asPairs, decode(batch(lookingAhead(List.of(List.of(5), List.of(9))))));
        assertTrue(decoder.learnedEagle());
        assertEquals(
                asPairs,
                decode(batch(lookingAhead(List.of(List.of(5, 6, 7), List.of(9, 10, 11))))));
        assertEquals(Map.of(), decoder.drops().nonZero());
    }

    @Test
    void withoutTokensBehindItABlockIsItsOwnTokens() {
        assertEquals(List.of("stored root [5, 6] " + V2), decode(batch(lookingAhead(null))));
        assertFalse(decoder.learnedEagle());
        assertFalse(out.eagle());
    }

    @Test
    void tokensBehindBlocksThatCannotBeAreMalformed() {
        final List<Object> bad =
                List.of(
                        7,
                        "tokens",
                        List.of(),
                        List.of(List.of(5)),
                        List.of(List.of(5), List.of(9), List.of(13)),
                        List.of(List.of(5), List.of()),
                        List.of(List.of(), List.of(9)),
                        List.of(List.of(6), List.of(9)),
                        List.of(List.of("5"), List.of(9)),
                        List.of(List.of(5), List.of(1L << 32)),
                        List.of(5, 9));
        for (Object tokens : bad) {
            assertEquals(List.of(), decode(batch(lookingAhead(tokens))), tokens::toString);
        }
        final Map<String, Object> both =
                stored(
                        List.of(5),
                        null,
                        List.of(List.of(1, 2), List.of(2, 3), List.of(3, 4), List.of(4, 5)),
                        4,
                        "lookahead_token_ids",
                        List.of(List.of(5)));
        assertEquals(List.of(), decode(batch(both)));
        assertEquals(Map.of("malformed_event", bad.size() + 1L), decoder.drops().nonZero());
        assertFalse(decoder.learnedEagle());
    }

    @Test
    void keysMayComeInAnyOrderAndUnknownOnesAreSkipped() {
        final Map<String, Object> event = new java.util.LinkedHashMap<>();
        event.put("nested", Map.of("type", List.of(1, Map.of("block_hashes", 3))));
        event.put("token_ids", range(1, 8));
        event.put("block_size", 4);
        event.put("session_id", "s");
        event.put("block_hashes", List.of(5, 6));
        event.put("type", "BlockStored");

        assertEquals(List.of("stored root [5, 6] " + V2), decode(batch(event)));
        assertEquals(Map.of(), decoder.drops().nonZero());
    }

    @Test
    void oneBadEventDoesNotCostItsBatch() {
        final List<String> operations =
                decode(
                        batch(
                                removed(List.of(1)),
                                "not an event",
                                null,
                                List.of(),
                                Map.of(),
                                list("BlockStored"),
                                list("BlockStored", 5, null, range(1, 4), 4),
                                stored(List.of(5), "parent", range(1, 4), 4),
                                stored(List.of("x"), null, range(1, 4), 4),
                                stored(list(new byte[0]), null, range(1, 4), 4),
                                stored(List.of(5), null, List.of(1, 2, 3, "4"), 4),
                                stored(List.of(5), null, List.of(1, 2, 3, 1L << 33), 4),
                                stored(List.of(5), null, range(1, 4), 4, "medium", 7),
                                stored(List.of(5), null, range(1, 4), 4, "lora_name", 7),
                                stored(List.of(5), null, range(1, 4), 4, "extra_keys", 7),
                                Map.of("type", "BlockRemoved"),
                                Map.of("type", 7),
                                Map.of("type", "BlockMoved", "block_hashes", List.of(9)),
                                list("BlockTransferred", 1, 2, 3),
                                stored(List.of(), null, List.of(), 4),
                                removed(List.of(2))));

        assertEquals(List.of("removed [1]", "removed [2]"), operations);
        assertEquals(
                Map.of("malformed_event", 16L, "ignored_event", 2L, "empty_store", 1L),
                decoder.drops().nonZero());
        assertEquals(21, decoder.eventCount());
        assertTrue(decoder.lostBlocks());
    }

    @Test
    void aTruncatedBatchYieldsWhatCameBefore() {
        final byte[] payload =
                batch(
                        removed(List.of(1)),
                        removed(List.of(2)),
                        stored(List.of(5), null, range(1, 4), 4));
        final byte[] cut = Arrays.copyOf(payload, payload.length - 6);

        assertEquals(List.of("removed [1]", "removed [2]"), decode(cut));
        assertEquals(Map.of("truncated_batch", 1L), decoder.drops().nonZero());
        assertTrue(decoder.lostBlocks());
    }

    @ParameterizedTest
    @ValueSource(
            strings = {
                "",
                "c0",
                "90",
                "91c0",
                "93cb3ff8000000000000c000",
                "80",
                "81a16101",
                "c1",
                "a3616263",
                "ff"
            })
    void whatIsNoBatchIsCountedAsUndecodable(String hex) {
        final byte[] payload = HexFormat.of().parseHex(hex);

        assertEquals(
                EngineBatchDecoder.Shape.UNDECODABLE, decoder.shapeOf(payload, 0, payload.length));
        assertEquals(List.of(), decode(payload));
        assertEquals(Map.of("undecodable_message", 1L), decoder.drops().nonZero());
    }

    @Test
    void aWrongBlockSizeIsDroppedAndLearned() {
        assertEquals(
                List.of("removed [9]"),
                decode(batch(stored(List.of(5), null, range(1, 16), 16), removed(List.of(9)))));
        assertEquals(Map.of("block_size_mismatch", 1L), decoder.drops().nonZero());
        assertEquals(16, decoder.learnedBlockSize());
    }

    @Test
    void storesThatContradictThemselvesAreDropped() {
        decode(
                batch(
                        stored(List.of(5), null, range(1, 5), 4),
                        stored(List.of(5, 6), null, range(1, 4), 4),
                        stored(List.of(5, 6), 6, range(1, 8), 4)));

        assertEquals(
                Map.of("token_count_mismatch", 2L, "invalid_block_sequence", 1L),
                decoder.drops().nonZero());
    }

    @ParameterizedTest
    @CsvSource({
        "GPU, ''",
        "DEVICE, ''",
        "'', ''",
        "CPU, host_pinned_tier",
        "CPU_PINNED, host_pinned_tier",
        "CPU_TIER1, host_pinned_tier",
        "CPU_TIER2, disk_tier",
        "DISK, disk_tier",
        "NVME, disk_tier",
        "STORAGE, disk_tier",
        "EXTERNAL, external_tier",
        "NETWORK, external_tier",
        "REMOTE, external_tier",
        "SHARED, external_tier",
        "TAPE, unknown_medium"
    })
    void onlyTheDeviceTierFeedsTheIndex(String medium, String reason) {
        final List<String> operations =
                decode(
                        batch(
                                stored(List.of(5), null, range(1, 4), 4, "medium", medium),
                                removed(List.of(5), "medium", medium),
                                Map.of("type", "AllBlocksCleared", "medium", medium)));

        assertEquals(reason.isEmpty() ? 3 : 0, operations.size());
        assertEquals(reason.isEmpty() ? Map.of() : Map.of(reason, 3L), decoder.drops().nonZero());
        assertFalse(decoder.lostBlocks());
    }

    @ParameterizedTest
    @CsvSource({
        "CPU, HOST",
        "CPU_PINNED, HOST",
        "CPU_TIER1, HOST",
        "CPU_TIER2, DISK",
        "DISK, DISK",
        "NVME, DISK",
        "STORAGE, DISK",
        "EXTERNAL, SHARED",
        "NETWORK, SHARED",
        "REMOTE, SHARED",
        "SHARED, SHARED"
    })
    void aMediumNamesTheTierWhereThatIsWanted(String medium, StorageTier tier) {
        final byte[] events =
                batch(
                        stored(List.of(5), null, range(1, 4), 4, "medium", medium),
                        removed(List.of(5), "medium", medium),
                        stored(List.of(6), 5, range(1, 4), 4),
                        Map.of("type", "AllBlocksCleared", "medium", medium));
        final EngineBatchDecoder all = decoderOf(StorageTier.values());
        assertEquals(
                List.of(
                        tier + " stored root [5] cb38e4d7fb2dca5c",
                        tier + " removed [5]",
                        "stored behind 5 [6] cb38e4d7fb2dca5c",
                        "cleared"),
                decode(all, events));
        assertEquals(Map.of(), all.drops().nonZero());
        assertEquals(4, all.learnedBlockSize());

        final EngineBatchDecoder others =
                decoderOf(
                        Arrays.stream(StorageTier.values())
                                .filter(t -> t != tier)
                                .toArray(StorageTier[]::new));
        assertEquals(List.of("stored behind 5 [6] cb38e4d7fb2dca5c"), decode(others, events));
        assertEquals(3, others.drops().total());
        assertFalse(others.lostBlocks());
    }

    /** As vLLM's offloading connector announces: names alone, a block size of 0 or of its own. */
    @ParameterizedTest
    @ValueSource(ints = {0, 4, 48})
    void aStoreWithoutTokensInALowerTierIsOneOfNames(int size) {
        final List<Integer> none = List.of();
        assertEquals(
                List.of("HOST named [5, 6]"),
                decode(
                        decoderOf(StorageTier.HOST),
                        batch(stored(List.of(5, 6), null, none, size, "medium", "CPU"))));
    }

    @Test
    void namesOfLowerTiersMayBeBytesWhereTheDevicesAreNumbers() {
        final byte[] digest = new byte[32];
        digest[30] = 1;
        digest[31] = 2;
        assertEquals(
                List.of("HOST named [258]", "HOST removed [258]"),
                decode(
                        decoderOf(StorageTier.HOST),
                        batch(
                                stored(List.of(digest), null, List.of(), 0, "medium", "CPU"),
                                removed(List.of(digest), "medium", "CPU"))));
    }

    @Test
    void aLowerTierOfOtherBlocksSaysNothingOfTheDevice() {
        final EngineBatchDecoder host = decoderOf(StorageTier.HOST);
        assertEquals(
                List.of(),
                decode(
                        host,
                        batch(
                                stored(List.of(5), null, range(1, 8), 8, "medium", "CPU"),
                                stored(List.of(), null, List.of(), 0, "medium", "CPU"))));
        assertEquals(Map.of("foreign_block_size", 1L, "empty_store", 1L), host.drops().nonZero());
        assertEquals(0, host.learnedBlockSize());
        assertFalse(host.lostBlocks());
    }

    @Test
    void ofALowerTierOnlyTheLastCopyIsARemoval() {
        assertEquals(
                List.of("DISK removed [6]"),
                decode(
                        decoderOf(StorageTier.DISK),
                        batch(
                                removed(
                                        List.of(5, 6, 7),
                                        "medium",
                                        "DISK",
                                        "remaining_copy_counts",
                                        List.of(1, 0, 2)))));
    }

    private EngineBatchDecoder decoderOf(StorageTier... tiers) {
        return new EngineBatchDecoder(4, BlockHasher.BASE_SEED, Set.of(tiers), new LoraNumbers());
    }

    private List<String> decode(EngineBatchDecoder by, byte[] payload) {
        out.reset(0, 0, CopyRule.PHYSICAL, false, ApplyListener.NONE);
        by.decode(payload, 0, payload.length, out);
        return describe(out);
    }

    @Test
    void onlyLocalBlocksOfTheEngineItselfCount() {
        final List<String> operations =
                decode(
                        batch(
                                removed(List.of(1), "locality", "LOCAL", "ownership", null),
                                removed(List.of(2), "locality", "REMOTE"),
                                removed(List.of(3), "locality", "ELSEWHERE"),
                                removed(List.of(4), "ownership", "kvcr"),
                                removed(List.of(5), "ownership", "someone")));

        assertEquals(List.of("removed [1]"), operations);
        assertEquals(
                Map.of(
                        "non_local_locality", 2L,
                        "unsupported_ownership", 1L,
                        "unknown_ownership", 1L),
                decoder.drops().nonZero());
    }

    @Test
    void onlyTheFullAttentionGroupOfAHybridModelCounts() {
        final List<String> operations =
                decode(
                        batch(
                                removed(List.of(1), "group_idx", 2),
                                removed(List.of(2), "group_idx", 0),
                                groupStore(10, 1, "sliding_window"),
                                groupStore(11, 2, "full_attention"),
                                groupStore(12, 3, "full_attention"),
                                groupStore(13, 0, "mamba"),
                                groupStore(14, 4, "hologram"),
                                removed(List.of(11), "group_idx", 2),
                                removed(List.of(10), "group_idx", 1),
                                removed(List.of(3), "group_idx", 0),
                                removed(List.of(4), "group_idx", null),
                                removed(List.of(5))));

        assertEquals(
                List.of(
                        "removed [2]",
                        "stored root [11] cb38e4d7fb2dca5c",
                        "removed [11]",
                        "removed [4]",
                        "removed [5]"),
                operations);
        assertEquals(
                Map.of(
                        "unlearned_group_idx", 1L,
                        "non_main_attention_kind", 2L,
                        "non_main_attention_group", 3L,
                        "unknown_kind", 1L),
                decoder.drops().nonZero());
    }

    private static Map<String, Object> groupStore(int hash, int group, String kind) {
        return stored(
                List.of(hash),
                null,
                range(1, 4),
                4,
                "group_idx",
                group,
                "kv_cache_spec_kind",
                kind);
    }

    @Test
    void theLoraNameEntersTheHashAndIsNoSalt() {
        final long seed = BlockHasher.seed("my-lora", null);
        assertEquals(
                List.of("stored root [5, 6] d97c824a0d4bdab1 6de6cbec6a335efe"),
                decode(
                        batch(
                                stored(
                                        List.of(5, 6),
                                        null,
                                        range(1, 8),
                                        4,
                                        "lora_id",
                                        1,
                                        "lora_name",
                                        "my-lora",
                                        "extra_keys",
                                        List.of(List.of("my-lora"), List.of("my-lora"))))));
        assertEquals(
                List.of("stored behind 6 [7, 8]" + locals(seed)),
                decode(
                        batch(
                                stored(
                                        List.of(7, 8),
                                        6,
                                        range(1, 8),
                                        4,
                                        "lora_name",
                                        "my-lora",
                                        "extra_keys",
                                        List.of(List.of("my-lora"), List.of("my-lora"))))));
        assertEquals(
                List.of("stored root [9, 10] " + V2),
                decode(batch(stored(List.of(9, 10), null, range(1, 8), 4))));
    }

    @Test
    void blocksOfAnAdapterWithoutNameAreDropped() {
        decode(batch(stored(List.of(5), null, range(1, 4), 4, "lora_id", 3)));
        assertEquals(Map.of("unnamed_lora", 1L), decoder.drops().nonZero());
    }

    @Test
    void aSaltInTheFirstBlockIsInheritedByTheChain() {
        final String salted = locals(BlockHasher.seed(null, "tenant-a"));
        assertTrue(salted.startsWith(" 4fa3e8097233e995 9b7651d1fc728ccb"));

        assertEquals(
                List.of(
                        "stored root [5, 6]" + salted,
                        "stored behind 6 [7, 8]" + salted,
                        "stored behind 7 [17, 18]" + salted,
                        "stored root [9, 10] " + V2),
                decode(
                        batch(
                                salted(),
                                stored(List.of(7, 8), 6, range(1, 8), 4),
                                stored(List.of(17, 18), 7, range(1, 8), 4),
                                stored(
                                        List.of(9, 10),
                                        null,
                                        range(1, 8),
                                        4,
                                        "extra_keys",
                                        list(null, null)))));
    }

    @Test
    void theSaltOfAChainIsKnownHoweverMuchIsStoredAfterIt() {
        final String salted = locals(BlockHasher.seed(null, "tenant-a"));
        decode(batch(stored(List.of(5, 6), null, range(1, 8), 4, "cache_salt", "tenant-a")));
        for (int first = 1_000; first < 71_000; first += 1_000) {
            decode(saltedBlocks(first, 1_000));
        }

        assertEquals(
                List.of("stored behind 6 [7, 8]" + salted),
                decode(batch(stored(List.of(7, 8), 6, range(1, 8), 4))));
    }

    @Test
    void theSaltOfAChainIsKnownWhileACopyIsHeldAndAfterARestore() {
        final String salted = locals(BlockHasher.seed(null, "tenant-a"));
        final byte[] root =
                batch(stored(List.of(5, 6), null, range(1, 8), 4, "cache_salt", "tenant-a"));
        for (byte[] message : List.of(root, root, batch(removed(List.of(5, 6))))) {
            decode(message);
            decoder.taken(out);
        }
        for (int first = 1_000; first < 201_000; first += 1_000) {
            decode(saltedBlocks(first, 1_000));
            decoder.taken(out);
            decode(batch(removed(range(first, first + 999))));
            decoder.taken(out);
        }
        final byte[] child = batch(stored(List.of(7, 8), 6, range(1, 8), 4));
        assertEquals(List.of("stored behind 6 [7, 8]" + salted), decode(child));

        final EngineBatchDecoder restored = new EngineBatchDecoder(4);
        restored.recall(decoder.memory());
        assertEquals(List.of("stored behind 6 [7, 8]" + salted), decode(restored, child));
        assertEquals(Map.of(), restored.drops().nonZero());
    }

    @Test
    void whereMoreSaltedBlocksAreHeldThanAreKnownNothingIsHashedOnSuspicion() {
        for (int first = 0; first < EngineBatchDecoder.MOST_HELD_SEEDS; first += 1_000) {
            decode(saltedBlocks(100 + first, 1_000));
        }
        final String salted = locals(BlockHasher.seed(null, "tenant-a"));
        assertEquals(
                List.of("stored root [5, 6]" + salted, "stored behind 6 [7, 8]" + salted),
                decode(
                        batch(
                                stored(
                                        List.of(5, 6),
                                        null,
                                        range(1, 8),
                                        4,
                                        "cache_salt",
                                        "tenant-a"),
                                stored(List.of(7, 8), 6, range(1, 8), 4, "cache_salt", "tenant-a"),
                                stored(List.of(9), 8, range(1, 4), 4))));
        assertTrue(decoder.lostBlocks());
        assertEquals(Map.of("unknown_chain", 1L), decoder.drops().nonZero());
        final EngineBatchDecoder restored = new EngineBatchDecoder(4);
        restored.recall(decoder.memory());
        assertEquals(List.of(), decode(restored, batch(stored(List.of(9), 8, range(1, 4), 4))));

        decoder.emptied();
        assertEquals(
                List.of("stored behind 8 [9] cb38e4d7fb2dca5c"),
                decode(batch(stored(List.of(9), 8, range(1, 4), 4))));
    }

    /**
     * As vLLM's offloading connector announces with {@code self_describing_kv_events}: tokens and
     * parent, but no extra keys.
     */
    @Test
    void aRootWithoutItsSaltInALowerTierIsThatOfItsName() {
        final String salted = locals(BlockHasher.seed(null, "tenant-a"));
        final EngineBatchDecoder host = decoderOf(StorageTier.HOST);
        assertEquals(
                List.of(
                        "stored root [5, 6]" + salted,
                        "HOST stored root [5, 6]" + salted,
                        "HOST stored behind 6 [7, 8]" + salted,
                        "HOST stored root [9]" + " cb38e4d7fb2dca5c"),
                decode(
                        host,
                        batch(
                                salted(),
                                stored(List.of(5, 6), null, range(1, 8), 4, "medium", "CPU"),
                                stored(List.of(7, 8), 6, range(1, 8), 4, "medium", "CPU"),
                                stored(List.of(9), null, range(1, 4), 4, "medium", "CPU"))));
        assertEquals(Map.of(), host.drops().nonZero());
    }

    /** Stores two blocks, the first one with a salt among its keys. */
    private static Map<String, Object> salted() {
        return stored(
                List.of(5, 6), null, range(1, 8), 4, "extra_keys", list(List.of("tenant-a"), null));
    }

    /** Stores salted blocks in a row. */
    private static byte[] saltedBlocks(int first, int count) {
        return batch(
                stored(
                        range(first, first + count - 1),
                        null,
                        range(1, 4 * count),
                        4,
                        "cache_salt",
                        "tenant-b"));
    }

    @Test
    void aSaltThatIsLikeTheIdOfAnObjectOrTheNameOfTheAdapterIsASalt() {
        final String digest = "ab".repeat(32);
        final String salted = locals(BlockHasher.seed(null, digest));
        final String both = locals(BlockHasher.seed("my-lora", "my-lora"));
        assertEquals(
                List.of(
                        "stored root [5, 6]" + salted,
                        "stored behind 6 [7, 8]" + salted,
                        "stored root [9, 10]" + both,
                        "stored behind 10 [11, 12]" + both),
                decode(
                        batch(
                                stored(
                                        List.of(5, 6),
                                        null,
                                        range(1, 8),
                                        4,
                                        "extra_keys",
                                        list(List.of(digest), null)),
                                stored(List.of(7, 8), 6, range(1, 8), 4),
                                stored(
                                        List.of(9, 10),
                                        null,
                                        range(1, 8),
                                        4,
                                        "lora_name",
                                        "my-lora",
                                        "extra_keys",
                                        list(List.of("my-lora", "my-lora"), List.of("my-lora"))),
                                stored(
                                        List.of(11, 12),
                                        10,
                                        range(1, 8),
                                        4,
                                        "lora_name",
                                        "my-lora",
                                        "extra_keys",
                                        list(List.of("my-lora"), List.of("my-lora"))))));
        assertEquals(0, decoder.multimodalStores());
        assertEquals(Map.of(), decoder.drops().nonZero());
    }

    @Test
    void aSaltFieldCountsLikeOneInTheExtraKeys() {
        final String salted = locals(BlockHasher.seed(null, "tenant-a"));
        final String both = locals(BlockHasher.seed("my-lora", "tenant-a"));
        assertEquals(
                List.of(
                        "stored root [5, 6]" + salted,
                        "stored root [7, 8]" + salted,
                        "stored root [9, 10]" + salted,
                        "stored root [11, 12]" + both,
                        "stored behind 12 [13, 14]" + both),
                decode(
                        batch(
                                stored(
                                        List.of(5, 6),
                                        null,
                                        range(1, 8),
                                        4,
                                        "cache_salt",
                                        "tenant-a"),
                                stored(
                                        List.of(7, 8),
                                        null,
                                        range(1, 8),
                                        4,
                                        "cache_salt",
                                        "tenant-a",
                                        "extra_keys",
                                        list(List.of("tenant-a"), null)),
                                stored(
                                        List.of(9, 10),
                                        null,
                                        range(1, 8),
                                        4,
                                        "extra_keys",
                                        list(List.of("dynamo-cache-salt:tenant-a"), null)),
                                stored(
                                        List.of(11, 12),
                                        null,
                                        range(1, 8),
                                        4,
                                        "lora_name",
                                        "my-lora",
                                        "extra_keys",
                                        list(List.of("my-lora", "tenant-a"), List.of("my-lora"))),
                                stored(
                                        List.of(13, 14),
                                        12,
                                        range(1, 8),
                                        4,
                                        "lora_name",
                                        "my-lora"))));
    }

    @Test
    void whatTheTokensCannotTellMakesTheChainOpaque() {
        assertEquals(
                List.of("stored root [30] cb38e4d7fb2dca5c"),
                decode(
                        batch(
                                stored(
                                        List.of(5),
                                        null,
                                        range(1, 4),
                                        4,
                                        "extra_keys",
                                        list(List.of("a", "b"))),
                                stored(
                                        List.of(6),
                                        null,
                                        range(1, 4),
                                        4,
                                        "cache_salt",
                                        "a",
                                        "extra_keys",
                                        list(List.of("b"))),
                                stored(
                                        List.of(7),
                                        null,
                                        range(1, 4),
                                        4,
                                        "extra_keys",
                                        list(list((Object) new byte[32]))),
                                stored(List.of(8), 7, range(1, 4), 4),
                                stored(List.of(9), 8, range(1, 4), 4),
                                stored(
                                        List.of(10),
                                        30,
                                        range(1, 4),
                                        4,
                                        "extra_keys",
                                        list(List.of("late"))),
                                stored(List.of(30), null, range(1, 4), 4))));
        assertEquals(
                Map.of("ambiguous_cache_namespace", 2L, "opaque_extra_keys", 4L),
                decoder.drops().nonZero());
        assertFalse(decoder.lostBlocks());
    }

    @Test
    void multimodalObjectsAreMixedIntoTheirBlock() {
        final String id = "00000000000000aa" + "0".repeat(48);
        final String digest = "1234567890abcdef" + "7".repeat(48);
        final int[] tokens = {1, 2, 3, 4, 5, 6, 7, 8};
        final long first =
                BlockHasher.localHash(
                        tokens, 0, 4, 1337, new long[] {0x1234567890abcdefL, 0xaa}, 2);
        final long named =
                BlockHasher.localHash(
                        tokens,
                        4,
                        4,
                        1337,
                        new long[] {BlockHasher.seed("image-1", null) - 1337},
                        1);
        assertEquals(
                List.of(
                        "stored root [5, 6]" + hex(new long[] {first, 0xe8d3ec39b907b74cL}),
                        "stored root [7, 8]" + hex(new long[] {0xcb38e4d7fb2dca5cL, named}),
                        "stored root [9, 10]" + hex(new long[] {first, 0xe8d3ec39b907b74cL})),
                decode(
                        batch(
                                stored(
                                        List.of(5, 6),
                                        null,
                                        range(1, 8),
                                        4,
                                        "extra_keys",
                                        list(List.of(id, List.of(digest, 3)), null)),
                                stored(
                                        List.of(7, 8),
                                        null,
                                        range(1, 8),
                                        4,
                                        "extra_keys",
                                        list(null, List.of(List.of("image-1", 0)))),
                                stored(
                                        List.of(9, 10),
                                        null,
                                        range(1, 8),
                                        4,
                                        "block_mm_infos",
                                        list(
                                                Map.of(
                                                        "mm_objects",
                                                        List.of(
                                                                Map.of("mm_hash", 0xaaL),
                                                                Map.of(
                                                                        "mm_hash",
                                                                        0x1234567890abcdefL,
                                                                        "offsets",
                                                                        List.of(List.of(0, 3))))),
                                                null)))));
        assertNotEquals(0, first);
    }

    @Test
    void taggedKeysSayWhatUntaggedOnesDo() {
        final String digest = "1234567890abcdef" + "7".repeat(48);
        final List<Object> tagged =
                list(
                        List.of(
                                List.of("lora", "my-lora", "/adapters/7"),
                                List.of("mm", digest, 3),
                                List.of("cache_salt", "tenant-a")),
                        List.of(List.of("lora", "my-lora", "/adapters/7")));
        final List<Object> untagged =
                list(List.of("my-lora", List.of(digest, 3), "tenant-a"), List.of("my-lora"));
        final String[] stored = new String[2];
        for (int i = 0; i < stored.length; i++) {
            final List<String> decoded =
                    decode(
                            batch(
                                    stored(
                                            List.of(5, 6),
                                            null,
                                            range(1, 8),
                                            4,
                                            "lora_name",
                                            "my-lora",
                                            "extra_keys",
                                            i == 0 ? tagged : untagged)));
            assertEquals(1, decoded.size());
            stored[i] = decoded.getFirst();
        }
        assertEquals(stored[1], stored[0]);
        assertEquals(Map.of(), decoder.drops().nonZero());
        assertEquals(2, decoder.multimodalStores());
    }

    @Test
    void taggedKeysThatTheTokensCannotTellMakeTheChainOpaque() {
        final List<List<Object>> opaque =
                List.of(
                        list("prompt_embeds", "d1"),
                        list("prompt_embeds", new byte[32]),
                        list("lora", "another", "/adapters/7"),
                        list("cache_salt", "tenant-a"), // behind the beginning of a prompt
                        list("later", "x", "y"));
        for (List<Object> key : opaque) {
            assertEquals(
                    List.of(),
                    decode(
                            batch(
                                    stored(
                                            List.of(5, 6),
                                            null,
                                            range(1, 8),
                                            4,
                                            "lora_name",
                                            "my-lora",
                                            "extra_keys",
                                            list(List.of("my-lora"), List.of(key))))),
                    key::toString);
        }
        assertEquals(Map.of("opaque_extra_keys", 5L), decoder.drops().nonZero());
        assertEquals(
                List.of("stored root [7] " + V2.substring(0, 16)),
                decode(
                        batch(
                                stored(
                                        List.of(7),
                                        null,
                                        range(1, 4),
                                        4,
                                        "extra_keys",
                                        list(List.of(List.of("cache_salt", "")))))));
    }

    @Test
    void aLoraIdThatIsNoNumberIsNotTheBaseModel() {
        for (Object id : list("7", List.of(7), new byte[] {7}, Map.of())) {
            assertEquals(
                    List.of(),
                    decode(batch(stored(List.of(7), null, range(1, 4), 4, "lora_id", id))),
                    id::toString);
        }
        assertEquals(Map.of("malformed_event", 4L), decoder.drops().nonZero());
    }

    @Test
    void aTokenBehindABlockIsOneOf32Bits() {
        final List<Object> pairs = list(List.of(1, 2), List.of(2, 3), List.of(3, 4));
        pairs.add(list(4, 5 + (1L << 32)));
        assertEquals(List.of(), decode(batch(stored(List.of(7), null, pairs, 4))));
        assertEquals(Map.of("malformed_event", 1L), decoder.drops().nonZero());
    }

    @Test
    void remainingCopyCountsAreHonoured() {
        assertEquals(
                List.of("left 5: 2", "left 6: 0", "removed [7]", "removed [8, 9]"),
                decode(
                        batch(
                                removed(List.of(5, 6), "remaining_copy_counts", List.of(2, 0)),
                                removed(List.of(7), "remaining_copy_counts", null),
                                removed(List.of(8, 9), "remaining_copy_counts", List.of(1)))));
    }

    @Test
    void bytesAroundTheMessageAreNotTouched() {
        final byte[] payload = batch(removed(List.of(5)));
        final byte[] padded = new byte[payload.length + 20];
        Arrays.fill(padded, (byte) 0x91);
        System.arraycopy(payload, 0, padded, 10, payload.length);
        out.reset(0, 0, CopyRule.PHYSICAL, false, ApplyListener.NONE);

        assertTrue(decoder.decode(padded, 10, payload.length, out));
        assertEquals(List.of("removed [5]"), describe(out));
    }
}
