package io.kvasir.host;

import static org.junit.jupiter.api.Assertions.assertEquals;

import org.junit.jupiter.api.Test;
import org.slf4j.event.EventRecordingLogger;
import org.slf4j.event.SubstituteLoggingEvent;
import org.slf4j.helpers.MessageFormatter;
import org.slf4j.helpers.SubstituteLogger;

import java.util.ArrayDeque;
import java.util.Deque;

class EngineFailuresTest {
    private static final int MANY = 10_000;

    private final Deque<SubstituteLoggingEvent> events = new ArrayDeque<>();
    private final EngineFailures failures =
            new EngineFailures(
                    new EventRecordingLogger(new SubstituteLogger("test", events, false), events));
    private final Throwable why = new IllegalStateException("out of memory");

    private String last() {
        final SubstituteLoggingEvent event = events.getLast();
        return MessageFormatter.basicArrayFormat(event.getMessage(), event.getArgumentArray());
    }

    @Test
    void anEngineThatFailsOnAllRequestsWritesAFewLinesWithTheReason() {
        final long startNs = Long.MAX_VALUE - 5; // the clock runs over
        for (int i = 0; i < MANY; i++) {
            failures.add("r" + i, why, startNs + i);
        }
        assertEquals(EngineFailures.LINES, events.size());
        assertEquals("the engine failed on r" + (EngineFailures.LINES - 1), last());
        assertEquals(why, events.getLast().getThrowable());
    }

    @Test
    void theNextLineSaysHowManyWereLeftOut() {
        for (int i = 0; i < MANY; i++) {
            failures.add("r", why, 0);
        }
        failures.add("next", why, EngineFailures.PERIOD_NS);
        assertEquals(
                "the engine failed on next ("
                        + (MANY - EngineFailures.LINES)
                        + " failures before it were left out)",
                last());
        assertEquals(why, events.getLast().getThrowable());
        failures.add("r", why, EngineFailures.PERIOD_NS);
        assertEquals("the engine failed on r", last());
    }
}
