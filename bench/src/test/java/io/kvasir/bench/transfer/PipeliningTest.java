package io.kvasir.bench.transfer;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.kvasir.nixl.probe.TransferEnd;

import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;

import java.io.ByteArrayOutputStream;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.List;

@Tag("integration") // starts processes
class PipeliningTest {
    @Test
    void pushesAndPullsAreMeasuredBetweenTwoProcesses() throws Exception {
        final ByteArrayOutputStream out = new ByteArrayOutputStream();
        Pipelining.measure(
                TransferEnd.Kind.LOOPBACK,
                1,
                1,
                4,
                4096,
                new int[] {1, 2},
                new PrintStream(out, true, StandardCharsets.UTF_8));
        final List<String> lines = out.toString(StandardCharsets.UTF_8).lines().toList();
        assertTrue(lines.getFirst().startsWith("LOOPBACK, 4 layers, 1 processes"), lines.get(0));
        final List<String> cases = lines.subList(2, lines.size() - 1);
        assertEquals(12, cases.size(), cases.toString());
        assertEquals(6, cases.stream().filter(line -> line.startsWith("WRITE")).count());
        assertEquals(6, cases.stream().filter(line -> line.startsWith("READ")).count());
        for (String line : cases) {
            assertFalse(line.contains("NaN"), line);
        }
    }
}
