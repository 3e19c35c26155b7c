package io.kvasir.gateway.openai;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import static java.nio.charset.StandardCharsets.UTF_8;

import io.kvasir.gateway.testing.FakeEngine;
import io.kvasir.protocol.sse.SseEvents;
import io.kvasir.testsupport.Seeds;

import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.InputStream;
import java.nio.ByteBuffer;
import java.util.Arrays;
import java.util.Random;

class SseStreamTest {
    private static final String ROLE =
            FakeEngine.event("{\"index\":0,\"delta\":{\"role\":\"assistant\",\"content\":\"\"}}");
    private static final String TOKEN =
            FakeEngine.event("{\"index\":0,\"delta\":{\"content\":\"ä🙂\"}}");
    private static final String USAGE = FakeEngine.usageEvent(40, 2, 32);
    private static final String DONE = "data: [DONE]\n\n";

    @Test
    void bytesPassUnchangedHoweverTheyAreCut() {
        final String stream =
                ": hello\n\n"
                        + ROLE
                        + TOKEN
                        + "event: x\r\ndata: {}\r\n\r\n"
                        + TOKEN
                        + USAGE
                        + DONE;
        final byte[] bytes = stream.getBytes(UTF_8);
        for (int cut = 0; cut <= bytes.length; cut++) {
            final SseStream events =
                    new SseStream(
                            InferenceRequest.Form.COMPLETION, false, () -> UsageReader.UNKNOWN);
            final ByteArrayOutputStream out = new ByteArrayOutputStream();
            take(out, pass(events, ByteBuffer.wrap(bytes, 0, cut)));
            take(out, pass(events, ByteBuffer.wrap(bytes, cut, bytes.length - cut)));
            take(out, events.takeAll());
            assertEquals(stream, out.toString(UTF_8));
            assertTrue(events.sawDone());
            assertTrue(events.sawFirstToken());
            assertEquals(32, events.usage().cachedTokens());
            assertEquals(40, events.usage().promptTokens());
            assertEquals(2, events.outputTokens());
        }
    }

    @ParameterizedTest
    @CsvSource({
        "vllm-0.32.0-messages, MESSAGES, 63",
        "vllm-0.32.0-responses, RESPONSES, 64",
        "sglang-0.5.23-generate, GENERATE, 64"
    })
    void streamsOfOtherApisAreReadHoweverTheyAreCut(
            String recording, InferenceRequest.Form form, int promptTokens) throws IOException {
        final byte[] bytes = recorded(recording);
        for (int cut = 0; cut <= bytes.length; cut++) {
            final SseStream events = new SseStream(form, true, () -> 7);
            final ByteArrayOutputStream out = new ByteArrayOutputStream();
            take(out, pass(events, ByteBuffer.wrap(bytes.clone(), 0, cut)));
            assertEquals(cut == bytes.length, events.sawDone());
            take(out, pass(events, ByteBuffer.wrap(bytes.clone(), cut, bytes.length - cut)));
            take(out, events.takeAll());
            assertArrayEquals(bytes, out.toByteArray());
            assertTrue(events.sawDone());
            assertTrue(events.sawFirstToken());
            assertFalse(events.sawError());
            assertEquals(0, events.usage().cachedTokens());
            assertEquals(promptTokens, events.usage().promptTokens());
            assertEquals(6, events.outputTokens());
        }
    }

    @Test
    void tokensOfAStreamOfTokensAreReadHoweverItIsCut() throws IOException {
        final byte[] bytes = recorded("vllm-0.32.0-inference-generate");
        for (int cut = 0; cut <= bytes.length; cut++) {
            final SseStream events =
                    new SseStream(InferenceRequest.Form.TOKENS, false, () -> UsageReader.UNKNOWN);
            final ByteArrayOutputStream out = new ByteArrayOutputStream();
            take(out, pass(events, ByteBuffer.wrap(bytes.clone(), 0, cut)));
            assertEquals(
                    new String(bytes, 0, cut, UTF_8).contains("}\n\n"), events.sawFirstToken());
            take(out, pass(events, ByteBuffer.wrap(bytes.clone(), cut, bytes.length - cut)));
            take(out, events.takeAll());
            assertArrayEquals(bytes, out.toByteArray());
            assertTrue(events.sawDone());
            assertEquals(5, events.outputEvents());
            assertEquals(6, events.outputTokens());
            assertEquals(64, events.usage().promptTokens());
        }
    }

    private static byte[] recorded(String name) throws IOException {
        try (InputStream recorded =
                SseStreamTest.class.getResourceAsStream("/streams/" + name + ".sse")) {
            return recorded.readAllBytes();
        }
    }

