package io.kvasir.core.hash;

/**
 * XXH3-64 of exactly 64 bytes given as sixteen little-endian 32-bit tokens: the block size that
 * most engines use, without a length decision and without a byte view of the array.
 */
final class Xxh3Block64 {
    static final int TOKENS = 16;

    // the first 64 bytes of XXH3's default secret, as little-endian longs
    private static final long SECRET_0 = 0xBE4BA423396CFEB8L;
    private static final long SECRET_1 = 0x1CAD21F72C81017CL;
    private static final long SECRET_2 = 0xDB979083E96DD4DEL;
    private static final long SECRET_3 = 0x1F67B3B7A4A44072L;
    private static final long SECRET_4 = 0x78E5C0CC4EE679CBL;
    private static final long SECRET_5 = 0x2172FFCC7DD05A82L;
    private static final long SECRET_6 = 0x8E2443F7744608B8L;
    private static final long SECRET_7 = 0x4C263A81E69035E0L;

    private static final long LENGTH_TERM = 0x9E3779B185EBCA87L << 6;
    private static final long AVALANCHE = 0x165667919E3779F9L;

    private Xxh3Block64() {}

    static long hash(int[] tokens, int from, long seed) {
        long sum = LENGTH_TERM;
        sum += mix(tokens, from, SECRET_0 + seed, SECRET_1 - seed);
        sum += mix(tokens, from + 4, SECRET_4 + seed, SECRET_5 - seed);
        sum += mix(tokens, from + 8, SECRET_6 + seed, SECRET_7 - seed);
        sum += mix(tokens, from + 12, SECRET_2 + seed, SECRET_3 - seed);
        sum ^= sum >>> 37;
        sum *= AVALANCHE;
        return sum ^ (sum >>> 32);
    }

    private static long mix(int[] tokens, int from, long lowKey, long highKey) {
        final long low = pair(tokens[from], tokens[from + 1]) ^ lowKey;
        final long high = pair(tokens[from + 2], tokens[from + 3]) ^ highKey;
        return (low * high) ^ Math.unsignedMultiplyHigh(low, high);
    }

    private static long pair(int first, int second) {
        return Integer.toUnsignedLong(first) | ((long) second << Integer.SIZE);
    }
}
