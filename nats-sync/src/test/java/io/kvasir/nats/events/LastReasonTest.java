package io.kvasir.nats.events;

import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import org.junit.jupiter.api.Test;

class LastReasonTest {
    private final LastReason last = new LastReason();

    @Test
    void aReasonIsNewUntilItChangesOrEnds() {
        assertTrue(last.isNew("away"));
        assertFalse(last.isNew("away"));
        assertTrue(last.isNew("refused"));
        assertTrue(last.isNew("away"));
        last.ended();
        assertTrue(last.isNew("away"));
    }
}
