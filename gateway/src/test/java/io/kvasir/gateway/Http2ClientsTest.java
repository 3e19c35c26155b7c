package io.kvasir.gateway;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.kvasir.gateway.config.GatewayConfig;
import io.kvasir.gateway.config.GatewaySettings;
import io.kvasir.gateway.server.DisconnectWatcher;
import io.kvasir.gateway.testing.FakeEngine;
import io.kvasir.gateway.testing.FrameClient;
import io.kvasir.gateway.testing.Gateways;
import io.kvasir.gateway.testing.MetricsPage;
import io.kvasir.gateway.testing.RawClient;
import io.kvasir.gateway.testing.RawFrames;
import io.kvasir.prompt.chat.SimModel;
import io.kvasir.router.settings.RouterSettings;
import io.kvasir.testsupport.Eventually;

import org.eclipse.jetty.http.HttpHeader;
import org.eclipse.jetty.http.MetaData;
import org.eclipse.jetty.http2.ErrorCode;
import org.eclipse.jetty.http2.frames.FrameType;
import org.eclipse.jetty.http2.server.HTTP2CServerConnectionFactory;
import org.eclipse.jetty.io.Content;
import org.eclipse.jetty.server.Handler;
import org.eclipse.jetty.server.Request;
import org.eclipse.jetty.server.Response;
import org.eclipse.jetty.server.Server;
import org.eclipse.jetty.server.ServerConnector;
import org.eclipse.jetty.util.Callback;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Assumptions;
import org.junit.jupiter.api.Order;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.MethodSource;
import org.junit.jupiter.params.provider.ValueSource;

import java.io.ByteArrayOutputStream;
import java.io.DataInputStream;
import java.io.EOFException;
import java.io.IOException;
import java.io.OutputStream;
import java.net.InetAddress;
import java.net.Socket;
import java.net.SocketException;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;

/** Clients that speak HTTP/2 from the first byte on. */
@Order(0) // takes longest: begins before all others
class Http2ClientsTest {
    private static final String PATH = "/v1/completions";
    private static final String ANSWER = "{\"choices\":[],\"usage\":{\"prompt_tokens\":1}}";
    private static final String WHOLE = "{\"prompt\":[1]}";
    private static final String STREAM = "{\"prompt\":[1],\"stream\":true}";

    private final CountDownLatch goOn = new CountDownLatch(1);
    private final FakeEngine engine = new FakeEngine(this::answer);
    private GatewayServer gateway;

    /** Begins a stream at once and ends it when the test says so. */
    private void answer(FakeEngine.Call call) throws IOException, InterruptedException {
        if (!call.text().contains("stream")) {
            call.json(200, ANSWER);
            return;
        }
        call.beginEvents();
        call.chunk(FakeEngine.event("{\"index\":0,\"text\":\"first\"}"));
        while (!goOn.await(20, TimeUnit.MILLISECONDS)) {
            if (call.clientGone.getCount() == 0) {
                return;
            }
        }
        call.chunk(FakeEngine.event("{\"index\":0,\"text\":\"last\"}"));
        call.chunk("data: [DONE]\n\n");
        call.endChunks();
    }

    private FrameClient start() throws Exception {
        return start(config());
    }

    private GatewayConfig.Builder config() {
        return Gateways.config(engine.worker("w"));
    }

    private FrameClient start(GatewayConfig.Builder config) throws Exception {
        gateway = GatewayServer.start(config.build());
        return new FrameClient(gateway.port());
    }

    @AfterEach
    void stop() {
        if (gateway != null) {
            gateway.close();
        }
        engine.close();
    }

    private void assertNothingIsLeft() throws InterruptedException {
        Eventually.holds("the engine is released", () -> engine.inFlight.get() == 0);
        Eventually.holds("no booking is left", () -> gateway.router().activeLeases() == 0);
        for (String gauge :
                List.of(
                        "kvasir_requests_in_flight",
                        "kvasir_requests_preparing",
                        "kvasir_body_bytes_in_flight")) {
            Eventually.holds(gauge + " is 0", () -> MetricsPage.of(gateway).sum(gauge) == 0);
        }
    }

    @Test
    void answersAreThoseOfHttp11() throws Exception {
        try (FrameClient client = start()) {
            final FrameClient.Exchange whole = client.post(PATH, WHOLE);
            assertEquals(ANSWER, whole.whole());
            assertEquals(200, whole.status());
            assertNotNull(whole.head(0).getHttpFields().get("x-kvasir-worker"));
            final FrameClient.Exchange stream = client.post(PATH, STREAM);
            stream.await("first");
            goOn.countDown();
            assertTrue(stream.whole().endsWith("data: [DONE]\n\n"));
            final MetaData.Response head = stream.head(0);
            assertTrue(head.getHttpFields().get("content-type").startsWith("text/event-stream"));
            for (String name : new String[] {"connection", "transfer-encoding", "keep-alive"}) {
                assertNull(head.getHttpFields().get(name));
            }
            assertEquals(
                    "a=1; b=2", cookiesOf(client.post(PATH, WHOLE, "cookie: a=1", "cookie: b=2")));
        }
        assertNothingIsLeft();
    }

