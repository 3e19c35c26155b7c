package io.kvasir.gateway.testing;

import static java.util.Map.entry;

import java.io.BufferedInputStream;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.net.BindException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.ThreadLocalRandom;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/**
 * An engine whose answer is chosen by the prompt: {@code @NAME} asks for one of {@link #FAULTS},
 * {@code honest-N} for a right answer whose words name N. Keeps its connections, as engines do, so
 * that what a fault leaves on one of them meets the next request.
 */
public final class FaultyEngine implements AutoCloseable {
    static final int HONEST_WORDS = 5;

    private static final Pattern FAULT = Pattern.compile("@([a-z0-9]+)");
    private static final Pattern HONEST = Pattern.compile("honest-(\\d+)");
    private static final String JSON = "Content-Type: application/json\r\n";
    private static final String EVENTS = "Content-Type: text/event-stream\r\n";
    private static final String CHUNKED = "Transfer-Encoding: chunked\r\n\r\n";
    private static final String OK = "HTTP/1.1 200 OK\r\n";
    private static final String DONE = "data: [DONE]\n\n";
    private static final long HANG_MS = 700;
    private static final int FIRST_PORT = 12_000;
    private static final int END_OF_PORTS = 20_000;

    /** A way to answer; false ends the connection. */
    private interface Fault {
        boolean answer(Answer answer) throws IOException, InterruptedException;
    }

    /** What can go wrong, by name. None of it can reach a later request without the gateway. */
    private static final Map<String, Fault> FAULTS =
            new TreeMap<>(
                    Map.ofEntries(
                            entry("rst", Answer::reset),
                            entry("close", a -> false),
                            entry("hang", a -> a.pause() && a.close()),
                            entry("slow", a -> a.pause() && a.right(0)),
                            entry("garbage", a -> a.last("\0\u00ff garbage\r\n\r\n more of it")),
                            entry("s400", a -> a.status(400)),
                            entry("s401", a -> a.status(401)),
                            entry("s429", a -> a.status(429)),
                            entry("s500", a -> a.status(500)),
                            entry("s501", a -> a.status(501)),
                            entry("s503", a -> a.status(503)),
                            entry("s529", a -> a.status(529)),
                            entry("s999", a -> a.status(999)),
                            entry("s204", a -> a.raw("HTTP/1.1 204 None\r\n\r\n")),
                            entry("s304", a -> a.raw("HTTP/1.1 304 Same\r\n\r\n")),
                            entry(
                                    "redirect",
                                    a ->
                                            a.raw(
                                                    String.join(
                                                            "\r\n",
                                                            "HTTP/1.1 307 T",
                                                            "Location: http://127.0.0.1:1/",
                                                            length("")))),
                            entry(
                                    "bighead",
                                    a ->
                                            a.last(
                                                    OK
                                                            + "X-Big: "
                                                            + "a".repeat(20_000)
                                                            + "\r\n\r\n{}")),
                            entry("badhead", a -> a.last(OK + "no colon\r\nX: \0\r\n\r\n{}")),
                            entry("noreason", a -> a.raw("HTTP/1.1 200\r\n" + length("{}"))),
                            entry(
                                    "oldhttp",
                                    a -> a.last("HTTP/1.0 200 OK\r\n\r\n{\"choices\":[]}")),
                            entry("lengthless", a -> a.last(OK + JSON + "\r\n{\"choices\":[]}")),
                            entry(
                                    "clte",
                                    a ->
                                            a.last(
                                                    OK
                                                            + "Content-Length: 5\r\n"
                                                            + CHUNKED
                                                            + chunk("{\"a\":1}")
                                                            + "0\r\n\r\n")),
                            entry(
                                    "twolengths",
                                    a -> a.last(OK + "Content-Length: 5\r\n" + length("{}"))),
                            entry("badchunk", a -> a.last(OK + JSON + CHUNKED + "ZZ\r\nhello")),
                            entry(
                                    "short",
                                    a -> a.last(OK + JSON + "Content-Length: 500\r\n\r\n{\"a\":1")),
                            entry("long", a -> a.raw(OK + JSON + length("{}") + "{}{}")),
                            entry(
                                    "twice",
                                    a ->
                                            a.raw(
                                                    (OK + JSON + length("{\"not\":\"yours\"}"))
                                                            .repeat(2))),
                            entry("big", a -> a.raw(OK + JSON + length("x".repeat(6_000_000)))),
                            entry("notjson", a -> a.raw(OK + JSON + length("\u00ff{]"))),
                            entry(
                                    "gzip",
                                    a -> a.raw(OK + "Content-Encoding: gzip\r\n" + length("x"))),
                            entry(
                                    "e100",
                                    a -> a.raw("HTTP/1.1 100 Continue\r\n\r\n") && a.right(0)),
                            entry("e102", a -> a.raw("HTTP/1.1 102 P\r\n\r\n") && a.right(0)),
                            entry(
                                    "e103",
                                    a ->
                                            a.raw("HTTP/1.1 103 H\r\nLink: </x>\r\n\r\n".repeat(9))
                                                    && a.pause()
                                                    && a.right(0)),
                            entry("e101", a -> a.last("HTTP/1.1 101 S\r\nUpgrade: x\r\n\r\nx")),
                            entry("hangmid", a -> a.begin(2) && a.pause() && a.close()),
                            entry("closemid", a -> a.begin(2) && a.close()),
                            entry("rstmid", a -> a.begin(2) && a.reset()),
                            entry("closechunk", a -> a.begin(1) && a.last("ff\r\ndata: {\"id\"")),
                            entry("garbagemid", a -> a.begin(1) && a.last("NOT A CHUNK\r\n")),
                            entry("nodone", a -> a.begin(1) && a.raw("0\r\n\r\n")),
                            entry("idle", a -> a.begin(1) && a.pause() && a.end()),
                            entry("tick", a -> a.begin(1) && a.ticks(12) && a.end()),
                            entry(
                                    "afterdone",
                                    a ->
                                            a.begin(1)
                                                    && a.chunked(DONE)
                                                    && a.chunked(event(-1, 0))
                                                    && a.end()),
                            entry(
                                    "errorevent",
                                    a ->
                                            a.begin(1)
                                                    && a.chunked("data: {\"error\":{}}\n\n")
                                                    && a.raw("0\r\n\r\n")),
                            entry(
                                    "badusage",
                                    a ->
                                            a.begin(1)
                                                    && a.chunked(
                                                            "data:"
                                                                + " {\"choices\":[],\"usage\":{\"prompt_tokens\":-7,\"completion_tokens\":99999999999999999999}}\n\n")
                                                    && a.end()),
                            entry(
                                    "badevents",
                                    a -> a.begin(1) && a.chunked("data: {]\n\n") && a.end()),
                            entry(
                                    "bigevent",
                                    a ->
                                            a.begin(1)
                                                    && a.chunked(
                                                            "data: "
                                                                    + "y".repeat(3_000_000)
                                                                    + "\n\n")
                                                    && a.end()),
                            entry(
                                    "noline",
                                    a -> a.begin(1) && a.flood("z".repeat(100_000), 50) && a.end()),
                            entry(
                                    "flood",
                                    a ->
                                            a.begin(1)
                                                    && a.flood(event(-1, 0).repeat(500), 100)
                                                    && a.end()),
                            entry(
                                    "bytes",
                                    a -> a.begin(0) && a.byteByByte(event(-1, 0)) && a.end())));

