package io.kvasir.core.hash;

/**
 * XXH3-64 of equally long blocks of 64, 128 or 256 bytes, given as little-endian longs: one loop
 * per length, without a length decision inside, and everything that depends on the seed alone
 * before it. The loops leave sums; {@link #avalanche} makes them hashes.
 */
final class Xxh3Words {
    private static final long PRIME32_1 = 0x9E3779B1L;
    private static final long PRIME32_2 = 0x85EBCA77L;
    private static final long PRIME32_3 = 0xC2B2AE3DL;
    private static final long PRIME64_1 = 0x9E3779B185EBCA87L;
    private static final long PRIME64_2 = 0xC2B2AE3D27D4EB4FL;
    private static final long PRIME64_3 = 0x165667B19E3779F9L;
    private static final long PRIME64_4 = 0x85EBCA77C2B2AE63L;
    private static final long PRIME64_5 = 0x27D4EB2F165667C5L;
    private static final long AVALANCHE = 0x165667919E3779F9L;

    // XXH3's default secret as little-endian longs
    private static final long S0 = 0xBE4BA423396CFEB8L;
    private static final long S1 = 0x1CAD21F72C81017CL;
    private static final long S2 = 0xDB979083E96DD4DEL;
    private static final long S3 = 0x1F67B3B7A4A44072L;
    private static final long S4 = 0x78E5C0CC4EE679CBL;
    private static final long S5 = 0x2172FFCC7DD05A82L;
    private static final long S6 = 0x8E2443F7744608B8L;
    private static final long S7 = 0x4C263A81E69035E0L;
    private static final long S8 = 0xCB00C391BB52283CL;
    private static final long S9 = 0xA32E531B8B65D088L;
    private static final long S10 = 0x4EF90DA297486471L;
    private static final long S11 = 0xD8ACDEA946EF1938L;
    private static final long S12 = 0x3F349CE33F76FAA8L;
    private static final long S13 = 0x1D4F0BC7C7BBDCF9L;
    private static final long S14 = 0x3159B4CD4BE0518AL;
    private static final long S15 = 0x647378D9C97E9FC8L;
    private static final long S16 = 0xC3EBD33483ACC5EAL;
    private static final long S17 = 0xEB6313FAFFA081C5L;
    private static final long S18 = 0x49DAF0B751DD0D17L;
    private static final long S19 = 0x9E68D429265516D3L;
    private static final long S20 = 0xFCA1477D58BE162BL;
    private static final long S21 = 0xCE31D07AD1B8F88FL;
    private static final long S22 = 0x280416958F3ACB45L;
    private static final long S23 = 0x7E404BBBCAFBD7AFL;

    private Xxh3Words() {}

    /**
     * The hashes of sums: XXH3's last step, which mixes each long by itself. Apart from the sums,
     * whose multiplications have to be done one by one, it is a loop of vectors.
     */
    static void avalanche(long[] sums, int count) {
        for (int i = 0; i < count; i++) {
            final long mixed = (sums[i] ^ (sums[i] >>> 37)) * AVALANCHE;
            sums[i] = mixed ^ (mixed >>> 32);
        }
    }

    /** 64 bytes: two pairs of 16-byte lanes from both ends to the middle. */
    static void sum64(long[] words, int blocks, long seed, long[] out, int to) {
        final long k0 = S0 + seed;
        final long k1 = S1 - seed;
        final long k2 = S2 + seed;
        final long k3 = S3 - seed;
        final long k4 = S4 + seed;
        final long k5 = S5 - seed;
        final long k6 = S6 + seed;
        final long k7 = S7 - seed;
        for (int i = 0; i < blocks; i++) {
            final int at = 8 * i;
            out[to + i] =
                    (PRIME64_1 << 6)
                            + mix(words, at, k0, k1)
                            + mix(words, at + 2, k4, k5)
                            + mix(words, at + 4, k6, k7)
                            + mix(words, at + 6, k2, k3);
        }
    }

