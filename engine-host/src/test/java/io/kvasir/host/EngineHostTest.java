package io.kvasir.host;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.jupiter.api.Assertions.fail;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;

import io.kvasir.registry.InstanceId;
import io.kvasir.registry.InstanceState;
import io.kvasir.registry.MemoryStore;
import io.kvasir.registry.Registration;
import io.kvasir.registry.RegistryException;
import io.kvasir.testsupport.Eventually;

import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.function.Executable;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

import java.io.IOException;
import java.io.OutputStream;
import java.net.InetAddress;
import java.net.Socket;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.time.temporal.ChronoUnit;
import java.util.ArrayList;
import java.util.HexFormat;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicReference;

class EngineHostTest {
    private static final ObjectMapper JSON = new ObjectMapper();
    private static final HttpClient HTTP =
            HttpClient.newBuilder().version(HttpClient.Version.HTTP_1_1).build();
    private static final InstanceId ID = new InstanceId("ns", "backend", "generate", "w1");
    private static final String COMPLETIONS = "/v1/completions";
    private static final String CHAT = "/v1/chat/completions";

    private EngineHost host;

    @AfterEach
    void stop() {
        if (host != null) {
            host.close();
        }
    }

    private static EngineHost.Builder of(Generator generator) {
        return EngineHost.of("m", generator).host("127.0.0.1").port(0);
    }

    private void start(Generator generator) throws IOException {
        host = of(generator).start();
    }

    private HttpRequest.Builder request(String path) {
        return HttpRequest.newBuilder(URI.create("http://127.0.0.1:" + host.port() + path));
    }

    private HttpResponse<String> post(String path, String body, String... headers)
            throws Exception {
        final HttpRequest.Builder request =
                request(path).POST(HttpRequest.BodyPublishers.ofString(body));
        if (headers.length > 0) {
            request.headers(headers);
        }
        return HTTP.send(request.build(), HttpResponse.BodyHandlers.ofString());
    }

    private HttpResponse<String> get(String path) throws Exception {
        return HTTP.send(request(path).build(), HttpResponse.BodyHandlers.ofString());
    }

    private static List<JsonNode> events(String body) throws IOException {
        final List<JsonNode> events = new ArrayList<>();
        assertTrue(body.endsWith("data: [DONE]\n\n"), body);
        for (String event : body.split("\n\n", -1)) {
            if (event.startsWith("data: {")) {
                events.add(JSON.readTree(event.substring("data: ".length())));
            }
        }
        return events;
    }

    private static void hello(GenerateRequest request, Output output) throws IOException {
        output.prompt(3, 2);
        output.text("Hel", 1);
        output.text("lo", 1);
        output.finish("length");
    }

    @Test
    void aCompletionIsWhatTheEngineHasSaid() throws Exception {
        start(EngineHostTest::hello);
        final HttpResponse<String> answer = post(COMPLETIONS, "{\"prompt\":[1,2,3]}");
        assertEquals(200, answer.statusCode());
        final JsonNode json = JSON.readTree(answer.body());
        assertEquals("text_completion", json.path("object").asText());
        assertEquals("m", json.path("model").asText());
        assertEquals("Hello", json.at("/choices/0/text").asText());
        assertEquals("length", json.at("/choices/0/finish_reason").asText());
        assertEquals(3, json.at("/usage/prompt_tokens").asInt());
        assertEquals(2, json.at("/usage/completion_tokens").asInt());
        assertEquals(5, json.at("/usage/total_tokens").asInt());
        assertEquals(2, json.at("/usage/prompt_tokens_details/cached_tokens").asInt());
    }

