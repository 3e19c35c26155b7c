package io.kvasir.pipeline.wire;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.kvasir.core.index.CopyRule;
import io.kvasir.core.index.PrefixIndex;
import io.kvasir.core.index.PrefixIndexConfig;
import io.kvasir.pipeline.capture.ZcapRecord;
import io.kvasir.pipeline.events.IndexApplier;
import io.kvasir.pipeline.source.Captures;
import io.kvasir.testsupport.Seeds;

import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.msgpack.core.MessageBufferPacker;
import org.msgpack.core.MessagePack;

import java.io.IOException;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Random;

/** No input makes the decoder throw, read past its range, or emit what the index cannot take. */
class DecoderFuzzTest {
    private static final List<String> CAPTURES =
            List.of(
                    "vllm-0.32.0-sha256int.zcap",
                    "vllm-0.32.0-sha256cbor-bytes-lora.zcap",
                    "sglang-0.5.23-bs16.zcap",
                    "llmdsim-array.zcap",
                    "dyn-1.6.1-mocker-native-zmq.zcap");

    private final KvBatch out = new KvBatch();

    private static List<byte[]> payloads() {
        return CAPTURES.stream()
                .flatMap(name -> Captures.messages(name).stream())
                .map(ZcapRecord::payload)
                .toList();
    }

    private void decode(EngineBatchDecoder decoder, byte[] payload, int length) {
        out.reset(0, 0, CopyRule.PHYSICAL, false, ApplyListener.NONE);
        // an array of exactly the length: a read past the range would throw
        decoder.decode(Arrays.copyOf(payload, length), 0, length, out);
    }

    @Test
    void everyTruncationYieldsAPrefixOfTheOperations() {
        for (byte[] payload : payloads()) {
            for (int blockSize : new int[] {16, 32}) {
                final EngineBatchDecoder decoder = new EngineBatchDecoder(blockSize);
                decode(decoder, payload, payload.length);
                final List<String> whole = EngineBatchDecoderTest.describe(out);
                final int step = payload.length > 500 ? 7 : 1;
                for (int length = 0; length < payload.length; length += step) {
                    final long before = decoder.drops().total();
                    decode(decoder, payload, length);
                    final List<String> some = EngineBatchDecoderTest.describe(out);
                    assertEquals(whole.subList(0, some.size()), some);
                    // only the rank behind the events may be cut off without a trace
                    assertTrue(
                            decoder.drops().total() > before || some.equals(whole),
                            "silent at " + length);
                }
            }
        }
    }

    @Test
    void mutatedMessagesNeverThrow() {
        final Random random = new Random(Seeds.next("DecoderFuzzTest.mutated"));
        final List<byte[]> payloads = payloads();
        final EngineBatchDecoder[] decoders = {
            new EngineBatchDecoder(16), new EngineBatchDecoder(32)
        };
        try (PrefixIndex index = new PrefixIndex(new PrefixIndexConfig(2, 4_096, 4_096))) {
            final IndexApplier applier = new IndexApplier(index);
            for (int round = 0; round < 40_000; round++) {
                final byte[] payload = payloads.get(random.nextInt(payloads.size())).clone();
                for (int i = 1 + random.nextInt(6); i > 0; i--) {
                    mutate(payload, random);
                }
                final int length =
                        random.nextInt(4) == 0 ? random.nextInt(payload.length) : payload.length;
                decode(decoders[round & 1], payload, length);
                applier.offer(out);
            }
        }
    }

    private static void mutate(byte[] payload, Random random) {
        final int at = random.nextInt(payload.length);
        switch (random.nextInt(4)) {
            case 0 -> payload[at] = (byte) random.nextInt();
            case 1 -> payload[at] ^= (byte) (1 << random.nextInt(8));
            case 2 -> payload[at] = (byte) (0xc0 + random.nextInt(32)); // heads of wide values
            default -> {
                final int length = Math.min(random.nextInt(12), payload.length - at);
                System.arraycopy(
                        payload, random.nextInt(payload.length - length), payload, at, length);
            }
        }
    }

    @Test
    void randomValuesInThePlaceOfFieldsNeverThrow() throws IOException {
        decodeRandomValues(1_500);
    }

    @Tag("integration") // takes seconds
    @Test
    void manyRandomValuesInThePlaceOfFieldsNeverThrow() throws IOException {
        decodeRandomValues(20_000);
    }

    private void decodeRandomValues(int rounds) throws IOException {
        final Random random = new Random(Seeds.next("DecoderFuzzTest.fields"));
        final EngineBatchDecoder decoder = new EngineBatchDecoder(4);
        final String[] keys = {
            "type", "block_hashes", "parent_block_hash", "token_ids", "block_size", "lora_id",
            "medium", "lora_name", "extra_keys", "group_idx", "kv_cache_spec_kind", "locality",
            "ownership", "cache_salt", "remaining_copy_counts", "block_mm_infos", "other"
        };
        final String[] types = {"BlockStored", "BlockRemoved", "AllBlocksCleared"};
        for (int round = 0; round < rounds; round++) {
            final MessageBufferPacker packer = MessagePack.newDefaultBufferPacker();
            packer.packArrayHeader(2).packDouble(1.5).packArrayHeader(1);
            final List<String> chosen = new ArrayList<>(List.of(keys));
            chosen.removeIf(key -> random.nextInt(3) == 0);
            packer.packMapHeader(chosen.size());
            for (String key : chosen) {
                packer.packString(key);
                if (key.equals("type")) {
                    packer.packString(types[random.nextInt(types.length)]);
                } else if (random.nextBoolean()) {
                    plausible(packer, key, random);
                } else {
                    MsgpackReaderTest.pack(packer, random, 3);
                }
            }
            final byte[] payload = packer.toByteArray();
            decode(decoder, payload, payload.length);
        }
    }

    private static void plausible(MessageBufferPacker packer, String key, Random random)
            throws IOException {
        switch (key) {
            case "block_hashes" -> packer.packArrayHeader(1).packLong(random.nextLong());
            case "token_ids" -> {
                packer.packArrayHeader(4);
                for (int i = 0; i < 4; i++) {
                    packer.packInt(i);
                }
            }
            case "block_size" -> packer.packInt(4);
            case "extra_keys" -> {
                packer.packArrayHeader(1);
                MsgpackReaderTest.pack(packer, random, 2);
            }
            case "group_idx" -> packer.packInt(0);
            default -> packer.packNil();
        }
    }
}
