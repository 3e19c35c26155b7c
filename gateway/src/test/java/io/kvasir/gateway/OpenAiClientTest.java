package io.kvasir.gateway;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.openai.client.OpenAIClient;
import com.openai.client.okhttp.OpenAIOkHttpClient;
import com.openai.core.http.StreamResponse;
import com.openai.errors.BadRequestException;
import com.openai.errors.NotFoundException;
import com.openai.models.chat.completions.ChatCompletionChunk;
import com.openai.models.chat.completions.ChatCompletionCreateParams;
import com.openai.models.models.Model;

import io.kvasir.gateway.testing.FakeEngine;
import io.kvasir.gateway.testing.Gateways;

import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/** The official client sees an ordinary OpenAI server. */
class OpenAiClientTest {
    private FakeEngine engine;
    private GatewayServer gateway;
    private OpenAIClient client;

    @BeforeEach
    void start() {
        engine = new FakeEngine(FakeEngine.chatStream(5, 1));
        gateway = GatewayServer.start(Gateways.config(engine.worker("w")).build());
        client =
                OpenAIOkHttpClient.builder()
                        .baseUrl("http://127.0.0.1:" + gateway.port() + "/v1")
                        .apiKey("secret")
                        .maxRetries(0)
                        .build();
    }

    @AfterEach
    void stop() {
        client.close();
        gateway.close();
        engine.close();
    }

    private static ChatCompletionCreateParams chat(String model) {
        return ChatCompletionCreateParams.builder().model(model).addUserMessage("hello").build();
    }

    @Test
    void streamsAChat() {
        final StringBuilder text = new StringBuilder();
        try (StreamResponse<ChatCompletionChunk> chunks =
                client.chat().completions().createStreaming(chat("m"))) {
            chunks.stream()
                    .flatMap(chunk -> chunk.choices().stream())
                    .forEach(choice -> choice.delta().content().ifPresent(text::append));
        }
        assertEquals("t0 t1 t2 t3 t4 ", text.toString());
        assertEquals("Bearer secret", engine.calls.getFirst().headers.get("authorization"));
    }

    @Test
    void getsAWholeChat() {
        engine.script =
                call ->
                        call.json(
                                200,
                                "{\"id\":\"c\",\"object\":\"chat.completion\",\"created\":1,\"model\":\"m\",\"choices\":["
                                    + "{\"index\":0,\"finish_reason\":\"stop\",\"logprobs\":null,"
                                    + "\"message\":{\"role\":\"assistant\",\"content\":\"hi\",\"refusal\":null}}]}");
        assertEquals(
                "hi",
                client.chat()
                        .completions()
                        .create(chat("m"))
                        .choices()
                        .getFirst()
                        .message()
                        .content()
                        .orElseThrow());
    }

    @Test
    void understandsErrors() {
        final NotFoundException unknown =
                assertThrows(
                        NotFoundException.class,
                        () -> client.chat().completions().create(chat("other")));
        assertEquals("model_not_found", unknown.code().orElseThrow());
        assertTrue(unknown.getMessage().contains("`other` does not exist"), unknown.getMessage());
        assertThrows(
                BadRequestException.class,
                () ->
                        client.chat()
                                .completions()
                                .create(
                                        ChatCompletionCreateParams.builder()
                                                .model("m")
                                                .messages(java.util.List.of())
                                                .build()));
    }

    @Test
    void noticesAnErrorInTheMiddleOfAStream() {
        engine.script =
                call -> {
                    call.beginEvents();
                    call.chunk(FakeEngine.event("{\"index\":0,\"delta\":{\"content\":\"a\"}}"));
                    call.cut();
                };
        try (StreamResponse<ChatCompletionChunk> chunks =
                client.chat().completions().createStreaming(chat("m"))) {
            final RuntimeException e =
                    assertThrows(
                            RuntimeException.class, () -> chunks.stream().forEach(chunk -> {}));
            assertTrue(e.getMessage().contains("upstream worker w"), e.getMessage());
        }
    }

    @Test
    void listsModels() {
        assertEquals(
                java.util.List.of("m"),
                client.models().list().data().stream().map(Model::id).toList());
    }
}
