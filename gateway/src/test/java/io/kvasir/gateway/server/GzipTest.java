package io.kvasir.gateway.server;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.kvasir.gateway.GatewayServer;
import io.kvasir.gateway.config.GatewaySettings;
import io.kvasir.gateway.testing.FakeEngine;
import io.kvasir.gateway.testing.Gateways;

import org.eclipse.jetty.http.HttpFields;
import org.eclipse.jetty.http.HttpHeader;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.Arrays;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.zip.DeflaterOutputStream;
import java.util.zip.GZIPInputStream;
import java.util.zip.GZIPOutputStream;

/** Compressed requests and answers. */
class GzipTest {
    private static final String BODY = "{\"prompt\":[1],\"user\":\"ä\"}";
    private static final String SHORT = "{\"choices\":[],\"usage\":{\"prompt_tokens\":1}}";
    private static final String LONG =
            "{\"choices\":[],\"text\":\"" + "ab".repeat(5_000) + "\",\"usage\":{}}";

    private final FakeEngine engine = new FakeEngine(call -> call.json(200, SHORT));
    private GatewayServer gateway;

    private void start(int maxBody, boolean streams) {
        gateway =
                GatewayServer.start(
                        Gateways.config(engine.worker("w"))
                                .set(GatewaySettings.MAX_BODY_BYTES, maxBody)
                                .set(GatewaySettings.MAX_BODY_BYTES_IN_FLIGHT, 8L << 20)
                                .set(GatewaySettings.GZIP_STREAMS, streams)
                                .build());
    }

    @AfterEach
    void stop() {
        gateway.close();
        engine.close();
    }

    private static byte[] gzip(byte[] plain) throws IOException {
        final ByteArrayOutputStream coded = new ByteArrayOutputStream();
        try (OutputStream out = new GZIPOutputStream(coded)) {
            out.write(plain);
        }
        return coded.toByteArray();
    }

    private static byte[] deflate(byte[] plain) throws IOException {
        final ByteArrayOutputStream coded = new ByteArrayOutputStream();
        try (OutputStream out = new DeflaterOutputStream(coded)) {
            out.write(plain);
        }
        return coded.toByteArray();
    }

    private static byte[] bytes(String text) {
        return text.getBytes(StandardCharsets.UTF_8);
    }

    private HttpResponse<byte[]> post(HttpRequest.BodyPublisher body, String... headers)
            throws Exception {
        return Gateways.HTTP.send(
                HttpRequest.newBuilder(Gateways.uri(gateway, "/v1/completions"))
                        .timeout(Duration.ofMinutes(1))
                        .headers(headers)
                        .POST(body)
                        .build(),
                HttpResponse.BodyHandlers.ofByteArray());
    }

    private HttpResponse<byte[]> send(byte[] body, String coding) throws Exception {
        return post(HttpRequest.BodyPublishers.ofByteArray(body), "Content-Encoding", coding);
    }

    @Test
    void aRequestIsInflatedForTheWorker() throws Exception {
        start(1 << 20, false);
        assertEquals(200, send(gzip(bytes(BODY)), "gzip").statusCode());
        assertEquals(200, send(gzip(bytes(BODY)), "X-GZIP").statusCode());
        assertEquals(200, send(deflate(bytes(BODY)), "deflate").statusCode());
        assertEquals(200, send(bytes(BODY), "identity").statusCode());
        final byte[] coded = gzip(bytes(BODY));
        final HttpRequest.BodyPublisher chunked =
                HttpRequest.BodyPublishers.ofInputStream(() -> new ByteArrayInputStream(coded));
        assertEquals(200, post(chunked, "Content-Encoding", "gzip").statusCode());
        assertEquals(5, engine.calls.size());
        for (FakeEngine.Call call : engine.calls) {
            assertArrayEquals(bytes(BODY), call.body);
            assertFalse(call.headers.containsKey("content-encoding"), call.headers.toString());
        }
    }

