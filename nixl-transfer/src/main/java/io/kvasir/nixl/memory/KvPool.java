package io.kvasir.nixl.memory;

import io.kvasir.panama.cuda.CudaMemory;
import io.kvasir.panama.libc.LargePages;
import io.kvasir.panama.nixl.NixlMemory;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.List;

/**
 * Memory of KV blocks, of the host or of a GPU: a {@link KvLayout} at an address. A transport
 * registers its regions and prepares its {@link #descriptors}; indices name blocks in a request.
 *
 * <p>Immutable but for the bytes; any thread. Close it when its regions are deregistered and no
 * peer uses them.
 */
public final class KvPool implements AutoCloseable {
    private final KvLayout layout;
    private final KvLayout.Site site;
    private final MemorySegment memory; // empty for a GPU's: Java cannot read it
    private final AutoCloseable owned;
    private final List<KvRegion> regions;

    private KvPool(KvLayout layout, KvLayout.Site site, MemorySegment memory, AutoCloseable owned) {
        this.layout = layout;
        this.site = site;
        this.memory = memory;
        this.owned = owned;
        this.regions = layout.regions(site);
    }

    /** Memory of the caller stays when the pool is closed. */
    private static void keep() {}

    /** Bytes before the first page, if the layout fits after it. */
    private static long skip(KvLayout layout, long address, long length) {
        final long skip = -address & (KvLayout.PAGE - 1);
        if (length - skip < layout.bytes()) {
            throw new IllegalArgumentException(
                    "the layout takes "
                            + layout.bytes()
                            + " bytes from a multiple of "
                            + KvLayout.PAGE
                            + "; given: "
                            + length
                            + " bytes at 0x"
                            + Long.toHexString(address));
        }
        return skip;
    }

    /**
     * A pool in memory of its own, which peers reach in this process, or with NIXL; on {@link
     * LargePages}, where copies of a block take half as long.
     *
     * @param layout how its blocks lie
     * @return zeros; its memory lives until it is closed
     */
    public static KvPool allocate(KvLayout layout) {
        final Arena arena = Arena.ofShared();
        try {
            return owning(layout, LargePages.allocate(arena, layout.bytes()), arena);
        } catch (Throwable t) {
            arena.close();
            throw t;
        }
    }

    /**
     * A pool that owns the memory it is given, such as memory that a transport shares.
     *
     * @param layout how its blocks lie
     * @param given memory outside the Java heap; the pool begins at its first page of {@value
     *     KvLayout#PAGE} bytes
     * @param owned closed with the pool; gives the memory back
     * @throws IllegalArgumentException if it is too small
     */
    public static KvPool owning(KvLayout layout, MemorySegment given, AutoCloseable owned) {
        if (!given.isNative()) {
            throw new IllegalArgumentException("memory outside the Java heap is needed: " + given);
        }
        final long skip = skip(layout, given.address(), given.byteSize());
        final MemorySegment memory = given.asSlice(skip, layout.bytes());
        return new KvPool(layout, KvLayout.Site.host(memory.address()), memory, owned);
    }

    /**
     * A pool in memory of the caller: of an arena, a mapped file, a direct buffer.
     *
     * @param layout how its blocks lie
     * @param memory outside the Java heap; lives as long as the pool. The pool begins at its first
     *     page of {@value KvLayout#PAGE} bytes
     * @throws IllegalArgumentException if it is too small
     */
    public static KvPool in(KvLayout layout, MemorySegment memory) {
        return owning(layout, memory, KvPool::keep);
    }

    /**
     * A pool in memory that the caller knows by its address only, such as an Agrona buffer's {@code
     * addressOffset} or the address of a Chronicle store's bytes. Needs native access, as any code
     * that names an address must be right.
     *
     * @param layout how its blocks lie
     * @param address where the memory begins
     * @param length bytes that belong to it; it lives as long as the pool. The pool begins at its
     *     first page of {@value KvLayout#PAGE} bytes
     * @throws IllegalArgumentException if it is too small
     */
    @SuppressWarnings("restricted") // said above
    public static KvPool at(KvLayout layout, long address, long length) {
        return in(layout, MemorySegment.ofAddress(address).reinterpret(length));
    }

    /**
     * A pool in memory of a GPU. What Java writes or reads of a block goes through a {@link
     * io.kvasir.panama.cuda.CudaStream}, at {@code region.address(block) - memory.address()}. A
     * thread that calls a transport about it must have made the memory's context current: for a
     * transfer engine, by its {@code call} first.
     *
     * @param layout how its blocks lie
     * @param memory of the caller; lives as long as the pool. The pool begins at its first multiple
     *     of {@value KvLayout#PAGE} bytes, so allocate as much more
     * @throws IllegalArgumentException if it is too small
     */
    public static KvPool on(KvLayout layout, CudaMemory memory) {
        final long skip = skip(layout, memory.address(), memory.length());
        final KvLayout.Site site =
                new KvLayout.Site(
                        NixlMemory.VRAM,
                        memory.context().device().ordinal(),
                        memory.address() + skip);
        return new KvPool(layout, site, MemorySegment.NULL, KvPool::keep);
    }

    /**
     * How its blocks lie.
     *
     * @return what indices are taken from
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
        return site.base();
    }

    /**
     * Where it lies: what a peer needs to know beside the layout.
     *
     * @return for a peer's {@link KvLayout#regions(KvLayout.Site)}
     */
    public KvLayout.Site site() {
        return site;
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
     * @param layerTo layer after the last
     * @return layer by layer, keys before values
     * @throws IndexOutOfBoundsException if there are no such layers
     */
    public List<KvRegion> regions(int group, int layerFrom, int layerTo) {
        return layout.regions(site, group, layerFrom, layerTo);
    }

    /**
     * All descriptors: each block of each region.
     *
     * @return what {@link KvLayout#indices} are indices of
     */
    public Descriptors descriptors() {
        return Descriptors.ofBlocks(regions);
    }

    /**
     * Indices of blocks among {@link #descriptors}.
     *
     * @param group number of the group
     * @param blocks numbers of blocks in the group
     * @param layerFrom first layer
     * @param layerTo layer after the last
     * @return region by region the blocks in the given order
     * @throws IndexOutOfBoundsException naming the block, layer or group that does not exist
     */
    public int[] indices(int group, int[] blocks, int layerFrom, int layerTo) {
        return layout.indices(group, blocks, layerFrom, layerTo);
    }

    /**
     * Bytes of a block in one of the pool's regions.
     *
     * @param region of {@link #regions()}
     * @param block number of the block
     * @return its memory, not copied
     * @throws IndexOutOfBoundsException if the region has no such block or is not the pool's
     * @throws UnsupportedOperationException if the pool lies in memory of a GPU
     */
    public MemorySegment block(KvRegion region, int block) {
        if (site.memory() != NixlMemory.DRAM) {
            throw new UnsupportedOperationException(
                    "Java cannot reach memory of device "
                            + site.device()
                            + "; copy it by a CudaStream");
        }
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
