package io.kvasir.gateway;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import static java.nio.charset.StandardCharsets.ISO_8859_1;

import io.kvasir.gateway.config.GatewayConfig;
import io.kvasir.gateway.config.GatewaySettings;
import io.kvasir.gateway.testing.FakeEngine;
import io.kvasir.gateway.testing.Gateways;
import io.kvasir.gateway.testing.MetricsPage;
import io.kvasir.gateway.testing.RawFrames;
import io.kvasir.testsupport.Eventually;
import io.kvasir.testsupport.Seeds;
import io.kvasir.testsupport.Trials;

import org.eclipse.jetty.http2.frames.FrameType;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;

import java.io.BufferedInputStream;
import java.io.ByteArrayOutputStream;
import java.io.DataInputStream;
import java.io.EOFException;
import java.io.IOException;
import java.io.OutputStream;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.Socket;
import java.net.SocketException;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Queue;
import java.util.Random;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.TimeUnit;
import java.util.function.Supplier;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/**
 * Connections of HTTP/2, frame by frame: requests in every form that is allowed, beside streams
 * that are wrong and frames that no connection may have. Requests are answered with what is theirs,
 * no worker sees one that is malformed, a connection ends where it must and not where it must not,
 * and nothing is left afterwards.
 */
class Http2FramesModelTest {
    private static final int CONNECTIONS = Trials.of(20, 200);
    private static final int AT_ONCE = 8;
    private static final int MOST_STEPS = 14;
    private static final int MOST_FRAMES = 100; // a second, of those that bring nothing
    private static final int TIMEOUT_MS = 60_000;
    private static final int REFUSED_STREAM = 7;
    private static final int PADDED = 8;
    private static final int PRIORITY = 32;
    private static final int END_STREAM = 1;
    private static final int END_HEADERS = 4;
    private static final Pattern PROMPT = Pattern.compile("\"prompt\":\\[(\\d+)\\]");
    private static final String MALFORMED = "malformed";

    /** Of a request that is malformed: what its head has too much. */
    private static final List<String[]> WRONG_FIELDS =
            List.of(
                    new String[] {"X-Capital", "1"},
                    new String[] {"connection", "close"},
                    new String[] {"transfer-encoding", "chunked"},
                    new String[] {"te", "gzip"},
                    new String[] {":status", "200"},
                    new String[] {":unknown", "1"},
                    new String[] {":path", "/v1/models"},
                    new String[] {"content-length", "7"},
                    new String[] {"content-length", "70000"},
                    new String[] {"content-length", "-1"},
                    new String[] {"content-length", "x"},
                    new String[] {"x\0y", "1"},
                    new String[] {"x y", "1"},
                    new String[] {"x", "a\r\nb: c"},
                    new String[] {"x", "a\0b"});

    private final Queue<String> violations = new ConcurrentLinkedQueue<>();
    private final long seed = Seeds.next("Http2FramesModelTest");
    private final FakeEngine engine = new FakeEngine(this::answer);

    private void answer(FakeEngine.Call call) throws IOException, InterruptedException {
        final Matcher prompt = PROMPT.matcher(call.text());
        if (!prompt.find() || call.text().contains(MALFORMED)) {
            violations.add("a worker got " + call.text());
            return;
        }
        final int number = Integer.parseInt(prompt.group(1));
        Thread.sleep(number % 4);
        if (call.text().contains("stream")) {
            call.beginEvents();
            final String text = text(number);
            final int half = text.indexOf('\n') + 2;
            call.chunk(text.substring(0, half));
            Thread.sleep(number % 3);
            call.chunk(text.substring(half));
            call.endChunks();
        } else {
            call.json(200, text(number));
        }
    }

    private static String body(int number) {
        return "{\"model\":\"m\",\"prompt\":["
                + number
                + (number % 2 == 0 ? "],\"stream\":true}" : "]}");
    }

    /** The answer to the request of this number. */
    private static String text(int number) {
        final String choice = "{\"index\":0,\"text\":\"" + ("re-" + number).repeat(1 + number % 40);
        return number % 2 == 0
                ? FakeEngine.event(choice + "\"}").repeat(1 + number % 5) + "data: [DONE]\n\n"
                : "{\"choices\":[" + choice + "\"}]}";
    }

