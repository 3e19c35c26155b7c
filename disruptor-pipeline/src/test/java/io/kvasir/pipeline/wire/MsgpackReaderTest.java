package io.kvasir.pipeline.wire;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.kvasir.testsupport.Seeds;

import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;
import org.msgpack.core.MessageBufferPacker;
import org.msgpack.core.MessagePack;

import java.io.IOException;
import java.math.BigInteger;
import java.util.Arrays;
import java.util.HexFormat;
import java.util.Random;

class MsgpackReaderTest {
    private final MsgpackReader reader = new MsgpackReader();

    @ParameterizedTest
    @CsvSource({
        "00, 0",
        "7f, 127",
        "ff, -1",
        "e0, -32",
        "cc80, 128",
        "ccff, 255",
        "cdffff, 65535",
        "ceffffffff, 4294967295",
        "cf7fffffffffffffff, 9223372036854775807",
        "cfffffffffffffffff, -1",
        "d080, -128",
        "d07f, 127",
        "d18000, -32768",
        "d280000000, -2147483648",
        "d38000000000000000, -9223372036854775808",
        "d3fffffffffffffffd, -3"
    })
    void integersOfEveryWidthAreRead(String hex, long expected) {
        final byte[] bytes = HexFormat.of().parseHex(hex);
        reader.wrap(bytes, 0, bytes.length);

        assertEquals(MsgpackReader.Kind.INTEGER, reader.peek());
        assertEquals(expected, reader.readLong());
        assertTrue(reader.ok());
        assertEquals(bytes.length, reader.position());
        assertEquals(MsgpackReader.Kind.END, reader.peek());
    }

    @ParameterizedTest
    @ValueSource(
            strings = {
                "",
                "cc",
                "cd01",
                "ce010203",
                "cf01020304050607",
                "d0",
                "d1ff",
                "d2ffffff",
                "d3ffffffffffffff",
                "c1",
                "c0",
                "c3",
                "a161",
                "c40101",
                "90",
                "80",
                "ca00000000"
            })
    void whatIsNoCompleteIntegerFailsTheReader(String hex) {
        final byte[] bytes = HexFormat.of().parseHex(hex);
        reader.wrap(bytes, 0, bytes.length);

        assertEquals(0, reader.readLong());
        assertFalse(reader.ok());
        assertEquals(0, reader.position());
        assertEquals(MsgpackReader.Kind.END, reader.peek());
    }

    @Test
    void bytesBehindTheRangeAreNotRead() {
        final byte[] bytes = {(byte) 0xcd, 1, 2, (byte) 0xa3, 'a', 'b', 'c'};

        assertEquals(0, reader.wrap(bytes, 0, 2).readLong());
        assertFalse(reader.ok());
        assertFalse(reader.wrap(bytes, 3, 3).readData());
        assertFalse(reader.wrap(bytes, 3, 3).skip());
        assertTrue(reader.wrap(bytes, 3, 4).skip());
    }

    @Test
    void stringsAndByteStringsOfEveryLengthFormAreFound() throws IOException {
        for (int length : new int[] {0, 1, 31, 32, 255, 256, 65_535, 65_536}) {
            final byte[] data = new byte[length];
            Arrays.fill(data, (byte) 'x');
            final MessageBufferPacker packer = MessagePack.newDefaultBufferPacker();
            packer.packString("x".repeat(length)).packBinaryHeader(length).addPayload(data);
            final byte[] bytes = packer.toByteArray();
            reader.wrap(bytes, 0, bytes.length);

            assertEquals(MsgpackReader.Kind.STRING, reader.peek());
            assertTrue(reader.readData());
            assertTrue(reader.dataEquals(data));
            assertEquals(MsgpackReader.Kind.BINARY, reader.peek());
            assertTrue(reader.readData());
            assertEquals(length, reader.dataLength());
            assertArrayEquals(
                    data,
                    Arrays.copyOfRange(bytes, reader.dataOffset(), reader.dataOffset() + length));
            assertEquals(bytes.length, reader.position());
        }
    }

