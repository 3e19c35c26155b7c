package io.kvasir.bench;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.kvasir.router.RouteException;

import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;

import java.util.List;
import java.util.concurrent.TimeUnit;

@Tag("integration") // takes long
class DecisionLatencyTest {
    private static final long PAUSES_NS = TimeUnit.MILLISECONDS.toNanos(10);

    @Test
    void itDecidesAndBooksAndTellsTheMachinesShare() throws RouteException {
        final List<String> lines = DecisionLatency.measure(16, 8, 0, 1_000, PAUSES_NS);
        assertEquals(2, lines.size());
        assertTrue(lines.get(0).startsWith("select  µs: mean "), lines.get(0));
        assertTrue(lines.get(1).startsWith("reserve µs: mean "), lines.get(1));
        assertTrue(lines.stream().allMatch(l -> l.contains("(machine ")), lines.toString());
        assertTrue(lines.stream().allMatch(l -> l.endsWith(" of 1000")), lines.toString());
    }

    @Test
    void eventsThatAreSentMeanwhileAreCounted() throws RouteException {
        final List<String> lines = DecisionLatency.measure(16, 3, 1_000, 1_000, PAUSES_NS);
        assertEquals(3, lines.size());
        assertTrue(lines.get(2).startsWith("events   "), lines.get(2));
        assertTrue(lines.get(2).endsWith(" of 16 blocks a second meanwhile"), lines.get(2));
    }
}
