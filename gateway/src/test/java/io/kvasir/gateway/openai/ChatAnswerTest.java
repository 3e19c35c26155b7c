package io.kvasir.gateway.openai;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;

import com.fasterxml.jackson.databind.JsonNode;

import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.net.ProtocolException;
import java.nio.charset.StandardCharsets;

class ChatAnswerTest {
    private static String whole(int choices, int top, String completion) throws ProtocolException {
        final byte[] bytes = completion.getBytes(StandardCharsets.UTF_8);
        return new String(
                new ChatAnswer(choices, top).whole(bytes, bytes.length), StandardCharsets.UTF_8);
    }

    private static JsonNode tree(String json) {
        try {
            return Json.MAPPER.readTree(json);
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    @Test
    void textsBecomeMessagesAndAllElseStays() throws ProtocolException {
        assertEquals(
                "{\"id\":\"chatcmpl-1\",\"object\":\"chat.completion\",\"created\":5,\"model\":\"m\","
                    + "\"choices\":[{\"index\":0,\"message\":{\"role\":\"assistant\",\"content\":\"ä\\uD83D\\uDE42\"},"
                    + "\"logprobs\":null,\"finish_reason\":\"stop\",\"stop_reason\":7},"
                    + "{\"index\":1,\"message\":{\"role\":\"assistant\",\"content\":\"\"},"
                    + "\"logprobs\":null,\"finish_reason\":\"length\"}],"
                    + "\"usage\":{\"prompt_tokens\":3,\"completion_tokens\":2},\"x\":[1.5]}",
                whole(
                        2,
                        0,
                        "{\"id\":\"cmpl-1\",\"object\":\"text_completion\",\"created\":5,\"model\":\"m\","
                            + "\"choices\":[{\"index\":0,\"text\":\"ä🙂\",\"logprobs\":null,"
                            + "\"finish_reason\":\"stop\",\"stop_reason\":7},"
                            + "{\"index\":1,\"text\":\"\",\"finish_reason\":\"length\"}],"
                            + "\"usage\":{\"prompt_tokens\":3,\"completion_tokens\":2},\"x\":[1.5]}"));
    }

    @Test
    void logprobsTakeTheChatsForm() throws ProtocolException {
        final String chat =
                whole(
                        1,
                        1,
                        "{\"choices\":[{\"index\":0,\"text\":\"ä!\",\"logprobs\":{\"tokens\":[\"ä\",\"!\"],"
                            + "\"token_logprobs\":[-0.5,null],\"text_offset\":[0,1],"
                            + "\"top_logprobs\":[{\"b\":-0.9,\"ä\":-0.5,\"c\":-0.7},null]},"
                            + "\"finish_reason\":\"stop\"}]}");
        assertEquals(
                tree(
                        "{\"content\":[{\"token\":\"ä\",\"logprob\":-0.5,\"bytes\":[195,164],"
                            + "\"top_logprobs\":[{\"token\":\"ä\",\"logprob\":-0.5,\"bytes\":[195,164]}]},"
                            + "{\"token\":\"!\",\"logprob\":-9999.0,\"bytes\":[33],\"top_logprobs\":[]}]}"),
                tree(chat).at("/choices/0/logprobs"));
    }

    @ParameterizedTest
    @ValueSource(
            strings = {
                "",
                "nonsense secret",
                "[]",
                "{}",
                "{\"choices\":1}",
                "{\"choices\":[1]}",
                "{\"choices\":[{\"index\":0}]}",
                "{\"choices\":[{\"index\":0,\"text\":1}]}",
                "{\"choices\":[{\"index\":1,\"text\":\"a\"}]}",
                "{\"choices\":[{\"index\":-1,\"text\":\"a\"}]}",
                "{\"choices\":[{\"index\":2147483647,\"text\":\"a\"}]}",
                "{\"choices\":[{\"index\":9999999999,\"text\":\"a\"}]}",
                "{\"choices\":[{\"index\":\"0\",\"text\":\"a\"}]}",
            })
    void whatIsNoCompletionIsAFault(String answer) {
        final ProtocolException fault =
                assertThrows(ProtocolException.class, () -> whole(1, 0, answer));
        assertFalse(fault.getMessage().contains("secret"), fault.getMessage());
    }
}
