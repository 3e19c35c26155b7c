package io.kvasir.pipeline.wire;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.fasterxml.jackson.databind.ObjectMapper;

import io.kvasir.core.hash.BlockHasher;
import io.kvasir.core.index.CopyRule;
import io.kvasir.pipeline.capture.ZcapRecord;
import io.kvasir.pipeline.source.Captures;

import org.junit.jupiter.api.Test;
import org.msgpack.core.MessagePack;
import org.msgpack.core.MessageUnpacker;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HexFormat;
import java.util.List;

/** Router events as other publishers write them, read and written byte for byte. */
class RouterEventGoldenTest {
    /** Of ai-dynamo-runtime 1.6.1: tokens 1..8 in blocks of 4, hashes 101 and 102, worker 7. */
    static final byte[] STORED =
            HexFormat.of()
                    .parseHex(
                            "85ac7075626c69736865725f6964cf001e6d6bd4409472a873657175656e636500"
                                    + "ac7075626c69736865645f6174cf000001a1fd827b45a5746f706963a9"
                                    + "6b762d6576656e7473a77061796c6f6164c4e89184a9776f726b65725f"
                                    + "696407ac73746f726167655f74696572a6646576696365b07265736964"
                                    + "656e63795f646f6d61696ea6776f726b6572a56576656e7483a8657665"
                                    + "6e745f696401a46461746181a673746f72656483ab706172656e745f68"
                                    + "617368c0ae73746172745f706f736974696f6ec0a6626c6f636b739283"
                                    + "aa626c6f636b5f6861736865ab746f6b656e735f68617368cfcb38e4d7"
                                    + "fb2dca5cad6d6d5f65787472615f696e666fc083aa626c6f636b5f6861"
                                    + "736866ab746f6b656e735f68617368cfe8d3ec39b907b74cad6d6d5f65"
                                    + "787472615f696e666fc0a764705f72616e6b00");

    /** Of ai-dynamo-runtime 0.7.1: the first block of the same. */
    static final String LEGACY =
            "{\"worker_id\":7587895437126,\"event\":{\"event_id\":1,\"data\":{\"stored\":"
                    + "{\"parent_hash\":null,\"blocks\":[{\"block_hash\":101,"
                    + "\"tokens_hash\":14643705804678351452}]}},\"dp_rank\":0}}";

    private static final long[] LOCALS = new long[2];

    static {
        BlockHasher.localHashes(
                new int[] {1, 2, 3, 4, 5, 6, 7, 8}, 0, 8, 4, BlockHasher.BASE_SEED, LOCALS);
    }

    private final RouterMessage message = new RouterMessage();
    private final RouterEventDecoder decoder = new RouterEventDecoder();

    static KvBatch empty() {
        final KvBatch batch = new KvBatch();
        batch.reset(0, 1, CopyRule.LAST_COPY, false, ApplyListener.NONE);
        return batch;
    }

    private void decodeEvent(byte[] bytes, KvBatch out) {
        decoder.decode(bytes, message.eventOffset(), message.eventLength(), out);
    }

    @Test
    void theGoldenStoreIsReadAndWrittenByteForByte() {
        assertTrue(message.wrap(STORED, 0, STORED.length));
        assertTrue(message.isEnveloped());
        assertEquals(0x001e6d6bd4409472L, message.publisherId());
        assertEquals(0, message.sequence());
        assertTrue(message.next());
        assertTrue(message.isAddressed());
        assertEquals(
                "7/0/1", message.workerId() + "/" + message.dpRank() + "/" + message.eventId());
        final KvBatch batch = empty();
        decodeEvent(STORED, batch);
        assertFalse(message.next());
        assertEquals(
                List.of("stored root [101, 102] cb38e4d7fb2dca5c e8d3ec39b907b74c"),
                EngineBatchDecoderTest.describe(batch));

        final KvBatch own = empty();
        own.addStored(true, 0, new long[] {101, 102}, LOCALS, 2);
        assertArrayEquals(
                STORED,
                RouterEventWriter.envelope(
                        0x001e6d6bd4409472L,
                        0,
                        0x000001a1fd827b45L,
                        "kv-events",
                        RouterEventWriter.payload(7, 0, 1, own)));
    }

