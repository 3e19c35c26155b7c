package io.kvasir.nixl.vllm;

import io.kvasir.nixl.memory.BlockSlice;
import io.kvasir.nixl.memory.Descriptors;
import io.kvasir.nixl.memory.KvRegion;
import io.kvasir.protocol.handoff.RemoteBlocks;

import java.util.List;

/**
 * Indices of a cache's blocks in {@link Descriptors#ofBlocks}: region by region, each region's
 * blocks in order. Block numbers count per KV cache group, so each region takes the numbers of its
 * group. Immutable.
 *
 * <pre>
 *   list:     | region 0: block 0, 1, ... | region 1: block 0, 1, ... | ...
 *   request:  group 0: blocks [9, 10]     indices: 9, 10, n + 9, n + 10, ...
 * </pre>
 */
public final class VllmBlocks {
    /** A list takes 20 bytes an index; a peer cannot make this process fill its memory with one. */
    static final int MAX_DESCRIPTORS = 1 << 25;

    private final List<KvRegion> regions;
    private final int[] firstIndices;
    private final int groups;

    private VllmBlocks(List<KvRegion> regions) {
        this.regions = List.copyOf(regions);
        this.firstIndices = new int[regions.size()];
        int index = 0;
        int highestGroup = 0;
        for (int r = 0; r < firstIndices.length; r++) {
            firstIndices[r] = index;
            index = Math.addExact(index, regions.get(r).blocks());
            highestGroup = Math.max(highestGroup, regions.get(r).group());
        }
        this.groups = highestGroup + 1;
    }

    /**
     * Indices in a list of own regions.
     *
     * @param regions at least one
     * @return indices of their blocks
     * @throws IllegalArgumentException if there is no region
     */
    public static VllmBlocks of(List<KvRegion> regions) {
        if (regions.isEmpty()) {
            throw new IllegalArgumentException("no region");
        }
        return new VllmBlocks(regions);
    }

    /**
     * Indices in the list of an engine's regions.
     *
     * @param agent a rank of an engine
     * @return indices of its blocks
     * @throws VllmPeerException of kind {@code UNSUPPORTED} if blocks are more than rows of
     *     regions, or regions lie in several kinds of memory; {@code CAPACITY} if they are more
     *     than fit a list
     */
    public static VllmBlocks of(VllmAgent agent) {
        agent.metadata().layout().requirePlain();
        final List<KvRegion> regions = agent.metadata().regions();
        final KvRegion first = regions.getFirst();
        for (KvRegion region : regions) {
            if (region.memory() != first.memory()) {
                throw new VllmPeerException(
                        VllmPeerException.Kind.UNSUPPORTED,
                        "engine "
                                + agent.engineId()
                                + " has region "
                                + first.name()
                                + " in "
                                + first.memory()
                                + " and region "
                                + region.name()
                                + " in "
                                + region.memory()
                                + "; supported is one kind of memory");
            }
        }
        final long indices = regions.stream().mapToLong(KvRegion::blocks).sum();
        if (indices > MAX_DESCRIPTORS) {
            throw new VllmPeerException(
                    VllmPeerException.Kind.CAPACITY,
                    "engine "
                            + agent.engineId()
                            + " announces "
                            + indices
                            + " blocks in "
                            + regions.size()
                            + " regions; a list takes "
                            + MAX_DESCRIPTORS);
        }
        return new VllmBlocks(regions);
    }

    /**
     * What a transport prepares a list of.
     *
     * @param slice which part of each block
     * @return one descriptor for each block of each region
     * @throws IllegalArgumentException if blocks cannot be cut so
     */
    public Descriptors descriptors(BlockSlice slice) {
        return Descriptors.ofSlices(regions, slice);
    }

    /**
     * Number of regions.
     *
     * @return at least 1
     */
    public int regions() {
        return firstIndices.length;
    }

    /**
     * Indices of a request's blocks in all regions.
     *
     * @param requestId for errors
     * @param blocks the request's blocks per group
     * @return region by region, in the request's order
     * @throws VllmPeerException of kind {@code BAD_BLOCKS}, naming request, group and block
     */
    public int[] indices(String requestId, RemoteBlocks blocks) {
        return indices(requestId, blocks, 0, regions());
    }

    /**
     * Indices of a request's blocks in some regions, for pulls layer by layer.
     *
     * @param requestId for errors
     * @param blocks the request's blocks per group
     * @param fromRegion first region
     * @param toRegion region after the last
     * @return region by region, in the request's order
     * @throws VllmPeerException of kind {@code BAD_BLOCKS}, naming request, group and block
     * @throws IndexOutOfBoundsException if there are no such regions
     */
    public int[] indices(String requestId, RemoteBlocks blocks, int fromRegion, int toRegion) {
        if (fromRegion < 0 || toRegion > regions() || fromRegion > toRegion) {
            throw new IndexOutOfBoundsException(
                    "regions " + fromRegion + ".." + toRegion + " of " + regions());
        }
        if (blocks.groups().size() != groups) {
            throw badBlocks(
                    "request "
                            + requestId
                            + " has blocks of "
                            + blocks.groups().size()
                            + " groups, the cache has "
                            + groups);
        }
        int count = 0;
        for (int r = fromRegion; r < toRegion; r++) {
            count = Math.addExact(count, group(blocks, r).size());
        }
        final int[] indices = new int[count];
        int at = 0;
        for (int r = fromRegion; r < toRegion; r++) {
            for (int block : group(blocks, r)) {
                indices[at++] = index(requestId, r, block);
            }
        }
        return indices;
    }

    private List<Integer> group(RemoteBlocks blocks, int region) {
        return blocks.groups().get(regions.get(region).group());
    }

    private int index(String requestId, int region, int block) {
        final KvRegion where = regions.get(region);
        if (block < 0 || block >= where.blocks()) {
            throw badBlocks(
                    "request "
                            + requestId
                            + " names block "
                            + block
                            + " of group "
                            + where.group()
                            + ", but region "
                            + where.name()
                            + " has blocks 0.."
                            + (where.blocks() - 1));
        }
        return firstIndices[region] + block;
    }

    private static VllmPeerException badBlocks(String message) {
        return new VllmPeerException(VllmPeerException.Kind.BAD_BLOCKS, message);
    }
}