    /** RFC 9113 8.2.3: one field again where it leaves HTTP/2. */
    private String cookiesOf(FrameClient.Exchange exchange) throws InterruptedException {
        exchange.whole();
        return engine.calls.getLast().headers.get("cookie");
    }

    @Test
    void errorsAreThoseOfHttp11() throws Exception {
        try (FrameClient client = start()) {
            final FrameClient.Exchange wrong = client.post(PATH, "{");
            assertTrue(wrong.whole().contains("\"kvasir\""));
            assertEquals(400, wrong.status());
            assertEquals(404, client.get("GET", "/nothing").status());
            assertEquals(405, client.get("GET", PATH).status());
            assertEquals(200, client.get("GET", "/live").status());
            final FrameClient.Exchange head = client.get("HEAD", "/v1/models");
            assertEquals("", head.whole());
            assertEquals(200, head.status());
            assertTrue(head.head(0).getHttpFields().getLongField("content-length") > 0);
        }
    }

    @Test
    void aHundredStreamsOfOneConnectionGetTheirOwnAnswers() throws Exception {
        engine.script =
                call -> {
                    call.beginEvents();
                    call.chunk("data: " + call.text() + "\n\n");
                    goOn.await();
                    call.chunk("data: [DONE]\n\n");
                    call.endChunks();
                };
        try (FrameClient client = start()) {
            final List<FrameClient.Exchange> streams = new ArrayList<>();
            for (int i = 0; i < 100; i++) {
                streams.add(
                        client.post(
                                PATH, "{\"prompt\":[1],\"stream\":true,\"user\":\"u" + i + "\"}"));
            }
            for (FrameClient.Exchange stream : streams) {
                stream.await("data: ");
            }
            assertEquals(100, gateway.router().activeLeases());
            goOn.countDown();
            for (int i = 0; i < 100; i++) {
                final String text = streams.get(i).whole();
                assertTrue(text.contains("\"u" + i + "\"") && text.contains("[DONE]"), text);
            }
        }
        assertNothingIsLeft();
    }

    @ParameterizedTest
    @ValueSource(strings = {STREAM, WHOLE})
    void aResetBeforeTheFirstByteReleasesTheEngine(String body) throws Exception {
        engine.script = call -> call.awaitClientGone(60);
        try (FrameClient client = start()) {
            final FrameClient.Exchange left = client.post(PATH, body);
            Eventually.holds("it runs", () -> engine.inFlight.get() == 1);
            left.reset();
            assertNothingIsLeft();
            Eventually.holds(
                    "it is counted",
                    () ->
                            MetricsPage.of(gateway)
                                            .sum(
                                                    "kvasir_client_disconnects_total",
                                                    "route",
                                                    "completions")
                                    == 1);
            engine.script = this::answer;
            assertEquals(ANSWER, client.post(PATH, WHOLE).whole(), "the connection serves on");
        }
    }

    @Test
    void aResetInTheMiddleOfAStreamEndsThatOneAlone() throws Exception {
        try (FrameClient client = start()) {
            final FrameClient.Exchange leaves = client.post(PATH, STREAM);
            final FrameClient.Exchange stays = client.post(PATH, STREAM);
            leaves.await("first");
            stays.await("first");
            leaves.reset();
            Eventually.holds("one engine is released", () -> engine.inFlight.get() == 1);
            Eventually.holds("one booking is left", () -> gateway.router().activeLeases() == 1);
            goOn.countDown();
            assertTrue(stays.whole().endsWith("[DONE]\n\n"));
        }
        assertNothingIsLeft();
    }

    @Test
    void aConnectionThatIsCutReleasesTheEnginesOfAllItsStreams() throws Exception {
        engine.script =
                call -> {
                    if (call.text().contains("stream")) {
                        call.beginEvents();
                        call.chunk(FakeEngine.event("{\"index\":0,\"text\":\"first\"}"));
                    }
                    call.awaitClientGone(60);
                };
        try (FrameClient client = start()) {
            for (int i = 0; i < 20; i++) {
                client.post(PATH, i % 2 == 0 ? STREAM : WHOLE);
            }
            Eventually.holds("all run", () -> engine.inFlight.get() == 20);
            client.cut();
            assertNothingIsLeft();
        }
    }

    @Test
    void aClientThatSaysGoAwayAndClosesItsConnectionLeaves() throws Exception {
        engine.script = call -> call.awaitClientGone(60);
        try (FrameClient client = start()) {
            client.post(PATH, WHOLE);
            client.post(PATH, STREAM);
            Eventually.holds("both run", () -> engine.inFlight.get() == 2);
        } // which says so first
        assertTrue(engine.calls.get(0).awaitClientGone(30), "a worker goes on");
        assertTrue(engine.calls.get(1).awaitClientGone(30), "a worker goes on");
        assertNothingIsLeft();
    }