    @ParameterizedTest
    @ValueSource(
            strings = {
                "br",
                "zstd",
                "gzip, gzip",
                "compress",
                "nonsense",
                "gzip =x",
                "x;q =1",
                "=gzip"
            })
    void anotherCodingIsRefusedAndTheKnownOnesAreNamed(String coding) throws Exception {
        start(1 << 20, false);
        final HttpResponse<byte[]> answer = send(bytes(BODY), coding);
        assertEquals(415, answer.statusCode());
        assertEquals("gzip, deflate", answer.headers().firstValue("accept-encoding").orElseThrow());
        assertTrue(engine.calls.isEmpty());
    }

    @ParameterizedTest
    @ValueSource(strings = {"gzip", "deflate"})
    void aBodyThatIsNotWhatItSaysIsRefused(String coding) throws Exception {
        start(1 << 20, false);
        final byte[] good = coding.equals("gzip") ? gzip(bytes(BODY)) : deflate(bytes(BODY));
        assertEquals(400, send(bytes(BODY), coding).statusCode());
        assertEquals(400, send(new byte[0], coding).statusCode());
        assertEquals(
                400, send(java.util.Arrays.copyOf(good, good.length - 9), coding).statusCode());
        assertTrue(engine.calls.isEmpty());
    }

    @Test
    void aBombIsCutAtTheLimitAndItsMemoryGivenBack() throws Exception {
        start(1 << 20, false);
        final byte[] bomb = gzip(new byte[64 << 20]);
        assertTrue(bomb.length < 1 << 17, "a thousandth");
        for (int i = 0; i < 20; i++) {
            assertEquals(413, send(bomb, "gzip").statusCode());
        }
        final byte[] spaces = bytes(" ".repeat(1 << 19) + BODY);
        assertEquals(200, send(gzip(spaces), "gzip").statusCode());
    }

    @Test
    void aBodyThatInflatesToNothingIsLimitedByWhatArrives() throws Exception {
        start(1 << 16, false);
        final byte[] nothing = gzip(new byte[0]);
        final ByteArrayOutputStream members = new ByteArrayOutputStream();
        while (members.size() < 1 << 18) {
            members.writeBytes(nothing);
        }
        final HttpRequest.BodyPublisher chunked =
                HttpRequest.BodyPublishers.ofInputStream(
                        () -> new ByteArrayInputStream(members.toByteArray()));
        assertEquals(413, post(chunked, "Content-Encoding", "gzip").statusCode());
    }

    private HttpResponse<byte[]> ask(String accepted) throws Exception {
        return post(HttpRequest.BodyPublishers.ofString(BODY), "Accept-Encoding", accepted);
    }

    private static String coding(HttpResponse<?> answer) {
        return answer.headers().firstValue("content-encoding").orElse("none");
    }

    @Test
    void aLongAnswerIsCompressedForClientsThatAcceptIt() throws Exception {
        start(1 << 20, false);
        engine.script = call -> call.json(200, LONG);
        final HttpResponse<byte[]> coded = ask("br, gzip");
        assertEquals("gzip", coding(coded));
        assertEquals("Accept-Encoding", coded.headers().firstValue("vary").orElseThrow());
        assertTrue(coded.body().length < LONG.length() / 10, coded.body().length + " bytes");
        try (InputStream plain = new GZIPInputStream(new ByteArrayInputStream(coded.body()))) {
            assertArrayEquals(bytes(LONG), plain.readAllBytes());
        }
        for (String accepted : new String[] {"identity", "br", "gzip;q=0", "*;q=0"}) {
            final HttpResponse<byte[]> plain = ask(accepted);
            assertEquals("none", coding(plain), accepted);
            assertArrayEquals(bytes(LONG), plain.body());
        }
        engine.script = call -> call.json(200, SHORT);
        assertEquals("none", coding(ask("gzip")));
    }