    @Test
    void theGoldenRemovalIsReadAndWrittenByteForByte() {
        final KvBatch own = empty();
        own.addRemoved(new long[] {102}, 1);
        final byte[] payload = RouterEventWriter.payload(7, 0, 2, own);
        final String hex = HexFormat.of().formatHex(payload);
        assertTrue(hex.startsWith("9184"), hex);
        assertTrue(
                hex.endsWith(
                        "a46461746181a772656d6f76656481ac626c6f636b5f6861736865739166"
                                + "a764705f72616e6b00"),
                hex);
    }

    @Test
    void theLegacyEventIsReadAndWrittenByteForByte() {
        final byte[] bytes = LEGACY.getBytes(StandardCharsets.US_ASCII);
        assertTrue(message.wrap(bytes, 0, bytes.length));
        assertFalse(message.isEnveloped());
        assertTrue(message.next());
        assertTrue(message.isAddressed());
        final KvBatch batch = empty();
        decodeEvent(bytes, batch);
        assertEquals(
                List.of("stored root [101] cb38e4d7fb2dca5c"),
                EngineBatchDecoderTest.describe(batch));
        assertEquals(
                LEGACY,
                new String(
                        RouterEventWriter.json(
                                message.workerId(), 0, message.eventId(), batch, batch.first()),
                        StandardCharsets.US_ASCII));
    }

    /** Each message: read event by event, written again from what was read. */
    private void comesBack(byte[] bytes) throws IOException {
        final long publishedAt;
        final String topic;
        try (MessageUnpacker in = MessagePack.newDefaultUnpacker(bytes)) {
            in.unpackMapHeader();
            in.unpackString();
            in.unpackLong();
            in.unpackString();
            in.unpackLong();
            in.unpackString();
            publishedAt = in.unpackLong();
            in.unpackString();
            topic = in.unpackString();
        }
        assertTrue(message.wrap(bytes, 0, bytes.length));
        final KvBatch all = empty();
        long first = -1;
        while (message.next()) {
            assertTrue(message.isAddressed());
            first = first < 0 ? message.eventId() : first;
            decodeEvent(bytes, all);
        }
        assertFalse(message.isTruncated());
        assertEquals(0, decoder.drops().total());
        assertArrayEquals(
                bytes,
                RouterEventWriter.envelope(
                        message.publisherId(),
                        message.sequence(),
                        publishedAt,
                        topic,
                        RouterEventWriter.payload(
                                message.workerId(), message.dpRank(), first, all)));
    }

    @Test
    void aRecordedEventPlaneOverZmqComesBackByteForByte() throws IOException {
        final List<Long> sequences = new ArrayList<>();
        for (ZcapRecord record : Captures.read("dyn-1.6.1-eventplane-zmq-kv-events.zcap")) {
            if (record.frames().size() == 4) {
                final byte[] frame = record.frames().get(3);
                assertEquals(1, frame[0]);
                comesBack(Arrays.copyOfRange(frame, 5, frame.length));
                sequences.add(message.sequence());
            }
        }
        for (int i = 0; i < sequences.size(); i++) {
            assertEquals(i, sequences.get(i));
        }
        assertTrue(sequences.size() > 5, "messages: " + sequences.size());
    }

    @Test
    void aRecordedEventPlaneOverNatsComesBackByteForByte() throws IOException {
        int messages = 0;
        for (String line : Captures.lines("dyn-1.6.1-nats-kv-events.jsonl")) {
            comesBack(
                    HexFormat.of().parseHex(new ObjectMapper().readTree(line).get("hex").asText()));
            messages++;
        }
        assertEquals(9, messages);
    }
}
