package io.kvasir.cli.load;

import static org.junit.jupiter.api.Assertions.assertEquals;

import io.kvasir.testsupport.Seeds;

import org.junit.jupiter.api.Test;

import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;

class SseScannerTest {
    @Test
    void aCutAnywhereGivesTheSameDataLines() {
        final String longValue = "x".repeat(5_000);
        final byte[] stream =
                (": comment\n\ndata: {\"a\":1}\r\n\r\nevent: ping\ndata:no blank\n\ndata: "
                                + longValue
                                + "\n\ndata: [DONE]\n\n")
                        .getBytes(StandardCharsets.UTF_8);
        final List<String> expected = List.of("{\"a\":1}", "no blank", longValue, "[DONE]");
        final Random random = new Random(Seeds.next("sse scanner"));
        for (int round = 0; round < 200; round++) {
            final List<String> seen = new ArrayList<>();
            final SseScanner scanner =
                    new SseScanner(
                            (bytes, from, to) ->
                                    seen.add(
                                            new String(
                                                    bytes,
                                                    from,
                                                    to - from,
                                                    StandardCharsets.UTF_8)));
            int at = 0;
            while (at < stream.length) {
                final int length = Math.min(1 + random.nextInt(50), stream.length - at);
                scanner.feed(ByteBuffer.wrap(stream, at, length));
                at += length;
            }
            assertEquals(expected, seen);
        }
    }
}
