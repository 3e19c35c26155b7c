package io.kvasir.nats.events;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;

import org.junit.jupiter.api.Test;

class EventSubjectsTest {
    private final EventSubjects names = EventSubjects.kvEvents("dynamo", "backend", "generate");

    @Test
    void subjectsAreThoseOfARecordedPlane() {
        assertEquals(
                "namespace.dynamo.component.backend.endpoint.generate.kv-events", names.subject());
        assertEquals("namespace.dynamo.component.backend.kv-events", names.componentSubject());
        assertEquals(
                names.componentSubject(),
                EventSubjects.kvEvents("dynamo", "backend", null).subject());
    }

    @Test
    void theStreamIsNamedAsOldPublishersNameIt() {
        assertEquals("namespace-dynamo-component-backend-kv-events", names.stream());
        assertEquals("namespace-dynamo-component-backend-kv-events.*", names.streamSubjects());
        assertEquals(
                "namespace-dynamo-component-backend-kv-events.queue", names.oldStreamSubject());
        assertEquals(
                "namespace-dynamo-component-backend-kv-events.kv-events", names.streamSubject());
        assertEquals(
                "namespace-my-space-component-b-x-kv-events",
                new EventSubjects("My_Space", "b.x", null, "kv_events").stream());
    }

    @Test
    void whatASubjectCannotHaveIsEncodedByByte() {
        assertEquals(
                "namespace.a%2Eb.component.c%20_-%C3%A9.endpoint.%2A%3E.kv-events",
                EventSubjects.kvEvents("a.b", "c _-\u00e9", "*>").subject());
    }

    @Test
    void emptyNamesAreRefused() {
        assertThrows(
                IllegalArgumentException.class, () -> EventSubjects.kvEvents("", "backend", null));
        assertThrows(
                IllegalArgumentException.class, () -> EventSubjects.kvEvents("a", "backend", ""));
    }
}
