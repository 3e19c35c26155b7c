package io.kvasir.nixl.memory;

import io.kvasir.panama.nixl.NixlMemory;

/**
 * Blocks of one tensor: equally long, equally far apart. A pool of KV blocks is a list of regions,
 * such as one a layer, keys and values apart, or one for all layers; block {@code b} of the pool is
 * block {@code b} of each region of its group.
 *
 * <pre>
 *   base                                    base + stride                       base + 2 stride
 *   +------------------------------+--------+------------------------------+----+
 *   | block 0: blockLength bytes   | others | block 1: blockLength bytes   | ...
 *   +------------------------------+--------+------------------------------+----+
 * </pre>
 *
 * @param name what it is, such as the layer's name; for messages
 * @param group KV cache group that it belongs to, from 0; groups have block numbers of their own
 * @param memory kind of memory
 * @param device 0 for host memory, the GPU's ordinal for its memory
 * @param base address of block 0
 * @param blockLength bytes of a block, at least 1
 * @param blockStride bytes from a block to the next, at least {@code blockLength}
 * @param blocks number of blocks, at least 1
 */
public record KvRegion(
        String name,
        int group,
        NixlMemory memory,
        int device,
        long base,
        long blockLength,
        long blockStride,
        int blocks) {
    /**
     * Checks the values; NIXL itself accepts addresses and lengths that crash the process later.
     *
     * @throws IllegalArgumentException naming the value that cannot be
     */
    public KvRegion {
        if (name == null || memory == null) {
            throw new IllegalArgumentException("a region has a name and a kind of memory");
        }
        check(name, "group", group, group >= 0);
        check(name, "device", device, device >= 0);
        check(name, "base", base, base != 0);
        check(name, "blockLength", blockLength, blockLength > 0);
        check(name, "blockStride", blockStride, blockStride >= blockLength);
        check(name, "blocks", blocks, blocks > 0);
        check(name, "blocks", blocks, span(blockLength, blockStride, blocks) > 0);
    }

    private static void check(String name, String field, long value, boolean holds) {
        if (!holds) {
            throw new IllegalArgumentException(
                    "region " + name + ": " + field + " cannot be " + value);
        }
    }

    private static long span(long blockLength, long blockStride, int blocks) {
        final long before = Math.multiplyHigh(blockStride, blocks - 1L);
        return before == 0 ? blockStride * (blocks - 1L) + blockLength : -1;
    }

    /**
     * Bytes from the first block's first to the last block's last.
     *
     * @return at least {@link #blockLength}
     */
    public long length() {
        return span(blockLength, blockStride, blocks);
    }

    /**
     * Where a block begins.
     *
     * @param block 0..{@link #blocks} - 1
     * @return its address
     * @throws IndexOutOfBoundsException if there is no such block
     */
    public long address(int block) {
        if (block < 0 || block >= blocks) {
            throw new IndexOutOfBoundsException(
                    "region " + name + " has blocks 0.." + (blocks - 1) + ", not " + block);
        }
        return base + block * blockStride;
    }
}