    @Tag("trials")
    @Test
    void honestStreamsAreAnsweredAndConnectionsEndWhereTheyMust() throws Exception {
        final GatewayConfig.Builder config =
                Gateways.config(engine.worker("w"))
                        .set(GatewaySettings.BREAKER_FAULTS, 1_000)
                        .set(GatewaySettings.HTTP2_MAX_STREAMS, 8)
                        .set(GatewaySettings.HTTP2_MAX_CONTROL_FRAMES, MOST_FRAMES);
        try (engine;
                GatewayServer gateway = Gateways.started(config)) {
            try (ExecutorService clients = Executors.newFixedThreadPool(AT_ONCE)) {
                for (int i = 0; i < CONNECTIONS; i++) {
                    final int number = i;
                    clients.execute(() -> connect(gateway.port(), number));
                }
                clients.shutdown();
                assertTrue(clients.awaitTermination(9, TimeUnit.MINUTES), "clients hang");
            }
            assertEquals(List.of(), List.copyOf(violations), "seed " + seed);
            Eventually.holds("no booking is left", () -> gateway.router().activeLeases() == 0);
            Eventually.holds("the engine rests", () -> engine.inFlight.get() == 0);
            for (String gauge :
                    List.of(
                            "kvasir_requests_in_flight",
                            "kvasir_streams_in_flight",
                            "kvasir_requests_preparing",
                            "kvasir_requests_unread",
                            "kvasir_body_bytes_in_flight",
                            "kvasir_answer_bytes_in_flight",
                            "kvasir_open_connections")) {
                Eventually.holds(
                        gauge + " is 0, seed " + seed,
                        () -> MetricsPage.of(gateway).sum(gauge) == 0);
            }
        }
    }

    private void connect(int port, int number) {
        final Random random = new Random(seed + 31L * number);
        random.nextInt();
        final List<String> steps = new ArrayList<>();
        try (Socket socket = new Socket()) {
            socket.connect(new InetSocketAddress(InetAddress.getLoopbackAddress(), port));
            socket.setTcpNoDelay(true);
            socket.setSoTimeout(TIMEOUT_MS);
            new Client(socket, random, number * 1_000, steps).run();
        } catch (Exception | AssertionError e) {
            violations.add("connection " + number + ' ' + steps + ": " + e);
        }
    }

    /** One connection. */
    private static final class Client {
        private final Socket socket;
        private final OutputStream out;
        private final Random random;
        private final List<String> steps;
        private final Map<Integer, Integer> honest = new HashMap<>(); // number by stream

        // what has come, guarded by this
        private final Map<Integer, StringBuilder> texts = new HashMap<>();
        private final Map<Integer, Integer> ends = new HashMap<>(); // error, or -1, by stream
        private String goAway;
        private int last = Integer.MAX_VALUE; // stream that is answered at all
        private boolean over;
        private String broken;

        private int number;
        private int stream = -1; // the last one
        private boolean wrong; // a stream has been
        private boolean tableIsShut;

        Client(Socket socket, Random random, int number, List<String> steps) throws IOException {
            this.socket = socket;
            this.random = random;
            this.number = number;
            this.steps = steps;
            out = socket.getOutputStream();
        }

        void run() throws Exception {
            final ByteArrayOutputStream begin = new ByteArrayOutputStream();
            begin.writeBytes("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".getBytes(ISO_8859_1));
            begin.writeBytes(RawFrames.frame(4, 0, 0, settings()));
            write(begin.toByteArray(), 0, begin.size()); // the server takes these as a whole alone
            final Thread reading = Thread.startVirtualThread(this::read);
            boolean ends = false;
            try {
                for (int i = random.nextInt(MOST_STEPS); i >= 0 && !ends; i--) {
                    switch (random.nextInt(14)) {
                        case 0, 1 -> odd();
                        case 2, 3 -> {
                            wrong = true;
                            malformed();
                        }
                        case 4 -> {
                            if (random.nextInt(3) == 0) {
                                ends = true;
                                wrong = true;
                                forbidden();
                            }
                        }
                        case 5 -> {
                            post(false);
                            send(RawFrames.reset(stream));
                            honest.remove(stream);
                            steps.add("reset");
                        }
                        default -> post(true);
                    }
                }
            } catch (SocketException e) {
                if (!wrong) {
                    reading.join();
                    throw new AssertionError("it has ended, go-away " + goAway, e);
                }
            }
            if (ends) {
                awaitOver();
            } else {
                settle();
            }
            socket.close();
            reading.join();
            check();
        }