    /** 128 bytes: four pairs of 16-byte lanes from both ends to the middle. */
    static void sum128(long[] words, int blocks, long seed, long[] out, int to) {
        for (int i = 0; i < blocks; i++) {
            final int at = 16 * i;
            out[to + i] =
                    (PRIME64_1 << 7)
                            + mix(words, at, S0 + seed, S1 - seed)
                            + mix(words, at + 2, S4 + seed, S5 - seed)
                            + mix(words, at + 4, S8 + seed, S9 - seed)
                            + mix(words, at + 6, S12 + seed, S13 - seed)
                            + mix(words, at + 8, S14 + seed, S15 - seed)
                            + mix(words, at + 10, S10 + seed, S11 - seed)
                            + mix(words, at + 12, S6 + seed, S7 - seed)
                            + mix(words, at + 14, S2 + seed, S3 - seed);
        }
    }

    /**
     * 256 bytes: eight accumulators over four stripes of 64 bytes. Stripe {@code s} is keyed by the
     * secret from byte {@code 8 s} on, the last one from byte 121 on, the merge from byte 11 on.
     */
    static void sum256(long[] words, int blocks, long seed, long[] out, int to) {
        final long s0 = S0 + seed;
        final long s1 = S1 - seed;
        final long s2 = S2 + seed;
        final long s3 = S3 - seed;
        final long s4 = S4 + seed;
        final long s5 = S5 - seed;
        final long s6 = S6 + seed;
        final long s7 = S7 - seed;
        final long s8 = S8 + seed;
        final long s9 = S9 - seed;
        final long s15 = S15 - seed;
        final long s16 = S16 + seed;
        final long s17 = S17 - seed;
        final long s18 = S18 + seed;
        final long s19 = S19 - seed;
        final long s20 = S20 + seed;
        final long s21 = S21 - seed;
        final long s22 = S22 + seed;
        final long s23 = S23 - seed;
        for (int i = 0; i < blocks; i++) {
            final int at = 32 * i;
            out[to + i] =
                    (PRIME64_1 << 8)
                            + lanes(words, at, PRIME32_3, PRIME64_1, s0, s1, s2, s3, s15, s16, s17)
                            + lanes(
                                    words, at + 2, PRIME64_2, PRIME64_3, s2, s3, s4, s5, s17, s18,
                                    s19)
                            + lanes(
                                    words, at + 4, PRIME64_4, PRIME32_2, s4, s5, s6, s7, s19, s20,
                                    s21)
                            + lanes(
                                    words, at + 6, PRIME64_5, PRIME32_1, s6, s7, s8, s9, s21, s22,
                                    s23);
        }
    }

    /**
     * Two neighbouring accumulators over the four stripes, merged.
     *
     * @param at the first lane's word in the first stripe
     * @param k0 the secret from the first lane's key in the first stripe on: k0..k3
     * @param t0 the secret around the lanes' keys in the last stripe: t0..t2
     */
    private static long lanes(
            long[] words,
            int at,
            long initLow,
            long initHigh,
            long k0,
            long k1,
            long k2,
            long k3,
            long t0,
            long t1,
            long t2) {
        final long a0 = words[at];
        final long a1 = words[at + 1];
        final long b0 = words[at + 8];
        final long b1 = words[at + 9];
        final long c0 = words[at + 16];
        final long c1 = words[at + 17];
        final long d0 = words[at + 24];
        final long d1 = words[at + 25];
        final long low =
                (initLow + a1 + b1 + c1 + d1)
                        + (product(a0 ^ k0) + product(b0 ^ k1))
                        + (product(c0 ^ k2) + product(d0 ^ tail(t0, t1)));
        final long high =
                (initHigh + a0 + b0 + c0 + d0)
                        + (product(a1 ^ k1) + product(b1 ^ k2))
                        + (product(c1 ^ k3) + product(d1 ^ tail(t1, t2)));
        return fold(low ^ middle(k1, k2), high ^ middle(k2, k3));
    }

    private static long product(long keyed) {
        return (keyed & 0xFFFFFFFFL) * (keyed >>> Integer.SIZE);
    }

    /** The secret's long that starts one byte into {@code low}. */
    private static long tail(long low, long high) {
        return (low >>> 8) | (high << 56);
    }

    /** The secret's long that starts three bytes into {@code low}. */
    private static long middle(long low, long high) {
        return (low >>> 24) | (high << 40);
    }

    private static long mix(long[] words, int at, long lowKey, long highKey) {
        return fold(words[at] ^ lowKey, words[at + 1] ^ highKey);
    }

    private static long fold(long a, long b) {
        return (a * b) ^ Math.unsignedMultiplyHigh(a, b);
    }
}