    /** Sends a request in segments, each once the host has had time for the one before it. */
    private String sent(String head, String... segments) throws Exception {
        try (Socket socket = new Socket(InetAddress.getLoopbackAddress(), host.port())) {
            final OutputStream out = socket.getOutputStream();
            socket.setTcpNoDelay(true);
            out.write(bytes("POST /v1/completions HTTP/1.1\r\nHost: h\r\n" + head + "\r\n"));
            for (String segment : segments) {
                out.write(bytes(segment));
                out.flush();
                Thread.sleep(100); // so that it may be read alone; the result is the same if not
            }
            out.write(bytes("GET /health HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n"));
            return new String(socket.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
        }
    }

    private static byte[] bytes(String text) {
        return text.getBytes(StandardCharsets.UTF_8);
    }

    @Test
    void aBodyThatEndsAfterItsObjectIsReadToItsEnd() throws Exception {
        start(EngineHostTest::hello);
        final String chunked = "Transfer-Encoding: chunked\r\n";
        for (String answers :
                List.of(
                        sent(chunked, "e\r\n{\"prompt\":\"x\"}\r\n", "0\r\n\r\n"),
                        sent(chunked, "e\r\n{\"prompt\":\"x\"}\r\n", "2\r\n\r\n\r\n", "0\r\n\r\n"),
                        sent("Content-Length: 16\r\n", "{\"prompt\":\"x\"}", "\r\n"))) {
            assertTrue(answers.startsWith("HTTP/1.1 200 "), answers);
            assertEquals(3, answers.split("HTTP/1.1 200 ", -1).length, answers);
        }
    }

    @Test
    void whatFollowsTheObjectIsRefused() throws Exception {
        start(EngineHostTest::hello);
        assertEquals(400, post(COMPLETIONS, "{\"prompt\":\"x\"} {").statusCode());
        final String much = "{" + " ".repeat(4 << 20);
        assertEquals(400, post(COMPLETIONS, "x" + much).statusCode());
    }

    @Test
    void aStreamHasAnEventForEachPartAndTheUsageThatWasAskedFor() throws Exception {
        start(EngineHostTest::hello);
        final HttpResponse<String> answer =
                post(
                        COMPLETIONS,
                        "{\"prompt\":\"x\",\"stream\":true,"
                                + "\"stream_options\":{\"include_usage\":true}}");
        assertEquals(
                "text/event-stream; charset=utf-8",
                answer.headers().firstValue("content-type").orElseThrow());
        final List<JsonNode> events = events(answer.body());
        assertEquals(4, events.size(), answer.body());
        assertEquals("Hel", events.get(0).at("/choices/0/text").asText());
        assertTrue(events.get(0).at("/choices/0/finish_reason").isNull());
        assertEquals("lo", events.get(1).at("/choices/0/text").asText());
        assertEquals("length", events.get(2).at("/choices/0/finish_reason").asText());
        assertTrue(events.get(3).path("choices").isEmpty());
        assertEquals(2, events.get(3).at("/usage/completion_tokens").asInt());
    }

    private static ObjectNode toolCall(String name, String arguments) {
        final ObjectNode delta = JSON.createObjectNode();
        final ObjectNode call = delta.putArray("tool_calls").addObject().put("index", 0);
        if (name != null) {
            call.put("id", "call-1").put("type", "function");
            call.putObject("function").put("name", name).put("arguments", arguments);
        } else {
            call.putObject("function").put("arguments", arguments);
        }
        return delta;
    }

    private static void calls(GenerateRequest request, Output output) throws IOException {
        assertTrue(request.isChat());
        assertEquals("hi", request.messages().get(0).path("content").asText());
        output.text("one ", 1);
        output.delta(JSON.createObjectNode().put("content", "two"), 1);
        output.delta(toolCall("f", "{\"a\""), 1);
        output.delta(toolCall(null, ":1}"), 1);
        output.finish("tool_calls");
    }

    @Test
    void deltasOfAChatAreEventsOrJoinedToAMessage() throws Exception {
        start(EngineHostTest::calls);
        final String body = "{\"messages\":[{\"role\":\"user\",\"content\":\"hi\"}]";
        final JsonNode whole = JSON.readTree(post(CHAT, body + "}").body());
        final JsonNode message = whole.at("/choices/0/message");
        assertEquals("chat.completion", whole.path("object").asText());
        assertEquals("assistant", message.path("role").asText());
        assertEquals("one two", message.path("content").asText());
        assertEquals(1, message.path("tool_calls").size(), message.toString());
        assertEquals("call-1", message.at("/tool_calls/0/id").asText());
        assertEquals("f", message.at("/tool_calls/0/function/name").asText());
        assertEquals("{\"a\":1}", message.at("/tool_calls/0/function/arguments").asText());
        assertEquals(4, whole.at("/usage/completion_tokens").asInt());

        final List<JsonNode> events = events(post(CHAT, body + ",\"stream\":true}").body());
        assertEquals("chat.completion.chunk", events.get(0).path("object").asText());
        assertEquals("assistant", events.get(0).at("/choices/0/delta/role").asText());
        assertEquals("one ", events.get(1).at("/choices/0/delta/content").asText());
        assertEquals("two", events.get(2).at("/choices/0/delta/content").asText());
        assertTrue(events.get(3).at("/choices/0/delta/tool_calls").isArray());
        assertEquals("tool_calls", events.getLast().at("/choices/0/finish_reason").asText());
    }

    /** As SGLang streams: every delta names all members. */
    private static void callsWithNulls(GenerateRequest request, Output output) throws IOException {
        final String nulls = "\"reasoning_content\":null,\"tool_calls\":null";
        for (String delta :
                List.of(
                        "{\"role\":\"assistant\",\"content\":\"\"," + nulls + "}",
                        "{\"role\":null,\"content\":null,\"reasoning_content\":\"why\"}",
                        "{\"role\":null,\"content\":\"Hel\"," + nulls + "}",
                        "{\"role\":null,\"content\":\"lo\"," + nulls + "}",
                        call("{\"index\":0,\"id\":\"call-1\",\"function\":{\"name\":\"f\"}}"),
                        call("{\"index\":0,\"id\":null,\"function\":{\"name\":null}}"),
                        "{\"role\":null,\"content\":null," + nulls + "}")) {
            output.delta((ObjectNode) JSON.readTree(delta), 1);
        }
    }

    private static String call(String part) {
        return "{\"role\":null,\"content\":null,\"tool_calls\":[" + part + "]}";
    }

    @Test
    void nullsInDeltasTakeNothingFromTheMessage() throws Exception {
        start(EngineHostTest::callsWithNulls);
        final String body = "{\"messages\":[{\"role\":\"user\",\"content\":\"hi\"}]}";
        final JsonNode whole = JSON.readTree(post(CHAT, body).body());
        assertEquals(
                JSON.readTree(
                        "{\"role\":\"assistant\",\"content\":\"Hello\","
                            + "\"reasoning_content\":\"why\",\"tool_calls\":"
                            + "[{\"index\":0,\"id\":\"call-1\",\"function\":{\"name\":\"f\"}}]}"),
                whole.at("/choices/0/message"));
    }

    @Test
    void aDrainTimeWithoutEndIsWaited() throws Exception {
        final CountDownLatch entered = new CountDownLatch(1);
        final CountDownLatch release = new CountDownLatch(1);
        host =
                of((request, output) -> {
                            entered.countDown();
                            try {
                                release.await();
                            } catch (InterruptedException e) {
                                throw new IOException(e);
                            }
                            output.text("x", 1);
                        })
                        .drainTime(ChronoUnit.FOREVER.getDuration())
                        .start();
        final CompletableFuture<HttpResponse<String>> answer =
                HTTP.sendAsync(
                        request(COMPLETIONS)
                                .POST(HttpRequest.BodyPublishers.ofString("{\"prompt\":[7]}"))
                                .build(),
                        HttpResponse.BodyHandlers.ofString());
        entered.await();
        final AtomicReference<Throwable> failure = new AtomicReference<>();
        final Thread closing = Thread.ofPlatform().daemon().unstarted(host::close);
        closing.setUncaughtExceptionHandler((_, e) -> failure.set(e));
        closing.start();
        Eventually.holds(
                "it waits, or has ended",
                () -> closing.getState() == Thread.State.TIMED_WAITING || !closing.isAlive());
        release.countDown();
        closing.join();
        assertNull(failure.get());
        assertEquals(200, answer.get().statusCode());
    }

    @ParameterizedTest
    @ValueSource(strings = {"false", "true"})
    void eachPromptHasItsSamplesInOrder(String stream) throws Exception {
        start(
                (request, output) ->
                        output.text(request.promptTokens()[0] + "/" + request.sample(), 1));
        final String answer =
                post(COMPLETIONS, "{\"prompt\":[[7],[8,9]],\"n\":2,\"stream\":" + stream + "}")
                        .body();
        final String[] texts = {"", "", "", ""};
        final List<JsonNode> parts =
                stream.equals("true") ? events(answer) : List.of(JSON.readTree(answer));
        for (JsonNode part : parts) {
            part.path("choices")
                    .forEach(c -> texts[c.path("index").asInt()] += c.path("text").asText());
        }
        assertEquals(List.of("7/0", "7/1", "8/0", "8/1"), List.of(texts));
        if (stream.equals("false")) { // prompts count once, however many samples
            assertEquals(3, parts.getFirst().at("/usage/prompt_tokens").asInt());
            assertEquals(4, parts.getFirst().at("/usage/completion_tokens").asInt());
        }
    }

    @Test
    void aRefusalBeforeTheFirstPartHasItsOwnStatusAndAfterItIsTheLastEvent() throws Exception {
        start(
                (request, output) -> {
                    if (request.promptTokens()[0] == 1) {
                        output.text("a", 1);
                    }
                    throw new RefusedException(503, "overloaded", "no room");
                });
        for (String body : List.of("{\"prompt\":[2]}", "{\"prompt\":[2],\"stream\":true}")) {
            final HttpResponse<String> refused = post(COMPLETIONS, body);
            assertEquals(503, refused.statusCode());
            assertEquals("no room", JSON.readTree(refused.body()).at("/error/message").asText());
        }
        final HttpResponse<String> begun = post(COMPLETIONS, "{\"prompt\":[1],\"stream\":true}");
        assertEquals(200, begun.statusCode());
        final List<JsonNode> events = events(begun.body());
        assertEquals("overloaded", events.getLast().at("/error/type").asText());
        assertEquals(503, post(COMPLETIONS, "{\"prompt\":[1]}").statusCode());
    }

    @ParameterizedTest
    @ValueSource(booleans = {false, true})
    void aFailureOfTheEngineIsA500ThatTellsNoSecrets(boolean isError) throws Exception {
        start(
                (request, output) -> {
                    if (isError) {
                        throw new AssertionError("secret");
                    }
                    throw new IllegalStateException("secret");
                });
        for (String body :
                List.of("{\"prompt\":\"x\"}", "{\"prompt\":[\"x\",\"y\"],\"stream\":true}")) {
            final HttpResponse<String> answer = post(COMPLETIONS, body);
            assertEquals(500, answer.statusCode());
            assertFalse(answer.body().contains("secret"), answer.body());
            final JsonNode error = JSON.readTree(answer.body()).path("error");
            assertEquals("the engine failed", error.path("message").asText());
        }
        Eventually.holds("nothing runs", () -> host.running() == 0);
    }

    @ParameterizedTest
    @ValueSource(booleans = {false, true})
    void anErrorInOneChoiceEndsTheOthersBeforeTheAnswerEnds(boolean stream) throws Exception {
        final CountDownLatch begun = new CountDownLatch(1);
        final CountDownLatch brokenOff = new CountDownLatch(1);
        final CountDownLatch goOn = new CountDownLatch(1);
        start(
                (request, output) -> {
                    if (request.sample() == 0) {
                        begun.await();
                        throw new AssertionError("secret");
                    }
                    output.text("a", 1);
                    begun.countDown();
                    while (!output.clientLeft()) {
                        Thread.sleep(5);
                    }
                    brokenOff.countDown();
                    goOn.await();
                });
        final String body = "{\"prompt\":[1],\"n\":2,\"stream\":" + stream + "}";
        final CompletableFuture<HttpResponse<String>> asked =
                HTTP.sendAsync(
                        request(COMPLETIONS)
                                .POST(HttpRequest.BodyPublishers.ofString(body))
                                .build(),
                        HttpResponse.BodyHandlers.ofString());
        Eventually.holds("the other one knows", () -> brokenOff.getCount() == 0);
        assertEquals(1, host.running());
        assertFalse(asked.isDone());
        goOn.countDown();
        final HttpResponse<String> answer = asked.get();
        assertFalse(answer.body().contains("secret"), answer.body());
        assertEquals(stream ? 200 : 500, answer.statusCode());
        final JsonNode last =
                stream ? events(answer.body()).getLast() : JSON.readTree(answer.body());
        assertEquals("the engine failed", last.at("/error/message").asText());
        Eventually.holds("nothing runs", () -> host.running() == 0);
    }

    @ParameterizedTest
    @CsvSource(
            delimiter = ';',
            value = {
                "completions;;the body is no JSON object",
                "completions;[1];the body is no JSON object",
                "completions;{\"prompt\";the body is not JSON",
                "completions;{};prompt is missing",
                "completions;{\"prompt\":{}};prompt must be",
                "completions;{\"prompt\":[]};prompt must be",
                "completions;{\"prompt\":[[]]};a prompt must be",
                "completions;{\"prompt\":[1,\"a\"]};prompt[1]=\"a\" is no token id",
                "completions;{\"prompt\":[1.5]};prompt[0]=1.5 is no token id",
                "completions;{\"prompt\":[-1]};prompt[0]=-1 is no token id",
                "completions;{\"prompt\":[9999999999]};prompt[0]=9999999999 is no token id",
                "completions;{\"prompt\":\"x\",\"n\":0};n must be",
                "completions;{\"prompt\":\"x\",\"n\":2000};are more than 1024",
                "completions;{\"prompt\":\"x\",\"stream\":1};stream must be",
                "completions;{\"prompt\":\"x\",\"model\":1};model must be",
                "chat/completions;{};messages must be",
                "chat/completions;{\"messages\":[]};messages must be",
            })
    void aWrongBodyIsRefusedWithWhatIsWrong(String route, String body, String message)
            throws Exception {
        start((request, output) -> fail("reached the engine"));
        final HttpResponse<String> answer = post("/v1/" + route, body == null ? "" : body);
        assertEquals(400, answer.statusCode(), answer.body());
        final String said = JSON.readTree(answer.body()).at("/error/message").asText();
        assertTrue(said.contains(message), said);
    }

    @Test
    void aBodyThatIsNoJsonIsRefusedWithoutInternalsOfTheReader() throws Exception {
        start((request, output) -> fail("reached the engine"));
        for (String body : List.of("{\"prompt\"", "{\"prompt\":" + "[".repeat(1_001))) {
            final HttpResponse<String> answer = post(COMPLETIONS, body);
            assertEquals(400, answer.statusCode(), answer.body());
            final String said = JSON.readTree(answer.body()).at("/error/message").asText();
            assertFalse(said.contains("[Source") || said.contains("StreamRead"), said);
        }
    }

    @ParameterizedTest
    @ValueSource(strings = {"0000007b01", "0000fffe01"})
    void aBodyThatBeginsAsUtf32AndIsNoneIsRefused(String hex) throws Exception {
        host =
                of((request, output) -> fail("reached the engine"))
                        .tokenizer(body -> fail("reached the tokenizer"))
                        .start();
        for (String path : List.of(COMPLETIONS, CHAT, "/tokenize")) {
            final HttpResponse<String> answer =
                    HTTP.send(
                            request(path)
                                    .POST(
                                            HttpRequest.BodyPublishers.ofByteArray(
                                                    HexFormat.of().parseHex(hex)))
                                    .build(),
                            HttpResponse.BodyHandlers.ofString());
            assertEquals(400, answer.statusCode(), answer.body());
            final String said = JSON.readTree(answer.body()).at("/error/message").asText();
            assertTrue(said.contains("the body is not JSON"), said);
        }
    }

    @ParameterizedTest
    @ValueSource(booleans = {true, false})
    void aBodyThatIsTooLongIsRefusedWhetherItsLengthIsSaidOrNot(boolean said) throws Exception {
        final String longest = "{\"prompt\":\"" + "x".repeat(87) + "\"}";
        host =
                of(EngineHostTest::hello)
                        .maxBodyBytes(longest.length())
                        .tokenizer(body -> new int[] {1})
                        .start();
        for (String path : List.of(COMPLETIONS, "/tokenize")) {
            assertEquals(200, sized(path, longest, said).statusCode());
            final HttpResponse<String> answer = sized(path, longest + " ", said);
            assertEquals(413, answer.statusCode(), answer.body());
            assertTrue(answer.body().contains("more than 100 bytes"), answer.body());
        }
        refused(
                "maxBodyBytes=0 must be at least 1",
                () -> of(EngineHostTest::hello).maxBodyBytes(0));
    }

    private HttpResponse<String> sized(String path, String body, boolean said) throws Exception {
        final HttpRequest.BodyPublisher text = HttpRequest.BodyPublishers.ofString(body);
        return HTTP.send(
                request(path)
                        .POST(said ? text : HttpRequest.BodyPublishers.fromPublisher(text))
                        .build(),
                HttpResponse.BodyHandlers.ofString());
    }

    @Test
    void theModelAndItsAdaptersAreServedAndNoOther() throws Exception {
        host =
                of((request, output) -> output.text(request.model(), 1))
                        .adapters(List.of("lora"))
                        .maxModelLength(4096)
                        .start();
        for (String name : List.of("m", "lora")) {
            final HttpResponse<String> answer =
                    post(COMPLETIONS, "{\"prompt\":\"x\",\"model\":\"" + name + "\"}");
            assertEquals(name, JSON.readTree(answer.body()).at("/choices/0/text").asText());
        }
        assertEquals(404, post(COMPLETIONS, "{\"prompt\":\"x\",\"model\":\"n\"}").statusCode());
        final JsonNode models = JSON.readTree(get("/v1/models").body());
        assertEquals("m", models.at("/data/0/id").asText());
        assertEquals("m", models.at("/data/1/parent").asText());
        assertEquals(4096, models.at("/data/0/max_model_len").asInt());
    }

    @ParameterizedTest
    @CsvSource(
            delimiter = ';',
            value = {
                "{};7",
                "{\"max_tokens\":5};5",
                "{\"max_completion_tokens\":3,\"max_tokens\":5};3",
                "{\"max_completion_tokens\":3,\"max_tokens\":null};3",
                "{\"max_completion_tokens\":null,\"max_tokens\":5};5",
                "{\"max_completion_tokens\":null,\"max_tokens\":null};7",
                "{\"model\":null,\"n\":null,\"stream\":null,\"stream_options\":null};7",
            })
    void aMemberThatIsNullIsAsOneThatIsNotThere(String members, String mostTokens)
            throws Exception {
        start((request, output) -> output.text(request.model() + request.maxTokens(7), 1));
        final ObjectNode body = (ObjectNode) JSON.readTree(members);
        body.put("prompt", "x");
        final HttpResponse<String> answer = post(COMPLETIONS, body.toString());
        assertEquals(200, answer.statusCode(), answer.body());
        final String said = JSON.readTree(answer.body()).at("/choices/0/text").asText();
        assertEquals("m" + mostTokens, said);
    }

    @Test
    void aRankIsOneOfThoseThatThereAre() throws Exception {
        host = of((request, output) -> output.text("r" + request.dpRank(), 1)).dpRanks(2).start();
        final String body = "{\"prompt\":\"x\"}";
        assertTrue(post(COMPLETIONS, body).body().contains("\"r0\""));
        assertTrue(post(COMPLETIONS, body, "x-data-parallel-rank", "1").body().contains("\"r1\""));
        for (String wrong : List.of("2", "-1", "a", "99999999999")) {
            assertEquals(400, post(COMPLETIONS, body, "x-data-parallel-rank", wrong).statusCode());
        }
    }

    @Test
    void moreRequestsThanMayRunAreRefusedForLoad() throws Exception {
        final CountDownLatch goOn = new CountDownLatch(1);
        host =
                of((request, output) -> {
                            goOn.await();
                            output.text("a", 1);
                        })
                        .maxConcurrent(2)
                        .start();
        final List<CompletableFuture<HttpResponse<String>>> run = new ArrayList<>();
        for (int i = 0; i < 2; i++) {
            run.add(
                    HTTP.sendAsync(
                            request(COMPLETIONS)
                                    .POST(HttpRequest.BodyPublishers.ofString("{\"prompt\":[1]}"))
                                    .build(),
                            HttpResponse.BodyHandlers.ofString()));
        }
        Eventually.holds("two run", () -> host.running() == 2);
        assertEquals(429, post(COMPLETIONS, "{\"prompt\":[1]}").statusCode());
        goOn.countDown();
        for (CompletableFuture<HttpResponse<String>> each : run) {
            assertEquals(200, each.get().statusCode());
        }
        Eventually.holds("nothing runs", () -> host.running() == 0);
        assertEquals(200, post(COMPLETIONS, "{\"prompt\":[1]}").statusCode());
    }

    @ParameterizedTest
    @ValueSource(strings = {"{\"prompt\":[1]}", "{\"prompt\":[1],\"stream\":true}"})
    void aClientThatLeavesEndsItsRequest(String body) throws Exception {
        final CountDownLatch runs = new CountDownLatch(1);
        final AtomicReference<Throwable> seen = new AtomicReference<>();
        start(
                (request, output) -> {
                    runs.countDown();
                    try {
                        while (true) {
                            output.text("a", 1);
                            Thread.sleep(5);
                        }
                    } catch (ClientLeftException e) {
                        seen.set(e);
                        assertTrue(output.clientLeft());
                        throw e;
                    }
                });
        final HttpClient leaving = HttpClient.newHttpClient();
        final CompletableFuture<?> asked =
                leaving.sendAsync(
                        request(COMPLETIONS)
                                .POST(HttpRequest.BodyPublishers.ofString(body))
                                .build(),
                        HttpResponse.BodyHandlers.ofInputStream());
        runs.await();
        asked.cancel(true);
        leaving.shutdownNow();
        Eventually.holds("the engine knows", () -> seen.get() != null);
        Eventually.holds("nothing runs", () -> host.running() == 0);
    }

    @Test
    void whatGatewaysReadOfAnEngineIsThere() throws Exception {
        host =
                of(EngineHostTest::hello)
                        .cache(16, 1000)
                        .maxModelLength(99)
                        .tokenizer(body -> new int[] {body.path("prompt").asText().length()})
                        .start();
        assertEquals(200, get("/health").statusCode());
        final String page = get("/metrics").body();
        assertTrue(
                page.contains(
                        "vllm:cache_config_info{block_size=\"16\",num_gpu_blocks=\"1000\"} 1.0"),
                page);
        final JsonNode tokens = JSON.readTree(post("/tokenize", "{\"prompt\":\"four\"}").body());
        assertEquals(4, tokens.at("/tokens/0").asInt());
        assertEquals(99, tokens.path("max_model_len").asInt());
        assertEquals(404, get("/other").statusCode());
        host.close();
        host = of(EngineHostTest::hello).start();
        assertEquals(501, post("/tokenize", "{\"prompt\":\"four\"}").statusCode());
        assertFalse(get("/metrics").body().contains("cache_config_info"));
    }

    @Test
    void renewalsThatFailAreCountedOnItsPage() throws Exception {
        final String name = "kvasir_host_registry_failures_total ";
        host = of(EngineHostTest::hello).start();
        assertFalse(get("/metrics").body().contains(name), "it is not registered");
        host.close();
        final MemoryStore store = new MemoryStore(Duration.ofSeconds(1));
        host = of(EngineHostTest::hello).register(store, ID, _ -> {}).start();
        assertTrue(get("/metrics").body().contains(name + "0.0\n"));
        store.away(true);
        Eventually.holds("counted", () -> host.registryFailures() > 1);
        assertFalse(get("/metrics").body().contains(name + "0.0\n"));
        store.away(false);
    }

    @Test
    void aHostIsRegisteredWhileItRunsAndSaysThatItGoes() throws Exception {
        final MemoryStore store = new MemoryStore(Duration.ofMinutes(1));
        final CountDownLatch goOn = new CountDownLatch(1);
        host =
                of((request, output) -> {
                            goOn.await();
                            output.text("a", 1);
                        })
                        .cache(16, 1000)
                        .register(store, ID, r -> r.events("tcp://h:5557", "tcp://h:5558"))
                        .start();
        final Registration said = Registration.decode(store.get(ID.key()).value());
        assertEquals("m", said.model());
        assertEquals(URI.create("http://127.0.0.1:" + host.port()), said.url());
        assertEquals(16, said.blockSize());
        assertEquals("tcp://h:5557", said.events().endpoint());
        final CompletableFuture<HttpResponse<String>> last =
                HTTP.sendAsync(
                        request(COMPLETIONS)
                                .POST(HttpRequest.BodyPublishers.ofString("{\"prompt\":[1]}"))
                                .build(),
                        HttpResponse.BodyHandlers.ofString());
        Eventually.holds("it runs", () -> host.running() == 1);
        final Thread closing = Thread.ofVirtual().start(host::close);
        Eventually.holds(
                "it drains",
                () ->
                        Registration.decode(store.get(ID.key()).value()).state()
                                == InstanceState.DRAINING);
        goOn.countDown();
        assertEquals(200, last.get().statusCode());
        closing.join();
        assertNull(store.get(ID.key()));
        host.close();
    }

    @Test
    void aHostThatCannotBeRegisteredDoesNotListen() throws Exception {
        final MemoryStore store = new MemoryStore(Duration.ofMinutes(1));
        store.away(true);
        final AtomicInteger port = new AtomicInteger();
        final EngineHost.Builder builder =
                of(EngineHostTest::hello)
                        .register(store, ID, r -> port.set(r.build().url().getPort()));
        assertThrows(RegistryException.class, builder::start);
        assertThrows(
                IOException.class,
                () ->
                        HTTP.send(
                                HttpRequest.newBuilder(
                                                URI.create(
                                                        "http://127.0.0.1:"
                                                                + port.get()
                                                                + "/health"))
                                        .build(),
                                HttpResponse.BodyHandlers.discarding()));
    }

    @Test
    void aPortThatIsTakenAndValuesOutOfRangeAreNamed() throws Exception {
        start(EngineHostTest::hello);
        final IOException taken =
                assertThrows(
                        IOException.class,
                        () -> of(EngineHostTest::hello).port(host.port()).start());
        assertTrue(taken.getMessage().contains(Integer.toString(host.port())), taken.toString());
        final EngineHost.Builder builder = of(EngineHostTest::hello);
        refused("maxConcurrent=0 must be at least 1", () -> builder.maxConcurrent(0));
        refused("dpRanks=0 must be at least 1", () -> builder.dpRanks(0));
        refused("tokensOfBlock=0 must be at least 1", () -> builder.cache(0, 1));
        refused("blocks=-5 must not be negative", () -> builder.cache(16, -5));
        refused("maxModelLength=-7 must not be negative", () -> builder.maxModelLength(-7));
        refused(
                "drainTime=PT-1S must not be negative",
                () -> builder.drainTime(Duration.ofSeconds(-1)));
        refused("port=-1 must be in 0..65535", () -> builder.port(-1));
        refused("port=65536 must be in 0..65535", () -> builder.port(65_536));
        refused("host must not be empty", () -> builder.host(" "));
        refused("model must not be empty", () -> EngineHost.of("", EngineHostTest::hello));
        refused("adapters[1] must not be empty", () -> builder.adapters(List.of("a", "")));
        refused(
                "advertised=//10.0.0.7:8000 must be a URL such as http://10.0.0.7:8000",
                () -> builder.advertised(URI.create("//10.0.0.7:8000")));
        refused(
                "advertised=ftp://engine must be a URL such as http://10.0.0.7:8000",
                () -> builder.advertised(URI.create("ftp://engine")));
        builder.advertised(URI.create("https://my_engine:8000")).advertised(null);
        assertThrows(
                IllegalArgumentException.class, () -> new RefusedException(200, "type", "fine"));
    }

    private static void refused(String why, Executable call) {
        assertEquals(why, assertThrows(IllegalArgumentException.class, call).getMessage());
    }

    @ParameterizedTest
    @ValueSource(booleans = {false, true})
    void partsOutOfRangeAreRefusedAndNotCounted(boolean stream) throws Exception {
        final List<String> refusals = new CopyOnWriteArrayList<>();
        start(
                (request, output) -> {
                    for (Executable call :
                            List.<Executable>of(
                                    () -> output.text("x", -1),
                                    () -> output.text(null, 1),
                                    () -> output.delta(JSON.createObjectNode(), -2),
                                    () -> output.delta(null, 1),
                                    () -> output.prompt(-3, -4),
                                    () -> output.prompt(1, 5),
                                    () -> output.prompt(1, -1))) {
                        refusals.add(assertThrows(RuntimeException.class, call).getMessage());
                    }
                    output.prompt(3, 1);
                    output.text("y", 1);
                });
        final String answer =
                post(
                                CHAT,
                                "{\"messages\":[{\"role\":\"user\",\"content\":\"a\"}],\"stream\":"
                                        + stream
                                        + ",\"stream_options\":{\"include_usage\":true}}")
                        .body();
        assertEquals(
                List.of(
                        "tokens=-1 must not be negative",
                        "part",
                        "tokens=-2 must not be negative",
                        "delta",
                        "tokens=-3 must not be negative",
                        "cachedTokens=5 must be in 0..1",
                        "cachedTokens=-1 must be in 0..1"),
                refusals);
        assertTrue(answer.contains("\"completion_tokens\":1,"), answer);
        assertFalse(answer.contains("\"x\""), answer);
        assertFalse(answer.contains("null\""), answer);
    }

    @Test
    void aThousandRequestsOfFiftyClientsGetTheirOwnAnswers() throws Exception {
        start((request, output) -> output.text("t" + request.promptTokens()[0], 1));
        final List<CompletableFuture<HttpResponse<String>>> answers = new ArrayList<>();
        for (int i = 0; i < 1000; i++) {
            answers.add(
                    HTTP.sendAsync(
                            request(COMPLETIONS)
                                    .POST(
                                            HttpRequest.BodyPublishers.ofString(
                                                    "{\"prompt\":[" + i + "]}"))
                                    .build(),
                            HttpResponse.BodyHandlers.ofString()));
            if (i >= 50) {
                answers.get(i - 50).get();
            }
        }
        for (int i = 0; i < 1000; i++) {
            final String body = answers.get(i).get().body();
            assertTrue(body.contains("\"t" + i + "\""), body);
        }
        Eventually.holds("nothing runs", () -> host.running() == 0);
    }
}
