package io.kvasir.testsupport;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;

/**
 * What a prefix index should say, in plain Java and without any hash of a prefix: a tree of local
 * hashes, and per worker slot a map from engine hash to tree node. Slow and single-threaded.
 */
public final class NaivePrefixIndex {
    /** What became of a store. */
    public enum Outcome {
        /** Every block is held now. */
        STORED,
        /** The slot does not hold the parent. */
        UNKNOWN_PARENT,
        /** The new blocks do not fit. */
        CAPACITY,
        /** An engine hash twice, or a block as its own parent. */
        INVALID
    }

    /**
     * One held block.
     *
     * @param slot worker slot
     * @param engineHash the worker's name of the block
     * @param path local hashes from the root to the block
     * @param copies physical copies
     */
    public record Held(int slot, long engineHash, List<Long> path, int copies) {}

    private static final class Node {
        final Node parent;
        final long localHash;
        final Map<Long, Node> children = new HashMap<>();

        Node(Node parent, long localHash) {
            this.parent = parent;
            this.localHash = localHash;
        }

        Node child(long local) {
            return children.computeIfAbsent(local, l -> new Node(this, l));
        }

        List<Long> path() {
            final List<Long> path = parent == null ? new ArrayList<>() : parent.path();
            if (parent != null) {
                path.add(localHash);
            }
            return path;
        }
    }

    private static final class Holding {
        final Node node;
        int copies = 1;

        Holding(Node node) {
            this.node = node;
        }
    }

    private final long maxBlocks;
    private final long maxHeldBlocks;
    private final Node root = new Node(null, 0);
    private final Map<Integer, Map<Long, Holding>> slots = new TreeMap<>();

    /**
     * Makes an empty index.
     *
     * @param maxBlocks distinct blocks that fit
     * @param maxHeldBlocks (slot, engine hash) pairs that fit
     */
    public NaivePrefixIndex(long maxBlocks, long maxHeldBlocks) {
        this.maxBlocks = maxBlocks;
        this.maxHeldBlocks = maxHeldBlocks;
    }

    /**
     * Stores a run of blocks, all or nothing. New blocks must fit beside what is held before.
     *
     * @param slot worker slot
     * @param isRoot whether the run starts a prompt
     * @param parentEngineHash name of the block before the run, unless {@code isRoot}
     * @param engineHashes names of the blocks; none change nothing, whatever the parent is
     * @param localHashes local hashes of the blocks
     * @param refreshHeld whether held blocks stay as they are instead of gaining a copy
     */
    public Outcome store(
            int slot,
            boolean isRoot,
            long parentEngineHash,
            long[] engineHashes,
            long[] localHashes,
            boolean refreshHeld) {
        if (engineHashes.length == 0) {
            return Outcome.STORED;
        }
        final Set<Long> names = new HashSet<>();
        Arrays.stream(engineHashes).forEach(names::add);
        if (names.size() < engineHashes.length || (!isRoot && names.contains(parentEngineHash))) {
            return Outcome.INVALID;
        }
        final Map<Long, Holding> holdings = holdings(slot);
        if (!isRoot && !holdings.containsKey(parentEngineHash)) {
            return Outcome.UNKNOWN_PARENT;
        }
        Node node = isRoot ? root : holdings.get(parentEngineHash).node;
        final List<Node> nodes = new ArrayList<>();
        for (long local : localHashes) {
            node = node.child(local);
            nodes.add(node);
        }
        final Set<Node> held = heldNodes();
        final long newBlocks = nodes.stream().filter(n -> !held.contains(n)).count();
        final long newPairs = names.stream().filter(n -> !holdings.containsKey(n)).count();
        if (held.size() + newBlocks > maxBlocks || heldBlocks() + newPairs > maxHeldBlocks) {
            return Outcome.CAPACITY;
        }
        for (int i = 0; i < engineHashes.length; i++) {
            final Holding known = holdings.get(engineHashes[i]);
            if (known == null || known.node != nodes.get(i)) {
                holdings.put(engineHashes[i], new Holding(nodes.get(i)));
            } else if (!refreshHeld) {
                known.copies++;
            }
        }
        return Outcome.STORED;
    }

    /**
     * Removes blocks.
     *
     * @param slot worker slot
     * @param engineHashes names of the blocks
     * @param lastCopy whether a removal takes all copies, else one
     * @return how many names were unknown
     */
    public int remove(int slot, long[] engineHashes, boolean lastCopy) {
        final Map<Long, Holding> holdings = holdings(slot);
        int unknown = 0;
        for (long name : engineHashes) {
            final Holding holding = holdings.get(name);
            if (holding == null) {
                unknown++;
            } else if (lastCopy || --holding.copies == 0) {
                holdings.remove(name);
            }
        }
        return unknown;
    }

    /** Sets the copies that are left of a block; 0 or less removes it; unknown names do nothing. */
    public void removeTo(int slot, long engineHash, int remainingCopies) {
        final Holding holding = holdings(slot).get(engineHash);
        if (holding != null && remainingCopies > 0) {
            holding.copies = remainingCopies;
        } else {
            holdings(slot).remove(engineHash);
        }
    }

    /** Forgets a slot; returns how many names it had. */
    public int clear(int slot) {
        final int names = holdings(slot).size();
        slots.remove(slot);
        return names;
    }

    /** Leading blocks that each slot holds, by slot; slots without the first block are left out. */
    public Map<Integer, Integer> match(long[] localHashes) {
        final Map<Integer, Integer> depths = new TreeMap<>();
        slots.forEach(
                (slot, holdings) -> {
                    final Set<Node> held = new HashSet<>();
                    holdings.values().forEach(h -> held.add(h.node));
                    Node node = root;
                    int depth = 0;
                    for (long local : localHashes) {
                        node = node.children.get(local);
                        if (node == null || !held.contains(node)) {
                            break;
                        }
                        depth++;
                    }
                    if (depth > 0) {
                        depths.put(slot, depth);
                    }
                });
        return depths;
    }

    /** Names that a slot holds, in no particular order. */
    public List<Long> names(int slot) {
        return List.copyOf(holdings(slot).keySet());
    }

    /** Local hashes from the root to a held block. */
    public List<Long> path(int slot, long engineHash) {
        return holdings(slot).get(engineHash).node.path();
    }

    /** Distinct blocks that any slot holds. */
    public long blocks() {
        return heldNodes().size();
    }

    /** (Slot, engine hash) pairs. */
    public long heldBlocks() {
        return slots.values().stream().mapToLong(Map::size).sum();
    }

    /** Everything that is held. */
    public Set<Held> held() {
        final Set<Held> all = new HashSet<>();
        slots.forEach(
                (slot, holdings) ->
                        holdings.forEach(
                                (name, h) ->
                                        all.add(new Held(slot, name, h.node.path(), h.copies))));
        return all;
    }

    private Map<Long, Holding> holdings(int slot) {
        return slots.computeIfAbsent(slot, s -> new HashMap<>());
    }

    private Set<Node> heldNodes() {
        final Set<Node> held = new HashSet<>();
        slots.values().forEach(holdings -> holdings.values().forEach(h -> held.add(h.node)));
        return held;
    }
}
