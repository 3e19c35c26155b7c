package io.kvasir.nixl.loopback;

import io.kvasir.nixl.memory.Descriptors;

import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

/** A prepared list: descriptors as ranges of memory that this process has mapped. One thread. */
final class DescriptorList {
    private final LoopbackPeer peer;
    private final Descriptors descriptors;
    private final MemorySegment[] memories;
    private final int[] memory;
    private final long[] offsets;
    private int requests;

    private DescriptorList(LoopbackPeer peer, Descriptors descriptors, MemorySegment[] memories) {
        this.peer = peer;
        this.descriptors = descriptors;
        this.memories = memories;
        this.memory = new int[descriptors.count()];
        this.offsets = new long[descriptors.count()];
    }

    /**
     * Makes a list.
     *
     * @param peer whose; null for own
     * @param regions one for each descriptor, reachable
     */
    static DescriptorList of(
            LoopbackPeer peer, Descriptors descriptors, RegionTable.Entry[] regions) {
        final List<MemorySegment> memories = new ArrayList<>();
        final Map<MemorySegment, Integer> numbers = new HashMap<>();
        for (RegionTable.Entry region : regions) {
            if (numbers.putIfAbsent(region.memory(), memories.size()) == null) {
                memories.add(region.memory());
            }
        }
        final DescriptorList list =
                new DescriptorList(peer, descriptors, memories.toArray(MemorySegment[]::new));
        for (int index = 0; index < regions.length; index++) {
            final RegionTable.Entry region = regions[index];
            list.memory[index] = numbers.get(region.memory());
            list.offsets[index] = descriptors.address(index) - region.base() + region.offset();
        }
        return list;
    }

    /** Null for own memory. */
    LoopbackPeer peer() {
        return peer;
    }

    /** What it consists of. */
    Descriptors descriptors() {
        return descriptors;
    }

    MemorySegment memory(int index) {
        return memories[memory[index]];
    }

    long offset(int index) {
        return offsets[index];
    }

    long length(int index) {
        return descriptors.length(index);
    }

    /** Requests made of it that are alive. */
    int requests() {
        return requests;
    }

    void addRequests(int more) {
        requests += more;
    }
}