    private final int port;
    private final AcceptedSockets sockets = new AcceptedSockets(this::serve);
    private final AtomicInteger inFlight = new AtomicInteger();
    private volatile ServerSocket listening;

    public FaultyEngine() throws IOException {
        listening = boundAnywhere();
        port = listening.getLocalPort();
        sockets.acceptFrom(listening);
    }

    /** Below the ports of outgoing connections, which could take it while nothing listens. */
    private static ServerSocket boundAnywhere() throws IOException {
        while (true) {
            try {
                return bound(ThreadLocalRandom.current().nextInt(FIRST_PORT, END_OF_PORTS));
            } catch (BindException e) {
                // another program's
            }
        }
    }

    private static ServerSocket bound(int port) throws IOException {
        final ServerSocket server = new ServerSocket();
        server.setReuseAddress(true);
        server.bind(new InetSocketAddress(InetAddress.getLoopbackAddress(), port), 512);
        return server;
    }

    public static List<String> faults() {
        return List.copyOf(FAULTS.keySet());
    }

    public String url() {
        return "http://127.0.0.1:" + port;
    }

    /** Requests that it is answering. */
    public int inFlight() {
        return inFlight.get();
    }

    private void stopListening() throws IOException {
        listening.close();
    }

    /** Refuses connections if it takes them, and the other way round once the port is free. */
    public void toggleListening() throws IOException {
        if (!listening.isClosed()) {
            stopListening();
            return;
        }
        try {
            listening = bound(port);
        } catch (BindException e) {
            return; // the system has not let go of it yet
        }
        sockets.acceptFrom(listening);
    }

    @Override
    public void close() throws IOException {
        stopListening();
        sockets.close();
    }

    private void serve(Socket socket) throws IOException, InterruptedException {
        final InputStream in = new BufferedInputStream(socket.getInputStream());
        boolean more = true;
        while (more) {
            more = one(in, new Answer(socket));
        }
    }