    @Test
    void streamsUnderWayEndWholeAfterAGoAwayOfTheClient() throws Exception {
        try (FrameClient client = start()) {
            final FrameClient.Exchange stream = client.post(PATH, STREAM);
            stream.await("first");
            client.goAway();
            goOn.countDown();
            assertTrue(stream.whole().endsWith("[DONE]\n\n"));
        }
        assertNothingIsLeft();
    }

    @Test
    void aSilentAnswerComesAfterAGoAwayOfEitherSideWhateverTheIdleLimitIs() throws Exception {
        engine.script =
                call -> {
                    if (!goOn.await(1_100, TimeUnit.MILLISECONDS)) { // not as the limit expires
                        call.json(200, ANSWER);
                    }
                };
        gateway =
                GatewayServer.start(
                        config().set(GatewaySettings.CLIENT_IDLE_TIMEOUT, Duration.ofMillis(200))
                                .set(GatewaySettings.LAME_DUCK, Duration.ZERO)
                                .set(GatewaySettings.DRAIN_TIMEOUT, Duration.ofSeconds(60))
                                .build());
        try (Asked leaving = asked()) {
            leaving.client.goAway();
            assertEquals(ANSWER, leaving.exchange.whole());
        }
        try (Asked drained = asked()) {
            gateway.drain();
            assertEquals(ANSWER, drained.exchange.whole());
        }
    }

    /** A client with a request that its engine has. */
    private record Asked(FrameClient client, FrameClient.Exchange exchange)
            implements AutoCloseable {
        @Override
        public void close() {
            client.close();
        }
    }

    /** Asks on a connection of its own: again where that was idle for too long before. */
    private Asked asked() throws Exception {
        final int before = engine.calls.size();
        final long startNs = System.nanoTime();
        while (System.nanoTime() - startNs < TimeUnit.MINUTES.toNanos(1)) {
            final FrameClient client = new FrameClient(gateway.port());
            try {
                final FrameClient.Exchange exchange = client.post(PATH, WHOLE);
                Eventually.holds(
                        "it is asked, or refused",
                        () -> engine.calls.size() > before || exchange.isRefused());
                if (engine.calls.size() > before) {
                    return new Asked(client, exchange);
                }
            } catch (ExecutionException e) {
                assertTrue(client.awaitClosed(), "not closed: " + e);
            }
            client.close();
        }
        throw new AssertionError("connections are closed before they are used");
    }

    /** The write had just begun when the limit expired, and the client lost its answer. */
    @Test
    void answersThatBeginAsTheIdleLimitExpiresComeWhole() throws Exception {
        final int idleMs = 1_000;
        final AtomicLong number = new AtomicLong();
        engine.script =
                call -> {
                    final long aroundMs = number.getAndIncrement() % 10 - 4;
                    if (!goOn.await(2 * idleMs + aroundMs, TimeUnit.MILLISECONDS)) {
                        call.json(200, ANSWER);
                    }
                };
        try (FrameClient client =
                start(
                        config().set(
                                        GatewaySettings.CLIENT_IDLE_TIMEOUT,
                                        Duration.ofMillis(idleMs)))) {
            final List<FrameClient.Exchange> streams = new ArrayList<>();
            for (int i = 0; i < 100; i++) {
                streams.add(client.post(PATH, WHOLE));
            }
            for (FrameClient.Exchange stream : streams) {
                assertEquals(ANSWER, stream.whole());
            }
        }
        assertNothingIsLeft();
    }

    @Test
    void aClientThatTakesNoBytesIsGivenUpWithItsConnection() throws Exception {
        final AtomicLong written = new AtomicLong();
        engine.script = call -> writeForEver(call, written);
        gateway =
                GatewayServer.start(
                        config().set(GatewaySettings.CLIENT_IDLE_TIMEOUT, Duration.ofSeconds(2))
                                .build());
        try (Socket client = new Socket(InetAddress.getLoopbackAddress(), gateway.port())) {
            client.getOutputStream().write(RawFrames.preface());
            client.getOutputStream().write(RawFrames.openWindow(Integer.MAX_VALUE - 65_535));
            for (int stream = 1; stream < 20; stream += 2) {
                client.getOutputStream().write(RawFrames.post(stream, PATH, STREAM));
            }
            Eventually.holds("all run", () -> engine.calls.size() == 10);
            assertNothingIsLeft();
            assertTrue(written.get() < 64 << 20, "written: " + written);
            client.setSoTimeout(60_000);
            try {
                client.getInputStream().skip(Long.MAX_VALUE);
            } catch (SocketException e) {
                assertTrue(e.getMessage().contains("reset"), e.getMessage());
            }
        }
    }

    private static void writeForEver(FakeEngine.Call call, AtomicLong written) throws IOException {
        call.beginEvents();
        final String event = "data: " + "x".repeat(65_536) + "\n\n";
        while (call.clientGone.getCount() > 0) {
            call.chunk(event);
            written.addAndGet(event.length());
        }
    }

