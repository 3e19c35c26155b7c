package io.kvasir.cli.demo;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.fasterxml.jackson.databind.JsonNode;

import io.kvasir.cli.console.Json;

import org.junit.jupiter.api.Test;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.util.HashSet;
import java.util.Set;

class ChatWorkloadTest {
    private static final ChatWorkload.Shape SHAPE =
            new ChatWorkload.Shape(3, 400, 30, 4, 60, 16, 5_000, 500);

    @Test
    void theSameSeedSaysTheSameThingsAtTheSameTimes() {
        final ChatWorkload a = new ChatWorkload(SHAPE, 7);
        final ChatWorkload b = new ChatWorkload(SHAPE, 7);
        for (int i = 0; i < SHAPE.conversations(); i++) {
            assertEquals(a.conversations().get(i).startMs(), b.conversations().get(i).startMs());
            assertArrayEquals(
                    a.conversations().get(i).nextRequest("m"),
                    b.conversations().get(i).nextRequest("m"));
            assertEquals(a.conversations().get(i).thinkMs(), b.conversations().get(i).thinkMs());
        }
        assertNotEquals(
                new String(a.conversations().get(0).nextRequest("m"), StandardCharsets.UTF_8),
                new String(
                        new ChatWorkload(SHAPE, 8).conversations().get(0).nextRequest("m"),
                        StandardCharsets.UTF_8));
    }

    @Test
    void aConversationGrowsByItsAnswersBehindItsGroupsPrompt() throws IOException {
        final ChatWorkload workload = new ChatWorkload(SHAPE, 1);
        final ChatWorkload.Conversation chat = workload.conversations().get(0);
        chat.nextRequest("m");
        chat.answered("my answer");
        final JsonNode second = Json.MAPPER.readTree(chat.nextRequest("m"));
        assertEquals(4, second.get("messages").size());
        assertEquals("system", second.at("/messages/0/role").asText());
        assertEquals("my answer", second.at("/messages/2/content").asText());
        assertEquals("user", second.at("/messages/3/role").asText());
        assertTrue(second.get("stream").asBoolean());

        final Set<String> systemPrompts = new HashSet<>();
        for (ChatWorkload.Conversation c : workload.conversations()) {
            final JsonNode body = Json.MAPPER.readTree(c.nextRequest("m"));
            systemPrompts.add(body.at("/messages/0/content").asText());
        }
        assertEquals(SHAPE.groups(), systemPrompts.size());
    }
}
