package io.kvasir.core.closing;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

import java.io.IOException;
import java.nio.channels.Channels;
import java.nio.channels.FileChannel;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;

/** Work in threads that are interrupted before it, or meanwhile. */
class UninterruptedTest {
    private int runs;

    @AfterEach
    void noInterruptIsLeft() {
        var _ = Thread.interrupted();
    }

    @Test
    void anInterruptThatWasThereIsKeptBackAndSetAgain() {
        Thread.currentThread().interrupt();
        Uninterrupted.run(() -> assertFalse(Thread.currentThread().isInterrupted()));
        assertTrue(Thread.interrupted());
        Uninterrupted.run(() -> runs++);
        assertFalse(Thread.interrupted());
    }

    @Test
    void theInterruptIsSetAgainAfterAFailure() {
        Thread.currentThread().interrupt();
        assertThrows(
                IllegalStateException.class,
                () ->
                        Uninterrupted.run(
                                () -> {
                                    throw new IllegalStateException();
                                }));
        assertTrue(Thread.interrupted());
    }

    @Test
    void aFileIsReadInAnInterruptedThread(@TempDir Path folder) throws IOException {
        final Path file = Files.writeString(folder.resolve("f"), "text");
        Thread.currentThread().interrupt();
        assertEquals("text", Uninterrupted.call(() -> read(file, 1)));
        assertTrue(Thread.interrupted());
        assertEquals(1, runs);
    }

    @Test
    void anInterruptMeanwhileHasItDoneAgain(@TempDir Path folder) throws IOException {
        final Path file = Files.writeString(folder.resolve("f"), "text");
        assertEquals("text", Uninterrupted.call(() -> read(file, 3)));
        assertEquals(3, runs, "two were interrupted");
        assertTrue(Thread.interrupted());
    }

    /** Reads in a thread that is interrupted unless it is the run with this number. */
    private String read(Path file, int undisturbed) throws IOException {
        try (FileChannel channel = FileChannel.open(file)) {
            if (++runs < undisturbed) {
                Thread.currentThread().interrupt();
            }
            return new String(
                    Channels.newInputStream(channel).readAllBytes(), StandardCharsets.US_ASCII);
        }
    }

    @Test
    void aWaitThatIsInterruptedIsDoneAgain() {
        assertEquals(
                "done",
                Uninterrupted.call(
                        () -> {
                            if (++runs < 100) {
                                throw new InterruptedException();
                            }
                            return "done";
                        }));
        assertTrue(Thread.interrupted());
    }

    @Test
    void aFailureWithoutAnInterruptIsThrownAtOnce() {
        final IOException failure = new IOException();
        assertSame(
                failure,
                assertThrows(
                        IOException.class,
                        () ->
                                Uninterrupted.call(
                                        () -> {
                                            runs++;
                                            throw failure;
                                        })));
        assertEquals(1, runs);
        assertFalse(Thread.interrupted());
    }

    @Test
    void whatFailsAndInterruptsItselfEveryTimeEnds() {
        assertThrows(
                IOException.class,
                () ->
                        Uninterrupted.call(
                                () -> {
                                    runs++;
                                    Thread.currentThread().interrupt();
                                    throw new IOException();
                                }));
        assertEquals(1 + Uninterrupted.MOST_FAILURES, runs);
        assertTrue(Thread.interrupted());
    }
}
