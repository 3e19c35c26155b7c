package io.kvasir.gateway;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import static java.nio.charset.StandardCharsets.ISO_8859_1;

import io.kvasir.gateway.config.GatewayConfig;
import io.kvasir.gateway.config.GatewaySettings;
import io.kvasir.gateway.testing.Gateways;
import io.kvasir.gateway.testing.MetricsPage;
import io.kvasir.gateway.testing.OddEngine;
import io.kvasir.testsupport.Eventually;
import io.kvasir.testsupport.Seeds;
import io.kvasir.testsupport.Trials;

import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;

import java.io.BufferedInputStream;
import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.EOFException;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.Socket;
import java.net.SocketException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Queue;
import java.util.Random;
import java.util.TreeMap;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.TimeUnit;
import java.util.zip.GZIPInputStream;
import java.util.zip.GZIPOutputStream;

/**
 * Connections of HTTP/1.1 with requests in a row, well formed in every spelling, wrong, or broken:
 * their answers come in their order, each is that of its request, what is said to be a body never
 * is a request, and nothing is left afterwards. The workers answer in every form of HTTP/1.1.
 */
class ClientConnectionsModelTest {
    private static final int CONNECTIONS = Trials.of(30, 300);
    private static final int AT_ONCE = 8;
    private static final int MOST_REQUESTS = 8;
    private static final int CLIENT_TIMEOUT_MS = 60_000;

    /** What a stream has of its own where its client cannot be watched by reading. */
    private static final String COMMENT = ":\n\n";

    /** In the body of a request that is refused, or behind one; no worker may see it. */
    private static final String SMUGGLED =
            "POST /v1/completions HTTP/1.1\r\nHost: s\r\nContent-Length: 31\r\n\r\n"
                    + "{\"model\":\"m\",\"prompt\":\"@sneak\"}";

    /** Heads that leave it open where their body ends, or are none; the connection ends. */
    private static final List<String> BROKEN_FIELDS =
            List.of(
                    "Content-Length: 4\r\nTransfer-Encoding: chunked",
                    "Transfer-Encoding: chunked\r\nContent-Length: 4",
                    "Content-Length: 4\r\nContent-Length: 5",
                    "Content-Length: +4",
                    "Content-Length: 0x4",
                    "Content-Length: 4,5",
                    "Content-Length: -4",
                    "Content-Length : 4",
                    "Content-Length: 99999999999999999999",
                    "Transfer-Encoding: chunked, identity",
                    "Transfer-Encoding: xchunked",
                    "Transfer-Encoding : chunked",
                    "Transfer-Encoding: chunked\r\nTransfer-Encoding: identity",
                    "Transfer-Encoding: \u000bchunked",
                    "Transfer-Encoding:\r\n chunked",
                    " Content-Length: 4",
                    "X: a\r\n folded",
                    "X: \0",
                    "no colon",
                    ": no name",
                    "Host: other",
                    "X: " + "a".repeat(40_000));

    private static final List<String> BROKEN_CHUNKS =
            List.of(
                    "0x2\r\n{}\r\n0\r\n\r\n",
                    "+2\r\n{}\r\n0\r\n\r\n",
                    "-2\r\n{}\r\n0\r\n\r\n",
                    "2 2\r\n{}\r\n0\r\n\r\n",
                    "\r\n2\r\n{}\r\n0\r\n\r\n",
                    "2\r\n{}x\r\n0\r\n\r\n",
                    "2\r\n{}0\r\n\r\n",
                    "ffffffffffffffff2\r\n{}\r\n0\r\n\r\n",
                    "zz\r\n");

    private enum Kind {
        /** Answered with what its worker says. */
        GOOD,
        /** Answered with an error; the connection may go on. */
        WRONG,
        /** Answered with an error or not at all; the connection ends, and no other answer comes. */
        BROKEN,
        /** Of it the server may make what it likes, as long as it is one of the others. */
        OPEN
    }

    private record Item(
            Kind kind, String text, String id, int number, boolean bodiless, boolean last) {
        @Override
        public String toString() {
            final String shown = text.length() > 600 ? text.substring(0, 400) + "..." : text;
            return kind + " " + shown.replace("\r", "\\r").replace("\n", "\\n");
        }
    }

