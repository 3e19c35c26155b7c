package io.kvasir.nixl.transport;

import io.kvasir.nixl.memory.KvRegion;
import io.kvasir.nixl.transport.KvTransportException.Kind;
import io.kvasir.panama.nixl.NixlMemory;

import java.util.List;

/** Regions as NIXL registers them: one span each, what lies between its blocks included. */
final class RegionSpans {
    final NixlMemory memory;
    final long[] addresses;
    final long[] lengths;
    final int[] devices;

    /**
     * Makes the spans of regions.
     *
     * @throws KvTransportException if there are none or their kinds of memory differ
     */
    RegionSpans(List<KvRegion> regions) {
        if (regions.isEmpty()) {
            throw new KvTransportException(Kind.INVALID, "no region to register");
        }
        memory = regions.getFirst().memory();
        for (KvRegion region : regions) {
            if (region.memory() != memory) {
                throw new KvTransportException(
                        Kind.INVALID,
                        "one registration is of one kind of memory: "
                                + memory
                                + ", but region "
                                + region.name()
                                + " is "
                                + region.memory());
            }
        }
        addresses = regions.stream().mapToLong(KvRegion::base).toArray();
        lengths = regions.stream().mapToLong(KvRegion::length).toArray();
        devices = regions.stream().mapToInt(KvRegion::device).toArray();
    }
}
