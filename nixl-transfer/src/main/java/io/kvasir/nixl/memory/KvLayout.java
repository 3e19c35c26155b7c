package io.kvasir.nixl.memory;

import io.kvasir.panama.nixl.NixlMemory;

import java.util.ArrayList;
import java.util.List;

/**
 * How a pool of KV blocks lies in memory, wherever that is: groups of blocks, each with its layers
 * in one of three orders. Both ends of a copy that have the same layout need to tell each other
 * only where it begins. Immutable.
 *
 * <pre>
 *   BLOCK_MAJOR           | b0: l0 l1 l2 | b1: l0 l1 l2 | ...                        one region
 *   LAYER_MAJOR           | l0: b0 b1 .. | l1: b0 b1 .. | ...                        one each layer
 *   KEYS_AND_VALUES_APART | l0 keys: b0 b1 .. | l0 values: b0 b1 .. | l1 keys: ...   two each layer
 * </pre>
 *
 * Every region begins on a page of {@value #PAGE} bytes.
 */
public final class KvLayout {
    /** Regions begin at multiples of it. */
    public static final int PAGE = 4096;

    /** Order of blocks and layers in memory. */
    public enum Order {
        /** All layers of a block follow each other; blocks are copied whole. */
        BLOCK_MAJOR,
        /** All blocks of a layer follow each other. */
        LAYER_MAJOR,
        /** As {@link #LAYER_MAJOR}, a layer's keys apart from its values. */
        KEYS_AND_VALUES_APART
    }

    /**
     * Blocks of one KV cache group, which have numbers of their own.
     *
     * @param order of blocks and layers
     * @param blocks number of blocks
     * @param layers number of layers
     * @param layerBlockBytes bytes of one layer of one block, keys and values together
     */
    public record Group(Order order, int blocks, int layers, long layerBlockBytes) {
        /**
         * Checks the sizes.
         *
         * @throws IllegalArgumentException naming the value that cannot be
         */
        public Group {
            check("blocks", blocks);
            check("layers", layers);
            check("layerBlockBytes", layerBlockBytes);
            if (order == Order.KEYS_AND_VALUES_APART && layerBlockBytes % 2 != 0) {
                throw new IllegalArgumentException(
                        "keys and values are equally long: layerBlockBytes="
                                + layerBlockBytes
                                + " must be even");
            }
        }

        private static void check(String name, long value) {
            if (value < 1) {
                throw new IllegalArgumentException(name + " must be at least 1: " + value);
            }
        }

        private int regions() {
            return switch (order) {
                case BLOCK_MAJOR -> 1;
                case LAYER_MAJOR -> layers;
                case KEYS_AND_VALUES_APART -> Math.multiplyExact(2, layers);
            };
        }

        private long blockLength() {
            return switch (order) {
                case BLOCK_MAJOR -> Math.multiplyExact(layers, layerBlockBytes);
                case LAYER_MAJOR -> layerBlockBytes;
                case KEYS_AND_VALUES_APART -> layerBlockBytes / 2;
            };
        }

        private String regionName(int group, int region) {
            return "group "
                    + group
                    + switch (order) {
                        case BLOCK_MAJOR -> "";
                        case LAYER_MAJOR -> " layer " + region;
                        case KEYS_AND_VALUES_APART ->
                                " layer " + region / 2 + (region % 2 == 0 ? " keys" : " values");
                    };
        }
    }

    private final List<Group> groups;
    private final int[] firstRegions;
    private final int[] firstIndices;
    private final long[] groupOffsets;

    private KvLayout(List<Group> groups) {
        this.groups = groups;
        firstRegions = new int[groups.size() + 1];
        firstIndices = new int[groups.size() + 1];
        groupOffsets = new long[groups.size() + 1];
        for (int i = 0; i < groups.size(); i++) {
            final Group group = groups.get(i);
            final int regions = group.regions();
            firstRegions[i + 1] = Math.addExact(firstRegions[i], regions);
            firstIndices[i + 1] =
                    Math.addExact(firstIndices[i], Math.multiplyExact(regions, group.blocks));
            groupOffsets[i + 1] =
                    Math.addExact(
                            groupOffsets[i], Math.multiplyExact(regions, regionStride(group)));
        }
    }