    @Test
    void whatIsNotTakenIsKeptForTheNextTime() {
        final String stream = ROLE + TOKEN + TOKEN + USAGE + TOKEN + DONE;
        final byte[] bytes = stream.getBytes(UTF_8);
        final Random random = new Random(Seeds.next("SseStreamTest.kept"));
        for (int round = 0; round < 300; round++) {
            final SseStream events =
                    new SseStream(
                            InferenceRequest.Form.COMPLETION, true, () -> UsageReader.UNKNOWN);
            final ByteArrayOutputStream out = new ByteArrayOutputStream();
            for (int from = 0; from < bytes.length; ) {
                final int to = Math.min(bytes.length, from + 1 + random.nextInt(200));
                events.accept(ByteBuffer.wrap(bytes, from, to - from));
                if (random.nextInt(3) == 0) {
                    final int ready = events.readyBytes();
                    final int before = out.size();
                    take(out, events.takeReady());
                    assertEquals(ready, out.size() - before);
                    assertEquals(0, events.readyBytes());
                }
                from = to;
            }
            take(out, events.takeAll());
            assertEquals(ROLE + TOKEN + TOKEN + TOKEN + DONE, out.toString(UTF_8));
        }
    }

    @Test
    void onlyTheUsageThatNobodyAskedForIsLeftOut() {
        final Random random = new Random(Seeds.next("SseStreamTest"));
        for (int round = 0; round < 300; round++) {
            final SseStream events =
                    new SseStream(
                            InferenceRequest.Form.COMPLETION, true, () -> UsageReader.UNKNOWN);
            final ByteArrayOutputStream out = new ByteArrayOutputStream();
            final byte[] bytes = (ROLE + TOKEN + TOKEN + USAGE + DONE).getBytes(UTF_8);
            for (int from = 0; from < bytes.length; ) {
                final int to = Math.min(bytes.length, from + 1 + random.nextInt(200));
                take(out, pass(events, ByteBuffer.wrap(bytes, from, to - from)));
                from = to;
            }
            assertEquals(ROLE + TOKEN + TOKEN + DONE, out.toString(UTF_8));
            assertEquals(32, events.usage().cachedTokens());
        }
    }

    /** What vLLM 0.32 sends where usage is asked for, and where it is not. */
    @Test
    void theFingerprintOfTheUsageThatIsLeftOutIsWhereItIsWithoutIt() {
        final String end =
                "data: {\"id\":\"c\",\"choices\":[{\"index\":0,\"delta\":{\"content\":\"b\"},"
                        + "\"finish_reason\":\"length\"}]}\n\n";
        final String member = "\"system_fingerprint\":\"vllm-0.32.0-ad5cd803\"";
        final String usage =
                "data: {\"id\":\"c\",\"choices\":[],\"usage\":{\"prompt_tokens\":1},"
                        + member
                        + "}\n\n";
        final String named = end.replace("{\"id\"", "{" + member + ",\"id\"");
        assertCut(ROLE + TOKEN + end + usage + DONE, ROLE + TOKEN + named + DONE);
        assertCut(end + end + usage + DONE, end + named + DONE); // two choices
        assertCut(end + ": wait\n\n" + usage + DONE, end + ": wait\n\n" + DONE);
        assertCut(named + usage + DONE, named + DONE);
        assertCut(TOKEN + usage + DONE, TOKEN + DONE);
        assertCut(end + USAGE + DONE, end + DONE);
        assertCut(end + DONE, end + DONE);
        assertCut(end, end);
    }

    private static void assertCut(String stream, String expected) {
        final byte[] bytes = stream.getBytes(UTF_8);
        for (int cut = 0; cut <= bytes.length; cut++) {
            final SseStream events =
                    new SseStream(
                            InferenceRequest.Form.COMPLETION, true, () -> UsageReader.UNKNOWN);
            final ByteArrayOutputStream out = new ByteArrayOutputStream();
            take(out, pass(events, ByteBuffer.wrap(bytes, 0, cut)));
            take(out, pass(events, ByteBuffer.wrap(bytes, cut, bytes.length - cut)));
            events.ended();
            take(out, events.takeReady());
            assertEquals(expected, out.toString(UTF_8));
        }
    }

    @Test
    void usageThatComesWithAChoiceStays() {
        final String both =
                "data:"
                    + " {\"choices\":[{\"index\":0,\"text\":\"x\"}],\"usage\":{\"prompt_tokens\":1}}\n\n";
        final SseStream events =
                new SseStream(InferenceRequest.Form.COMPLETION, true, () -> UsageReader.UNKNOWN);
        assertEquals(both, text(pass(events, bytes(both))));
        assertEquals(1, events.usage().promptTokens());
    }