        private byte[] settings() {
            final ByteBuffer settings = ByteBuffer.allocate(60);
            if (random.nextInt(3) == 0) {
                settings.putShort((short) 1).putInt(random.nextBoolean() ? 0 : 100_000);
            }
            if (random.nextBoolean()) {
                settings.putShort((short) 4).putInt(random.nextInt(3) * 40_000);
            }
            if (random.nextInt(3) == 0) {
                settings.putShort((short) 5).putInt(16_384 + random.nextInt(100_000));
            }
            if (random.nextInt(3) == 0) {
                settings.putShort((short) 0x4a4a).putInt(random.nextInt());
            }
            if (random.nextInt(4) == 0) {
                settings.putShort((short) 2).putInt(0);
            }
            final byte[] bytes = new byte[settings.position()];
            settings.flip().get(bytes);
            return bytes;
        }

        private void send(byte[]... frames) throws IOException {
            final ByteArrayOutputStream all = new ByteArrayOutputStream();
            for (byte[] frame : frames) {
                all.writeBytes(frame);
            }
            final byte[] bytes = all.toByteArray();
            if (random.nextInt(4) > 0) {
                write(bytes, 0, bytes.length);
                return;
            }
            for (int from = 0; from < bytes.length; ) {
                final int to = Math.min(bytes.length, from + 1 + random.nextInt(40));
                write(bytes, from, to - from);
                from = to;
            }
        }

        private void write(byte[] bytes, int offset, int length) throws IOException {
            out.write(bytes, offset, length);
        }

        /** Begins a stream; {@code further} fields follow those of a request. */
        private void head(int flags, String... further) throws IOException {
            stream += 2;
            final ByteArrayOutputStream block = new ByteArrayOutputStream();
            if (random.nextInt(8) == 0) {
                block.write(0x20); // a table of no bytes
                tableIsShut = true;
            }
            block.write(0x83); // :method POST
            block.write(0x86); // :scheme http
            field(block, 0, ":path", "/v1/completions");
            field(block, 0, ":authority", "g");
            if (random.nextInt(4) == 0) {
                field(block, 0x40, "x-kept", "v" + random.nextInt(9));
                if (!tableIsShut) {
                    block.write(0xbe); // the same once more
                }
            }
            if (random.nextInt(5) == 0) {
                field(block, 0x10, "cookie", "a=" + random.nextInt(9));
                field(block, 0x10, "cookie", "b=" + "c".repeat(random.nextInt(3_000)));
            }
            for (int i = 0; i < further.length; i += 2) {
                field(block, 0, further[i], further[i + 1]);
            }
            block(flags, block.toByteArray());
        }

        private static void field(
                ByteArrayOutputStream block, int form, String name, String value) {
            block.write(form);
            string(block, name);
            string(block, value);
        }

        private static void string(ByteArrayOutputStream block, String text) {
            int rest = text.length() - 127;
            block.write(Math.min(127, text.length()));
            if (rest >= 0) {
                for (; rest >= 128; rest >>= 7) {
                    block.write((rest & 127) | 128);
                }
                block.write(rest);
            }
            block.writeBytes(text.getBytes(ISO_8859_1));
        }

