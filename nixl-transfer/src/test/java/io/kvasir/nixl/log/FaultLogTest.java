package io.kvasir.nixl.log;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertSame;

import org.junit.jupiter.api.Test;
import org.slf4j.event.EventRecordingLogger;
import org.slf4j.event.SubstituteLoggingEvent;
import org.slf4j.helpers.MessageFormatter;
import org.slf4j.helpers.SubstituteLogger;

import java.util.ArrayDeque;
import java.util.Deque;

class FaultLogTest {
    private final Deque<SubstituteLoggingEvent> events = new ArrayDeque<>();
    private final FaultLog log =
            new FaultLog(
                    "the listener of a",
                    new EventRecordingLogger(new SubstituteLogger("test", events, false), events));
    private final Throwable why = new AssertionError("a listener's");

    private String last() {
        final SubstituteLoggingEvent event = events.getLast();
        return MessageFormatter.basicArrayFormat(event.getMessage(), event.getArgumentArray());
    }

    @Test
    void theFirstFailureIsLoggedAndTheNextAfterAPeriodCountsThoseBetween() {
        final long startNs = Long.MAX_VALUE - 5; // the clock runs over
        log.add(why, startNs);
        assertEquals("the listener of a failed", last());
        assertSame(why, events.getLast().getThrowable());
        for (int i = 0; i < 100; i++) {
            log.add(why, startNs + i);
        }
        assertEquals(1, events.size());
        log.add(why, startNs + FaultLog.PERIOD_NS);
        assertEquals("the listener of a failed (100 failures before it were left out)", last());
        log.add(why, startNs + 2 * FaultLog.PERIOD_NS);
        assertEquals("the listener of a failed", last());
    }
}
