package io.kvasir.core.index;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.kvasir.core.memory.LineArena;

import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;

class HoldingsTest {
    private static final int RUN = 1;
    private static final int PLACES = 512;
    private static final int ORDER_OF_A_FULL_INDEX = 5;

    private final LineArena arena = new LineArena(64 << 10);
    private final Holdings holdings = new Holdings(arena);
    private final long[] names = new long[PLACES];

    HoldingsTest() {
        Arrays.setAll(names, i -> (i + 1) * 0x9E37_79B9_7F4A_7C15L);
    }

    @AfterEach
    void close() {
        arena.close();
    }

    @Test
    void everyNameIsFoundWhenAnIndexIsMadeForAHoleInAHoldingThatFoundNoMemoryForOneBefore() {
        allowBlocksBelow(ORDER_OF_A_FULL_INDEX);
        final int holding = holdings.allocate(RUN);
        assertTrue(holdings.putNames(holding, 0, names, 0, PLACES));
        holdings.hold(holding, 0, PLACES);
        holdings.index(holding, 0, names, 0, PLACES);
        assertTrue(holdings.drop(holding, 70));
        assertTrue(holdings.prepareBits(holding, 70, 1));
        assertTrue(holdings.putNames(holding, 70, names, 70, 1));
        holdings.hold(holding, 70, 1);
        holdings.settle(holding);
        holdings.index(holding, 70, names, 70, 1);
        for (int place = 0; place < PLACES; place++) {
            final int found = holdings.search(names[place]);
            assertNotEquals(Holdings.NONE, found, "place " + place);
            assertEquals(place, HoldingDescriptor.place(found));
        }
    }

    /** Leaves free blocks of smaller orders only, and those with neighbours in use. */
    private void allowBlocksBelow(int order) {
        final List<Integer> taken = new ArrayList<>();
        for (int line = arena.allocate(order - 1); line != 0; line = arena.allocate(order - 1)) {
            taken.add(line);
        }
        taken.stream().filter(line -> (line >> (order - 1) & 1) == 0).forEach(arena::free);
        assertEquals(order - 1, arena.largestOrder(1));
    }
}