    private final Queue<String> violations = new ConcurrentLinkedQueue<>();
    private long seed;

    @Tag("trials")
    @Test
    void eachAnswerIsThatOfItsRequest() throws Exception {
        seed = Seeds.next("ClientConnectionsModelTest");
        try (OddEngine a = new OddEngine(seed);
                OddEngine b = new OddEngine(seed + 1)) {
            final GatewayConfig.Builder config =
                    Gateways.config(a.worker("a"), b.worker("b"))
                            .set(GatewaySettings.BREAKER_FAULTS, 1_000)
                            .set(GatewaySettings.RETRIES, 5)
                            .set(GatewaySettings.RETRY_BACKOFF, Duration.ofMillis(1));
            try (GatewayServer gateway = Gateways.started(config)) {
                try (ExecutorService clients = Executors.newFixedThreadPool(AT_ONCE)) {
                    for (int i = 0; i < CONNECTIONS; i++) {
                        final int connection = i;
                        clients.execute(() -> connect(gateway, connection));
                    }
                    clients.shutdown();
                    assertTrue(clients.awaitTermination(5, TimeUnit.MINUTES), "clients hang");
                }
                assertEquals(List.of(), List.copyOf(violations), "seed " + seed);
                assertEquals(List.of(), a.unexpected());
                assertEquals(List.of(), b.unexpected());
                Eventually.holds("no booking is left", () -> gateway.router().activeLeases() == 0);
                Eventually.holds(
                        "nothing is in flight",
                        () -> {
                            final MetricsPage page = MetricsPage.of(gateway);
                            return page.sum("kvasir_requests_in_flight") == 0
                                    && page.sum("kvasir_streams_in_flight") == 0
                                    && page.sum("kvasir_body_bytes_in_flight") == 0
                                    && page.sum("kvasir_answer_bytes_in_flight") == 0;
                        });
            }
        }
    }

    private void connect(GatewayServer gateway, int connection) {
        final Random random = new Random(seed + 31L * connection);
        random.nextInt();
        final List<Item> items = new ArrayList<>();
        for (int i = 1 + random.nextInt(MOST_REQUESTS); i > 0; i--) {
            items.add(item(random, connection * MOST_REQUESTS + i));
        }
        final List<String> seen = new ArrayList<>();
        String wrong;
        try (Socket socket = new Socket()) {
            socket.connect(new InetSocketAddress(InetAddress.getLoopbackAddress(), gateway.port()));
            socket.setTcpNoDelay(true);
            socket.setSoTimeout(CLIENT_TIMEOUT_MS);
            wrong = converse(socket, items, random, seen);
        } catch (IOException | RuntimeException e) {
            wrong = e.toString();
        }
        if (wrong != null) {
            violations.add(
                    "connection "
                            + connection
                            + ": "
                            + wrong
                            + "\n  "
                            + items.subList(Math.max(0, seen.size() - 2), Math.max(1, seen.size()))
                            + "\n  "
                            + seen.subList(Math.max(0, seen.size() - 2), seen.size())
                            + "\n");
        }
    }

