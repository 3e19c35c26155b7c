package io.kvasir.testsupport;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;

import org.junit.jupiter.api.Test;

import java.io.IOException;
import java.util.concurrent.atomic.AtomicInteger;

class EventuallyTest {
    @Test
    void aConditionIsAskedUntilItHolds() throws IOException {
        final AtomicInteger asked = new AtomicInteger();
        Eventually.until("three", () -> read(asked.incrementAndGet()) == 3);
        assertEquals(3, asked.get());
    }

    @Test
    void whatAConditionThrowsEndsTheWait() {
        final IOException thrown =
                assertThrows(
                        IOException.class, () -> Eventually.until("never", () -> read(-1) == 3));
        assertEquals("unreadable", thrown.getMessage());
    }

    private static int read(int value) throws IOException {
        if (value < 0) {
            throw new IOException("unreadable");
        }
        return value;
    }
}
