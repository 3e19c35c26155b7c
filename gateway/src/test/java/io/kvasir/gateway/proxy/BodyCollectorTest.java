package io.kvasir.gateway.proxy;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertInstanceOf;

import io.kvasir.gateway.server.AnswerMemory;

import org.eclipse.jetty.io.content.AsyncContent;
import org.eclipse.jetty.util.Callback;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

import java.io.EOFException;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;

/** Answers that are collected, and the memory that they take meanwhile. */
class BodyCollectorTest {
    private static final int MOST_BYTES = 100;

    private final AsyncContent content = new AsyncContent();
    private final List<String> whole = new ArrayList<>();
    private final List<Throwable> failures = new ArrayList<>();
    private final List<Long> takenAtEnd = new ArrayList<>();

    private AnswerMemory begin(int memoryBytes) {
        final AnswerMemory memory = new AnswerMemory(() -> memoryBytes);
        new BodyCollector(
                        content,
                        MOST_BYTES,
                        memory,
                        bytes -> {
                            whole.add(new String(bytes, StandardCharsets.US_ASCII));
                            takenAtEnd.add(memory.bytes());
                        },
                        failures::add)
                .readOn();
        return memory;
    }

    private void send(int bytes, boolean last) {
        content.write(
                last,
                ByteBuffer.wrap("x".repeat(bytes).getBytes(StandardCharsets.US_ASCII)),
                Callback.NOOP);
    }

    @Test
    void aWholeAnswerIsCountedUntilItIsTaken() {
        final AnswerMemory memory = begin(MOST_BYTES);
        send(30, false);
        assertEquals(30, memory.bytes());
        send(20, true);
        assertEquals(List.of("x".repeat(50)), whole);
        assertEquals(List.of(60L), takenAtEnd);
        assertEquals(0, memory.bytes());
    }

    @ParameterizedTest
    @CsvSource({"40, 60, BodyCollector$NoMemoryException", "1000, 90, ProtocolException"})
    void whatIsTooLongIsAFailureAndGivesItsMemoryBack(int memoryBytes, int more, String failure) {
        final AnswerMemory memory = begin(memoryBytes);
        send(30, false);
        send(more, false);
        assertEquals(1, failures.size());
        assertEquals(failure, failures.getFirst().getClass().getName().replaceAll(".*\\.", ""));
        assertEquals(0, memory.bytes());
    }

    @Test
    void oneThatBreaksOffGivesItsMemoryBack() {
        final AnswerMemory memory = begin(MOST_BYTES);
        send(30, false);
        content.fail(new EOFException("of the test"));
        assertInstanceOf(EOFException.class, failures.getFirst());
        assertEquals(0, memory.bytes());
    }
}