    @ParameterizedTest
    @ValueSource(strings = {"gzip;q =1", "gzip =x", "br;q =0.5, gzip", "gzip;q=x", ";", "\"gzip"})
    void aListThatCannotBeReadLeavesTheAnswerAsItIs(String accepted) throws Exception {
        start(1 << 20, true);
        engine.script = call -> call.json(200, LONG);
        final HttpResponse<byte[]> answer = ask(accepted);
        assertEquals(200, answer.statusCode());
        if (!coding(answer).equals("gzip")) { // which is named
            assertArrayEquals(bytes(LONG), answer.body());
        }
        final String page = Gateways.admin(gateway, "/metrics").body();
        assertFalse(page.contains("status=\"499\""), page);
    }

    @Test
    void aRequestWhoseCodedBodyEndsEarlyIsRefusedWithThatReason() throws Exception {
        start(1 << 20, false);
        for (int length : new int[] {0, 4, 20}) { // within its head, and behind it
            final HttpResponse<byte[]> answer =
                    send(Arrays.copyOf(gzip(bytes(BODY)), length), "gzip");
            final String text = new String(answer.body(), StandardCharsets.UTF_8);
            assertEquals(400, answer.statusCode(), text);
            assertTrue(text.contains("the body ends before its Content-Encoding does"), text);
        }
        assertTrue(engine.calls.isEmpty());
    }

    @Test
    void anAnswerThatTheEngineHasEncodedIsLeftAlone() throws Exception {
        start(1 << 20, true);
        for (String type : new String[] {"application/json", "text/event-stream"}) {
            engine.script =
                    call ->
                            call.raw(
                                    "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Type: "
                                            + type
                                            + "\r\nContent-Encoding: gzip\r\nContent-Length: "
                                            + LONG.length()
                                            + "\r\n\r\n"
                                            + LONG);
            final HttpResponse<byte[]> answer = ask("gzip");
            assertEquals(200, answer.statusCode(), type);
            assertEquals("gzip", coding(answer));
            assertArrayEquals(bytes(LONG), answer.body());
        }
    }

    @Test
    void aStreamIsCompressedEventByEventWhereThatIsSet() throws Exception {
        final CountDownLatch read = new CountDownLatch(1);
        engine.script =
                call -> {
                    call.beginEvents();
                    call.chunk(FakeEngine.event("{\"index\":0,\"text\":\"first\"}"));
                    assertTrue(read.await(1, TimeUnit.MINUTES));
                    call.chunk(FakeEngine.event("{\"index\":0,\"text\":\"last\"}"));
                    call.chunk("data: [DONE]\n\n");
                    call.endChunks();
                };
        start(1 << 20, true);
        final HttpResponse<InputStream> answer =
                Gateways.HTTP.send(
                        HttpRequest.newBuilder(Gateways.uri(gateway, "/v1/completions"))
                                .timeout(Duration.ofMinutes(1))
                                .header("Accept-Encoding", "gzip")
                                .POST(
                                        HttpRequest.BodyPublishers.ofString(
                                                "{\"prompt\":[1],\"stream\":true}"))
                                .build(),
                        HttpResponse.BodyHandlers.ofInputStream());
        assertEquals("gzip", coding(answer));
        try (InputStream plain = new GZIPInputStream(answer.body())) {
            final String first =
                    new String(
                            plain.readNBytes(
                                    FakeEngine.event("{\"index\":0,\"text\":\"first\"}").length()),
                            StandardCharsets.UTF_8);
            assertTrue(first.contains("first"), first);
            read.countDown();
            final String rest = new String(plain.readAllBytes(), StandardCharsets.UTF_8);
            assertTrue(rest.contains("last") && rest.endsWith("data: [DONE]\n\n"), rest);
        }
    }

    @ParameterizedTest
    @CsvSource({
        "gzip, true",
        "'br;q=1, GZIP;q=0.1', true",
        "x-gzip, true",
        "*, true",
        "'*, gzip;q=0', false",
        "gzip;q=0, false",
        "'', false",
        "br, false"
    })
    void whatIsAcceptedIsReadAsTheProtocolSays(String given, boolean accepted) {
        start(1 << 20, false);
        assertEquals(
                accepted,
                ResponseCoding.accepts(HttpFields.build().put(HttpHeader.ACCEPT_ENCODING, given)));
    }
}
