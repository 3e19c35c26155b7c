package io.kvasir.core.hash;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;

import com.dynatrace.hash4j.hashing.Hashing;

import io.kvasir.testsupport.Seeds;

import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.Arrays;
import java.util.Random;
import java.util.stream.IntStream;

/**
 * The vectors V1..V13 were computed with the Python binding of NVIDIA Dynamo 1.6.1 and,
 * independently, with python-xxhash; the ones named "xxhash" with python-xxhash alone.
 */
class BlockHasherTest {
    private static final long PLAIN = BlockHasher.BASE_SEED;

    @Test
    void oneBlockOfFourTokens() { // V1
        assertLocal(PLAIN, range(1, 5), 4, "cb38e4d7fb2dca5c");
        assertSequence(PLAIN, range(1, 5), 4, "cb38e4d7fb2dca5c");
        assertEquals(Long.parseUnsignedLong("14643705804678351452"), hex("cb38e4d7fb2dca5c"));
    }

    @Test
    void theSecondSequenceHashChainsTheFirst() { // V2
        assertLocal(PLAIN, range(1, 9), 4, "cb38e4d7fb2dca5c", "e8d3ec39b907b74c");
        assertSequence(PLAIN, range(1, 9), 4, "cb38e4d7fb2dca5c", "44a2b2379d6d3c3d");
    }

    @Test
    void fourBlocksOfSixteenTokens() { // V3
        assertLocal(
                PLAIN,
                range(0, 64),
                16,
                "d47a8f41c833328a",
                "d43939178abd00db",
                "4cc8f942aaf401a2",
                "cf2d99a33cc42682");
        assertSequence(
                PLAIN,
                range(0, 64),
                16,
                "d47a8f41c833328a",
                "bf15dffb16447f38",
                "a4dda066f3c1e1a0",
                "35f7c0d119848950");
    }

    @Test
    void aLoraNameChangesTheSeedOfLocalHashesOnly() { // V4, V13
        final long seed = BlockHasher.seed("my-lora", null);
        assertEquals(Long.parseUnsignedLong("12827409268353072861"), seed);
        assertLocal(seed, range(1, 9), 4, "d97c824a0d4bdab1", "6de6cbec6a335efe");
        assertSequence(seed, range(1, 9), 4, "d97c824a0d4bdab1", "d6eb73bf819c8ca5");
        assertLocal(seed, range(9, 13), 4, "59563a3ec2dcb3c3");
    }

    @Test
    void eagleHashesEachBlockWithTheTokenBehindIt() { // V6
        final long[] locals = new long[2];
        assertEquals(2, BlockHasher.eagleLocalHashes(range(1, 10), 0, 9, 4, PLAIN, locals));
        assertArrayEquals(hexes("1a92ffa9004c0851", "1ac55a72d61806e3"), locals);
        BlockHasher.sequenceHashes(locals, 2, locals);
        assertArrayEquals(hexes("1a92ffa9004c0851", "b64e31be06d3e9dd"), locals);
    }

    @ParameterizedTest
    @CsvSource({"0, 0", "4, 0", "5, 1", "8, 1", "9, 2"})
    void eagleNeedsOneTokenMoreThanTheBlocks(int tokenCount, int blocks) {
        assertEquals(
                blocks,
                BlockHasher.eagleLocalHashes(range(1, 10), 0, tokenCount, 4, PLAIN, new long[2]));
    }

    @Test
    void eagleWindowsOfSeventeenTokens() { // xxhash
        final long[] locals = new long[2];
        assertEquals(2, BlockHasher.eagleLocalHashes(range(0, 33), 0, 33, 16, PLAIN, locals));
        assertArrayEquals(hexes("9e88375a6f6e426f", "5af7d904020a5678"), locals);
    }

    @Test
    void tokensAreUnsigned32BitValues() { // V7
        assertLocal(PLAIN, new int[] {-1, -1, -1, -1}, 4, "ac3b1b1159a1e879");
    }

    @Test
    void aSaltChangesTheSeedOfLocalHashesOnly() { // V8
        final long seed = BlockHasher.seed(null, "tenant-a");
        assertEquals(1948188790972764086L, seed);
        assertLocal(seed, range(1, 9), 4, "4fa3e8097233e995", "9b7651d1fc728ccb");
        assertSequence(seed, range(1, 9), 4, "4fa3e8097233e995", "0eef8d1bc8240aff");
    }

    @Test
    void loraAndSaltAddUp() { // xxhash
        final long seed = BlockHasher.seed("my-lora", "tenant-a");
        assertEquals(Long.parseUnsignedLong("14775598059325835610"), seed);
        assertLocal(seed, range(1, 5), 4, "55754b59eba4a7e7");
    }

    @Test
    void emptyNamesAreAbsent() {
        assertEquals(PLAIN, BlockHasher.seed("", ""));
        assertEquals(PLAIN, BlockHasher.seed(null, null));
    }

    @Test
    void aPartialTailBlockIsIgnored() { // V10
        assertLocal(PLAIN, range(1, 8), 4, "cb38e4d7fb2dca5c");
    }

    @Test
    void aBlockOfZeros() { // V12
        assertLocal(PLAIN, new int[16], 16, "4ca6490661395090");
    }

