package io.kvasir.core.hash;

import com.dynatrace.hash4j.hashing.Hasher64;
import com.dynatrace.hash4j.hashing.Hashing;

import java.nio.charset.StandardCharsets;
import java.util.Objects;

/**
 * Hashes of token blocks: the local hash of a block's own tokens and the sequence hash of a block
 * with everything before it.
 *
 * <p>Local hash = XXH3-64 of the block's tokens as little-endian 32-bit values. Sequence hash: the
 * first block's is its local hash, each further one is XXH3-64 (seed {@link #BASE_SEED}, under LoRA
 * and salts too) of the previous sequence hash and the local hash. Only full blocks count. Equal to
 * the scheme of NVIDIA Dynamo 1.x, so hashes of other routers and publishers can be used as they
 * are.
 *
 * <p>Stateless; any thread. Hashing text blocks allocates nothing.
 */
public final class BlockHasher {
    /** Public seed of local hashes without LoRA and salt, and of every sequence hash. */
    public static final long BASE_SEED = 1337;

    private static final Hasher64 CHAIN = Hashing.xxh3_64(BASE_SEED);
    private static final Hasher64 LORA_NAME = Hashing.xxh3_64(0);
    private static final Hasher64 SALT = Hashing.xxh3_64(1);

    private BlockHasher() {}

    /**
     * Seed of the local hashes of one model variant and cache namespace. Allocates: call it once
     * per request, not per block.
     *
     * @param loraName name of the LoRA adapter; null or empty = the base model
     * @param salt cache namespace; null or empty = none
     */
    public static long seed(String loraName, String salt) {
        return seed(BASE_SEED, loraName, salt);
    }

    /**
     * The same for hashes that stay inside one index, whose base is not public: of such hashes two
     * prompts with the same ones cannot be made outside.
     *
     * @param base seed without LoRA and salt
     * @param loraName name of the LoRA adapter; null or empty = the base model
     * @param salt cache namespace; null or empty = none
     */
    public static long seed(long base, String loraName, String salt) {
        return base + textHash(LORA_NAME, loraName) + textHash(SALT, salt);
    }

    /**
     * Number of full blocks.
     *
     * @throws IllegalArgumentException if {@code blockSize} is not positive or {@code tokenCount}
     *     is negative
     */
    public static int blockCount(int tokenCount, int blockSize) {
        checkBlockSize(blockSize);
        if (tokenCount < 0) {
            throw new IllegalArgumentException(
                    "token count must not be negative: tokenCount=" + tokenCount);
        }
        return tokenCount / blockSize;
    }

    /**
     * Local hashes of the full blocks of {@code tokens[from, from + tokenCount)}.
     *
     * @param out receives the hash of block {@code i} at index {@code i}
     * @return number of blocks written; tokens after the last full block are ignored
     * @throws IllegalArgumentException if {@code blockSize} is not positive
     * @throws IndexOutOfBoundsException if the tokens or the hashes lie outside their array
     */
    public static int localHashes(
            int[] tokens, int from, int tokenCount, int blockSize, long seed, long[] out) {
        final int blocks = blockCount(tokenCount, blockSize);
        Objects.checkFromIndexSize(from, tokenCount, tokens.length);
        Objects.checkFromIndexSize(0, blocks, out.length);
        for (int i = 0; i < blocks; i++) {
            out[i] = windowHash(tokens, from + i * blockSize, blockSize, seed);
        }
        return blocks;
    }

    /**
     * Local hashes under speculative decoding with EAGLE: each block is hashed with the token that
     * follows it, so the last full block counts only when one more token is there.
     *
     * @param out receives the hash of block {@code i} at index {@code i}
     * @return number of blocks written
     * @throws IllegalArgumentException if {@code blockSize} is not positive
     * @throws IndexOutOfBoundsException if the tokens or the hashes lie outside their array
     */
    public static int eagleLocalHashes(
            int[] tokens, int from, int tokenCount, int blockSize, long seed, long[] out) {
        Objects.checkFromIndexSize(from, tokenCount, tokens.length);
        final int blocks = blockCount(Math.max(0, tokenCount - 1), blockSize);
        Objects.checkFromIndexSize(0, blocks, out.length);
        for (int i = 0; i < blocks; i++) {
            out[i] = windowHash(tokens, from + i * blockSize, blockSize + 1, seed);
        }
        return blocks;
    }

    /**
     * Local hash of one block that carries multimodal objects, as of {@link MultimodalHasher},
     * which callers use that hash many: this allocates when {@code mmCount > 0}.
     *
     * @param tokens the block is {@code tokens[from, from + blockSize)}
     * @param mmHashes hashes of the objects in any order, [mmCount]; left as they are; may be null
     *     when {@code mmCount} is 0
     * @throws IllegalArgumentException if {@code blockSize} is not positive
     * @throws IndexOutOfBoundsException if the block or the hashes lie outside their array
     */
    public static long localHash(
            int[] tokens, int from, int blockSize, long seed, long[] mmHashes, int mmCount) {
        checkBlockSize(blockSize);
        Objects.checkFromIndexSize(from, blockSize, tokens.length);
        if (mmCount == 0) {
            return windowHash(tokens, from, blockSize, seed);
        }
        return new MultimodalHasher()
                .localHash(tokens, from, blockSize, seed, mmHashes, 0, mmCount);
    }

    /**
     * Sequence hashes of a prompt's blocks.
     *
     * @param localHashes local hash of block {@code i} at index {@code i}, [count]
     * @param out receives the sequence hash of block {@code i} at index {@code i}; may be {@code
     *     localHashes} itself
     * @throws IndexOutOfBoundsException if {@code count} is negative or beyond an array
     */
    public static void sequenceHashes(long[] localHashes, int count, long[] out) {
        Objects.checkFromIndexSize(0, count, localHashes.length);
        Objects.checkFromIndexSize(0, count, out.length);
        if (count == 0) {
            return;
        }
        long sequence = localHashes[0];
        out[0] = sequence;
        for (int i = 1; i < count; i++) {
            sequence = nextSequenceHash(sequence, localHashes[i]);
            out[i] = sequence;
        }
    }

    /**
     * Sequence hash of the block with local hash {@code local} after the prefix {@code previous}.
     */
    public static long nextSequenceHash(long previous, long local) {
        return CHAIN.hashLongLongToLong(previous, local);
    }

    private static long windowHash(int[] tokens, int from, int length, long seed) {
        if (length == Xxh3Block64.TOKENS) {
            return Xxh3Block64.hash(tokens, from, seed);
        }
        return SeededHashers.of(seed)
                .hashBytesToLong(
                        tokens,
                        (long) from * Integer.BYTES,
                        (long) length * Integer.BYTES,
                        TokenBytes.VIEW);
    }

    private static long textHash(Hasher64 hasher, String text) {
        return text == null || text.isEmpty()
                ? 0
                : hasher.hashBytesToLong(text.getBytes(StandardCharsets.UTF_8));
    }

    private static void checkBlockSize(int blockSize) {
        if (blockSize <= 0) {
            throw new IllegalArgumentException(
                    "block size must be positive: blockSize=" + blockSize);
        }
    }
}