        /** Sends a head, or trailers, in one frame or in several, of any form. */
        private void block(int flags, byte[] block) throws IOException {
            final ByteArrayOutputStream first = new ByteArrayOutputStream();
            int all = flags;
            final int padding = random.nextInt(4) == 0 ? random.nextInt(256) : -1;
            if (padding >= 0) {
                all |= PADDED;
                first.write(padding);
            }
            if (random.nextInt(4) == 0) {
                all |= PRIORITY;
                first.writeBytes(new byte[] {0, 0, 0, 0, (byte) random.nextInt(256)});
            }
            final int cut = random.nextInt(3) == 0 ? 1 + random.nextInt(block.length) : -1;
            first.write(block, 0, cut < 0 ? block.length : cut);
            first.writeBytes(new byte[Math.max(0, padding)]);
            all |= cut < 0 ? END_HEADERS : 0;
            final List<byte[]> frames = new ArrayList<>();
            frames.add(RawFrames.frame(1, all, stream, first.toByteArray()));
            for (int from = cut; cut >= 0 && from <= block.length; ) {
                final int to = Math.min(block.length, from + 300 + random.nextInt(900));
                final byte[] part = new byte[to - from];
                System.arraycopy(block, from, part, 0, part.length);
                final boolean last = to == block.length;
                frames.add(RawFrames.frame(9, last ? END_HEADERS : 0, stream, part));
                from = last ? block.length + 1 : to;
            }
            send(frames.toArray(byte[][]::new));
        }

        private void data(boolean last, byte[] bytes) throws IOException {
            if (random.nextInt(3) > 0) {
                send(RawFrames.frame(0, last ? END_STREAM : 0, stream, bytes));
                return;
            }
            final int padding = random.nextInt(256);
            final byte[] padded = new byte[1 + bytes.length + padding];
            padded[0] = (byte) padding;
            System.arraycopy(bytes, 0, padded, 1, bytes.length);
            send(RawFrames.frame(0, PADDED | (last ? END_STREAM : 0), stream, padded));
        }

        /** An honest request. */
        private void post(boolean whole) throws IOException {
            number++;
            steps.add("post " + number);
            final byte[] body = body(number).getBytes(ISO_8859_1);
            if (random.nextInt(3) == 0) {
                head(0, "content-length", "" + body.length);
            } else {
                head(0);
            }
            honest.put(stream, number);
            final boolean trails = random.nextInt(8) == 0;
            wrong |= trails; // they end the connection where the stream was refused before
            for (int from = 0; from < body.length; ) {
                final int to = Math.min(body.length, from + 1 + random.nextInt(60));
                if (!whole && to == body.length && random.nextBoolean()) {
                    return;
                }
                final byte[] part = new byte[to - from];
                System.arraycopy(body, from, part, 0, part.length);
                data(to == body.length && !trails, part);
                from = to;
            }
            if (trails) {
                final ByteArrayOutputStream block = new ByteArrayOutputStream();
                field(block, 0, "x-t", "1");
                block(END_STREAM, block.toByteArray());
            }
            send(RawFrames.frame(8, 0, stream, ints(100_000)));
        }

        private static byte[] ints(int... values) {
            final ByteBuffer bytes = ByteBuffer.allocate(4 * values.length);
            for (int value : values) {
                bytes.putInt(value);
            }
            return bytes.array();
        }

        /** What is allowed, and says little. */
        private void odd() throws IOException {
            final int way = random.nextInt(8);
            steps.add("odd " + way);
            switch (way) {
                case 0 -> send(RawFrames.frame(6, 0, 0, new byte[8])); // PING
                case 1 -> send(RawFrames.frame(6, 1, 0, new byte[8])); // answer to none
                case 2 ->
                        send(
                                RawFrames.frame(
                                        2, 0, 1 + random.nextInt(99), new byte[] {0, 0, 0, 0, 5}));
                case 3 -> send(RawFrames.frame(0x42, 255, random.nextInt(99), new byte[20]));
                case 4 -> send(RawFrames.frame(4, 0, 0, settings()));
                case 5 -> send(RawFrames.openWindow(1 + random.nextInt(1_000)));
                case 6 -> {
                    if (stream > 0) { // of a stream that may be closed
                        send(RawFrames.frame(8, 0, stream, ints(1)));
                    }
                }
                default -> {
                    for (int i = random.nextInt(8); i >= 0; i--) {
                        send(RawFrames.frame(6, 0, 0, new byte[8]));
                    }
                }
            }
        }