    /** What a hostile client may send; each connection must end. */
    static List<byte[]> nonsense() {
        return List.of(
                RawFrames.frame(9, 4, 1, new byte[10]), // CONTINUATION of nothing
                RawFrames.frame(1, 0, 1, new byte[] {(byte) 0x83}), // a head that never ends
                RawFrames.frame(1, 5, 1, new byte[] {(byte) 0xff, 1, 2, 3}), // no such index
                RawFrames.frame(0, 1, 1, new byte[10]), // DATA before a head
                RawFrames.frame(8, 0, 0, new byte[4]), // WINDOW_UPDATE by nothing
                RawFrames.frame(4, 0, 0, new byte[5]), // SETTINGS that are cut
                RawFrames.frame(3, 0, 7, new byte[4]), // RST_STREAM of no stream
                RawFrames.frame(5, 4, 1, new byte[20]), // PUSH_PROMISE of a client
                RawFrames.post(2, PATH, WHOLE), // an even stream
                "GET / HTTP/1.1\r\n\r\n".repeat(9).getBytes(StandardCharsets.US_ASCII));
    }

    @ParameterizedTest
    @MethodSource("nonsense")
    void aConnectionWithNonsenseEndsAlone(byte[] nonsense) throws Exception {
        gateway =
                GatewayServer.start(
                        config().set(GatewaySettings.CLIENT_IDLE_TIMEOUT, Duration.ofSeconds(1))
                                .build());
        try (Socket client = new Socket(InetAddress.getLoopbackAddress(), gateway.port())) {
            client.setSoTimeout(60_000);
            client.getOutputStream().write(RawFrames.preface());
            client.getOutputStream().write(nonsense);
            try {
                client.getInputStream().readAllBytes();
            } catch (SocketException e) {
                assertTrue(e.getMessage().contains("reset"), e.getMessage());
            }
        }
        try (Asked other = asked()) {
            assertEquals(200, other.exchange.status());
        }
        assertEquals(1, engine.calls.size());
    }

    @Test
    void aResetWhileTheBodyIsReadLeavesNothing() throws Exception {
        try (FrameClient client =
                start(
                        config().set(RouterSettings.MAX_ACTIVE_REQUESTS, 1)
                                .set(GatewaySettings.MAX_BODY_BYTES_IN_FLIGHT, 200_000L))) {
            for (int i = 0; i < 20; i++) {
                final FrameClient.Exchange begun = client.begin("POST", PATH, false);
                begun.send("{\"prompt\":[" + "1,".repeat(40_000), false);
                begun.reset();
            }
            Eventually.holds(
                    "there is room",
                    () -> {
                        try {
                            final FrameClient.Exchange next = client.post(PATH, WHOLE);
                            next.whole();
                            return next.status() == 200;
                        } catch (Exception e) {
                            throw new IllegalStateException(e);
                        }
                    });
        }
        assertEquals(1, engine.calls.size());
        assertNothingIsLeft();
    }

    @Test
    void aResetWhileThePromptWaitsOrIsReadEndsThatWork() throws Exception {
        final String endless =
                "{\"model\":\"m\",\"messages\":[{\"role\":\"user\",\"content\":\"x\"}],"
                        + "\"chat_template\":\""
                        + "{% for a in range(99999) %}".repeat(4)
                        + "{% endfor %}".repeat(4)
                        + "\"}";
        try (FrameClient client =
                start(
                        config().set(GatewaySettings.TOKENIZER, Path.of(SimModel.KEYWORD))
                                .set(GatewaySettings.PROMPT_THREADS, 1)
                                .set(GatewaySettings.PROMPT_QUEUE, 1)
                                .set(GatewaySettings.TRUST_REQUEST_CHAT_TEMPLATE, true)
                                .set(GatewaySettings.TEMPLATE_MAX_STEPS, Long.MAX_VALUE))) {
            final List<FrameClient.Exchange> begun = new ArrayList<>();
            for (int i = 0; i < 3; i++) {
                begun.add(client.post("/v1/chat/completions", endless));
            }
            Eventually.holds(
                    "one is read, one waits, one is refused",
                    () -> begun.stream().anyMatch(FrameClient.Exchange::hasEnded));
            assertEquals(429, status(client));
            begun.forEach(FrameClient.Exchange::reset);
            Eventually.holds("there is room again", () -> status(client) == 200);
        }
        assertNothingIsLeft();
    }

    private static int status(FrameClient client) {
        try {
            return client.post(PATH, WHOLE).status();
        } catch (Exception e) {
            throw new IllegalStateException(e);
        }
    }

    @Test
    void aWindowThatStaysShutHoldsTheEngineBackAndIsCutAtTheIdleLimit() throws Exception {
        final AtomicLong written = new AtomicLong();
        engine.script =
                call -> {
                    if (!call.text().contains("stream")) {
                        call.json(200, ANSWER);
                        return;
                    }
                    writeForEver(call, written);
                };
        gateway =
                GatewayServer.start(
                        config().set(GatewaySettings.CLIENT_IDLE_TIMEOUT, Duration.ofSeconds(2))
                                .build());
        try (FrameClient client = new FrameClient(gateway.port(), 65_536)) {
            final FrameClient.Exchange unread = client.postUnread(PATH, STREAM);
            unread.status();
            assertEquals(ANSWER, client.post(PATH, WHOLE).whole(), "others are not held back");
            unread.failure();
            assertNothingIsLeft();
            // sockets of both sides hold some MB; an engine that is not held back writes GB
            assertTrue(written.get() < 64 << 20, "written: " + written);
            assertEquals(ANSWER, client.post(PATH, WHOLE).whole(), "the connection serves on");
        }
    }

