package io.kvasir.opstreams.alternatives;

import com.dynatrace.hash4j.hashing.Hasher64;
import com.dynatrace.hash4j.hashing.Hashing;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;

/** Local block hashes by copying each block's tokens into bytes for a general XXH3. One thread. */
public final class CopyingHasher {
    private final Hasher64 xxh3;
    private final ByteBuffer bytes;

    /**
     * Makes a hasher.
     *
     * @param blockSize tokens per block
     * @param seed seed of the hash
     */
    public CopyingHasher(int blockSize, long seed) {
        xxh3 = Hashing.xxh3_64(seed);
        bytes = ByteBuffer.allocate(blockSize * Integer.BYTES).order(ByteOrder.LITTLE_ENDIAN);
    }

    /**
     * Hashes full blocks.
     *
     * @param tokens token ids, whole blocks
     * @param out receives one hash per block
     * @return blocks
     */
    public int localHashes(int[] tokens, long[] out) {
        final int blockSize = bytes.capacity() / Integer.BYTES;
        final int blocks = tokens.length / blockSize;
        for (int i = 0; i < blocks; i++) {
            bytes.asIntBuffer().put(tokens, i * blockSize, blockSize);
            out[i] = xxh3.hashBytesToLong(bytes.array());
        }
        return blocks;
    }
}
