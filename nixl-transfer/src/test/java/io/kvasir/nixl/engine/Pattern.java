package io.kvasir.nixl.engine;

import io.kvasir.nixl.memory.KvRegion;

import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;

/** What blocks contain in tests: a function of a version and the block's number. */
final class Pattern {
    private Pattern() {}

    static void fill(MemorySegment pool, KvRegion region, int block, long version) {
        final long at = region.address(block) - pool.address();
        for (long i = 0; i < region.blockLength(); i += Long.BYTES) {
            pool.set(ValueLayout.JAVA_LONG, at + i, word(version, block, i));
        }
    }

    /** Whether a block holds what {@link #fill} writes into a block of that number. */
    static boolean holds(
            MemorySegment pool, KvRegion region, int block, long version, int writtenAs) {
        final long at = region.address(block) - pool.address();
        for (long i = 0; i < region.blockLength(); i += Long.BYTES) {
            if (pool.get(ValueLayout.JAVA_LONG, at + i) != word(version, writtenAs, i)) {
                return false;
            }
        }
        return true;
    }

    private static long word(long version, int block, long at) {
        final long mixed = (version * 31 + block) * 0x9E3779B97F4A7C15L + at;
        return mixed ^ (mixed >>> 29);
    }
}