    @Test
    void aStreamBeyondTheLimitIsRefusedAndTheOthersGoOn() throws Exception {
        try (FrameClient client = start(config().set(GatewaySettings.HTTP2_MAX_STREAMS, 2))) {
            client.ignoreStreamLimit();
            final FrameClient.Exchange one = client.post(PATH, STREAM);
            final FrameClient.Exchange two = client.post(PATH, STREAM);
            one.await("first");
            two.await("first");
            final FrameClient.Exchange refused = client.begin("GET", "/v1/models", true);
            assertEquals("refused_stream_error", refused.failure());
            goOn.countDown();
            assertTrue(one.whole().endsWith("[DONE]\n\n"));
            assertTrue(two.whole().endsWith("[DONE]\n\n"));
            Eventually.holds( // the server may read of the next before it has closed these
                    "there is room for the next", () -> models(client).equals("200"));
        }
    }

    /** Status of the list of models, or why there is none. */
    private static String models(FrameClient client) {
        try {
            final FrameClient.Exchange next = client.get("GET", "/v1/models");
            Eventually.holds("an answer", () -> next.hasEnded() || next.hasFailed());
            return next.hasFailed() ? next.failure() : Integer.toString(next.status());
        } catch (Exception e) {
            throw new IllegalStateException(e);
        }
    }

    /**
     * All of a flood is sent at once: what a client sends after the go-away would have the system
     * reset the connection, and the go-away might be lost with it.
     */
    @Test
    void aFloodOfResetsEndsTheConnectionAndNoOther() throws Exception {
        try (FrameClient other =
                start(config().set(GatewaySettings.HTTP2_MAX_CONTROL_FRAMES, 20))) {
            final FrameClient.Exchange stream = other.post(PATH, STREAM);
            stream.await("first");
            try (Socket flood = new Socket(InetAddress.getLoopbackAddress(), gateway.port())) {
                flood.setSoTimeout(60_000);
                flood.getOutputStream().write(flood());
                assertEquals(ErrorCode.ENHANCE_YOUR_CALM_ERROR.code, goAway(flood));
            }
            assertEquals(200, status(other));
            goOn.countDown();
            assertTrue(stream.whole().endsWith("[DONE]\n\n"));
        }
        assertNothingIsLeft();
    }

    /** A client's first bytes, and many requests that it does not want any more. */
    private static byte[] flood() {
        final ByteArrayOutputStream flood = new ByteArrayOutputStream();
        flood.writeBytes(RawFrames.preface());
        for (int i = 0; i < 60; i++) {
            flood.writeBytes(RawFrames.post(2 * i + 1, PATH, WHOLE));
            flood.writeBytes(RawFrames.reset(2 * i + 1));
        }
        return flood.toByteArray();
    }

    /**
     * Two times as many resets as are sent would be more than the limit. All bodies together are
     * more than the connection's window, those of a round fit into what is surely open of it. A
     * stream may fail here just as its client resets it; then the two resets cross.
     */
    @Test
    void streamsThatAreCancelledAreNotResetBackAndLeaveTheOthersAlone() throws Exception {
        final String body = WHOLE + " ".repeat(6_800);
        final int each = 70;
        gateway = GatewayServer.start(config().build());
        try (Socket client = new Socket(InetAddress.getLoopbackAddress(), gateway.port())) {
            client.setSoTimeout(60_000);
            final OutputStream out = client.getOutputStream();
            final DataInputStream in = new DataInputStream(client.getInputStream());
            out.write(RawFrames.preface());
            out.write(RawFrames.post(1, PATH, STREAM));
            Eventually.holds("the stream is under way", () -> engine.inFlight.get() == 1);
            int id = 1;
            int resets = 0;
            for (int round = 1; round <= 3; round++) {
                for (int i = 0; i < each; i++) {
                    id += 2;
                    out.write(RawFrames.post(id, PATH, body));
                    out.write(RawFrames.reset(id));
                }
                id += 2;
                out.write(RawFrames.post(id, PATH, WHOLE));
                resets += resetsBeforeTheEndOf(id, in);
                final int ended = (each + 1) * round;
                Eventually.holds(
                        "all are over but the first",
                        () -> MetricsPage.of(gateway).sum("kvasir_requests_total") == ended);
            }
            goOn.countDown();
            resets += resetsBeforeTheEndOf(1, in);
            assertTrue(resets < each / 10, resets + " resets");
        }
        assertNothingIsLeft();
    }

