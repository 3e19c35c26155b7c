package io.kvasir.nats.replica;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertInstanceOf;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.kvasir.router.replica.ReplicaMessage;
import io.kvasir.router.replica.ReplicaMessages;
import io.kvasir.router.replica.ReplicaOrigin;
import io.kvasir.router.replica.ReplicaWorker;
import io.kvasir.testsupport.Seeds;

import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import org.junit.jupiter.params.provider.ValueSource;

import java.io.IOException;
import java.io.InputStream;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.HexFormat;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;

class ReplicaCodecTest {
    private static final ReplicaOrigin ORIGIN =
            new ReplicaOrigin(7_443_119_999_999_999L, 1_795_254_950_087_000L);
    private static final long PUBLISHER = 4_598_000_000_000_001L;

    private final ReplicaCodec codec = new ReplicaCodec(WireForm.MSGPACK, 4);

    private static List<byte[]> recorded() throws IOException {
        try (InputStream in =
                ReplicaCodecTest.class.getResourceAsStream("active-sequences-1.6.1.hex")) {
            return new String(in.readAllBytes(), StandardCharsets.US_ASCII)
                    .lines()
                    .filter(line -> !line.startsWith("#"))
                    .map(HexFormat.of()::parseHex)
                    .toList();
        }
    }

    private static byte[] json(String text) {
        return text.getBytes(StandardCharsets.UTF_8);
    }

    @ParameterizedTest
    @EnumSource(WireForm.class)
    void whatIsWrittenIsReadAsItWas(WireForm form) throws IOException {
        final ReplicaCodec written = new ReplicaCodec(form, 16);
        for (ReplicaMessage message : ReplicaMessages.all(ORIGIN)) {
            final ReplicaMessage read =
                    message instanceof ReplicaMessage.OfBooking booking
                            ? codec.readBookings(written.booking(booking, PUBLISHER, 3, 4)).get(0)
                            : ReplicaCodec.readFleet(ReplicaCodec.fleet(message));
            // JSON of the first age has no place for the expected output
            if (!(form == WireForm.JSON && message.sequence() == 2)) {
                assertEquals(ReplicaMessages.text(message), ReplicaMessages.text(read));
            }
        }
    }

    @Test
    void readsWhatDynamoSaysOnNats() throws IOException {
        for (byte[] body : recorded()) {
            final List<ReplicaMessage> messages = codec.readBookings(body);
            assertEquals(1, messages.size());
            final ReplicaMessage.Prefilled prefilled =
                    assertInstanceOf(ReplicaMessage.Prefilled.class, messages.get(0));
            assertTrue(prefilled.origin().isForeign());
            assertEquals(prefilled.origin().routerId(), prefilled.worker().id());
            assertEquals(0, prefilled.worker().dpRank());
        }
    }

    @Test
    void whatDynamoSaysIsWrittenByteForByteTheSame() throws IOException {
        for (byte[] body : recorded()) {
            final Fields envelope = Fields.of(MsgpackTree.read(body));
            final Map<?, ?> event =
                    (Map<?, ?>) MsgpackTree.read((byte[]) envelope.value("payload"));
            assertArrayEquals(
                    body,
                    ReplicaCodec.envelope(
                            MsgpackTree.write(event),
                            envelope.number("publisher_id"),
                            envelope.number("sequence"),
                            envelope.number("published_at")));
        }
    }

    @Test
    void withoutItsOwnKeyAnEventHasTheKeysOfDynamoInTheirOrder() throws IOException {
        final Fields envelope = Fields.of(MsgpackTree.read(recorded().get(0)));
        final Map<?, ?> theirs = (Map<?, ?>) MsgpackTree.read((byte[]) envelope.value("payload"));
        final Map<String, Object> ours =
                new LinkedHashMap<>(
                        BookingEvents.event(
                                new ReplicaMessage.Prefilled(
                                        ORIGIN, 1, 2, new ReplicaWorker(3, "w", 0)),
                                WireForm.MSGPACK));
        ours.remove(BookingEvents.OWN);
        assertEquals(List.copyOf(theirs.keySet()), List.copyOf(ours.keySet()));
        assertEquals(theirs.get("data"), ours.get("data"));
    }

