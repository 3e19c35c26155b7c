package io.kvasir.pipeline.wire;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.kvasir.pipeline.source.Captures;
import io.kvasir.testsupport.Seeds;

import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

import java.nio.charset.StandardCharsets;
import java.util.HexFormat;
import java.util.Random;

/** Load reports of an event plane. */
class PlaneLoadTest {
    /** Recorded over NATS from a mocker of Dynamo 1.6.1. */
    private static final String NATS =
            "85ac7075626c69736865725f6964cf0004df15bc901c2da873657175656e636500ac7075626c69736865645f"
                + "6174cf000001a1fd8ab1eca5746f706963aa6b765f6d657472696373a77061796c6f6164c45a85a9"
                + "776f726b65725f6964cf771644c9ceec0be0a764705f72616e6b00b46163746976655f6465636f64"
                + "655f626c6f636b73c0b56163746976655f70726566696c6c5f746f6b656e73c0ae6b765f75736564"
                + "5f626c6f636b7300";

    private final PlaneLoad load = new PlaneLoad();

    private boolean read(byte[] bytes) {
        return load.read(bytes, 0, bytes.length);
    }

    private boolean readJson(String json) {
        return read(json.getBytes(StandardCharsets.UTF_8));
    }

    @Test
    void whatWasRecordedOverNatsIsRead() {
        assertTrue(read(HexFormat.of().parseHex(NATS)));
        assertEquals(0x771644c9ceec0be0L, load.workerId());
        assertEquals(0, load.dpRank());
        assertEquals(1_795_255_087_596L, load.publishedAt());
        assertEquals(0, load.usedBlocks());
        assertEquals(PlaneLoad.MISSING, load.waitingTokens());
        assertEquals(PlaneLoad.MISSING, load.running());
        assertEquals(PlaneLoad.MISSING, load.waiting());
        assertEquals(PlaneLoad.MISSING, load.blocks());
    }

    @Test
    void whatWasRecordedOverZmqIsRead() {
        final var records = Captures.read("dyn-1.6.1-eventplane-zmq-kv_metrics.zcap");
        assertEquals(8, records.size());
        long last = 0;
        for (var record : records) {
            final byte[] frame = record.payload();
            assertTrue(load.read(frame, 5, frame.length - 5));
            assertEquals(5_840_584_146_110_321_887L, load.workerId());
            assertTrue(load.publishedAt() > last, "the times rise");
            last = load.publishedAt();
        }
    }

    @Test
    void theOlderFormIsReadInJson() {
        assertTrue(
                readJson(
                        """
                        {"worker_id": 7, "data": {
                          "worker_stats": {"data_parallel_rank": 2, "request_active_slots": 5,
                            "request_total_slots": 64, "num_requests_waiting": 3},
                          "kv_stats": {"kv_active_blocks": 40, "kv_total_blocks": 512,
                            "gpu_cache_usage_perc": 0.078, "gpu_prefix_cache_hit_rate": 0.5},
                          "spec_decode_stats": null}}\
                        """));
        assertEquals(7, load.workerId());
        assertEquals(2, load.dpRank());
        assertEquals(5, load.running());
        assertEquals(3, load.waiting());
        assertEquals(40, load.usedBlocks());
        assertEquals(512, load.blocks());
        assertEquals(PlaneLoad.MISSING, load.publishedAt());
    }

    @Test
    void ofTwoNumbersOfBlocksInUseTheLargerIsTaken() {
        assertTrue(
                readJson(
                        "{\"worker_id\":1,\"dp_rank\":null,\"active_decode_blocks\":9,"
                                + "\"active_prefill_tokens\":320,\"kv_used_blocks\":4}"));
        assertEquals(9, load.usedBlocks());
        assertEquals(320, load.waitingTokens());
        assertEquals(0, load.dpRank());
    }

    @ParameterizedTest
    @ValueSource(
            strings = {
                "",
                "{}",
                "[]",
                "{\"worker_id\":\"seven\",\"kv_used_blocks\":4}",
                "{\"dp_rank\":0,\"kv_used_blocks\":4}",
                "{\"worker_id\":1,\"dp_rank\":-1}",
                "{\"worker_id\":1,\"dp_rank\":99999999999}",
                "{\"worker_id\":1,\"kv_used_blocks\":1.5}",
                "{\"worker_id\":1,\"kv_used_blocks\":",
                "{\"worker_id\":1} and more"
            })
    void whatIsNoReportIsNotRead(String json) {
        assertFalse(readJson(json));
    }

    @Test
    void numbersThatAreNoneAreLeftToTheReader() {
        assertTrue(readJson("{\"worker_id\":1,\"kv_used_blocks\":-4}"));
        assertEquals(-4, load.usedBlocks());
    }

    @Test
    void anyBytesAreReadWithoutHarm() {
        final Random random = new Random(Seeds.next("PlaneLoadTest"));
        final byte[] whole = HexFormat.of().parseHex(NATS);
        for (int length = 0; length < whole.length; length++) {
            assertFalse(load.read(whole, 0, length), "length " + length);
        }
        for (int i = 0; i < 20_000; i++) {
            final byte[] bytes = whole.clone();
            for (int n = random.nextInt(4); n >= 0; n--) {
                bytes[random.nextInt(bytes.length)] = (byte) random.nextInt();
            }
            read(bytes);
        }
    }
}