    @Test
    void theOpeningRoleIsNoTokenAndAnEmptyTextIs() {
        final SseStream chat =
                new SseStream(InferenceRequest.Form.COMPLETION, false, () -> UsageReader.UNKNOWN);
        chat.accept(bytes(ROLE));
        assertFalse(chat.sawFirstToken());
        chat.accept(bytes(FakeEngine.event("{\"index\":0,\"delta\":{\"content\":\"\"}}")));
        assertTrue(chat.sawFirstToken());

        final SseStream completion =
                new SseStream(InferenceRequest.Form.COMPLETION, false, () -> UsageReader.UNKNOWN);
        completion.accept(bytes(FakeEngine.event("{\"index\":0,\"text\":\"\"}")));
        assertTrue(completion.sawFirstToken());

        final SseStream tools =
                new SseStream(InferenceRequest.Form.COMPLETION, false, () -> UsageReader.UNKNOWN);
        tools.accept(
                bytes(
                        FakeEngine.event(
                                "{\"index\":0,\"delta\":{\"role\":\"assistant\",\"tool_calls\":[{}]}}")));
        assertTrue(tools.sawFirstToken());
    }

    @Test
    void anEventWithoutEndIsHeldBack() {
        final SseStream events =
                new SseStream(InferenceRequest.Form.COMPLETION, false, () -> UsageReader.UNKNOWN);
        assertEquals(TOKEN, text(pass(events, bytes(TOKEN + "data: {\"half"))));
        assertEquals("data: {\"half", text(events.takeAll()));
    }

    @Test
    void anEventBeyondTheLimitPassesInPieces() {
        final SseStream events =
                new SseStream(InferenceRequest.Form.COMPLETION, true, () -> UsageReader.UNKNOWN);
        final byte[] piece = new byte[200_000];
        Arrays.fill(piece, (byte) 'x');
        final ByteArrayOutputStream out = new ByteArrayOutputStream();
        take(out, pass(events, bytes("data: {\"usage\":{")));
        for (int i = 0; i < 8; i++) {
            take(out, pass(events, ByteBuffer.wrap(piece)));
        }
        assertTrue(out.size() > SseEvents.MAX_EVENT_BYTES);
        take(out, pass(events, bytes("\n")));
        take(out, pass(events, bytes("\n" + TOKEN + USAGE + DONE)));
        assertTrue(out.toString(UTF_8).endsWith("x\n\n" + TOKEN + DONE));
        assertTrue(events.sawFirstToken());
    }

    @Test
    void usageStatesTheCachedTokensThatAreGivenHoweverTheStreamIsCut() {
        final String usage =
                "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":64,"
                        + "\"prompt_tokens_details\":{\"cached_tokens\":64}}}\r\n\r\n";
        final String stream = usage + DONE;
        for (int cut = 0; cut < stream.length(); cut++) {
            final SseStream events =
                    new SseStream(InferenceRequest.Form.COMPLETION, false, () -> 8);
            final ByteArrayOutputStream out = new ByteArrayOutputStream();
            take(out, pass(events, bytes(stream.substring(0, cut))));
            take(out, pass(events, bytes(stream.substring(cut))));
            assertEquals(stream.replace(":64}}}", ":8 }}}"), out.toString(UTF_8));
            assertEquals(64, events.usage().cachedTokens(), "as the engine says");
        }
    }

    @Test
    void anErrorEventOfTheEngineIsSeen() {
        final SseStream events =
                new SseStream(InferenceRequest.Form.COMPLETION, true, () -> UsageReader.UNKNOWN);
        final String error = "data: {\"error\":{\"message\":\"no\"}}\n\n";
        assertEquals(error, text(pass(events, bytes(error))));
        assertTrue(events.sawError());
        assertEquals(500, events.errorStatus());
    }

    private static ByteBuffer pass(SseStream events, ByteBuffer chunk) {
        events.accept(chunk);
        return events.takeReady();
    }

    private static ByteBuffer bytes(String text) {
        return ByteBuffer.wrap(text.getBytes(UTF_8));
    }

    private static String text(ByteBuffer bytes) {
        return UTF_8.decode(bytes).toString();
    }

    private static void take(ByteArrayOutputStream out, ByteBuffer bytes) {
        final byte[] taken = new byte[bytes.remaining()];
        bytes.get(taken);
        out.writeBytes(taken);
    }
}