    @ParameterizedTest
    @CsvSource({
        "17, 9e88375a6f6e426f",
        "32, 4fe4b52e3d3d116c",
        "61, 1ab54155be0ae2df",
        "64, 304d910e689e42bf",
        "128, 83f90a7debd4f39c",
        "1024, 634ef39dda029343"
    })
    void otherBlockSizes(int blockSize, String expected) { // xxhash
        assertLocal(PLAIN, range(0, blockSize), blockSize, expected);
    }

    @Test
    void multimodalHashesFollowTheTokensInUnsignedOrder() { // xxhash
        final long[] mm = {0xFEDCBA9876543210L, 7, 0x0123456789ABCDEFL};
        assertEquals(
                hex("42d79d590be32145"), BlockHasher.localHash(range(1, 5), 0, 4, PLAIN, mm, 3));
        assertArrayEquals(new long[] {0xFEDCBA9876543210L, 7, 0x0123456789ABCDEFL}, mm);
        assertEquals(
                hex("1dbcc59563c54ced"),
                BlockHasher.localHash(
                        range(1, 5), 0, 4, PLAIN, new long[] {0x0123456789ABCDEFL}, 1));
    }

    @Test
    void aBlockWithoutMultimodalObjectsIsATextBlock() {
        assertEquals(
                hex("cb38e4d7fb2dca5c"), BlockHasher.localHash(range(0, 5), 1, 4, PLAIN, null, 0));
    }

    @Test
    void hashesOfAnyBlockSizeAndSeedEqualTheLibrarys() {
        final long testSeed = Seeds.next("hashesOfAnyBlockSizeAndSeedEqualTheLibrarys");
        final Random random = new Random(testSeed);
        final int[] tokens = random.ints(700).toArray();
        final long[] out = new long[1];
        for (int i = 0; i < 20_000; i++) {
            final int blockSize = i % 4 == 0 ? 1 + random.nextInt(300) : 16;
            final int from = random.nextInt(tokens.length - blockSize);
            final long seed = random.nextInt(4) == 0 ? PLAIN : random.nextLong();
            BlockHasher.localHashes(tokens, from, blockSize, blockSize, seed, out);
            final ByteBuffer bytes =
                    ByteBuffer.allocate(4 * blockSize).order(ByteOrder.LITTLE_ENDIAN);
            bytes.asIntBuffer().put(tokens, from, blockSize);
            assertEquals(
                    Hashing.xxh3_64(seed).hashBytesToLong(bytes.array()),
                    out[0],
                    () -> "blockSize=" + blockSize + ", from=" + from + ", seed=" + seed);
        }
    }

    @Test
    void blocksMayStartAnywhereInTheArray() {
        final long[] out = new long[2];
        assertEquals(2, BlockHasher.localHashes(range(-3, 20), 4, 11, 4, PLAIN, out));
        assertArrayEquals(hexes("cb38e4d7fb2dca5c", "e8d3ec39b907b74c"), out);
    }

    @ParameterizedTest
    @CsvSource({"0", "-1"})
    void aBlockSizeThatIsNotPositiveIsRefused(int blockSize) {
        final long[] out = new long[8];
        final int[] tokens = range(0, 8);
        assertThrows(IllegalArgumentException.class, () -> BlockHasher.blockCount(8, blockSize));
        assertThrows(
                IllegalArgumentException.class,
                () -> BlockHasher.localHashes(tokens, 0, 8, blockSize, PLAIN, out));
        assertThrows(
                IllegalArgumentException.class,
                () -> BlockHasher.eagleLocalHashes(tokens, 0, 8, blockSize, PLAIN, out));
        assertThrows(
                IllegalArgumentException.class,
                () -> BlockHasher.localHash(tokens, 0, blockSize, PLAIN, null, 0));
    }

    @Test
    void rangesOutsideTheArraysAreRefused() {
        final int[] tokens = range(0, 8);
        assertThrows(
                IndexOutOfBoundsException.class,
                () -> BlockHasher.localHashes(tokens, 1, 8, 4, PLAIN, new long[2]));
        assertThrows(
                IndexOutOfBoundsException.class,
                () -> BlockHasher.localHashes(tokens, 0, 8, 4, PLAIN, new long[1]));
        assertThrows(
                IndexOutOfBoundsException.class,
                () -> BlockHasher.sequenceHashes(new long[1], 2, new long[2]));
    }

    @Test
    void noBlocksHaveNoHashes() {
        assertEquals(0, BlockHasher.localHashes(new int[0], 0, 0, 16, PLAIN, new long[0]));
        BlockHasher.sequenceHashes(new long[0], 0, new long[0]);
    }

    private static void assertLocal(long seed, int[] tokens, int blockSize, String... expected) {
        final long[] out = new long[expected.length];
        assertEquals(
                expected.length,
                BlockHasher.localHashes(tokens, 0, tokens.length, blockSize, seed, out));
        assertArrayEquals(hexes(expected), out);
    }

    private static void assertSequence(long seed, int[] tokens, int blockSize, String... expected) {
        final long[] out = new long[expected.length];
        BlockHasher.localHashes(tokens, 0, tokens.length, blockSize, seed, out);
        final long[] sequence = new long[expected.length];
        BlockHasher.sequenceHashes(out, out.length, sequence);
        assertArrayEquals(hexes(expected), sequence);
    }

    private static int[] range(int from, int to) {
        return IntStream.range(from, to).toArray();
    }

    private static long hex(String hash) {
        return Long.parseUnsignedLong(hash, 16);
    }

    private static long[] hexes(String... hashes) {
        return Arrays.stream(hashes).mapToLong(BlockHasherTest::hex).toArray();
    }
}
