package io.kvasir.router.disagg;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

import java.util.List;
import java.util.Map;
import java.util.stream.Stream;

class TransferCostsTest {
    private static final Map<String, String> HERE = Map.of("host", "h1", "rack", "r1", "zone", "a");

    private final TransferCosts costs = costs("host:0", "rack:0.05", "zone:0.5", "*:never");

    private static TransferCosts costs(String... entries) {
        return new TransferCosts(Stream.of(entries).map(TransferCosts.Entry::parse).toList());
    }

    @ParameterizedTest
    @CsvSource({
        "h1, r1, a, 0",
        "h2, r1, a, 1",
        "h2, r2, a, 2",
        "h2, r2, b, 3",
        "h1, r2, b, 0",
        "h2, r1, b, 1"
    })
    void theFirstLabelThatBothShareDecides(String host, String rack, String zone, int distance) {
        assertEquals(
                distance, costs.distance(HERE, Map.of("host", host, "rack", rack, "zone", zone)));
    }

    @Test
    void aWorkerWithoutLabelsIsFarFromAll() {
        assertEquals(3, costs.distance(HERE, Map.of()));
        assertEquals(3, costs.distance(Map.of(), HERE));
        assertEquals(3, costs.distance(Map.of(), Map.of()));
        assertEquals(3, costs.distance(Map.of("hall", "1"), Map.of("hall", "1")));
    }

    @Test
    void countsBlocks() {
        assertEquals(0, costs.blocks(0, 100));
        assertEquals(5, costs.blocks(1, 100));
        assertEquals(0, costs.blocks(2, 0));
        assertEquals(Double.POSITIVE_INFINITY, costs.blocks(3, 1));
        assertEquals(Double.POSITIVE_INFINITY, costs.blocks(3, 0));
    }

    @Test
    void withoutEntriesDistanceCountsNothing() {
        final TransferCosts none = costs();
        assertFalse(none.any());
        assertEquals(1, none.distances());
        assertEquals(0, none.distance(HERE, Map.of()));
        assertEquals(0, none.blocks(0, 1_000));
    }

    @ParameterizedTest
    @ValueSource(
            strings = {"", "rack", ":1", "rack:", "rack:-1", "rack:x", "rack:Infinity", "rack:NaN"})
    void refusesWhatIsNoEntry(String text) {
        final Exception refused =
                assertThrows(IllegalArgumentException.class, () -> TransferCosts.Entry.parse(text));
        assertTrue(refused.getMessage().startsWith(text + " is not LABEL:BLOCKS"));
    }

    @ParameterizedTest
    @ValueSource(
            strings = {"rack:0.05,*:never", "rack:0.05,zone:1", "rack:1;*:never", "rack:1 *:2"})
    void refusesSeveralEntriesInOneText(String text) {
        final Exception refused =
                assertThrows(IllegalArgumentException.class, () -> TransferCosts.Entry.parse(text));
        assertEquals(
                text
                        + " is not one LABEL:BLOCKS; give each entry as an element of its own:"
                        + " repeat the option, or write a YAML list",
                refused.getMessage());
    }

    @Test
    void refusesEntriesThatDoNotSayOneThingOfEveryPair() {
        for (String[] wrong :
                new String[][] {
                    {"rack:1"}, {"*:1", "rack:1"}, {"rack:1", "rack:2", "*:3"}, {"*:1", "*:1"}
                }) {
            assertThrows(IllegalArgumentException.class, () -> costs(wrong));
        }
    }

    @Test
    void isWrittenAsItIsRead() {
        for (String text : List.of("rack:0.05", "*:never", "a:b:2.0")) {
            assertEquals(text, TransferCosts.Entry.parse(text).toString());
        }
    }
}