        /** A stream that must not become a request; its connection may go on, or end. */
        private void malformed() throws IOException {
            final int way = random.nextInt(8);
            final String[] field = WRONG_FIELDS.get(random.nextInt(WRONG_FIELDS.size()));
            final String text = "{\"prompt\":[1],\"user\":\"" + MALFORMED + "\"}";
            final byte[] body = text.getBytes(ISO_8859_1);
            switch (way) {
                case 0, 1, 2 -> {
                    steps.add("malformed " + field[0] + '=' + field[1]);
                    head(0, field);
                    data(true, body);
                }
                case 3 -> {
                    steps.add("no path");
                    stream += 2;
                    send(
                            RawFrames.frame(
                                    1, END_HEADERS, stream, new byte[] {(byte) 0x83, (byte) 0x86}));
                    data(true, body);
                }
                case 4 -> {
                    steps.add("pseudo field in trailers");
                    head(0);
                    data(false, body);
                    final ByteArrayOutputStream block = new ByteArrayOutputStream();
                    field(block, 0, ":path", "/v1/models");
                    block(END_STREAM, block.toByteArray());
                }
                case 5 -> {
                    steps.add("window by nothing");
                    head(0);
                    send(RawFrames.frame(8, 0, stream, ints(0)));
                    data(true, body);
                }
                case 6 -> {
                    steps.add("window beyond all");
                    head(0);
                    send(RawFrames.frame(8, 0, stream, ints(Integer.MAX_VALUE)));
                    send(RawFrames.frame(8, 0, stream, ints(Integer.MAX_VALUE)));
                    data(true, body);
                }
                default -> {
                    steps.add("trailers that do not end it"); // not seen in several frames
                    head(0);
                    data(false, "{\"prompt\":[1]}".getBytes(ISO_8859_1));
                    final ByteArrayOutputStream block = new ByteArrayOutputStream();
                    field(block, 0, "x-t", "1");
                    block(0, block.toByteArray());
                    data(true, new byte[0]);
                }
            }
        }

        /** After it, the connection must end. */
        private void forbidden() throws IOException {
            final int way = random.nextInt(27);
            steps.add("forbidden " + way);
            final int next = stream + 2;
            switch (way) {
                case 0 -> send(RawFrames.frame(0, 0, 0, new byte[5])); // DATA of none
                case 1 -> send(RawFrames.frame(4, 0, next, new byte[0])); // SETTINGS of one
                case 2 -> send(RawFrames.frame(4, 1, 0, new byte[6]));
                case 3 -> send(RawFrames.frame(4, 0, 0, new byte[7]));
                case 4 -> send(RawFrames.frame(4, 0, 0, setting(2, 2)));
                case 5 -> send(RawFrames.frame(4, 0, 0, setting(4, -1)));
                case 6 -> send(RawFrames.frame(4, 0, 0, setting(5, random.nextInt(16_384))));
                case 7 -> send(RawFrames.frame(4, 0, 0, setting(5, 1 << 24)));
                case 8 -> send(RawFrames.openWindow(0));
                case 9 ->
                        send(
                                RawFrames.openWindow(Integer.MAX_VALUE),
                                RawFrames.openWindow(Integer.MAX_VALUE));
                case 10 -> send(RawFrames.post(2, "/v1/completions", MALFORMED));
                case 11 -> {
                    post(true);
                    stream += 2;
                    post(true);
                    send(RawFrames.frame(1, 5, stream - 2, new byte[] {(byte) 0x83}));
                }
                case 12 -> send(RawFrames.reset(next));
                case 13 -> send(RawFrames.frame(2, 0, next, new byte[4]));
                case 14 -> send(RawFrames.frame(6, 0, 0, new byte[7]));
                case 15 -> send(RawFrames.frame(6, 0, next, new byte[8]));
                case 16 ->
                        send(
                                RawFrames.frame(1, 1, next, new byte[] {(byte) 0x83}),
                                RawFrames.frame(6, 0, 0, new byte[8]));
                case 17 -> send(RawFrames.frame(9, END_HEADERS, next, new byte[3]));
                case 18 -> { // a padding that is longer than its frame
                    head(0);
                    send(RawFrames.frame(0, PADDED, stream, new byte[] {9, 1, 2}));
                }
                case 19 -> send(RawFrames.frame(1, 5, next, new byte[] {(byte) 0xff, 9, 9}));
                case 20 -> // a table that is larger than it may be
                        send(RawFrames.frame(1, 5, next, new byte[] {0x3f, -1, -1, 127, -125}));
                case 21 -> send(RawFrames.frame(5, 4, next, new byte[20]));
                case 22 -> flood(() -> RawFrames.frame(6, 0, 0, new byte[8]));
                case 23 -> flood(() -> RawFrames.frame(4, 0, 0, setting(4, random.nextInt(9))));
                case 24 -> {
                    head(0);
                    flood(() -> RawFrames.frame(0, 0, stream, new byte[0]));
                }
                case 25 -> {
                    send(RawFrames.frame(1, 1, next, new byte[] {(byte) 0x83}));
                    final ByteArrayOutputStream block = new ByteArrayOutputStream();
                    field(block, 0, "x", "y".repeat(10_000));
                    final byte[] part = RawFrames.frame(9, 0, next, block.toByteArray());
                    for (int i = 0; i < 100; i++) {
                        send(part);
                    }
                }
                default -> {
                    final ByteBuffer head = ByteBuffer.allocate(9);
                    head.put((byte) 0).putShort((short) 0xffff).put((byte) 0).put((byte) 0);
                    send(head.putInt(next).array(), new byte[0xffff]);
                }
            }
        }

