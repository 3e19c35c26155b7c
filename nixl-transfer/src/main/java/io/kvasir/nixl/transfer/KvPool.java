package io.kvasir.nixl.transfer;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.List;

/**
 * Host memory of KV blocks: a {@link KvLayout} at an address. Regions are for {@link
 * KvTransport#register}, {@link #descriptors} for {@link KvTransport#prepare}, and places name
 * blocks in a request.
 *
 * <p>Immutable but for the bytes; any thread. Close it when its regions are deregistered and no
 * peer uses them.
 */
public final class KvPool implements AutoCloseable {
    private final KvLayout layout;
    private final MemorySegment memory;
    private final AutoCloseable owned;
    private final List<KvRegion> regions;

    private KvPool(KvLayout layout, MemorySegment given, AutoCloseable owned) {
        this.layout = layout;
        this.memory = aligned(layout, given);
        this.owned = owned;
        this.regions = layout.regions(memory.address());
    }

    private static MemorySegment aligned(KvLayout layout, MemorySegment given) {
        final long skip = -given.address() & (KvLayout.PAGE - 1);
        if (!given.isNative() || given.byteSize() - skip < layout.bytes()) {
            throw new IllegalArgumentException(
                    "the layout takes "
                            + layout.bytes()
                            + " bytes outside the Java heap from a multiple of "
                            + KvLayout.PAGE
                            + "; given: "
                            + given);
        }
        return given.asSlice(skip, layout.bytes());
    }

    /**
     * A pool in memory of its own, which peers reach in this process, or with NIXL.
     *
     * @param layout how its blocks lie
     * @return zeros; its memory lives until it is closed
     */
    public static KvPool allocate(KvLayout layout) {
        final Arena arena = Arena.ofShared();
        try {
            return new KvPool(layout, arena.allocate(layout.bytes(), KvLayout.PAGE), arena);
        } catch (Throwable t) {
            arena.close();
            throw t;
        }
    }

    /**
     * A pool that peers of the loopback reach in all processes of the machine.
     *
     * @param layout how its blocks lie
     * @param transport which shares its memory
     * @return zeros; its memory lives until it is closed
     * @throws KvTransportException if the transport cannot share so much
     */
    public static KvPool share(KvLayout layout, LoopbackTransport transport) {
        final SharedMemory shared = transport.share(layout.bytes());
        return new KvPool(layout, shared.segment(), shared);
    }

    /**
     * A pool in memory of the caller: of an arena, a mapped file, a buffer's address.
     *
     * @param layout how its blocks lie
     * @param memory outside the Java heap; lives as long as the pool. The pool begins at its first
     *     page of {@value KvLayout#PAGE} bytes
     * @throws IllegalArgumentException if it is too small
     */
    public static KvPool in(KvLayout layout, MemorySegment memory) {
        return new KvPool(layout, memory, () -> {});
    }

    /**
     * How its blocks lie.
     *
     * @return what places are taken from
     */
    public KvLayout layout() {
        return layout;
    }

    /**
     * Where it begins.
     *
     * @return for a peer's {@link KvLayout#regions(long)}
     */
    public long base() {
        return memory.address();
    }

    /**
     * All regions.
     *
     * @return group by group
     */
    public List<KvRegion> regions() {
        return regions;
    }

    /**
     * Regions of some layers of a group.
     *
     * @param group number of the group
     * @param layerFrom first layer
     * @param layerTo layer behind the last
     * @return layer by layer, keys before values
     * @throws IndexOutOfBoundsException if there are no such layers
     */
    public List<KvRegion> regions(int group, int layerFrom, int layerTo) {
        return layout.regions(base(), group, layerFrom, layerTo);
    }

    /**
     * All pieces: each block of each region.
     *
     * @return what {@link KvLayout#places} are places of
     */
    public Descriptors descriptors() {
        return Descriptors.ofBlocks(regions);
    }

    /**
     * Places of blocks among {@link #descriptors}.
     *
     * @param group number of the group
     * @param blocks numbers of blocks in the group
     * @param layerFrom first layer
     * @param layerTo layer behind the last
     * @return region by region the blocks in the given order
     * @throws IndexOutOfBoundsException naming the block, layer or group that does not exist
     */
    public int[] places(int group, int[] blocks, int layerFrom, int layerTo) {
        return layout.places(group, blocks, layerFrom, layerTo);
    }

    /**
     * Bytes of a block in one of the pool's regions.
     *
     * @param region of {@link #regions()}
     * @param block number of the block
     * @return its memory, not copied
     * @throws IndexOutOfBoundsException if the region has no such block or is not the pool's
     */
    public MemorySegment block(KvRegion region, int block) {
        return memory.asSlice(region.address(block) - base(), region.blockLength());
    }

    /** Gives its own memory back; idempotent. */
    @Override
    public void close() {
        if (memory.scope().isAlive()) {
            try {
                owned.close();
            } catch (Exception e) {
                throw new IllegalStateException("the pool's memory cannot be closed", e);
            }
        }
    }
}
