package io.kvasir.testsupport;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;

import org.junit.jupiter.api.Test;

/** How many trials a run makes. */
class TrialsTest {
    @Test
    void manyAreAQuarterOfAllAndNotBelowFew() {
        assertEquals(12, Trials.of("few", 12, 200));
        assertEquals(50, Trials.of("many", 12, 200));
        assertEquals(200, Trials.of("all", 12, 200));
        assertEquals(3, Trials.of("many", 3, 10));
        assertThrows(IllegalArgumentException.class, () -> Trials.of("most", 1, 2));
    }
}