    /** Reads to the end of a stream; the client is not sent away meanwhile. */
    private static int resetsBeforeTheEndOf(int stream, DataInputStream in) throws IOException {
        int resets = 0;
        RawFrames.Frame frame;
        do {
            frame = RawFrames.read(in);
            resets += frame.type() == FrameType.RST_STREAM ? 1 : 0;
            assertNotEquals(FrameType.GO_AWAY, frame.type(), frame.toString());
        } while (frame.type() != FrameType.DATA || frame.stream() != stream || !frame.isLast());
        return resets;
    }

    /** Reads to the end of the connection; returns the error of the go-away that came before. */
    private static int goAway(Socket from) throws IOException {
        final DataInputStream in = new DataInputStream(from.getInputStream());
        int error = -1;
        try {
            while (true) {
                final RawFrames.Frame frame = RawFrames.read(in);
                if (frame.type() == FrameType.GO_AWAY) {
                    error = ByteBuffer.wrap(frame.payload()).getInt(4);
                }
            }
        } catch (EOFException e) {
            return error;
        } catch (SocketException e) {
            assertTrue(e.getMessage().contains("reset"), e.getMessage());
            return error;
        }
    }

    /** Of heads that the limit just allows, and of longer ones, in one field or in many. */
    @ParameterizedTest
    @CsvSource({
        "1900, 1, 200",
        "2100, 1, 431",
        "60000, 1, 431",
        "90, 20, 200",
        "110, 20, 431",
        "600, 100, 431"
    })
    void aHeadThatIsTooLongIsRefusedAndTheOthersGoOn(int bytes, int fields, int status)
            throws Exception {
        final String[] headers = new String[fields];
        Arrays.setAll(headers, i -> "x" + i + ": " + "v".repeat(bytes));
        try (FrameClient client = start(config().set(GatewaySettings.MAX_HEAD_BYTES, 2048))) {
            client.ignoreHeadLimit();
            final FrameClient.Exchange stream = client.post(PATH, STREAM);
            stream.await("first");
            for (int i = 0; i < 3; i++) {
                final FrameClient.Exchange next = client.post(PATH, WHOLE, headers);
                final String answer = next.whole();
                assertEquals(status, next.status(), answer);
                assertTrue(status == 200 || answer.contains("max-head-bytes"), answer);
            }
            goOn.countDown();
            assertTrue(stream.whole().endsWith("[DONE]\n\n"));
        }
        assertEquals(status == 200 ? 4 : 1, engine.calls.size());
        assertNothingIsLeft();
    }

    @Test
    void aBodyThatIsTooLongIsRefusedBeforeItIsSent() throws Exception {
        try (FrameClient client = start(config().set(GatewaySettings.MAX_BODY_BYTES, 1000))) {
            for (String expect : new String[] {"x-nothing: 1", "expect: 100-continue"}) {
                final FrameClient.Exchange announced =
                        client.begin("POST", PATH, false, "content-length: 100000000", expect);
                assertTrue(announced.whole().contains("max-body-bytes"));
                assertEquals(413, announced.status());
            }
            final FrameClient.Exchange grows = client.begin("POST", PATH, false);
            for (int i = 0; i < 100; i++) {
                grows.send("x".repeat(100), false);
            }
            assertTrue(grows.whole().contains("max-body-bytes"));
            assertEquals(413, grows.status());
            assertEquals(ANSWER, client.post(PATH, WHOLE).whole(), "the connection serves on");
        }
    }

    @Test
    void aClientThatExpectsAWordBeforeItsBodyGetsIt() throws Exception {
        try (FrameClient client = start()) {
            final FrameClient.Exchange asks =
                    client.begin("POST", PATH, false, "expect: 100-continue");
            assertEquals(100, asks.status());
            asks.send(WHOLE, true);
            assertEquals(ANSWER, asks.whole());
            assertEquals(200, asks.head(1).getStatus());
        }
    }

    @Test
    void requestsBeyondTheLimitOfAllAreRefusedOneByOne() throws Exception {
        try (FrameClient client = start(config().set(RouterSettings.MAX_ACTIVE_REQUESTS, 1))) {
            final FrameClient.Exchange stream = client.post(PATH, STREAM);
            stream.await("first");
            for (int i = 0; i < 10; i++) {
                final FrameClient.Exchange refused = client.post(PATH, WHOLE);
                assertTrue(refused.whole().contains("max-active-requests"));
                assertEquals(429, refused.status());
                assertEquals("1", refused.head(0).getHttpFields().get(HttpHeader.RETRY_AFTER));
            }
            goOn.countDown();
            assertTrue(stream.whole().endsWith("[DONE]\n\n"));
            Eventually.holds("there is room", () -> status(client) == 200);
        }
    }

