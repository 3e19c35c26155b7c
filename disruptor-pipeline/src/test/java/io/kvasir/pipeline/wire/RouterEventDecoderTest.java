package io.kvasir.pipeline.wire;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.kvasir.core.index.CopyRule;
import io.kvasir.core.index.StorageTier;
import io.kvasir.testsupport.Allocations;
import io.kvasir.testsupport.Seeds;

import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;
import org.msgpack.core.MessageBufferPacker;
import org.msgpack.core.MessagePack;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.Set;

class RouterEventDecoderTest {
    private final RouterEventDecoder decoder = new RouterEventDecoder();
    private final RouterMessage message = new RouterMessage();

    private static byte[] ascii(String text) {
        return text.getBytes(StandardCharsets.US_ASCII);
    }

    private static String event(String data) {
        return "{\"worker_id\":7,\"event\":{\"event_id\":1,\"data\":" + data + "}}";
    }

    private static String store(String fields) {
        return event("{\"stored\":{" + fields + "}}");
    }

    private List<String> decoded(byte[] bytes) {
        final KvBatch out = RouterEventGoldenTest.empty();
        if (!message.wrap(bytes, 0, bytes.length)) {
            return List.of("no message");
        }
        while (message.next()) {
            if (message.isAddressed()) {
                decoder.decode(bytes, message.eventOffset(), message.eventLength(), out);
            }
        }
        return EngineBatchDecoderTest.describe(out);
    }

    private List<String> decoded(String json) {
        return decoded(ascii(json));
    }

    @Test
    void keysMayComeInAnyOrderAndUnknownOnesAreIgnored() {
        assertEquals(
                List.of("stored behind -2 [-3] 0000000000000009"),
                decoded(
                        " {\"session_id\":{\"a\":[1,2,{\"b\":null}]}, \"event\" : {\"dp_rank\":3,"
                            + "\"data\":{\"stored\":{\"blocks\":[{\"more\":true,\"tokens_hash\":9,"
                            + "\"mm_extra_info\":null,\"block_hash\":18446744073709551613}],"
                            + "\"parent_hash\":-2}},\"event_id\":12},"
                            + "\"storage_tier\":\"device\",\"worker_id\":18446744073709551615}"));
        assertEquals(-1, message.workerId());
        assertEquals(3, message.dpRank());
        assertEquals(12, message.eventId());
        assertEquals(0, decoder.drops().total());
    }

    @Test
    void clearedIsABareWord() {
        assertEquals(List.of("cleared"), decoded(event("\"cleared\"")));
    }

    @ParameterizedTest
    @CsvSource({
        "device, tier cleared",
        "host_pinned, HOST tier cleared",
        "disk, DISK tier cleared",
        "external, SHARED tier cleared"
    })
    void aClearOfATierNamesItInItsDataWhateverTheEventIsOf(String name, String expected)
            throws IOException {
        final String json =
                event("{\"tier_cleared\":\"" + name + "\"}")
                        .replaceFirst("\\{", "{\"storage_tier\":\"device\",");
        final MessageBufferPacker packed = MessagePack.newDefaultBufferPacker();
        packed.packMapHeader(3).packString("worker_id").packInt(7);
        packed.packString("storage_tier").packString("disk");
        packed.packString("event").packMapHeader(2).packString("event_id").packInt(1);
        packed.packString("data").packMapHeader(1).packString("tier_cleared").packString(name);
        for (byte[] bytes : List.of(ascii(json), packed.toByteArray())) {
            final RouterEventDecoder all =
                    new RouterEventDecoder(
                            Set.of(StorageTier.HOST, StorageTier.DISK, StorageTier.SHARED));
            final KvBatch out = RouterEventGoldenTest.empty();
            all.decode(bytes, 0, bytes.length, out);
            assertEquals(List.of(expected), EngineBatchDecoderTest.describe(out));
            assertFalse(all.lostBlocks());
        }
    }

    @Test
    void aClearOfATierThatIsNotKeptChangesNothing() {
        assertEquals(List.of(), decoded(event("{\"tier_cleared\":\"disk\"}")));
        assertEquals(1, decoder.drops().get(DropReason.DISK_TIER));
        assertFalse(decoder.lostBlocks());
        assertEquals(List.of(), decoded(event("{\"tier_cleared\":7}")));
        assertEquals(1, decoder.drops().get(DropReason.MALFORMED_EVENT));
        assertEquals(List.of(), decoded(event("{\"tier_cleared\":\"tape\"}")));
        assertEquals(1, decoder.drops().get(DropReason.UNKNOWN_MEDIUM));
    }

