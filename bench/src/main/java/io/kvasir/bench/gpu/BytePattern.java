package io.kvasir.bench.gpu;

import static java.lang.foreign.ValueLayout.JAVA_LONG;

import java.lang.foreign.MemorySegment;

/**
 * Bytes that tell their transfer, their descriptor and their offset in it. A transfer reverses the
 * order of the descriptors, so that NIXL has no neighbours to merge: what the source has in
 * descriptor i arrives in descriptor count - 1 - i.
 */
final class BytePattern {
    private static final long GOLDEN = 0x9E3779B97F4A7C15L;

    private BytePattern() {}

    /** Writes what the source of a transfer holds; {@code memory} is aligned to 8 bytes. */
    static void fill(MemorySegment memory, Cell cell, long seed) {
        for (int block = 0; block < cell.count(); block++) {
            final long start = block * cell.length();
            long word = firstWord(seed, block);
            for (long at = 0; at < cell.length(); at += Long.BYTES) {
                memory.set(JAVA_LONG, start + at, word);
                word += GOLDEN;
            }
        }
    }

    /**
     * Compares with what must have arrived.
     *
     * @return the offset of the first wrong word, or -1
     */
    static long firstWrong(MemorySegment memory, Cell cell, long seed) {
        for (int block = 0; block < cell.count(); block++) {
            final long start = block * cell.length();
            long word = firstWord(seed, cell.count() - 1 - block);
            for (long at = 0; at < cell.length(); at += Long.BYTES) {
                if (memory.get(JAVA_LONG, start + at) != word) {
                    return start + at;
                }
                word += GOLDEN;
            }
        }
        return -1;
    }

    private static long firstWord(long seed, int block) {
        long mixed = seed * 0xBF58476D1CE4E5B9L + block + 1;
        mixed = (mixed ^ (mixed >>> 30)) * 0x94D049BB133111EBL;
        return mixed ^ (mixed >>> 27);
    }
}
