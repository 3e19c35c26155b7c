package io.kvasir.nixl.vllm;

import io.kvasir.nixl.memory.KvRegion;

import java.util.List;

/**
 * The cache here that blocks of prefill servers are pulled into: that of one rank. Immutable.
 *
 * @param regions where its blocks lie, in the order of the servers' regions; registered with the
 *     transport
 * @param layout how it is laid out
 * @param rank which heads it holds
 */
public record VllmCache(List<KvRegion> regions, VllmCacheLayout layout, TensorRank rank) {
    /** Where heads come before tokens, the heads of a rank follow each other in a block. */
    private static final String HEADS_FIRST = "HNC";

    /**
     * Copies the list.
     *
     * @throws IllegalArgumentException if there is no region
     */
    public VllmCache {
        regions = List.copyOf(regions);
        if (regions.isEmpty()) {
            throw new IllegalArgumentException("a cache has at least one region");
        }
    }

    /**
     * Indices of its blocks in the lists that blocks are pulled into.
     *
     * @return for {@link VllmBlocks#indices}
     */
    public VllmBlocks blocks() {
        return VllmBlocks.of(regions);
    }

    /**
     * Refuses a rank whose blocks cannot be copied here as they are.
     *
     * @param remote a rank of an engine
     * @param source which part of its blocks goes where
     * @throws VllmPeerException of kind {@code UNSUPPORTED}, naming the difference
     */
    void requireFit(VllmAgent remote, TensorSplit.Source source) {
        final VllmCacheLayout there = remote.metadata().layout();
        if (!there.name().equals(layout.name())) {
            throw unsupported(
                    remote,
                    "kv_cache_layout is " + there.name() + " there and " + layout.name() + " here");
        }
        if (source.isPart() && !layout.name().endsWith(HEADS_FIRST)) {
            throw unsupported(
                    remote,
                    "tensor parallel sizes differ, and in kv_cache_layout "
                            + layout.name()
                            + " the heads of a rank do not follow each other; use one that ends"
                            + " with "
                            + HEADS_FIRST);
        }
        requireEqual(remote, "block_size", there.blockSize(), layout.blockSize());
        final List<KvRegion> others = remote.metadata().regions();
        requireEqual(remote, "the number of regions", others.size(), regions.size());
        for (int r = 0; r < others.size(); r++) {
            final KvRegion other = others.get(r);
            final KvRegion own = regions.get(r);
            final String of = " of region " + other.name();
            requireEqual(remote, "the group" + of, other.group(), own.group());
            requireEqual(
                    remote,
                    "the block length of a rank's heads" + of,
                    partLength(remote, other, source.there().count()),
                    partLength(remote, own, source.here().count()));
        }
    }

    private static long partLength(VllmAgent remote, KvRegion region, int parts) {
        if (region.blockLength() % parts != 0) {
            throw unsupported(
                    remote,
                    "blocks of region "
                            + region.name()
                            + " have "
                            + region.blockLength()
                            + " bytes, no "
                            + parts
                            + " equal parts");
        }
        return region.blockLength() / parts;
    }

    private static void requireEqual(VllmAgent remote, String what, long there, long here) {
        if (there != here) {
            throw unsupported(remote, what + " is " + there + " there and " + here + " here");
        }
    }

    private static VllmPeerException unsupported(VllmAgent remote, String why) {
        return new VllmPeerException(
                VllmPeerException.Kind.UNSUPPORTED,
                "blocks of engine "
                        + remote.engineId()
                        + ", rank "
                        + remote.tensorRank()
                        + ", cannot be copied here: "
                        + why);
    }
}
