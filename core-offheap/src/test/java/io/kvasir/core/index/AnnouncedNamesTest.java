package io.kvasir.core.index;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.kvasir.testsupport.Seeds;

import org.junit.jupiter.api.Test;

import java.util.HashMap;
import java.util.Map;
import java.util.Random;

class AnnouncedNamesTest {
    private static final int SLOTS = 5;

    @Test
    void saysWhatAMapSays() {
        final Random random = new Random(Seeds.next("AnnouncedNamesTest"));
        final AnnouncedNames names = new AnnouncedNames(SLOTS);
        final Map<Long, Integer> expected = new HashMap<>();
        final long[] taken = new long[7];
        for (int i = 0; i < 100_000; i++) {
            final long name = random.nextInt(1 + i / 50 % 700);
            final int slot = random.nextInt(SLOTS);
            switch (random.nextInt(8)) {
                case 0, 1, 2, 3 -> {
                    names.put(name, slot);
                    expected.put(name, slot);
                }
                case 4, 5 -> {
                    names.remove(name);
                    expected.remove(name);
                }
                case 6 -> assertEquals(expected.getOrDefault(name, -1), names.slotOf(name));
                default -> {
                    final int count = random.nextInt(20) == 0 ? names.take(slot, taken) : 0;
                    for (int t = 0; t < count; t++) {
                        assertEquals(slot, expected.remove(taken[t]));
                    }
                    if (count > 0 && count < taken.length) {
                        assertTrue(!expected.containsValue(slot));
                    }
                }
            }
            assertEquals(expected.size(), names.size());
        }
    }
}
