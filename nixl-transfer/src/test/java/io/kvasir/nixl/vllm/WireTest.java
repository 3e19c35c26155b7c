package io.kvasir.nixl.vllm;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;

import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import org.msgpack.core.MessageBufferPacker;
import org.msgpack.core.MessagePack;

import java.io.IOException;
import java.util.Arrays;
import java.util.Random;

/** The reader and the writer against another implementation of msgpack. */
class WireTest {
    private static WireReader reader(byte[] message) {
        return new WireReader(message, "message");
    }

    @ParameterizedTest
    @ValueSource(
            longs = {
                0,
                1,
                127,
                128,
                255,
                256,
                65_535,
                65_536,
                4_294_967_295L,
                4_294_967_296L,
                Long.MAX_VALUE,
                -1,
                -32,
                -33,
                -128,
                -129,
                -32_768,
                -32_769,
                -2_147_483_648L,
                -2_147_483_649L,
                Long.MIN_VALUE
            })
    void integersAreTheShortest(long value) throws IOException {
        try (MessageBufferPacker packer = MessagePack.newDefaultBufferPacker()) {
            packer.packLong(value);
            assertArrayEquals(packer.toByteArray(), new WireWriter().integer(value).toByteArray());
            assertEquals(value, reader(packer.toByteArray()).longInteger("value"));
            assertEquals((double) value, reader(packer.toByteArray()).number("value"));
        }
    }

    @ParameterizedTest
    @ValueSource(ints = {0, 1, 15, 16, 31, 32, 255, 256, 65_535, 65_536})
    void sizesAreTheShortest(int size) throws IOException {
        final byte[] bytes = new byte[size];
        final String text = "x".repeat(size);
        try (MessageBufferPacker packer = MessagePack.newDefaultBufferPacker()) {
            packer.packBinaryHeader(size).writePayload(bytes);
            packer.packString(text).packArrayHeader(size);
            for (int i = 0; i < size; i++) {
                packer.packNil();
            }
            packer.packMapHeader(size);
            for (int i = 0; i < size; i++) {
                packer.packInt(i).packDouble(i);
            }
            final WireWriter writer = new WireWriter().binary(bytes).string(text).array(size);
            for (int i = 0; i < size; i++) {
                writer.nil();
            }
            writer.map(size);
            for (int i = 0; i < size; i++) {
                writer.integer(i).number(i);
            }
            final byte[] message = packer.toByteArray();
            assertArrayEquals(message, writer.toByteArray());
            final WireReader reader = reader(message);
            assertEquals(OpaqueBytes.of(bytes), reader.binary("bytes"));
            assertEquals(text, reader.string("text"));
            assertEquals(size, reader.list("array", () -> reader.tryNil("nil")).size());
            assertEquals(size, reader.mapHeader("map"));
            for (int i = 0; i < size; i++) {
                assertEquals(i, reader.integer("key"));
                assertEquals(i, reader.number("value"));
            }
            reader.end();
        }
    }

    @Test
    void everyKindOfValueIsSkipped() throws IOException {
        final Random random = new Random(Long.getLong("seed", 20_261_121L));
        for (int i = 0; i < 2_000; i++) {
            try (MessageBufferPacker packer = MessagePack.newDefaultBufferPacker()) {
                pack(packer, random, 0);
                final byte[] value = packer.toByteArray();
                packer.packInt(7);
                final WireReader reader = reader(packer.toByteArray());
                assertEquals(OpaqueBytes.of(value), reader.raw("value"));
                assertEquals(7, reader.integer("next"));
                reader.end();
                assertThrows(
                        VllmPeerException.class,
                        () -> reader(Arrays.copyOf(value, value.length - 1)).skip("v"));
            }
        }
    }

    private static void pack(MessageBufferPacker packer, Random random, int depth)
            throws IOException {
        switch (random.nextInt(depth < 4 ? 10 : 8)) {
            case 0 -> packer.packNil();
            case 1 -> packer.packBoolean(random.nextBoolean());
            case 2 -> packer.packLong(random.nextLong() >> random.nextInt(64));
            case 3 -> packer.packFloat(random.nextFloat());
            case 4 -> packer.packDouble(random.nextDouble());
            case 5 -> packer.packString("x".repeat(1 << random.nextInt(depth == 0 ? 18 : 9)));
            case 6 -> {
                final int length = 1 << random.nextInt(depth == 0 ? 18 : 9);
                packer.packBinaryHeader(length).writePayload(new byte[length]);
            }
            case 7 -> {
                final int length = 1 << random.nextInt(depth == 0 ? 18 : 9);
                packer.packExtensionTypeHeader((byte) 1, length).writePayload(new byte[length]);
            }
            case 8 -> {
                final int count = random.nextInt(20);
                packer.packArrayHeader(count);
                for (int i = 0; i < count; i++) {
                    pack(packer, random, depth + 3);
                }
            }
            default -> {
                final int count = random.nextInt(20);
                packer.packMapHeader(count);
                for (int i = 0; i < 2 * count; i++) {
                    pack(packer, random, depth + 3);
                }
            }
        }
    }

    @Test
    void valuesOfAnotherTypeOrRangeAreMalformed() {
        final byte[] text = new WireWriter().string("text").toByteArray();
        final byte[] large = new WireWriter().integer(1L << 40).toByteArray();
        final byte[] unsigned = {(byte) 0xcf, -1, -1, -1, -1, -1, -1, -1, -1};
        final byte[] never = {(byte) 0xc1};
        final byte[] noUtf8 = {(byte) 0xa1, -1};
        assertThrows(VllmPeerException.class, () -> reader(text).mapHeader("v"));
        assertThrows(VllmPeerException.class, () -> reader(text).arrayHeader("v"));
        assertThrows(VllmPeerException.class, () -> reader(text).binary("v"));
        assertThrows(VllmPeerException.class, () -> reader(text).integer("v"));
        assertThrows(VllmPeerException.class, () -> reader(text).number("v"));
        assertThrows(VllmPeerException.class, () -> reader(large).string("v"));
        assertThrows(VllmPeerException.class, () -> reader(large).integer("v"));
        assertThrows(VllmPeerException.class, () -> reader(unsigned).longInteger("v"));
        assertThrows(VllmPeerException.class, () -> reader(never).skip("v"));
        assertThrows(VllmPeerException.class, () -> reader(noUtf8).string("v"));
        assertThrows(VllmPeerException.class, () -> reader(text).end());
    }
}