        private static byte[] setting(int id, int value) {
            return ByteBuffer.allocate(6).putShort((short) id).putInt(value).array();
        }

        private void flood(Supplier<byte[]> frame) throws IOException {
            for (int i = 0; i < 5 * MOST_FRAMES; i++) {
                final byte[] bytes = frame.get();
                write(bytes, 0, bytes.length);
            }
        }

        private void read() {
            try {
                final DataInputStream in =
                        new DataInputStream(new BufferedInputStream(socket.getInputStream()));
                while (true) {
                    note(RawFrames.read(in));
                }
            } catch (EOFException | SocketException e) {
                // the end
            } catch (IOException | RuntimeException e) {
                synchronized (this) {
                    broken = e.toString();
                }
            }
            synchronized (this) {
                over = true;
                notifyAll();
            }
        }

        private synchronized void note(RawFrames.Frame frame) {
            final FrameType type = frame.type();
            if (type == FrameType.DATA) {
                texts.computeIfAbsent(frame.stream(), _ -> new StringBuilder())
                        .append(new String(frame.payload(), ISO_8859_1));
            } else if (type == FrameType.RST_STREAM) {
                ends.putIfAbsent(frame.stream(), ByteBuffer.wrap(frame.payload()).getInt());
            } else if (type == FrameType.GO_AWAY) {
                last = ByteBuffer.wrap(frame.payload()).getInt();
                goAway = new String(frame.payload(), 4, frame.payload().length - 4, ISO_8859_1);
            }
            if ((type == FrameType.DATA || type == FrameType.HEADERS) && frame.isLast()) {
                ends.putIfAbsent(frame.stream(), -1);
            }
            notifyAll();
        }

        private synchronized void awaitOver() throws InterruptedException {
            final long beganNs = System.nanoTime();
            while (!over) {
                if (System.nanoTime() - beganNs > TimeUnit.SECONDS.toNanos(20)) {
                    throw new AssertionError("it goes on, go-away " + goAway);
                }
                wait(1_000);
            }
        }

        private synchronized void settle() throws InterruptedException {
            final long beganNs = System.nanoTime();
            while (!over
                    && !honest.keySet().stream()
                            .allMatch(id -> id > last || ends.containsKey(id))) {
                if (System.nanoTime() - beganNs > TimeUnit.SECONDS.toNanos(20)) {
                    throw new AssertionError("no end of " + honest + ", of " + ends + goAway);
                }
                wait(1_000);
            }
            if ((over || goAway != null) && !wrong) {
                throw new AssertionError("it has ended, go-away " + goAway);
            }
        }

        private synchronized void check() {
            if (broken != null) {
                throw new AssertionError(broken);
            }
            honest.forEach(
                    (id, which) -> {
                        final String text =
                                texts.getOrDefault(id, new StringBuilder())
                                        .toString()
                                        .replace(":\n\n", "");
                        final Integer end = ends.get(id);
                        final boolean right =
                                (end == null || end >= 0)
                                        ? text(which).startsWith(text)
                                                && (end == null
                                                        || end == REFUSED_STREAM
                                                        || (over && wrong))
                                        : text(which).equals(text);
                        if (!right) {
                            throw new AssertionError(which + ": " + end + ' ' + text);
                        }
                    });
        }
    }
}