    private Item item(Random random, int number) {
        final String id = "r" + number;
        final String start = random.nextInt(8) == 0 ? "\r\n" : "";
        final boolean closes = random.nextInt(10) == 0;
        final String common =
                "X-Request-Id: " + id + "\r\n" + (closes ? "Connection: close\r\n" : "");
        final String prompt =
                "{\"model\":\"m\",\"prompt\":\"@"
                        + number
                        + "@ "
                        + (random.nextInt(6) == 0 ? "x".repeat(random.nextInt(60_000)) : "")
                        + "\",\"stream\":"
                        + random.nextBoolean()
                        + "}";
        return switch (random.nextInt(16)) {
            case 0 -> {
                final String method = random.nextBoolean() ? "GET" : "HEAD";
                yield new Item(
                        method.equals("GET") ? Kind.OPEN : Kind.WRONG,
                        start + method + " /v1/models HTTP/1.1\r\nHost: g\r\n" + common + "\r\n",
                        id,
                        -1,
                        method.equals("HEAD"),
                        closes);
            }
            case 1 -> {
                final String head =
                        pick(
                                random,
                                "OPTIONS * HTTP/1.1",
                                "OPTIONS /v1/completions HTTP/1.1",
                                "BREW /v1/completions HTTP/1.1",
                                "PUT /v1/completions HTTP/1.1",
                                "POST /v1/%63ompletions HTTP/1.1",
                                "POST /v1/%2e%2e/admin HTTP/1.1",
                                "POST /v1/completions;x=y HTTP/1.1",
                                "POST /%00 HTTP/1.1",
                                "POST /%zz HTTP/1.1",
                                "POST /nothing HTTP/1.1",
                                "TRACE /v1/completions HTTP/1.1",
                                "CONNECT g:80 HTTP/1.1",
                                "POST g:80 HTTP/1.1",
                                "GET /v1/models#x HTTP/1.1");
                yield new Item(
                        Kind.OPEN,
                        start
                                + head
                                + "\r\nHost: g\r\n"
                                + common
                                + "Content-Length: "
                                + SMUGGLED.length()
                                + "\r\n\r\n"
                                + SMUGGLED,
                        id,
                        -1,
                        false,
                        closes);
            }
            case 2 ->
                    new Item(
                            Kind.WRONG,
                            request(random, start, common, SMUGGLED),
                            id,
                            -1,
                            false,
                            closes);
            case 3 -> {
                final String text =
                        "POST /v1/completions HTTP/1.1\r\nHost: g\r\n"
                                + common
                                + BROKEN_FIELDS.get(random.nextInt(BROKEN_FIELDS.size()))
                                + "\r\n\r\n"
                                + pick(random, "", "0\r\n\r\n", "4\r\nabcd\r\n0\r\n\r\n", "\r\n")
                                + SMUGGLED;
                yield new Item(Kind.BROKEN, text, id, -1, false, true);
            }
            case 4 -> {
                final String text =
                        "POST /v1/completions HTTP/1.1\r\nHost: g\r\n"
                                + common
                                + "Transfer-Encoding: chunked\r\n\r\n"
                                + BROKEN_CHUNKS.get(random.nextInt(BROKEN_CHUNKS.size()))
                                + SMUGGLED;
                yield new Item(Kind.BROKEN, text, id, -1, false, true);
            }
            case 5 ->
                    new Item(
                            Kind.BROKEN,
                            pick(
                                            random,
                                            "GET /v1/models HTTP/3.7\r\n\r\n",
                                            "\u00ff\u00fe\r\n\r\n",
                                            "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\nxxxxxxxxxxxx",
                                            "POST /v1/completions\r\n\r\n",
                                            "POST /v1/completions HTTP/1.1\r\n\r\n",
                                            "GET /" + "a".repeat(40_000) + " HTTP/1.1\r\n\r\n")
                                    + SMUGGLED,
                            id,
                            -1,
                            false,
                            true);
            default ->
                    new Item(
                            Kind.GOOD,
                            request(random, start, common, prompt),
                            id,
                            number,
                            false,
                            closes);
        };
    }

    private static String pick(Random random, String... all) {
        return all[random.nextInt(all.length)];
    }

