package io.kvasir.router;

import java.util.concurrent.ConcurrentHashMap;

/**
 * Sets of slots by name: which workers have a label, or an adapter. One thread at a time changes
 * them; any thread reads them without a lock. A name without a slot is forgotten.
 */
final class NamedSlots {
    private final ConcurrentHashMap<String, SlotBits> sets = new ConcurrentHashMap<>();

    /** The slots of a name; null where there are none. */
    SlotBits find(String name) {
        return sets.get(name);
    }

    void add(String name, int slot) {
        SlotBits slots = sets.get(name);
        if (slots == null) {
            slots = new SlotBits();
            sets.put(name, slots);
        }
        slots.add(slot);
    }

    void remove(String name, int slot) {
        final SlotBits slots = sets.get(name);
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
