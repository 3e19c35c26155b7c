package io.kvasir.protocol.sse;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.kvasir.testsupport.Seeds;

import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;

class SseEventsTest {
    private final List<String> seen = new ArrayList<>();
    private final StringBuilder handedOut = new StringBuilder();

    private static byte[] utf8(String text) {
        return text.getBytes(StandardCharsets.UTF_8);
    }

    private boolean see(byte[] bytes, int from, int to) {
        final String value = new String(bytes, from, to - from, StandardCharsets.UTF_8);
        seen.add(value);
        return !value.startsWith("drop");
    }

    private void take(ByteBuffer bytes) {
        handedOut.append(StandardCharsets.UTF_8.decode(bytes));
    }

    /** Passes a stream in chunks of random lengths. */
    private void pass(byte[] stream, Random random, int longest) {
        final SseEvents events = new SseEvents(this::see);
        for (int at = 0; at < stream.length; ) {
            final int length = Math.min(1 + random.nextInt(longest), stream.length - at);
            events.accept(ByteBuffer.wrap(stream, at, length));
            if (random.nextBoolean()) {
                take(events.takeReady());
            }
            at += length;
        }
        take(events.takeAll());
    }

    @Test
    void aCutAnywhereGivesTheSameEventsAndBytes() {
        final String longValue = "x".repeat(5_000);
        final String kept =
                ": comment\n\ndata: {\"a\":1}\r\n\r\nevent: ping\ndata:no blank\n\ndata: "
                        + longValue
                        + "\n\n";
        final String stream =
                kept + "data: drop this\n\ndata: two\ndata: lines\n\ndata: [DONE]\n\n";
        final Random random = new Random(Seeds.next("sse events"));
        for (int round = 0; round < 200; round++) {
            seen.clear();
            handedOut.setLength(0);
            pass(utf8(stream), random, 50);
            assertEquals(List.of("{\"a\":1}", "no blank", longValue, "drop this", "[DONE]"), seen);
            assertEquals(kept + "data: two\ndata: lines\n\ndata: [DONE]\n\n", handedOut.toString());
        }
    }

    @Test
    void anEventBeyondTheLimitIsHandedOutUnseenAndTheNextOneIsSeen() {
        final String large = "data: " + "y".repeat(2 * SseEvents.MAX_EVENT_BYTES) + "\n\n";
        pass(utf8(large + "data: after\n\n"), new Random(1), 300_000);
        assertEquals(List.of("after"), seen);
        assertEquals(large + "data: after\n\n", handedOut.toString());
    }

    @ParameterizedTest
    @ValueSource(strings = {"\n", "\r\n"})
    void aCutAnywhereInTheEndOfAnEventBeyondTheLimitHidesNothing(String end) {
        final String large = "data: " + "y".repeat(SseEvents.MAX_EVENT_BYTES);
        // a line that only begins as a blank one does not end it
        final String rest = "y\r" + end + "\rz" + end + end + "data: after" + end + end;
        for (int cut = 0; cut < rest.length(); cut++) {
            seen.clear();
            handedOut.setLength(0);
            final SseEvents events = new SseEvents(this::see);
            accept(events, large);
            accept(events, rest.substring(0, cut));
            accept(events, rest.substring(cut, cut + 1));
            accept(events, rest.substring(cut + 1));
            take(events.takeAll());
            assertEquals(List.of("after"), seen, "cut at " + cut);
            assertEquals(large.length() + rest.length(), handedOut.length());
            assertTrue(handedOut.toString().endsWith(rest), "cut at " + cut);
        }
    }

    private void accept(SseEvents events, String chunk) {
        events.accept(ByteBuffer.wrap(utf8(chunk)));
        take(events.takeReady());
    }

    @Test
    void whatHasNoEndIsHandedOutWithTheRestOnly() {
        final SseEvents events = new SseEvents(this::see);
        events.accept(ByteBuffer.wrap(utf8("data: a\n\ndata: cut")));
        assertEquals(9, events.readyBytes());
        take(events.takeReady());
        assertEquals("data: a\n\n", handedOut.toString());
        take(events.takeAll());
        assertTrue(handedOut.toString().endsWith("data: cut"), handedOut.toString());
        assertEquals(List.of("a"), seen);
    }
}