    @Test
    void anAnswerThatBreaksOffResetsItsStreamAlone() throws Exception {
        final CountDownLatch begun = new CountDownLatch(1);
        engine.script =
                call -> {
                    if (call.text().contains("stream")) {
                        answer(call);
                        return;
                    }
                    call.raw("HTTP/1.1 200 OK\r\nContent-Length: 10000000\r\n\r\n");
                    call.raw("x".repeat(6_000_000));
                    assertTrue(begun.await(1, TimeUnit.MINUTES));
                    call.cut();
                };
        try (FrameClient client = start()) {
            final FrameClient.Exchange stream = client.post(PATH, STREAM);
            stream.await("first");
            final FrameClient.Exchange breaks = client.post(PATH, WHOLE);
            assertEquals(200, breaks.status());
            begun.countDown();
            assertEquals("cancel_stream_error", breaks.failure());
            goOn.countDown();
            assertTrue(stream.whole().endsWith("[DONE]\n\n"));
        }
        assertNothingIsLeft();
    }

    @Test
    void drainingSaysGoAwayFirstAndServesWhatComesUntilTheEnd() throws Exception {
        try (FrameClient client =
                start(
                        config().set(GatewaySettings.LAME_DUCK, Duration.ofMinutes(5))
                                .set(GatewaySettings.DRAIN_TIMEOUT, Duration.ofSeconds(60)))) {
            final FrameClient.Exchange stream = client.post(PATH, STREAM);
            stream.await("first");
            final Thread lameDuck =
                    Thread.ofVirtual()
                            .start(() -> assertThrows(InterruptedException.class, gateway::drain));
            Eventually.holds("the client is sent away", () -> !client.goAways().isEmpty());
            assertEquals(ErrorCode.NO_ERROR.code, client.goAways().getFirst().getError());
            try (FrameClient late = new FrameClient(gateway.port())) {
                final FrameClient.Exchange answer = late.post(PATH, WHOLE);
                assertEquals(ANSWER, answer.whole());
                assertNull(answer.head(0).getHttpFields().get(HttpHeader.CONNECTION));
                Eventually.holds("and so is a late one", () -> !late.goAways().isEmpty());
            }
            lameDuck.interrupt();
            lameDuck.join();
            final CompletableFuture<Void> closed = CompletableFuture.runAsync(gateway::close);
            goOn.countDown();
            assertTrue(stream.whole().endsWith("[DONE]\n\n"));
            assertTrue(client.awaitClosed());
            closed.get();
        }
    }

    @Test
    void aStreamThatIsCutEndsWithAnEventThatSaysSo() throws Exception {
        try (FrameClient client =
                start(
                        config().set(GatewaySettings.LAME_DUCK, Duration.ZERO)
                                .set(GatewaySettings.DRAIN_TIMEOUT, Duration.ofMillis(50)))) {
            final FrameClient.Exchange stream = client.post(PATH, STREAM);
            stream.await("first");
            final CompletableFuture<Void> drained = draining();
            assertTrue(stream.whole().contains("\"kind\":\"draining\""));
            drained.get();
        }
        Eventually.holds("the engine is released", () -> engine.inFlight.get() == 0);
    }

    @Test
    void aRequestWhoseBodyIsStillArrivingIsAnsweredWhenItIsCut() throws Exception {
        try (FrameClient client =
                start(
                        config().set(GatewaySettings.LAME_DUCK, Duration.ZERO)
                                .set(GatewaySettings.DRAIN_TIMEOUT, Duration.ofMillis(50)))) {
            final FrameClient.Exchange half = client.begin("POST", PATH, false).send("{", false);
            Eventually.holds(
                    "its body is awaited",
                    () -> MetricsPage.of(gateway).sum("kvasir_requests_preparing") == 1);
            final CompletableFuture<Void> drained = draining();
            assertEquals(503, half.status());
            assertTrue(half.await("}}}").contains("\"kind\":\"draining\""));
            drained.get();
        }
    }

    private CompletableFuture<Void> draining() {
        return CompletableFuture.runAsync(
                () -> {
                    try {
                        gateway.drain();
                    } catch (InterruptedException e) {
                        throw new IllegalStateException(e);
                    }
                });
    }

    /** A proxy that passes Upgrade on would pass requests on after it that it has never seen. */
    @Test
    void anUpgradeIsNotOffered() throws Exception {
        gateway = GatewayServer.start(config().build());
        try (RawClient client = new RawClient(gateway.port())) {
            final String answer =
                    client.send(
                                    "GET /v1/models HTTP/1.1\r\nHost: x\r\nConnection: Upgrade,"
                                            + " HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings:"
                                            + " AAMAAABkAAQAoAAAAAIAAAAA\r\n\r\n")
                            .readUntil("\"object\":\"list\"");
            assertTrue(answer.startsWith("HTTP/1.1 200"), answer);
        }
        try (HttpClient client =
                HttpClient.newBuilder().version(HttpClient.Version.HTTP_2).build()) {
            final HttpRequest.Builder request = HttpRequest.newBuilder(Gateways.uri(gateway, PATH));
            for (HttpRequest.BodyPublisher body :
                    List.of(
                            HttpRequest.BodyPublishers.ofString(WHOLE),
                            HttpRequest.BodyPublishers.fromPublisher(
                                    HttpRequest.BodyPublishers.ofString(WHOLE)))) {
                final HttpResponse<String> answer =
                        client.send(
                                request.POST(body).timeout(Duration.ofMinutes(1)).build(),
                                HttpResponse.BodyHandlers.ofString());
                assertEquals(ANSWER, answer.body());
                assertEquals(HttpClient.Version.HTTP_1_1, answer.version());
            }
        }
    }

