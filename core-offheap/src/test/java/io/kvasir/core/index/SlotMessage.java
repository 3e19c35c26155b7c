package io.kvasir.core.index;

import java.util.ArrayList;
import java.util.List;

/** Some events of one slot, and their number, as a message of an engine is applied. */
record SlotMessage(int slot, List<SlotEvents.Event> events, long sequence) {
    static SlotMessage next(SlotEvents events, int slots, long sequence) {
        final List<SlotEvents.Event> made = new ArrayList<>();
        final int slot = events.random.nextInt(slots);
        for (int i = events.random.nextInt(3); i >= 0; i--) {
            made.add(events.make(slot));
        }
        return new SlotMessage(slot, made, sequence);
    }

    void apply(PrefixIndex index) {
        for (SlotEvents.Event event : events) {
            event.apply(index, slot);
        }
        index.keptWord(slot, 1, sequence * 3);
        index.eventApplied(slot, sequence);
        index.commit();
    }
}
