package io.kvasir.nixl.exchange;

import io.kvasir.nixl.memory.Descriptors;
import io.kvasir.nixl.memory.KvLayout;
import io.kvasir.nixl.memory.KvRegion;

import java.util.List;

/** Memory of an end that peers may reach: all that they need to describe parts of it. Immutable. */
public sealed interface PeerMemory {
    /**
     * A pool that has a layout: its regions follow from where it begins.
     *
     * @param layout how its blocks lie; also gives the descriptor indices of blocks
     * @param site where it lies, in its owner's address space
     */
    record Pool(KvLayout layout, KvLayout.Site site) implements PeerMemory {
        /**
         * Checks the base.
         *
         * @throws IllegalArgumentException if it is no page's address
         */
        public Pool {
            layout.regions(site, 0, 0, layout.groups().getFirst().layers());
        }

        /**
         * A pool in host memory.
         *
         * @param layout how its blocks lie
         * @param base where it begins in its owner's address space
         * @throws IllegalArgumentException if the base is no page's address
         */
        public Pool(KvLayout layout, long base) {
            this(layout, KvLayout.Site.host(base));
        }

        @Override
        public List<KvRegion> regions() {
            return layout.regions(site);
        }
    }

    /**
     * Memory in any other order.
     *
     * @param regions of one kind of memory, at least one
     */
    record Regions(List<KvRegion> regions) implements PeerMemory {
        /**
         * Keeps a copy.
         *
         * @throws IllegalArgumentException if there is none
         */
        public Regions {
            regions = List.copyOf(regions);
            if (regions.isEmpty()) {
                throw new IllegalArgumentException("memory of a peer has at least one region");
            }
        }
    }

    /**
     * Its regions.
     *
     * @return at least one
     */
    List<KvRegion> regions();

    /**
     * Its descriptors, to be prepared for transfers.
     *
     * @return each block of each region
     */
    default Descriptors descriptors() {
        return Descriptors.ofBlocks(regions());
    }
}