    /**
     * A layout of one group.
     *
     * @param order of blocks and layers
     * @param blocks number of blocks
     * @param layers number of layers
     * @param layerBlockBytes bytes of one layer of one block, keys and values together
     * @throws IllegalArgumentException if a size is not positive or all is too large
     */
    public static KvLayout of(Order order, int blocks, int layers, long layerBlockBytes) {
        return of(List.of(new Group(order, blocks, layers, layerBlockBytes)));
    }

    /**
     * A layout of several groups.
     *
     * @param groups in the order of their numbers, at least one
     * @throws IllegalArgumentException if there is none, or all is too large
     */
    public static KvLayout of(List<Group> groups) {
        if (groups.isEmpty()) {
            throw new IllegalArgumentException("a layout has at least one group");
        }
        try {
            return new KvLayout(List.copyOf(groups));
        } catch (ArithmeticException e) {
            throw new IllegalArgumentException(
                    "a layout has at most 2^31 - 1 regions and descriptors, and 2^63 - 1 bytes: "
                            + groups,
                    e);
        }
    }

    private static long regionStride(Group group) {
        final long length = Math.multiplyExact(group.blocks, group.blockLength());
        return Math.addExact(length, PAGE - 1) & -PAGE;
    }

    /**
     * Its groups.
     *
     * @return in the order of their numbers
     */
    public List<Group> groups() {
        return groups;
    }

    /**
     * Memory that it takes.
     *
     * @return bytes, a multiple of {@value #PAGE}
     */
    public long bytes() {
        return groupOffsets[groups.size()];
    }

    /**
     * Where a pool lies.
     *
     * @param memory kind of memory
     * @param device 0 for host memory, the GPU's ordinal for its memory
     * @param base where it begins, a multiple of {@value #PAGE}; also in another process
     */
    public record Site(NixlMemory memory, int device, long base) {
        /**
         * In host memory.
         *
         * @param base where it begins, a multiple of {@value #PAGE}; also in another process
         */
        public static Site host(long base) {
            return new Site(NixlMemory.DRAM, 0, base);
        }
    }

    /**
     * All regions of a pool that has this layout.
     *
     * @param site where the pool lies
     * @return group by group
     * @throws IllegalArgumentException if its base is not a multiple of a page, or no address
     */
    public List<KvRegion> regions(Site site) {
        final List<KvRegion> all = new ArrayList<>();
        for (int group = 0; group < groups.size(); group++) {
            all.addAll(regions(site, group, 0, groups.get(group).layers));
        }
        return List.copyOf(all);
    }

    /**
     * All regions of a pool in host memory.
     *
     * @param base where the pool's memory begins, a multiple of {@value #PAGE}; also in another
     *     process
     * @return group by group
     * @throws IllegalArgumentException if the base is not a multiple, or no address
     */
    public List<KvRegion> regions(long base) {
        return regions(Site.host(base));
    }

    /**
     * Regions of some layers of a group.
     *
     * @param site where the pool lies
     * @param group number of the group
     * @param layerFrom first layer
     * @param layerTo layer after the last
     * @return layer by layer, keys before values
     * @throws IllegalArgumentException if the base is not a multiple of a page, or no address
     * @throws IndexOutOfBoundsException if there is no such group or layer, or the group's blocks
     *     are copied whole and these are not all layers
     */
    public List<KvRegion> regions(Site site, int group, int layerFrom, int layerTo) {
        final long base = site.base();
        if (base % PAGE != 0 || base <= 0 || bytes() > Long.MAX_VALUE - base) {
            throw new IllegalArgumentException(
                    "base 0x" + Long.toHexString(base) + " is no address of a page of " + PAGE);
        }
        final Group shape = check(group, layerFrom, layerTo);
        final List<KvRegion> regions = new ArrayList<>();
        for (int region = firstRegion(shape, layerFrom);
                region < endRegion(shape, layerTo);
                region++) {
            regions.add(
                    new KvRegion(
                            shape.regionName(group, region),
                            group,
                            site.memory(),
                            site.device(),
                            base + groupOffsets[group] + region * regionStride(shape),
                            shape.blockLength(),
                            shape.blockLength(),
                            shape.blocks));
        }
        return regions;
    }

