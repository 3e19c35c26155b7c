package io.kvasir.core.closing;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertThrows;

import org.junit.jupiter.api.Test;

import java.io.IOException;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;

/** Several things that are closed, some of which throw. */
class ClosingTest {
    private final List<String> closed = new ArrayList<>();

    private AutoCloseable good(String name) {
        return () -> closed.add(name);
    }

    private static AutoCloseable bad(Exception e) {
        return () -> {
            throw e;
        };
    }

    private static AutoCloseable bad(Error e) {
        return () -> {
            throw e;
        };
    }

    @Test
    void allAreClosedInTheirOrder() {
        Closing.all(good("a"), null, good("b"));
        Closing.all(Arrays.asList(good("c"), null));
        assertEquals(List.of("a", "b", "c"), closed);
    }

    @Test
    void whateverIsThrownTheOthersAreClosed() {
        final Error first = new NoClassDefFoundError("p/Gone");
        final Exception second = new IOException("two");
        final Error third = new AssertionError("three");
        final Error thrown =
                assertThrows(
                        NoClassDefFoundError.class,
                        () ->
                                Closing.all(
                                        good("a"),
                                        bad(first),
                                        good("b"),
                                        bad(second),
                                        bad(third),
                                        good("c")));
        assertSame(first, thrown);
        assertArrayEquals(new Throwable[] {second, third}, thrown.getSuppressed());
        assertEquals(List.of("a", "b", "c"), closed);
    }

    @Test
    void aCheckedExceptionIsThrownAsItIs() {
        final Exception failure = new IOException("x");
        assertSame(
                failure,
                assertThrows(IOException.class, () -> Closing.all(bad(failure), bad(failure))));
        assertEquals(0, failure.getSuppressed().length, "no exception suppresses itself");
    }

    @Test
    void afterAFailureWhatIsThrownIsSuppressed() {
        final Throwable failure = new IllegalStateException("it");
        final Error late = new AssertionError("late");
        Closing.after(failure, bad(late), null, good("a"));
        assertArrayEquals(new Throwable[] {late}, failure.getSuppressed());
        assertEquals(List.of("a"), closed);
    }
}
