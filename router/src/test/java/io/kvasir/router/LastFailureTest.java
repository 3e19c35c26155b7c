package io.kvasir.router;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import org.junit.jupiter.api.Test;

import java.io.IOException;
import java.nio.file.NoSuchFileException;

class LastFailureTest {
    @Test
    void aReasonIsNewUntilItIsAnotherOrATryHasSucceeded() {
        final LastFailure last = new LastFailure();
        assertFalse(last.ended());
        assertTrue(last.isNew(new IOException("No space left on device")));
        assertFalse(last.isNew(new IOException("No space left on device")));
        assertTrue(last.isNew(new NoSuchFileException("/state/a")));
        assertEquals("/state/a: there is no such file or folder", last.reason());
        assertTrue(last.ended());
        assertFalse(last.ended());
        assertTrue(last.isNew(new NoSuchFileException("/state/a")));
    }
}
