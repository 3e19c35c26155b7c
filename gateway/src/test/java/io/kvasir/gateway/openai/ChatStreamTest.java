package io.kvasir.gateway.openai;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.kvasir.protocol.sse.SseEvents;

import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;

class ChatStreamTest {
    private static final String HEAD = "\"created\":5,\"model\":\"m\",\"choices\":[";
    private static final String IN =
            "data: {\"id\":\"cmpl-1\",\"object\":\"text_completion\"," + HEAD;
    private static final String OUT =
            "data: {\"id\":\"chatcmpl-1\",\"object\":\"chat.completion.chunk\"," + HEAD;
    private static final String DONE = "data: [DONE]\n\n";

    private static String text(int index, String text, String reason) {
        return "{\"index\":"
                + index
                + ",\"text\":\""
                + text
                + "\",\"logprobs\":null,\"finish_reason\":"
                + reason
                + "}";
    }

    private static String delta(int index, String members, String reason) {
        return "{\"index\":"
                + index
                + ",\"delta\":{"
                + members
                + "},\"logprobs\":null,\"finish_reason\":"
                + reason
                + "}";
    }

    private static String opening(int index) {
        return OUT + delta(index, "\"role\":\"assistant\",\"content\":\"\"", "null") + "]}\n\n";
    }

    private static String convert(ChatStream stream, byte[] bytes, int at, int length) {
        return StandardCharsets.UTF_8
                .decode(stream.convert(ByteBuffer.wrap(bytes, at, length)))
                .toString();
    }

    private static String convert(ChatStream stream, String text) {
        final byte[] bytes = text.getBytes(StandardCharsets.UTF_8);
        return convert(stream, bytes, 0, bytes.length);
    }

    private static ChatStream stream(int choices) {
        return new ChatStream(new ChatAnswer(choices, 0));
    }

    @ParameterizedTest
    @ValueSource(ints = {1, 2, 3, 7, 1000})
    void eachEventIsTurnedWhereverTheStreamIsCut(int step) {
        final byte[] bytes =
                (IN
                                + text(0, "ä🙂", "null")
                                + "]}\n\n: ping\n\n"
                                + IN
                                + text(1, "b", "null")
                                + "]}\r\n\r\n"
                                + IN
                                + text(0, "", "\"stop\"")
                                + "]}\n\n"
                                + IN
                                + "],\"usage\":{\"prompt_tokens\":3}}\n\n"
                                + DONE)
                        .getBytes(StandardCharsets.UTF_8);
        final ChatStream stream = stream(2);
        final StringBuilder all = new StringBuilder();
        for (int at = 0; at < bytes.length; at += step) {
            all.append(convert(stream, bytes, at, Math.min(step, bytes.length - at)));
        }
        assertNull(stream.fault());
        assertEquals(
                opening(0)
                        + OUT
                        + delta(0, "\"content\":\"ä\\uD83D\\uDE42\"", "null")
                        + "]}\n\n"
                        + opening(1)
                        + OUT
                        + delta(1, "\"content\":\"b\"", "null")
                        + "]}\n\n"
                        + OUT
                        + delta(0, "\"content\":\"\"", "\"stop\"")
                        + "]}\n\n"
                        + OUT
                        + "],\"usage\":{\"prompt_tokens\":3}}\n\n"
                        + DONE,
                all.toString().replace(": ping\n\n", ""));
        assertTrue(all.indexOf(": ping\n\n") > 0);
    }

    @Test
    void nothingIsHeldBackBeyondTheOpenEvent() {
        final ChatStream stream = stream(1);
        assertEquals("", convert(stream, IN + text(0, "a", "null")));
        assertEquals(
                opening(0) + OUT + delta(0, "\"content\":\"a\"", "null") + "]}\n\n",
                convert(stream, "]}\n\n"));
    }

    @Test
    void anErrorPassesAsItCame() {
        final String error = "data: {\"error\":{\"code\":500, \"message\":\"made up\"}}\n\n" + DONE;
        final ChatStream stream = stream(1);
        assertEquals(error, convert(stream, error));
        assertNull(stream.fault());
    }

    @ParameterizedTest
    @ValueSource(
            strings = {
                "data: no json, secret\n\n",
                "data:\n\n",
                "data: [1]\n\n",
                "data: [DONE]x\n\n",
                "data: {\"choices\":[1]}\n\n",
                "data: {\"choices\":[{\"index\":1,\"text\":\"a\"}]}\n\n",
                "data: {\"choices\":[{\"index\":2147483647,\"text\":\"a\"}]}\n\n",
                "data: {\"a\":\ndata: 1}\n\n",
                "event: x\n\n",
            })
    void aHostileEventEndsItAndWhatCameBeforeIsKept(String hostile) {
        final ChatStream stream = stream(1);
        final String good = IN + text(0, "a", "null") + "]}\n\n";
        final String before = convert(stream, good + hostile + good);
        assertNotNull(stream.fault());
        assertFalse(stream.fault().getMessage().contains("secret"), stream.fault()::getMessage);
        assertTrue(before.startsWith(opening(0)), before);
        assertEquals("", convert(stream, good + DONE));
    }

    @Test
    void anEventWithoutEndIsBounded() {
        final ChatStream stream = stream(1);
        final byte[] part = "x".repeat(1 << 16).getBytes(StandardCharsets.UTF_8);
        assertEquals("", convert(stream, "data: {\"choices\":[{\"text\":\""));
        for (int sent = 0; sent <= SseEvents.MAX_EVENT_BYTES; sent += part.length) {
            assertEquals("", convert(stream, part, 0, part.length));
        }
        assertNotNull(stream.fault());
    }
}