    private boolean one(InputStream in, Answer answer) throws IOException, InterruptedException {
        final String request = line(in);
        if (request == null) {
            return false;
        }
        int length = 0;
        for (String line = line(in); line != null && !line.isEmpty(); line = line(in)) {
            if (line.regionMatches(true, 0, "content-length:", 0, 15)) {
                length = Integer.parseInt(line.substring(15).strip());
            }
        }
        answer.body = new String(in.readNBytes(length), StandardCharsets.ISO_8859_1);
        if (!request.startsWith("POST /v1/")) {
            return answer.raw(
                    request.contains(" /health ")
                            ? OK + length("{}")
                            : "HTTP/1.1 404 X\r\n" + length(""));
        }
        inFlight.incrementAndGet();
        try {
            return answer.give();
        } finally {
            inFlight.decrementAndGet();
        }
    }

    private static String line(InputStream in) throws IOException {
        final ByteArrayOutputStream line = new ByteArrayOutputStream();
        for (int b = in.read(); b >= 0; b = in.read()) {
            if (b == '\n') {
                return line.toString(StandardCharsets.ISO_8859_1).stripTrailing();
            }
            line.write(b);
        }
        return null;
    }

    /** What an honest answer says. */
    public static String honestText(long number) {
        final StringBuilder text = new StringBuilder();
        for (int i = 0; i < HONEST_WORDS; i++) {
            text.append(word(number, i));
        }
        return text.toString();
    }

    private static String word(long number, int index) {
        return "re-" + number + "-" + index + " ";
    }

    private static String event(long number, int index) {
        final String word = word(number, index);
        return "data: {\"choices\":[{\"index\":0,\"text\":\""
                + word
                + "\",\"delta\":{\"content\":\""
                + word
                + "\"}}]}\n\n";
    }

    private static String chunk(String text) {
        return Integer.toHexString(text.length()) + "\r\n" + text + "\r\n";
    }

    private static String length(String body) {
        return "Content-Length: " + body.length() + "\r\n\r\n" + body;
    }

    /** One answer on its way. Its steps return whether the connection can go on. */
    private static final class Answer {
        private final Socket socket;
        private final OutputStream out;
        private String body;

        Answer(Socket socket) throws IOException {
            this.socket = socket;
            this.out = socket.getOutputStream();
        }

        boolean give() throws IOException, InterruptedException {
            final Matcher fault = FAULT.matcher(body);
            if (fault.find()) {
                final Fault chosen = FAULTS.get(fault.group(1));
                return chosen == null ? right(0) : chosen.answer(this);
            }
            final Matcher honest = HONEST.matcher(body);
            return right(honest.find() ? Long.parseLong(honest.group(1)) : 0);
        }

        boolean raw(String text) throws IOException {
            out.write(text.getBytes(StandardCharsets.ISO_8859_1));
            out.flush();
            return true;
        }

        boolean last(String text) throws IOException {
            raw(text);
            return false;
        }

        boolean chunked(String text) throws IOException {
            return raw(chunk(text));
        }

        boolean close() {
            return false;
        }

        boolean reset() throws IOException {
            socket.setSoLinger(true, 0);
            return false;
        }

        boolean pause() throws InterruptedException {
            Thread.sleep(HANG_MS);
            return true;
        }

        boolean status(int status) throws IOException {
            return raw(
                    "HTTP/1.1 "
                            + status
                            + " X\r\nRetry-After: 7\r\n"
                            + JSON
                            + length("{\"error\":{\"message\":\"no\"}}"));
        }

        /** The beginning of a stream, with some events. */
        boolean begin(int events) throws IOException {
            raw(OK + EVENTS + CHUNKED);
            for (int i = 0; i < events; i++) {
                chunked(event(-1, i));
            }
            return true;
        }

        boolean ticks(int count) throws IOException, InterruptedException {
            for (int i = 0; i < count; i++) {
                Thread.sleep(20);
                chunked(event(-1, i));
            }
            return true;
        }

        boolean flood(String text, int times) throws IOException {
            for (int i = 0; i < times; i++) {
                chunked(text);
            }
            return true;
        }

        boolean byteByByte(String text) throws IOException {
            for (int i = 0; i < text.length(); i++) {
                chunked(text.substring(i, i + 1));
            }
            return true;
        }

        boolean end() throws IOException {
            return chunked(DONE) && raw("0\r\n\r\n");
        }

        /** A right answer. */
        boolean right(long number) throws IOException {
            if (!body.contains("\"stream\":true")) {
                final String text = honestText(number);
                return raw(
                        OK
                                + JSON
                                + length(
                                        "{\"choices\":[{\"index\":0,\"text\":\""
                                                + text
                                                + "\",\"message\":{\"content\":\""
                                                + text
                                                + "\"}}]}"));
            }
            begin(0);
            for (int i = 0; i < HONEST_WORDS; i++) {
                chunked(event(number, i));
            }
            return end();
        }
    }
}
