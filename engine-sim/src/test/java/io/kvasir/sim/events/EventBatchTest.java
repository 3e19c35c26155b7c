package io.kvasir.sim.events;

import static org.junit.jupiter.api.Assertions.assertEquals;

import io.kvasir.sim.testing.MsgPack;

import org.junit.jupiter.api.Test;

import java.nio.ByteBuffer;
import java.util.HexFormat;
import java.util.List;
import java.util.stream.IntStream;

/** Payloads against bytes of vLLM 0.32's own encoder. */
class EventBatchTest {
    private final EventBatch batch = new EventBatch(false);

    private String finish() {
        return HexFormat.of().formatHex(batch.finish(1.5, 0));
    }

    @Test
    void aStoreHasTheBytesOfVllm() {
        batch.stored(
                new long[] {101, 102}, 0, 2, IntStream.rangeClosed(1, 8).toArray(), 4, Labels.NONE);
        assertEquals(
                "93cb3ff80000000000009188a474797065ab426c6f636b53746f726564ac626c6f636b5f686173686573"
                    + "926566b1706172656e745f626c6f636b5f68617368c0a9746f6b656e5f69647398010203040506"
                    + "0708aa626c6f636b5f73697a6504a76c6f72615f6964c0a66d656469756da3475055a96c6f7261"
                    + "5f6e616d65c000",
                finish());
    }

    @Test
    void aRemovalHasTheBytesOfVllm() {
        batch.removed(102);
        assertEquals(
                "93cb3ff80000000000009183a474797065ac426c6f636b52656d6f766564ac626c6f636b5f6861736865"
                    + "739166a66d656469756da347505500",
                finish());
    }

    @Test
    void aClearHasTheBytesOfVllmAndTheNextBatchIsEmpty() {
        batch.cleared();
        assertEquals(
                "93cb3ff80000000000009181a474797065b0416c6c426c6f636b73436c656172656400", finish());
        assertEquals("93cb3ff80000000000009000", finish());
    }

    @Test
    void numbersAndLengthsTakeTheirShortestForm() {
        final MsgPackWriter out = new MsgPackWriter(1);
        final long[] numbers = {
            0, 127, 128, 255, 256, 65535, 65536, 0xffffffffL, 0x100000000L, Long.MAX_VALUE, -1
        };
        out.array(numbers.length);
        for (long number : numbers) {
            out.unsigned(number);
        }
        assertEquals(
                "9b007fcc80ccffcd0100cdffffce00010000ceffffffffcf0000000100000000"
                        + "cf7fffffffffffffffcfffffffffffffffff",
                HexFormat.of().formatHex(out.toBytes()));
        for (int length : new int[] {0, 15, 16, 31, 32, 255, 256, 65535, 65536}) {
            final MsgPackWriter writer = new MsgPackWriter(8);
            writer.array(length);
            for (int i = 0; i < length; i++) {
                writer.nil();
            }
            if (length < 65536) {
                writer.string("x".repeat(length));
            }
            final ByteBuffer in = ByteBuffer.wrap(writer.toBytes());
            assertEquals(length, ((List<?>) MsgPack.read(in)).size());
            if (length < 65536) {
                assertEquals("x".repeat(length), MsgPack.read(in));
            }
            assertEquals(0, in.remaining());
        }
    }
}
