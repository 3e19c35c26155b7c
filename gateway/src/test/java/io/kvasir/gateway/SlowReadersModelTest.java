package io.kvasir.gateway;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import static java.nio.charset.StandardCharsets.ISO_8859_1;

import io.kvasir.gateway.config.GatewaySettings;
import io.kvasir.gateway.testing.FakeEngine;
import io.kvasir.gateway.testing.Gateways;
import io.kvasir.gateway.testing.MetricsPage;
import io.kvasir.testsupport.Eventually;
import io.kvasir.testsupport.Seeds;
import io.kvasir.testsupport.Trials;

import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;

import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.InputStream;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.Socket;
import java.time.Duration;
import java.util.List;
import java.util.Queue;
import java.util.Random;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.TimeUnit;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/**
 * Clients that read their streams slowly, stop or leave at any byte, with usage that they asked for
 * or that the gateway alone did: what each got is the beginning of its stream, all of it where the
 * end came, and its worker is let go.
 */
class SlowReadersModelTest {
    private static final int CLIENTS = Trials.of(16, 60);
    private static final int AT_ONCE = 8;
    private static final int MOST_LONG = 12 << 20; // more than the buffers of two connections
    private static final Pattern PLAN = Pattern.compile("\"user\":\"(\\d+)x(\\d+)\"");
    private static final String USAGE = "\"stream_options\":{\"include_usage\":true}";

    private static final int STOPS = 4;

    private final Queue<Socket> stopped = new ConcurrentLinkedQueue<>();
    private final long seed = Seeds.next("SlowReadersModelTest");
    private final Queue<String> violations = new ConcurrentLinkedQueue<>();
    private final FakeEngine engine = new FakeEngine(SlowReadersModelTest::answer);

    private static void answer(FakeEngine.Call call) throws IOException {
        final Matcher plan = PLAN.matcher(call.text());
        assertTrue(plan.find(), call.text());
        final int events = Integer.parseInt(plan.group(1));
        final int length = Integer.parseInt(plan.group(2));
        call.beginEvents();
        for (int i = 0; i < events; i++) {
            call.chunk(event(i, length));
        }
        if (call.text().contains("\"include_usage\":true")) {
            call.chunk(FakeEngine.usageEvent(1, events, 0));
        }
        call.chunk("data: [DONE]\n\n");
        call.endChunks();
    }

    private static String event(int number, int length) {
        return FakeEngine.event("{\"index\":0,\"text\":\"" + number + "t".repeat(length) + "\"}");
    }

    @Tag("integration") // waits until silent clients are given up
    @Test
    void whatAClientGotIsTheBeginningOfItsStream() throws Exception {
        try (engine;
                GatewayServer gateway =
                        Gateways.started(
                                Gateways.config(engine.worker("w"))
                                        .set(
                                                GatewaySettings.CLIENT_IDLE_TIMEOUT,
                                                Duration.ofSeconds(1)))) {
            try (ExecutorService clients = Executors.newFixedThreadPool(AT_ONCE)) {
                for (int i = 0; i < CLIENTS; i++) {
                    final int number = i;
                    clients.execute(() -> visit(gateway.port(), number));
                }
                clients.shutdown();
                assertTrue(clients.awaitTermination(5, TimeUnit.MINUTES), "clients hang");
            }
            assertEquals(List.of(), List.copyOf(violations), "seed " + seed);
            Eventually.holds("no booking is left", () -> gateway.router().activeLeases() == 0);
            Eventually.holds("the engine rests", () -> engine.inFlight.get() == 0);
            for (String gauge :
                    List.of(
                            "kvasir_requests_in_flight",
                            "kvasir_streams_in_flight",
                            "kvasir_answer_bytes_in_flight")) {
                Eventually.holds(
                        gauge + " is 0, seed " + seed,
                        () -> MetricsPage.of(gateway).sum(gauge) == 0);
            }
            for (Socket socket : stopped) {
                socket.close();
            }
        }
    }