    @Test
    void aStoreForEagleIsKnownAsSuchInBothForms() {
        final long[] hash = {1};
        final KvBatch written = RouterEventGoldenTest.empty();
        written.markEagle();
        written.addStored(true, 0, hash, hash, 1);
        for (byte[] event :
                List.of(
                        RouterEventWriter.json(7, 0, 1, written, written.first()),
                        RouterEventWriter.event(7, 0, 1, written, written.first()))) {
            final RouterEventDecoder reader = new RouterEventDecoder();
            final KvBatch out = RouterEventGoldenTest.empty();
            reader.decode(event, 0, event.length, out);
            assertTrue(out.eagle() && reader.learnedEagle() && reader.memory().eagle());
            assertEquals(
                    List.of("stored root [1] 0000000000000001"),
                    EngineBatchDecoderTest.describe(out));
        }
        decoded(store("\"blocks\":[{\"block_hash\":1,\"tokens_hash\":2}],\"eagle\":null"));
        assertFalse(decoder.learnedEagle());
    }

    @Test
    void aStoreWithoutParentBeginsAPrompt() {
        assertEquals(
                List.of("stored root [1] 0000000000000002"),
                decoded(store("\"blocks\":[{\"block_hash\":1,\"tokens_hash\":2}]")));
    }

    @Test
    void aMultimodalBlockHasItsObjectsInItsTokensHash() {
        assertEquals(
                List.of("stored root [1] 0000000000000002"),
                decoded(
                        store(
                                "\"blocks\":[{\"block_hash\":1,\"tokens_hash\":2,\"mm_extra_info\":"
                                    + "{\"mm_objects\":[{\"mm_hash\":5,\"offsets\":[[0,3]]}]}}]")));
        assertEquals(1, decoder.multimodalStores());
    }

    @ParameterizedTest
    @CsvSource({"host_pinned, HOST", "disk, DISK", "external, SHARED"})
    void aTierIsTheBlocksWhereItIsWanted(String name, StorageTier tier) {
        final String of = "{\"storage_tier\":\"" + name + "\",";
        final RouterEventDecoder wanting = new RouterEventDecoder(Set.of(tier));
        final KvBatch out = RouterEventGoldenTest.empty();
        for (String event :
                List.of(
                        store("\"blocks\":[{\"block_hash\":1,\"tokens_hash\":2}]"),
                        event("{\"removed\":{\"block_hashes\":[1]}}"),
                        event("\"cleared\""))) {
            final byte[] bytes = ascii(of + event.substring(1));
            message.wrap(bytes, 0, bytes.length);
            message.next();
            wanting.decode(bytes, message.eventOffset(), message.eventLength(), out);
        }
        assertEquals(
                List.of(
                        tier + " stored root [1] 0000000000000002",
                        tier + " removed [1]",
                        "cleared"),
                EngineBatchDecoderTest.describe(out));
        assertEquals(0, wanting.drops().total());
        final byte[] written = RouterEventWriter.json(7, 0, 1, out, out.first());
        assertTrue(
                new String(written, StandardCharsets.US_ASCII)
                        .startsWith("{\"worker_id\":7,\"storage_tier\":\"" + name + "\","));
    }