    @Test
    void headsOfArraysAndMapsTellWhatTheyClaim() {
        for (long[] c : new long[][] {{0x90, 0}, {0x9f, 15}}) {
            assertEquals(c[1], reader.wrap(new byte[] {(byte) c[0]}, 0, 1).readArrayHeader());
        }
        final byte[] array16 = HexFormat.of().parseHex("dcffff");
        assertEquals(65_535, reader.wrap(array16, 0, 3).readArrayHeader());
        final byte[] array32 = HexFormat.of().parseHex("ddffffffff");
        assertEquals(0xffff_ffffL, reader.wrap(array32, 0, 5).readArrayHeader());
        final byte[] map32 = HexFormat.of().parseHex("dfffffffff");
        assertEquals(0xffff_ffffL, reader.wrap(map32, 0, 5).readMapHeader());
        assertEquals(-1, reader.wrap(map32, 0, 4).readMapHeader());
        assertFalse(reader.ok());
        assertEquals(-1, reader.wrap(array32, 0, 5).readMapHeader());
        assertFalse(reader.ok());
    }

    @Test
    void aClaimOfFourBillionElementsIsSkippedAsFarAsItGoes() {
        final byte[] bytes = HexFormat.of().parseHex("ddffffffff010203");
        assertFalse(reader.wrap(bytes, 0, bytes.length).skip());
        assertEquals(0, reader.position());
    }

    @Test
    void nestingOfAnyDepthIsSkippedWithoutRecursion() {
        final byte[] bytes = new byte[1_000_001];
        Arrays.fill(bytes, 0, 1_000_000, (byte) 0x91);
        bytes[1_000_000] = (byte) 0xc0;

        assertTrue(reader.wrap(bytes, 0, bytes.length).skip());
        assertEquals(bytes.length, reader.position());
        assertFalse(reader.wrap(bytes, 0, bytes.length - 1).skip());
    }

    @Test
    void randomValuesAreSkippedAndReadAsTheOracleWroteThem() throws IOException {
        final Random random = new Random(Seeds.next("MsgpackReaderTest.random"));
        for (int round = 0; round < 700; round++) {
            final MessageBufferPacker packer = MessagePack.newDefaultBufferPacker();
            final long number = random.nextLong() >> random.nextInt(64);
            final BigInteger unsigned = new BigInteger(64, random);
            pack(packer, random, 4);
            packer.packLong(number);
            pack(packer, random, 4);
            packer.packBigInteger(unsigned);
            final byte[] bytes = packer.toByteArray();
            reader.wrap(bytes, 0, bytes.length);

            assertTrue(reader.skip());
            assertEquals(number, reader.readLong());
            assertTrue(reader.skip());
            assertEquals(unsigned.longValue(), reader.readLong());
            assertTrue(reader.ok());
            assertEquals(bytes.length, reader.position());
            final int cut = random.nextInt(bytes.length);
            reader.wrap(bytes, 0, cut);
            while (reader.skip()) {
                assertTrue(reader.position() <= cut);
            }
            assertTrue(reader.position() <= cut);
        }
    }

    /** Packs a random value of any kind, nested at most {@code depth} deep. */
    static void pack(MessageBufferPacker packer, Random random, int depth) throws IOException {
        switch (random.nextInt(depth > 0 ? 11 : 8)) {
            case 0 -> packer.packNil();
            case 1 -> packer.packBoolean(random.nextBoolean());
            case 2 -> packer.packLong(random.nextLong() >> random.nextInt(64));
            case 3 -> packer.packDouble(random.nextDouble());
            case 4 -> packer.packFloat(random.nextFloat());
            case 5 -> packer.packString("s".repeat(random.nextInt(300)));
            case 6 -> {
                final byte[] data = new byte[random.nextInt(70_000) >> random.nextInt(16)];
                random.nextBytes(data);
                packer.packBinaryHeader(data.length).addPayload(data);
            }
            case 7 -> {
                final byte[] data = new byte[random.nextInt(20)];
                packer.packExtensionTypeHeader((byte) 7, data.length).addPayload(data);
            }
            case 8, 9 -> {
                final int count = random.nextInt(20);
                packer.packArrayHeader(count);
                for (int i = 0; i < count; i++) {
                    pack(packer, random, depth - 1);
                }
            }
            default -> {
                final int count = random.nextInt(20);
                packer.packMapHeader(count);
                for (int i = 0; i < 2 * count; i++) {
                    pack(packer, random, depth - 1);
                }
            }
        }
    }
}