    /**
     * Indices of blocks in the list of all descriptors, {@code
     * Descriptors.ofBlocks(regions(base))}.
     *
     * @param group number of the group
     * @param blocks numbers of blocks in the group
     * @param layerFrom first layer
     * @param layerTo layer after the last
     * @return region by region the blocks in the given order
     * @throws IndexOutOfBoundsException naming the block, layer or group that does not exist
     */
    public int[] indices(int group, int[] blocks, int layerFrom, int layerTo) {
        final Group shape = check(group, layerFrom, layerTo);
        final int regions = endRegion(shape, layerTo) - firstRegion(shape, layerFrom);
        final int[] indices = new int[Math.multiplyExact(regions, blocks.length)];
        indices(group, blocks, blocks.length, layerFrom, layerTo, indices);
        return indices;
    }

    /**
     * As {@link #indices(int, int[], int, int)}, into an array of the caller; allocates nothing.
     *
     * @param group number of the group
     * @param blocks numbers of blocks in the group
     * @param count how many of them
     * @param layerFrom first layer
     * @param layerTo layer after the last
     * @param out receives the indices
     * @return how many there are
     * @throws IndexOutOfBoundsException naming the block, layer or group that does not exist, or if
     *     {@code out} is too short
     */
    public int indices(int group, int[] blocks, int count, int layerFrom, int layerTo, int[] out) {
        final Group shape = check(group, layerFrom, layerTo);
        int index = 0;
        for (int region = firstRegion(shape, layerFrom);
                region < endRegion(shape, layerTo);
                region++) {
            final int first = firstIndices[group] + region * shape.blocks;
            for (int i = 0; i < count; i++) {
                final int block = blocks[i];
                if (block < 0 || block >= shape.blocks) {
                    throw new IndexOutOfBoundsException(
                            "group "
                                    + group
                                    + " has blocks 0.."
                                    + (shape.blocks - 1)
                                    + ", not "
                                    + block
                                    + " (number "
                                    + i
                                    + " of "
                                    + count
                                    + ")");
                }
                out[index++] = first + block;
            }
        }
        return index;
    }

    private Group check(int group, int layerFrom, int layerTo) {
        if (group < 0 || group >= groups.size()) {
            throw new IndexOutOfBoundsException(
                    "the layout has groups 0.." + (groups.size() - 1) + ", not " + group);
        }
        final Group shape = groups.get(group);
        if (layerFrom < 0 || layerTo > shape.layers || layerFrom >= layerTo) {
            throw new IndexOutOfBoundsException(
                    "group "
                            + group
                            + " has layers 0.."
                            + (shape.layers - 1)
                            + ", not from "
                            + layerFrom
                            + " to before "
                            + layerTo);
        }
        if (shape.order == Order.BLOCK_MAJOR && layerTo - layerFrom != shape.layers) {
            throw new IndexOutOfBoundsException(
                    "group "
                            + group
                            + " is block-major: its blocks are copied whole, layers 0.."
                            + (shape.layers - 1)
                            + ", not from "
                            + layerFrom
                            + " to before "
                            + layerTo
                            + "; use LAYER_MAJOR to copy layer by layer");
        }
        return shape;
    }

    private static int firstRegion(Group group, int layerFrom) {
        return group.order == Order.BLOCK_MAJOR ? 0 : layerFrom * (group.regions() / group.layers);
    }

    private static int endRegion(Group group, int layerTo) {
        return group.order == Order.BLOCK_MAJOR ? 1 : layerTo * (group.regions() / group.layers);
    }
}
