package io.kvasir.bench.gpu;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;

import org.junit.jupiter.api.Test;

import java.io.ByteArrayOutputStream;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.List;

class ResultTableTest {
    @Test
    void everyCellIsALineForPeopleAndALineForPrograms() {
        final ByteArrayOutputStream bytes = new ByteArrayOutputStream();
        final ResultTable table =
                new ResultTable(
                        new PrintStream(bytes, true, StandardCharsets.UTF_8),
                        "kind",
                        "descriptors");
        table.row("dram-dram", "4096");
        assertEquals(
                List.of(
                        "       kind  descriptors",
                        "  dram-dram         4096",
                        "cell kind=dram-dram descriptors=4096"),
                bytes.toString(StandardCharsets.UTF_8).lines().toList());
        assertThrows(IllegalArgumentException.class, () -> table.row("dram-dram"));
    }

    @Test
    void theMedianIsTheOneInTheMiddle() {
        final Samples samples = new Samples(3);
        samples.add(9_000);
        samples.add(1_000);
        samples.add(2_500);
        assertEquals(2.5, samples.medianMicros());
    }
}
