package io.kvasir.nixl.loopback;

import io.kvasir.nixl.memory.Descriptors;

import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

/** A prepared list: pieces as ranges of memory that this process has mapped. One thread. */
final class PieceList {
    private final LoopbackPeer peer;
    private final Descriptors pieces;
    private final MemorySegment[] memories;
    private final int[] memory;
    private final long[] offsets;
    private int requests;

    private PieceList(LoopbackPeer peer, Descriptors pieces, MemorySegment[] memories) {
        this.peer = peer;
        this.pieces = pieces;
        this.memories = memories;
        this.memory = new int[pieces.count()];
        this.offsets = new long[pieces.count()];
    }

    /**
     * Makes a list.
     *
     * @param peer whose; null for own
     * @param regions one for each piece, reachable
     */
    static PieceList of(LoopbackPeer peer, Descriptors pieces, RegionTable.Entry[] regions) {
        final List<MemorySegment> memories = new ArrayList<>();
        final Map<MemorySegment, Integer> numbers = new HashMap<>();
        for (RegionTable.Entry region : regions) {
            if (numbers.putIfAbsent(region.memory(), memories.size()) == null) {
                memories.add(region.memory());
            }
        }
        final PieceList list = new PieceList(peer, pieces, memories.toArray(MemorySegment[]::new));
        for (int place = 0; place < regions.length; place++) {
            final RegionTable.Entry region = regions[place];
            list.memory[place] = numbers.get(region.memory());
            list.offsets[place] = pieces.address(place) - region.base() + region.offset();
        }
        return list;
    }

    /** Null for own memory. */
    LoopbackPeer peer() {
        return peer;
    }

    /** What it consists of. */
    Descriptors pieces() {
        return pieces;
    }

    MemorySegment memory(int place) {
        return memories[memory[place]];
    }

    long offset(int place) {
        return offsets[place];
    }

    long length(int place) {
        return pieces.length(place);
    }

    /** Requests made of it that are alive. */
    int requests() {
        return requests;
    }

    void addRequests(int more) {
        requests += more;
    }
}
