package io.kvasir.nixl.loopback;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

import java.util.List;

class RegionTableTest {
    private static RegionTable.Entry entry(String name, long base, long length) {
        return new RegionTable.Entry(name, base, length, RegionTable.Entry.IN_PROCESS, null, 0);
    }

    @ParameterizedTest
    @CsvSource({
        "100, 1, a",
        "149, 1, a",
        "100, 50, a",
        "100, 51, none",
        "150, 50, b",
        "199, 2, none",
        "99, 1, none",
        "200, 1, none",
        "300, 1, c",
        "-1, 1, none",
        "9223372036854775807, 1, none",
        "100, 9223372036854775807, none"
    })
    void aRangeIsFoundInsideOneRegion(long address, long length, String expected) {
        final RegionTable table =
                RegionTable.of(
                        List.of(entry("c", 300, 1), entry("a", 100, 50), entry("b", 150, 50)));

        final RegionTable.Entry found = table.find(address, length);

        assertEquals(expected, found == null ? "none" : found.name());
    }

    @Test
    void regionsThatOverlapAreNamed() {
        final String message =
                assertThrows(
                                IllegalArgumentException.class,
                                () ->
                                        RegionTable.of(
                                                List.of(entry("x", 149, 5), entry("y", 100, 50))))
                        .getMessage();

        assertTrue(message.contains("y and x overlap"), message);
    }

    @Test
    void newRegionsReplaceOlderOnesThatTheyOverlap() {
        final RegionTable older =
                RegionTable.of(
                        List.of(
                                entry("before", 50, 50),
                                entry("left", 90 + 10, 20),
                                entry("inside", 130, 10),
                                entry("right", 190, 20),
                                entry("behind", 210, 5)));

        final RegionTable both = RegionTable.of(List.of(entry("new", 110, 100))).over(older);

        assertEquals(
                List.of("before", "new", "behind"),
                both.entries().stream().map(RegionTable.Entry::name).toList());
    }
}
