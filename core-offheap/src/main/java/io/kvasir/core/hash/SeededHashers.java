package io.kvasir.core.hash;

import com.dynatrace.hash4j.hashing.Hasher64;
import com.dynatrace.hash4j.hashing.Hashing;

import java.util.concurrent.atomic.AtomicReferenceArray;

/**
 * XXH3-64 functions by seed. A function costs an object to make, so the last ones used are kept;
 * two seeds of one index push each other out, which costs time and nothing else.
 */
final class SeededHashers {
    private static final int KEPT = 256;
    private static final AtomicReferenceArray<Seeded> HASHERS = new AtomicReferenceArray<>(KEPT);

    private record Seeded(long seed, Hasher64 hasher) {}

    private SeededHashers() {}

    static Hasher64 of(long seed) {
        final int index = (int) ((seed ^ (seed >>> 32)) & (KEPT - 1));
        final Seeded kept = HASHERS.getAcquire(index);
        if (kept != null && kept.seed == seed) {
            return kept.hasher;
        }
        final Hasher64 made = Hashing.xxh3_64(seed);
        // released when it is made: getAcquire above, of any thread, finds a complete function
        HASHERS.setRelease(index, new Seeded(seed, made));
        return made;
    }
}
