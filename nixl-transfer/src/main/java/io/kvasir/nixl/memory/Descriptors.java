package io.kvasir.nixl.memory;

import io.kvasir.panama.nixl.NixlMemory;

import java.util.Arrays;
import java.util.List;

/**
 * Memory descriptors of one kind, in an order: what a list is prepared of, once for each peer. A
 * transfer names descriptors by their index in it. Immutable.
 */
public final class Descriptors {
    private final NixlMemory memory;
    private final long[] addresses;
    private final long[] lengths;
    private final int[] devices;
    private final long commonLength;

    private Descriptors(NixlMemory memory, long[] addresses, long[] lengths, int[] devices) {
        this.memory = memory;
        this.addresses = addresses;
        this.lengths = lengths;
        this.devices = devices;
        final long first = lengths[0];
        this.commonLength = Arrays.stream(lengths).allMatch(length -> length == first) ? first : -1;
    }

    /**
     * One descriptor for each block of each region, region by region.
     *
     * @param regions of one kind of memory, at least one
     * @return block {@code b} of region {@code r} at index (blocks of all regions before {@code r})
     *     + {@code b}
     * @throws IllegalArgumentException if there is none, they differ in their kind of memory or
     *     have too many blocks for an array
     */
    public static Descriptors ofBlocks(List<KvRegion> regions) {
        return ofSlices(regions, BlockSlice.WHOLE);
    }

    /**
     * As {@link #ofBlocks}, one part of each block: two ends that share a model between different
     * numbers of ranks copy the heads that both have.
     *
     * @param regions of one kind of memory, at least one
     * @param slice which part of each block
     * @return indices as in {@link #ofBlocks}
     * @throws IllegalArgumentException as {@link #ofBlocks}, or if blocks cannot be cut so
     */
    public static Descriptors ofSlices(List<KvRegion> regions, BlockSlice slice) {
        if (regions.isEmpty()) {
            throw new IllegalArgumentException("no region");
        }
        final NixlMemory memory = regions.getFirst().memory();
        final int count =
                Math.toIntExact(regions.stream().mapToLong(region -> region.blocks()).sum());
        final long[] addresses = new long[count];
        final long[] lengths = new long[count];
        final int[] devices = new int[count];
        int index = 0;
        for (KvRegion region : regions) {
            if (region.memory() != memory) {
                throw new IllegalArgumentException(
                        "one list is of one kind of memory: "
                                + memory
                                + ", but region "
                                + region.name()
                                + " is "
                                + region.memory());
            }
            final long length = slice.length(region);
            for (int block = 0; block < region.blocks(); block++) {
                addresses[index] = region.address(block) + slice.index() * length;
                lengths[index] = length;
                devices[index++] = region.device();
            }
        }
        return new Descriptors(memory, addresses, lengths, devices);
    }

    /**
     * Kind of memory of all of them.
     *
     * @return never null
     */
    public NixlMemory memory() {
        return memory;
    }

    /**
     * Number of descriptors.
     *
     * @return at least 1
     */
    public int count() {
        return addresses.length;
    }

    /**
     * Address of a descriptor.
     *
     * @param index 0..{@link #count} - 1
     * @return its first byte
     */
    public long address(int index) {
        return addresses[index];
    }

    /**
     * Length of a descriptor.
     *
     * @param index 0..{@link #count} - 1
     * @return bytes
     */
    public long length(int index) {
        return lengths[index];
    }

    /** Length of every descriptor, -1 if they differ. */
    public long commonLength() {
        return commonLength;
    }

    /**
     * Device of a descriptor.
     *
     * @param index 0..{@link #count} - 1
     * @return 0 for host memory
     */
    public int device(int index) {
        return devices[index];
    }
}
