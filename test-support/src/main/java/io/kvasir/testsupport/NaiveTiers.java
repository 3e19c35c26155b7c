package io.kvasir.testsupport;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;

/**
 * What the indexes of tiers should say, in plain Java: of each worker and tier a map from engine
 * hash to the path of the block. A block counts if it is in any tier that is asked for, and all
 * before it are. Tiers are numbers, 0 is the device. Slow and single-threaded.
 */
public final class NaiveTiers {
    private record Copy(List<Long> path, int copies) {}

    private final int tiers;
    private final List<List<Map<Long, Copy>>> held = new ArrayList<>(); // by slot, by tier

    /**
     * Makes an empty one.
     *
     * @param slots worker slots
     * @param tiers how many there are, the device included
     */
    public NaiveTiers(int slots, int tiers) {
        this.tiers = tiers;
        for (int slot = 0; slot < slots; slot++) {
            final List<Map<Long, Copy>> ofSlot = new ArrayList<>();
            for (int tier = 0; tier < tiers; tier++) {
                ofSlot.add(new HashMap<>());
            }
            held.add(ofSlot);
        }
    }

    /**
     * Stores blocks of one path in a tier, after a parent in any: in that tier if it is there, else
     * in the first that has it.
     *
     * @param parent null for the root
     * @return false if no tier has the parent
     */
    public boolean store(int slot, int tier, Long parent, List<Long> names, List<Long> locals) {
        final List<Long> path = parent == null ? new ArrayList<>() : pathOf(slot, tier, parent);
        if (path == null) {
            return false;
        }
        for (int i = 0; i < names.size(); i++) {
            path.add(locals.get(i));
            final Map<Long, Copy> here = held.get(slot).get(tier);
            final Copy before = here.get(names.get(i));
            final boolean again = before != null && before.path.equals(path);
            final int copies = again ? before.copies + (tier == 0 ? 1 : 0) : 1;
            here.put(names.get(i), new Copy(List.copyOf(path), copies));
        }
        return true;
    }

    private List<Long> pathOf(int slot, int tier, Long name) {
        Copy found = held.get(slot).get(tier).get(name);
        for (int t = 0; t < tiers && found == null; t++) {
            found = held.get(slot).get(t).get(name);
        }
        return found == null ? null : new ArrayList<>(found.path);
    }

    /** Stores a block by its name alone; false if no tier has it. */
    public boolean storeByName(int slot, int tier, Long name) {
        final List<Long> path = pathOf(slot, tier, name);
        if (path != null) {
            held.get(slot).get(tier).put(name, new Copy(List.copyOf(path), 1));
        }
        return path != null;
    }

    /** Removes a block from a tier, a copy of it from the device. */
    public void remove(int slot, int tier, Long name) {
        held.get(slot)
                .get(tier)
                .computeIfPresent(
                        name,
                        (_, copy) -> copy.copies > 1 ? new Copy(copy.path, copy.copies - 1) : null);
    }

    /** Sets how many copies of a block a tier has left; of one that it has not, nothing. */
    public void removeTo(int slot, int tier, Long name, int copies) {
        held.get(slot)
                .get(tier)
                .computeIfPresent(
                        name, (_, copy) -> copies > 0 ? new Copy(copy.path, copies) : null);
    }

    /** Empties all tiers of a slot. */
    public void clear(int slot) {
        held.get(slot).forEach(Map::clear);
    }

    /** Empties one tier of a slot. */
    public void clear(int slot, int tier) {
        held.get(slot).get(tier).clear();
    }

    /** Engine hashes that a slot holds in a tier. */
    public List<Long> names(int slot, int tier) {
        return List.copyOf(held.get(slot).get(tier).keySet());
    }

    /** Leading blocks of a prompt that a slot holds in the tiers up to one, each in any of them. */
    public int depth(int slot, int upTo, List<Long> prompt) {
        final Set<List<Long>> blocks = new HashSet<>();
        for (int tier = 0; tier <= upTo; tier++) {
            held.get(slot).get(tier).values().forEach(copy -> blocks.add(copy.path));
        }
        int depth = 0;
        while (depth < prompt.size() && blocks.contains(prompt.subList(0, depth + 1))) {
            depth++;
        }
        return depth;
    }
}
