package io.kvasir.core.memory;

import static org.junit.jupiter.api.Assertions.assertEquals;

import java.util.ArrayList;
import java.util.List;

/** Takes the blocks of an arena that a test wants to be full or fragmented. */
public final class ArenaBlocks {
    private ArenaBlocks() {}

    /** Takes all blocks of an order that there are; returns them. */
    public static List<Integer> takeAll(BuddyArena arena, int order) {
        final List<Integer> taken = new ArrayList<>();
        for (int line; (line = arena.allocate(order)) != BuddyArena.NO_LINE; ) {
            taken.add(line);
        }
        return taken;
    }

    /** Leaves no free block larger than an order; returns those taken between the free ones. */
    public static List<Integer> fragment(BuddyArena arena, int order) {
        final List<Integer> taken = takeAll(arena, order);
        taken.removeIf(
                line -> {
                    final boolean free = (line >> order) % 2 == 0;
                    if (free) {
                        arena.free(line);
                    }
                    return free;
                });
        assertEquals(order, arena.largestOrder(1));
        return taken;
    }
}