    /** A well-formed request with this body. */
    private static String request(Random random, String start, String common, String body) {
        final StringBuilder text = new StringBuilder(start);
        text.append("POST ")
                .append(
                        pick(
                                random,
                                "/v1/completions",
                                "/v1/completions?a=b",
                                "http://g/v1/completions",
                                "/v1/completions"))
                .append(" HTTP/1.1\r\nHost: g\r\n")
                .append(common);
        for (int i = random.nextInt(5) == 0 ? random.nextInt(100) : 0; i > 0; i--) {
            text.append("X-").append(i).append(":\t ").append("v".repeat(i)).append(" \r\n");
        }
        if (random.nextInt(6) == 0) {
            text.append(
                    pick(
                            random,
                            "Upgrade: h2c\r\nHTTP2-Settings: AAMA\r\n",
                            "Upgrade: websocket\r\n",
                            "TE: trailers\r\n",
                            "Accept-Encoding: gzip\r\n",
                            "Trailer: X-T\r\n"));
        }
        if (random.nextInt(6) == 0) {
            text.append("expect: 100-Continue\r\n");
        }
        String bytes = body;
        if (random.nextInt(5) == 0) {
            text.append("Content-Encoding: gzip\r\n");
            bytes = gzip(body);
        }
        if (random.nextBoolean()) {
            return text.append(
                            pick(
                                    random,
                                    "Content-Length: ",
                                    "content-length:",
                                    "CONTENT-LENGTH: 00"))
                    .append(bytes.length())
                    .append("\r\n\r\n")
                    .append(bytes)
                    .toString();
        }
        text.append(pick(random, "Transfer-Encoding: chunked", "transfer-encoding:Chunked"))
                .append("\r\n\r\n");
        for (int from = 0; from < bytes.length(); ) {
            final int to = Math.min(bytes.length(), from + 1 + random.nextInt(bytes.length()));
            text.append(random.nextInt(4) == 0 ? "000" : "")
                    .append(Integer.toHexString(to - from))
                    .append(random.nextInt(4) == 0 ? ";a=\"b;c\" ;d" : "")
                    .append("\r\n")
                    .append(bytes, from, to)
                    .append("\r\n");
            from = to;
        }
        return text.append(
                        pick(
                                random,
                                "0\r\n\r\n",
                                "000;x\r\n\r\n",
                                "0\r\nX-T: 1\r\nHost: evil\r\n\r\n"))
                .toString();
    }

    private static String gzip(String text) {
        final ByteArrayOutputStream bytes = new ByteArrayOutputStream();
        try (GZIPOutputStream gzip = new GZIPOutputStream(bytes)) {
            gzip.write(text.getBytes(ISO_8859_1));
        } catch (IOException e) {
            throw new IllegalStateException(e);
        }
        return bytes.toString(ISO_8859_1);
    }

    /** Sends all, or each after the answer before it; returns what is wrong, null for nothing. */
    private String converse(Socket socket, List<Item> items, Random random, List<String> seen)
            throws IOException {
        final boolean pipelines = random.nextBoolean();
        final long sendSeed = random.nextLong();
        Thread sending = null;
        if (pipelines) {
            final StringBuilder all = new StringBuilder();
            items.forEach(item -> all.append(item.text));
            sending = Thread.startVirtualThread(() -> send(socket, all.toString(), sendSeed));
        }
        try {
            final InputStream in = new BufferedInputStream(socket.getInputStream());
            for (int i = 0; i < items.size(); i++) {
                final Item item = items.get(i);
                if (!pipelines) {
                    final long own = sendSeed + i;
                    sending = Thread.startVirtualThread(() -> send(socket, item.text, own));
                }
                final Answer answer;
                try {
                    answer = Answer.read(in, item);
                } catch (EOFException | SocketException e) {
                    seen.add("none: " + e);
                    // of a connection that is reset as more was sent than was read, an answer may
                    // be lost
                    return item.kind == Kind.BROKEN || item.kind == Kind.OPEN
                            ? null
                            : "no answer to " + i;
                }
                seen.add(answer.toString());
                final String wrong = check(item, answer);
                if (wrong != null) {
                    return wrong + " (request " + i + ")";
                }
                if (answer.closes) {
                    return item.kind == Kind.GOOD && answer.status == 200 && !item.last
                            ? "closed after good " + i
                            : atEnd(in);
                }
                if (item.kind == Kind.BROKEN) {
                    return atEnd(in);
                }
            }
            return null;
        } finally {
            socket.close();
            if (sending != null) {
                join(sending);
            }
        }
    }

    private static String atEnd(InputStream in) throws IOException {
        try {
            final byte[] rest = in.readAllBytes();
            return rest.length == 0 ? null : "after the end: " + new String(rest, ISO_8859_1);
        } catch (SocketException e) {
            return null; // a reset, as more was sent than was read
        }
    }