    @ParameterizedTest
    @CsvSource({
        "'storage_tier', '\"host_pinned\"', host_pinned_tier",
        "'storage_tier', '\"disk\"', disk_tier",
        "'storage_tier', '\"external\"', external_tier",
        "'storage_tier', '\"tape\"', unknown_medium",
        "'storage_tier', 'null', malformed_event",
        "'residency_domain', '\"cache_owner\"', unsupported_ownership",
        "'residency_domain', '\"else\"', unknown_ownership",
        "'residency_domain', 'null', malformed_event"
    })
    void whatIsNotInTheWorkersOwnDeviceMemoryIsDropped(String key, String value, String reason) {
        final String cleared = event("\"cleared\"");
        assertEquals(List.of(), decoded("{\"" + key + "\":" + value + "," + cleared.substring(1)));
        assertEquals(Map.of(reason, 1L), decoder.drops().nonZero());
    }

    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            value = {
                "'\"evicted\"' | ignored_event",
                "'{\"moved\":{}}' | ignored_event",
                "'{}' | malformed_event",
                "'7' | malformed_event",
                "'null' | malformed_event",
                "'{\"stored\":7}' | malformed_event",
                "'{\"stored\":{}}' | malformed_event",
                "'{\"stored\":{\"blocks\":[]}}' | empty_store",
                "'{\"stored\":{\"blocks\":[7]}}' | malformed_event",
                "'{\"stored\":{\"blocks\":[{\"block_hash\":1}]}}' | malformed_event",
                "'{\"stored\":{\"blocks\":[{\"block_hash\":1,\"tokens_hash\":null}]}}' |"
                        + " malformed_event",
                "'{\"stored\":{\"blocks\":[{\"block_hash\":1.5,\"tokens_hash\":1}]}}' |"
                        + " malformed_event",
                "'{\"stored\":{\"parent_hash\":\"x\",\"blocks\":[{\"block_hash\":1,\"tokens_hash\":1}]}}'"
                    + " | malformed_event",
                "'{\"stored\":{\"parent_hash\":1,\"blocks\":[{\"block_hash\":1,\"tokens_hash\":1}]}}'"
                    + " | invalid_block_sequence",
                "'{\"stored\":{\"start_position\":4,\"blocks\":[{\"block_hash\":1,\"tokens_hash\":1}]}}'"
                    + " | positional_store",
                "'{\"removed\":{}}' | malformed_event",
                "'{\"removed\":{\"block_hashes\":[1,\"2\"]}}' | malformed_event"
            })
    void whatCannotBeUsedIsCountedAndHasNoEffect(String data, String reason) {
        assertEquals(List.of(), decoded(event(data)));
        assertEquals(Map.of(reason, 1L), decoder.drops().nonZero());
        assertEquals(
                !reason.equals("ignored_event") && !reason.equals("empty_store"),
                decoder.lostBlocks());
    }

    @ParameterizedTest
    @ValueSource(
            strings = {
                "",
                "{",
                "{}",
                "[]",
                "null",
                "7",
                "{\"worker_id\":7}",
                "{\"worker_id\":\"7\",\"event\":{\"event_id\":1,\"data\":\"cleared\"}}",
                "{\"worker_id\":7,\"event\":{\"event_id\":18446744073709551616,\"data\":\"cleared\"}}",
                "{\"worker_id\":7,\"event\":{\"event_id\":-1,\"data\":\"cleared\"}}",
                "{\"worker_id\":7,\"event\":{\"event_id\":1,\"data\":\"cleared\",\"dp_rank\":-1}}",
                "{\"worker_id\":7,\"event\":{\"event_id\":1,\"data\":\"cleared\"}} more",
                "{\"worker_id\":7,\"event\":{\"event_id\":1,\"data\":\"cleared\"}",
                "{\"worker_id\":7,\"event\":7}"
            })
    void anEventThatDoesNotSayWhoseItIsIsNotAddressed(String json) {
        final byte[] bytes = ascii(json);
        if (message.wrap(bytes, 0, bytes.length)) {
            assertTrue(message.next());
            assertFalse(message.isAddressed());
            assertFalse(message.next());
        }
    }

    @Test
    void theRankBehindMalformedDataIsStillRead() {
        final byte[] bytes =
                ascii("{\"worker_id\":7,\"event\":{\"event_id\":4,\"data\":[],\"dp_rank\":2}}");
        assertTrue(message.wrap(bytes, 0, bytes.length));
        assertTrue(message.next());
        assertTrue(message.isAddressed());
        assertEquals(2, message.dpRank());
        assertEquals(4, message.eventId());
    }

    @Test
    void oneBadEventDoesNotLoseItsBatch() throws IOException {
        final byte[] good = RouterEventWriter.payload(7, 0, 1, cleared());
        final MessageBufferPacker packer = MessagePack.newDefaultBufferPacker();
        packer.packArrayHeader(4);
        packer.writePayload(good, 1, good.length - 1);
        packer.packString("no event");
        packer.packMapHeader(1).packString("worker_id").packNil();
        packer.writePayload(good, 1, good.length - 1);
        final byte[] bytes = RouterEventWriter.envelope(1, 0, 0, "kv-events", packer.toByteArray());
        assertEquals(List.of("cleared", "cleared"), decoded(bytes));
        assertFalse(message.isTruncated());
    }

    @Test
    void integersOfAnyWidthAreRead() throws IOException {
        final MessageBufferPacker packer = MessagePack.newDefaultBufferPacker();
        packer.packArrayHeader(1).packMapHeader(2);
        packer.packString("event").packMapHeader(3);
        packer.packString("dp_rank").addPayload(new byte[] {(byte) 0xd3, 0, 0, 0, 0, 0, 0, 0, 1});
        packer.packString("data").packMapHeader(1).packString("removed").packMapHeader(1);
        packer.packString("block_hashes").packArrayHeader(3);
        packer.addPayload(new byte[] {(byte) 0xcd, 0, 5});
        packer.addPayload(new byte[] {(byte) 0xff});
        packer.addPayload(new byte[] {(byte) 0xd2, 0, 0, 0, 6});
        packer.packString("event_id").addPayload(new byte[] {(byte) 0xce, 0, 0, 0, 9});
        packer.packString("worker_id").addPayload(new byte[] {(byte) 0xcc, 7});
        final byte[] bytes = RouterEventWriter.envelope(1, 0, 0, "kv-events", packer.toByteArray());
        assertEquals(List.of("removed [5, -1, 6]"), decoded(bytes));
        assertEquals(
                "7/1/9", message.workerId() + "/" + message.dpRank() + "/" + message.eventId());
    }

    @Test
    void aPayloadThatIsASingleEventIsRead() {
        final byte[] one = RouterEventWriter.payload(7, 0, 1, cleared());
        final byte[] bytes =
                RouterEventWriter.envelope(
                        1, 0, 0, "kv-events", Arrays.copyOfRange(one, 1, one.length));
        assertEquals(List.of("cleared"), decoded(bytes));
    }

    @Test
    void countsThatAreClaimedTakeNoMemory() {
        // a list of 2^32-1 blocks that are not there
        final byte[] bytes = RouterEventGoldenTest.STORED.clone();
        final int blocks = indexOf(bytes, ascii("blocks")) + 6;
        final byte[] cut = Arrays.copyOf(bytes, blocks + 5);
        cut[blocks] = (byte) 0xdd;
        Arrays.fill(cut, blocks + 1, blocks + 5, (byte) 0xff);
        final KvBatch out = RouterEventGoldenTest.empty();
        final int start = indexOf(cut, ascii("worker_id")) - 2;
        assertEquals(
                0,
                Allocations.bytesPerRound(
                        100, () -> decoder.decode(cut, start, cut.length - start, out)));
        assertEquals(0, out.operations());
    }

    private static int indexOf(byte[] bytes, byte[] part) {
        for (int i = 0; i + part.length <= bytes.length; i++) {
            if (Arrays.equals(bytes, i, i + part.length, part, 0, part.length)) {
                return i;
            }
        }
        throw new AssertionError("not there");
    }

    private static KvBatch cleared() {
        final KvBatch batch = RouterEventGoldenTest.empty();
        batch.addCleared();
        return batch;
    }

    @Test
    void nestingIsBounded() {
        final String deep = "[".repeat(100_000) + "]".repeat(100_000);
        final byte[] bytes = ascii("{\"x\":" + deep + "," + event("\"cleared\"").substring(1));
        assertTrue(message.wrap(bytes, 0, bytes.length));
        assertTrue(message.next());
        assertFalse(message.isAddressed());
    }

    @Test
    void eventsAreReadWithoutAllocating() {
        final long[] hashes = new long[500];
        Arrays.setAll(hashes, i -> i * 0x9e3779b97f4a7c15L);
        final KvBatch events = RouterEventGoldenTest.empty();
        events.addStored(false, 5, hashes, hashes, hashes.length);
        events.addRemoved(hashes, hashes.length);
        final byte[] enveloped =
                RouterEventWriter.envelope(
                        1, 2, 3, "kv-events", RouterEventWriter.payload(7, 0, 1, events));
        final byte[] json = RouterEventWriter.json(7, 0, 1, events, events.first());
        final KvBatch out = new KvBatch();
        for (byte[] bytes : List.of(enveloped, json)) {
            final Runnable round =
                    () -> {
                        out.reset(0, 0, CopyRule.LAST_COPY, false, ApplyListener.NONE);
                        message.wrap(bytes, 0, bytes.length);
                        while (message.next()) {
                            decoder.decode(
                                    bytes, message.eventOffset(), message.eventLength(), out);
                        }
                    };
            assertEquals(0, Allocations.bytesPerRound(300, round));
            assertEquals(message.isEnveloped() ? 2 : 1, out.operations());
        }
    }

    @Test
    void noInputMakesItThrowOrReadPastItsRange() {
        final Random random = new Random(Seeds.next("RouterEventDecoderTest.fuzz"));
        final List<byte[]> messages = new ArrayList<>();
        messages.add(RouterEventGoldenTest.STORED);
        messages.add(ascii(RouterEventGoldenTest.LEGACY));
        messages.add(ascii(event("{\"removed\":{\"block_hashes\":[1,2,-3]}}")));
        for (int round = 0; round < 40_000; round++) {
            byte[] bytes = messages.get(random.nextInt(messages.size())).clone();
            for (int i = random.nextInt(5); i > 0; i--) {
                bytes[random.nextInt(bytes.length)] = (byte) random.nextInt();
            }
            if (random.nextBoolean()) {
                bytes = Arrays.copyOf(bytes, random.nextInt(bytes.length));
            }
            decoded(bytes);
        }
    }

    @Test
    void aMessageThatIsCutOffSaysSo() {
        final KvBatch events = RouterEventGoldenTest.empty();
        events.addCleared();
        events.addCleared();
        final byte[] payload = RouterEventWriter.payload(7, 0, 1, events);
        final byte[] bytes =
                RouterEventWriter.envelope(
                        1, 0, 0, "kv-events", Arrays.copyOf(payload, payload.length - 3));
        assertEquals(List.of("cleared"), decoded(bytes));
        assertTrue(message.isTruncated());
    }
}