    @Test
    void readsTheJsonOfVersionSeven() throws IOException {
        final ReplicaMessage.Added added =
                (ReplicaMessage.Added)
                        codec.readBookings(
                                        json(
"""
{"request_id":"req-1","worker":{"worker_id":7587888888888888888,"dp_rank":0},\
"data":{"AddRequest":{"token_sequence":[14643705804678351452,4945711292740353085],\
"isl":9,"overlap":1}},"router_id":"5a1c0d9e-4a3d-4e1f-9d37-0e0f5b6c7d8e"}\
"""))
                                .get(0);
        assertTrue(added.origin().isForeign());
        assertEquals(2, added.pathBlocks());
        assertEquals(0, added.localHashes().length);
        assertEquals(5, added.prefillTokens(), "9 tokens less one block of 4");
        assertEquals(7_587_888_888_888_888_888L, added.worker().id());
        final ReplicaMessage.Freed freed =
                (ReplicaMessage.Freed)
                        codec.readBookings(
                                        json(
"""
{"request_id":"req-1","worker":{"worker_id":18446744073709551615,"dp_rank":2},"data":"Free",\
"router_id":"5a1c0d9e-4a3d-4e1f-9d37-0e0f5b6c7d8e","unknown":{"a":[1.5,null,true]}}\
"""))
                                .get(0);
        assertEquals(added.booking(), freed.booking(), "by the request's id");
        assertEquals(added.origin(), freed.origin());
        assertEquals(-1L, freed.worker().id());
    }

    @Test
    void readsAddRequestsOfTheSecondAgeAloneAndInBatches() throws IOException {
        final Map<String, Object> request = new LinkedHashMap<>();
        request.put("token_sequence", new long[] {1, -2, 3});
        request.put("track_prefill_tokens", true);
        request.put("expected_output_tokens", 250);
        request.put("prefill_load_hint", Map.of("initial_effective_prefill_tokens", 17));
        final Map<String, Object> event = new LinkedHashMap<>();
        event.put("request_id", "a");
        event.put("worker", Map.of("worker_id", -5L, "dp_rank", 1));
        event.put("data", Map.of("AddRequest", request));
        event.put("router_id", 99);
        final byte[] batch = MsgpackTree.write(Map.of("events", List.of(event, event)));
        for (byte[] body :
                List.of(batch, ReplicaCodec.envelope(batch, 1, 2, 3), JsonTree.write(event))) {
            for (ReplicaMessage message : codec.readBookings(body)) {
                final ReplicaMessage.Added added = (ReplicaMessage.Added) message;
                assertEquals(3, added.pathBlocks());
                assertEquals(17, added.prefillTokens());
                assertEquals(250, added.expectedOutputTokens());
                assertEquals(new ReplicaWorker(-5, "", 1), added.worker());
                assertEquals(new ReplicaOrigin(99, ReplicaOrigin.FOREIGN), added.origin());
            }
        }
        request.put("track_prefill_tokens", false);
        assertEquals(
                0,
                ((ReplicaMessage.Added) codec.readBookings(MsgpackTree.write(event)).get(0))
                        .prefillTokens());
    }

    @Test
    void whatKvasirAddsIsReadByDynamosRulesAsSequenceHashes() throws IOException {
        // local hashes of tokens 1..8 in blocks of 4, and the chain over them
        final ReplicaMessage.Added added =
                new ReplicaMessage.Added(
                        ORIGIN,
                        1,
                        1L << 32,
                        new ReplicaWorker(7, "w", 0),
                        2,
                        new long[] {0xcb38e4d7fb2dca5cL, 0xe8d3ec39b907b74cL},
                        5,
                        0,
                        9,
                        -1);
        final Map<String, Object> event = BookingEvents.event(added, WireForm.MSGPACK);
        event.remove(BookingEvents.OWN);
        final Fields request =
                Fields.of(MsgpackTree.read(MsgpackTree.write(event)))
                        .fields("data")
                        .fields("AddRequest");
        assertArrayEquals(
                new long[] {0xcb38e4d7fb2dca5cL, 4_945_711_292_740_353_085L},
                (long[]) request.value("token_sequence"));
        final ReplicaMessage.Added foreign =
                (ReplicaMessage.Added) codec.readBookings(MsgpackTree.write(event)).get(0);
        assertEquals(9, foreign.prefillTokens());
        assertEquals(2, foreign.pathBlocks());
    }