    private void visit(int port, int number) {
        final Random random = new Random(seed + 31L * number);
        random.nextInt();
        final int length = random.nextInt(random.nextInt(3) == 0 ? 20_000 : 200);
        final int events = random.nextInt(4) == 0 ? MOST_LONG / (length + 100) : random.nextInt(60);
        final boolean asks = random.nextBoolean();
        final String body =
                "{\"model\":\"m\",\"prompt\":[1],\"stream\":true,\"user\":\""
                        + (events + "x" + length)
                        + (asks ? "\"," + USAGE + "}" : "\"}");
        final ByteArrayOutputStream got = new ByteArrayOutputStream();
        final int way = random.nextInt(6);
        final Socket socket = new Socket();
        try {
            if (random.nextBoolean()) {
                socket.setReceiveBufferSize(4_096);
            }
            socket.connect(new InetSocketAddress(InetAddress.getLoopbackAddress(), port));
            socket.setSoTimeout(60_000);
            final String head =
                    "POST /v1/completions HTTP/1.1\r\nHost: g\r\nConnection: close\r\n"
                            + "Content-Length: ";
            socket.getOutputStream()
                    .write((head + body.length() + "\r\n\r\n" + body).getBytes(ISO_8859_1));
            read(socket, way, random, got);
            if (way != STOPS) {
                socket.close();
            }
        } catch (IOException e) {
            // the gateway has had enough of it
        }
        final String wrong = wrong(got.toString(ISO_8859_1), truth(events, length, asks));
        if (wrong != null) {
            violations.add(events + "x" + length + " " + asks + ", way " + way + ": " + wrong);
        }
    }

    private static String truth(int events, int length, boolean asks) {
        final StringBuilder truth = new StringBuilder();
        for (int i = 0; i < events; i++) {
            truth.append(event(i, length));
        }
        return truth.append(asks ? FakeEngine.usageEvent(1, events, 0) : "")
                .append("data: [DONE]\n\n")
                .toString();
    }

    private void read(Socket socket, int way, Random random, ByteArrayOutputStream got)
            throws IOException {
        final int most = way < 2 ? Integer.MAX_VALUE : random.nextInt(1 << random.nextInt(8, 23));
        final byte[] buffer = new byte[way == 0 ? 65_536 : 1 + random.nextInt(20_000)];
        final InputStream in = socket.getInputStream();
        while (got.size() < most) {
            final int count = in.read(buffer, 0, Math.min(buffer.length, most - got.size()));
            if (count < 0) {
                return;
            }
            got.write(buffer, 0, count);
        }
        switch (way) {
            case 2 -> socket.setSoLinger(true, 0);
            case 3 -> socket.shutdownOutput();
            case STOPS -> stopped.add(socket); // until the gateway has given it up
            default -> {}
        }
    }

    /** What is wrong with the bytes of an answer; null for nothing. */
    private static String wrong(String bytes, String truth) {
        int at = bytes.indexOf("\r\n\r\n") + 4;
        if (at < 4) {
            return null; // it has left before
        }
        if (bytes.startsWith("HTTP/1.1 408 ")) {
            return null; // its request came too slowly
        }
        if (!bytes.startsWith("HTTP/1.1 200 ")) {
            return bytes.substring(0, Math.min(bytes.length(), 500));
        }
        final StringBuilder text = new StringBuilder();
        boolean ended = false;
        while (!ended) {
            final int line = bytes.indexOf("\r\n", at);
            if (line < 0) {
                break;
            }
            final int length = Integer.parseInt(bytes, at, line, 16);
            ended = length == 0;
            text.append(bytes, line + 2, Math.min(bytes.length(), line + 2 + length));
            at = line + 4 + length;
            if (at > bytes.length()) {
                break;
            }
        }
        final String got = text.toString().replace(":\n\n", "");
        if (ended ? truth.equals(got) : truth.startsWith(got)) {
            return null;
        }
        int same = 0;
        while (same < Math.min(got.length(), truth.length())
                && got.charAt(same) == truth.charAt(same)) {
            same++;
        }
        return (ended ? "all, " : "part, ")
                + got.length()
                + " of "
                + truth.length()
                + ", from "
                + same
                + ": "
                + got.substring(same, Math.min(got.length(), same + 300));
    }
}