    private static void join(Thread thread) {
        try {
            thread.join();
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
    }

    private static void send(Socket socket, String text, long seed) {
        final Random random = new Random(seed);
        final byte[] bytes = text.getBytes(ISO_8859_1);
        try {
            final OutputStream out = socket.getOutputStream();
            for (int from = 0; from < bytes.length; ) {
                final int most = random.nextInt(4) == 0 ? bytes.length : 1 + random.nextInt(3_000);
                final int to = Math.min(bytes.length, from + 1 + random.nextInt(most));
                out.write(bytes, from, to - from);
                from = to;
            }
        } catch (IOException e) {
            // the server has had enough
        }
    }

    private static String check(Item item, Answer answer) {
        if (item.kind == Kind.GOOD) {
            if (!item.id.equals(answer.fields.get("x-request-id"))) {
                return "the answer of another request";
            }
            final OddEngine.Way way = OddEngine.Way.of(item.number);
            if (answer.status != 200) {
                return way.isRight() ? "refused" : null;
            }
            if (!OddEngine.isAnswer(item.number, answer.body.replace(COMMENT, ""))) {
                return way.isRight() || !answer.isCut() ? "another body, " + way : null;
            }
            return null;
        }
        if (item.kind == Kind.OPEN) {
            return answer.status >= 500 && answer.status != 501 && answer.status != 505
                    ? "a fault of the server"
                    : null;
        }
        return (item.bodiless && answer.status < 300)
                        || (answer.status >= 400 && answer.status < 500)
                        || answer.status == 501
                        || answer.status == 505
                ? null
                : "not refused";
    }

    /** One answer, read strictly. */
    private record Answer(int status, Map<String, String> fields, String body, boolean closes) {
        static Answer read(InputStream in, Item item) throws IOException {
            while (true) {
                final String first = line(in);
                if (!first.matches("HTTP/1\\.1 [1-5]\\d\\d .*")) {
                    throw new IllegalStateException("no status line: " + first);
                }
                final int status = Integer.parseInt(first.substring(9, 12));
                final Map<String, String> fields = new TreeMap<>();
                for (String line = line(in); !line.isEmpty(); line = line(in)) {
                    final int colon = line.indexOf(':');
                    final String name = line.substring(0, colon).toLowerCase(Locale.ROOT);
                    final String before = fields.put(name, line.substring(colon + 1).strip());
                    if (before != null) {
                        throw new IllegalStateException("twice: " + line);
                    }
                }
                if (status >= 200) {
                    return new Answer(
                            status,
                            fields,
                            status == 204 || status == 304 || item.bodiless ? "" : body(in, fields),
                            "close".equalsIgnoreCase(fields.get("connection")));
                }
            }
        }

        private static String body(InputStream in, Map<String, String> fields) throws IOException {
            final ByteArrayOutputStream body = new ByteArrayOutputStream();
            if (fields.containsKey("content-length") == fields.containsKey("transfer-encoding")) {
                throw new IllegalStateException("the length is in doubt: " + fields);
            }
            if (fields.containsKey("content-length")) {
                take(in, Integer.parseInt(fields.get("content-length")), body);
            } else {
                int length;
                do {
                    length = Integer.parseInt(line(in), 16);
                    take(in, length, body);
                    if (!line(in).isEmpty()) {
                        throw new IllegalStateException("no end of a chunk");
                    }
                } while (length > 0);
            }
            if (!"gzip".equals(fields.get("content-encoding"))) {
                return body.toString(ISO_8859_1);
            }
            return new String(
                    new GZIPInputStream(new ByteArrayInputStream(body.toByteArray()))
                            .readAllBytes(),
                    ISO_8859_1);
        }

        private static void take(InputStream in, int length, ByteArrayOutputStream to)
                throws IOException {
            final byte[] bytes = in.readNBytes(length);
            to.writeBytes(bytes);
            if (bytes.length < length) {
                throw new EOFException("in a body");
            }
        }

        private static String line(InputStream in) throws IOException {
            final ByteArrayOutputStream line = new ByteArrayOutputStream();
            for (int b = in.read(); b != '\n'; b = in.read()) {
                if (b < 0) {
                    throw new EOFException("in a head: " + line);
                }
                line.write(b);
            }
            final String text = line.toString(ISO_8859_1);
            if (!text.endsWith("\r")) {
                throw new IllegalStateException("a bare LF: " + text);
            }
            return text.substring(0, text.length() - 1);
        }

        @Override
        public String toString() {
            final String shown =
                    body.length() > 500
                            ? body.substring(0, 200) + "..." + body.substring(body.length() - 200)
                            : body;
            return status + " " + fields + " " + shown + (closes ? " closes" : "");
        }

        boolean isCut() {
            return body.contains("data: {\"error\"");
        }
    }
}
