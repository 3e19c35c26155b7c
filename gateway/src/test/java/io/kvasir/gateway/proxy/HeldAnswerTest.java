package io.kvasir.gateway.proxy;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.kvasir.gateway.server.AnswerMemory;

import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;

class HeldAnswerTest {
    private static final int LIMIT = 1000;

    private final AnswerMemory memory = new AnswerMemory(() -> LIMIT);

    private static ByteBuffer bytes(String text) {
        return ByteBuffer.wrap(text.getBytes(StandardCharsets.US_ASCII));
    }

    private static String text(ByteBuffer bytes) {
        return StandardCharsets.US_ASCII.decode(bytes).toString();
    }

    @ParameterizedTest
    @CsvSource({"-1, 512", "300, 300", "256, 300", "400, 400", "9999999999, 512"})
    void anAnswerThatSaysItsLengthTakesNoMoreThanThat(long announced, int taken) {
        final HeldAnswer held = new HeldAnswer(memory, announced);
        for (int i = 0; i < 3; i++) {
            assertTrue(held.add(bytes("x".repeat(64))));
        }
        assertTrue(held.add(bytes("y".repeat(108))));
        assertEquals(300, held.length());
        assertEquals(taken, memory.bytes());
        assertEquals("x".repeat(192) + "y".repeat(108), text(held.takeAll()));
        assertEquals(taken, memory.bytes(), "it is still to be written");
        held.free();
        held.free();
        assertEquals(0, memory.bytes());
    }

    @Test
    void whatFindsNoMemoryIsHeldAsTheLast() {
        final HeldAnswer other = new HeldAnswer(memory, 900);
        assertTrue(other.add(bytes("o".repeat(900))));
        final HeldAnswer held = new HeldAnswer(memory, 500);
        assertTrue(held.add(bytes("a".repeat(100))));
        assertFalse(held.add(bytes("b")), "there would have to be room for more");
        assertEquals(LIMIT, memory.bytes());
        assertEquals("a".repeat(100) + "b", text(held.takeAll()));
        held.free();
        assertEquals(900, memory.bytes());
    }

    @Test
    void anEmptyAnswerTakesNothing() {
        final HeldAnswer held = new HeldAnswer(memory, 0);
        assertTrue(held.add(ByteBuffer.allocate(0)));
        assertEquals("", text(held.takeAll()));
        assertEquals(0, memory.bytes());
    }
}
