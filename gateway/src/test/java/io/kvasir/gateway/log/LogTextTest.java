package io.kvasir.gateway.log;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.kvasir.pipeline.log.LineText;

import org.junit.jupiter.api.Test;

class LogTextTest {
    @Test
    void aTextIsEscapedAndCut() {
        assertEquals("a\\u{a}b", LogText.of("a\nb"));
        assertEquals(LineText.of("x".repeat(1_000)), LogText.of("x".repeat(1_000)));
    }

    @Test
    void aFailureKeepsItsStackAndItsCauses() {
        final Exception failure =
                new IllegalStateException("a\nb", new IllegalArgumentException("c\u001bd"));
        final Throwable logged = LogText.of(failure);
        assertEquals("java.lang.IllegalStateException: a\\u{a}b", logged.getMessage());
        assertEquals(
                "java.lang.IllegalArgumentException: c\\u{1b}d", logged.getCause().getMessage());
        assertEquals(failure.getStackTrace()[0], logged.getStackTrace()[0]);
    }

    @Test
    void aFailureThatIsItsOwnCauseEnds() {
        final Exception first = new IllegalStateException("first");
        final Exception second = new IllegalStateException("second", first);
        first.initCause(second);
        int depth = 0;
        for (Throwable t = LogText.of(first); t != null; t = t.getCause()) {
            depth++;
        }
        assertTrue(depth < 20);
        assertSame(second, first.getCause());
    }
}