    @ParameterizedTest
    @ValueSource(
            strings = {
                "Upgrade: h2c",
                "Upgrade: h2c|Connection: upgrade",
                "Upgrade: h2c|Connection: keep-alive, Upgrade",
                "Upgrade: h2c|HTTP2-Settings: AAMAAABkAAQAoAAAAAIAAAAA",
                "Upgrade: h2c|HTTP2-Settings: %|Connection: Upgrade, HTTP2-Settings",
                "upgrade: websocket",
                "upgrade: websocket|Connection: Upgrade",
                "Upgrade: websocket, h2c",
                "Upgrade: websocket, h2c|Connection: Upgrade",
                "Upgrade: h2c|Upgrade: websocket",
                "Upgrade: h2c|Upgrade: h2c|Connection: keep-alive|Connection: upgrade",
                "Upgrade: TLS/1.0, HTTP/1.1|Connection: Upgrade",
                "Upgrade:",
                "Connection: Upgrade"
            })
    void anUpgradeIsIgnoredAndTheConnectionServesOn(String headers) throws Exception {
        for (boolean http2 : new boolean[] {true, false}) {
            gateway = GatewayServer.start(config().set(GatewaySettings.HTTP2, http2).build());
            try (RawClient client = new RawClient(gateway.port())) {
                final String head = "Host: x\r\n" + headers.replace("|", "\r\n") + "\r\n";
                for (String request :
                        List.of(
                                "GET /v1/models HTTP/1.1\r\n" + head + "\r\n",
                                "POST %s HTTP/1.1\r\n%sContent-Length: %d\r\n\r\n%s"
                                        .formatted(PATH, head, WHOLE.length(), WHOLE))) {
                    client.send(request).readUntil("HTTP/1.1 "); // after the former answer
                    assertEquals("200 ", client.readUntil(" "), request);
                    client.readUntil(request.startsWith("GET") ? "\"object\":\"list\"" : ANSWER);
                }
            }
            gateway.close();
        }
    }

    @Test
    void curlSpeaksIt() throws Exception {
        gateway = GatewayServer.start(config().build());
        final Process curl;
        try {
            curl =
                    new ProcessBuilder(
                                    "curl",
                                    "-sS",
                                    "--http2-prior-knowledge",
                                    "-m",
                                    "60",
                                    "-w",
                                    "\n%{http_version} %{http_code}",
                                    "-d",
                                    WHOLE,
                                    Gateways.uri(gateway, PATH).toString())
                            .redirectErrorStream(true)
                            .start();
        } catch (IOException e) {
            Assumptions.abort("no curl: " + e.getMessage());
            return;
        }
        assertEquals(
                ANSWER + "\n2 200",
                new String(curl.getInputStream().readAllBytes(), StandardCharsets.UTF_8));
    }

    /** There is no listener yet when the client leaves: nothing else would say it afterwards. */
    @Test
    void aClientThatHasLeftBeforeItIsWatchedIsNoticed() throws Exception {
        final CountDownLatch read = new CountDownLatch(1);
        final CountDownLatch left = new CountDownLatch(1);
        final CountDownLatch noticed = new CountDownLatch(1);
        final Server server = new Server();
        final ServerConnector connector =
                new ServerConnector(server, new HTTP2CServerConnectionFactory());
        server.addConnector(connector);
        server.setHandler(
                new Handler.Abstract() {
                    @Override
                    public boolean handle(Request request, Response response, Callback callback)
                            throws Exception {
                        Content.Source.asByteBuffer(request);
                        read.countDown();
                        assertTrue(left.await(1, TimeUnit.MINUTES));
                        Eventually.holds(
                                "it has failed", () -> Content.Chunk.isFailure(request.read()));
                        new DisconnectWatcher(
                                        request,
                                        () -> {},
                                        cause -> {
                                            noticed.countDown();
                                            callback.failed(cause);
                                        })
                                .arm();
                        return true;
                    }
                });
        server.start();
        try (FrameClient client = new FrameClient(connector.getLocalPort())) {
            final FrameClient.Exchange leaves = client.post("/", WHOLE);
            assertTrue(read.await(1, TimeUnit.MINUTES));
            leaves.reset();
            left.countDown();
            assertTrue(noticed.await(1, TimeUnit.MINUTES));
        } finally {
            server.stop();
        }
    }

    @Test
    void itCanBeSwitchedOff() throws Exception {
        gateway = GatewayServer.start(config().set(GatewaySettings.HTTP2, false).build());
        try (RawClient client = new RawClient(gateway.port())) {
            assertTrue(
                    client.send("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")
                            .readUntil("\r\n")
                            .startsWith("HTTP/1.1 426"));
        }
    }
}
