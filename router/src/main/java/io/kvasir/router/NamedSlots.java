package io.kvasir.router;

import java.util.concurrent.ConcurrentHashMap;

/**
 * Sets of slots by name: which workers have a label, or an adapter. One thread at a time changes
 * them; any thread reads them without a lock. A name without a slot is forgotten.
 */
final class NamedSlots {
    /** A name, one object for all workers that have it, and its slots. */
    private record Named(String name, SlotBits slots) {}

    private final ConcurrentHashMap<String, Named> sets = new ConcurrentHashMap<>();

    /** The slots of a name; null where there are none. */
    SlotBits find(String name) {
        final Named found = sets.get(name);
        return found == null ? null : found.slots;
    }

    /**
     * Adds a slot to those of a name.
     *
     * @return an equal name, the same object for all slots that have it
     */
    String add(String name, int slot) {
        Named named = sets.get(name);
        if (named == null) {
            named = new Named(name, new SlotBits());
            sets.put(name, named);
        }
        named.slots.add(slot);
        return named.name;
    }

    void remove(String name, int slot) {
        final SlotBits slots = find(name);
        if (slots != null) {
            slots.remove(slot);
            if (slots.count() == 0) {
                sets.remove(name); // a reader that has it reads an empty set
            }
        }
    }

    /** How many names there are. */
    int size() {
        return sets.size();
    }
}