    @ParameterizedTest
    @ValueSource(
            strings = {
                "",
                "{",
                "[]",
                "7",
                "{}",
                "{\"request_id\":\"a\"}",
                "{\"request_id\":\"a\",\"worker\":{\"worker_id\":1.5,\"dp_rank\":0},"
                        + "\"data\":\"Free\",\"router_id\":1}",
                "{\"request_id\":\"a\",\"worker\":{\"worker_id\":1,\"dp_rank\":-1},"
                        + "\"data\":\"Free\",\"router_id\":1}",
                "{\"request_id\":\"a\",\"worker\":{\"worker_id\":1,\"dp_rank\":0},"
                        + "\"data\":\"Other\",\"router_id\":1}",
                "{\"events\":[1]}"
            })
    void whatCannotBeReadIsRefused(String body) {
        assertThrows(IOException.class, () -> codec.readBookings(json(body)));
    }

    @Test
    void claimsBeyondTheBytesAndNestingBeyondSenseAreRefused() {
        assertThrows(
                IOException.class, () -> MsgpackTree.read(HexFormat.of().parseHex("dd7fffffff01")));
        assertThrows(
                IOException.class,
                () -> MsgpackTree.read(HexFormat.of().parseHex("df7fffffffa161")));
        assertThrows(
                IOException.class, () -> MsgpackTree.read(HexFormat.of().parseHex("c67fffffff00")));
        final byte[] deep = new byte[1 << 20];
        Arrays.fill(deep, (byte) 0x91);
        assertThrows(IOException.class, () -> MsgpackTree.read(deep));
        assertThrows(IOException.class, () -> JsonTree.read(json("[".repeat(1 << 20))));
    }

    @Test
    void changedBytesAreReadOrRefusedAndNothingElse() throws IOException {
        final Random random = new Random(Seeds.next("ReplicaCodecTest"));
        for (ReplicaMessage message : ReplicaMessages.all(ORIGIN)) {
            final byte[] whole =
                    message instanceof ReplicaMessage.OfBooking booking
                            ? codec.booking(booking, PUBLISHER, 1, 2)
                            : ReplicaCodec.fleet(message);
            for (int i = 0; i < 200; i++) {
                final byte[] bytes = Arrays.copyOf(whole, 1 + random.nextInt(whole.length));
                bytes[random.nextInt(bytes.length)] = (byte) random.nextInt();
                try {
                    codec.readBookings(bytes);
                    ReplicaCodec.readFleet(bytes);
                } catch (IOException e) {
                    assertTrue(e.getMessage() != null, "it says why");
                }
            }
        }
    }

    @Test
    void aKindOfALaterVersionIsNoError() throws IOException {
        final byte[] body =
                MsgpackTree.write(
                        Map.of(
                                "kind",
                                "later",
                                "router_id",
                                1L,
                                "incarnation",
                                2L,
                                "sequence",
                                0L));
        assertNull(ReplicaCodec.readFleet(body));
    }

    @Test
    void subjectsHaveTheNamesOfTheFleetPercentEncoded() {
        final ReplicaSubjects plain = new ReplicaSubjects("dynamo", "backend", "");
        assertEquals(
                "namespace.dynamo.component.backend.active_sequences_events", plain.bookings());
        final ReplicaSubjects strange = new ReplicaSubjects("a.b", "c d*", "generate");
        assertEquals(
                "namespace.a%2Eb.component.c%20d%2A.endpoint.generate.active_sequences_events",
                strange.bookings());
        assertEquals("namespace.a%2Eb.component.c%20d%2A.kvasir_replica_sync", strange.fleet());
    }
}
