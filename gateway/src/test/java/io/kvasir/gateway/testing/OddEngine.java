package io.kvasir.gateway.testing;

import static java.nio.charset.StandardCharsets.ISO_8859_1;

import io.kvasir.gateway.config.WorkerConfig;

import java.io.BufferedInputStream;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.util.List;
import java.util.Locale;
import java.util.Queue;
import java.util.Random;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.zip.GZIPOutputStream;

/**
 * An engine that answers the prompt {@code @N@} with a text of N, in one of the many forms that
 * HTTP/1.1 has for it, or in none. Keeps its connections, so that what one answer leaves on its
 * connection meets the next request.
 */
public final class OddEngine implements AutoCloseable {
    private static final Pattern NUMBER = Pattern.compile("\"prompt\":\"@(\\d+)@");
    private static final String OK = "HTTP/1.1 200 OK\r\n";

    /** How an answer is given; the number of a request says it. */
    public enum Way {
        /** With its length. */
        LENGTH,
        /** In chunks that have extensions, with trailers. */
        CHUNKS,
        /** After a few interim ones. */
        INTERIM,
        /** Of HTTP/1.0, ended by the end of its connection. */
        OLD,
        /** The same of HTTP/1.1. */
        LENGTHLESS,
        /** The last one of its connection. */
        LAST,
        /** The connection ends after it without a word. */
        CLOSED,
        /** Compressed. */
        GZIP,
        /** Before the request's body is read. */
        EARLY,
        /** Followed by bytes that belong to nothing. */
        LONG,
        /** Shorter than it says. */
        SHORT,
        /** Broken off by a reset. */
        RESET,
        /** A head of nothing that HTTP has. */
        GARBAGE,
        /** Two lengths. */
        DOUBTFUL;

        /** Of this request. */
        public static Way of(int number) {
            return values()[Math.floorMod((number * 0x9E3779B97F4A7C15L) >>> 40, values().length)];
        }

        /** Whether a client gets it whole. */
        public boolean isRight() {
            return compareTo(LONG) <= 0;
        }
    }

    private final ServerSocket listening;
    private final AcceptedSockets sockets = new AcceptedSockets(this::serve);
    private final Queue<String> unexpected = new ConcurrentLinkedQueue<>();
    private final long seed;

    /** Cuts its bytes by a seed. */
    public OddEngine(long seed) throws IOException {
        this.seed = seed;
        listening = new ServerSocket(0, 512, InetAddress.getLoopbackAddress());
        sockets.acceptFrom(listening);
    }

    /** As a worker of a gateway. */
    public WorkerConfig worker(String name) {
        return WorkerConfig.parse("http://127.0.0.1:" + listening.getLocalPort() + ",name=" + name);
    }

    /** Requests that no honest client has sent. */
    public List<String> unexpected() {
        return List.copyOf(unexpected);
    }

    /** Whether the body is what is answered. */
    public static boolean isAnswer(int number, String body) {
        return body.equals(text(number)) || body.equals(events(number));
    }

    private static String text(int number) {
        return "{\"choices\":[{\"index\":0,\"text\":\"" + words(number) + "\"}]}";
    }

    private static String words(int number) {
        return ("re-" + number + " ").repeat(1 + number % 50);
    }

    private static String events(int number) {
        final StringBuilder events = new StringBuilder();
        for (int i = number % 20; i >= 0; i--) {
            events.append("data: {\"choices\":[{\"index\":0,\"text\":\"")
                    .append(words(number))
                    .append(i)
                    .append("\"}]}\n\n");
        }
        return events.append("data: [DONE]\n\n").toString();
    }

    private void serve(Socket socket) throws IOException {
        final InputStream in = new BufferedInputStream(socket.getInputStream());
        boolean more = true;
        while (more) {
            more = one(in, socket);
        }
    }

    private boolean one(InputStream in, Socket socket) throws IOException {
        final String request = line(in);
        if (request == null) {
            return false;
        }
        int length = 0;
        int known = -1;
        for (String line = line(in); line != null && !line.isEmpty(); line = line(in)) {
            final String field = line.toLowerCase(Locale.ROOT);
            if (field.startsWith("content-length:")) {
                length = Integer.parseInt(field.substring(15).strip());
            } else if (field.startsWith("x-request-id: r")) {
                known = Integer.parseInt(field.substring(15).strip());
            }
        }
        if (!request.startsWith("POST")) {
            socket.getOutputStream()
                    .write(
                            (request.contains("/health")
                                            ? OK + "Content-Length: 2\r\n\r\n{}"
                                            : "HTTP/1.1 404 X\r\nContent-Length: 0\r\n\r\n")
                                    .getBytes(ISO_8859_1));
            return true;
        }
        final int early = known;
        final boolean isEarly = early >= 0 && Way.of(early) == Way.EARLY;
        if (isEarly) {
            write(socket, OK + plain(early), new Random(seed + early));
        }
        final String body = new String(in.readNBytes(length), ISO_8859_1);
        final Matcher number = NUMBER.matcher(body);
        if (!number.find() || Integer.parseInt(number.group(1)) != known) {
            unexpected.add(request + " " + known + " " + body);
            return false;
        }
        if (isEarly) {
            return true;
        }
        return answer(known, body.contains("\"stream\":true"), socket);
    }

    private static String plain(int number) {
        return "Content-Type: application/json\r\nContent-Length: "
                + text(number).length()
                + "\r\n\r\n"
                + text(number);
    }

    private boolean answer(int number, boolean stream, Socket socket) throws IOException {
        final Random random = new Random(seed + number);
        final String type =
                "Content-Type: " + (stream ? "text/event-stream" : "application/json") + "\r\n";
        final String body = stream ? events(number) : text(number);
        final String whole = type + "Content-Length: " + body.length() + "\r\n\r\n" + body;
        final Way way = Way.of(number);
        final String bytes =
                switch (way) {
                    case LENGTH, EARLY, CLOSED -> OK + whole;
                    case CHUNKS -> OK + type + "Trailer: X-T\r\n" + chunks(body, random);
                    case INTERIM ->
                            "HTTP/1.1 100 Continue\r\n\r\n"
                                    + "HTTP/1.1 102 P\r\n\r\n"
                                    + "HTTP/1.1 103 H\r\nLink: </x>\r\n\r\n"
                                    + OK
                                    + whole;
                    case OLD -> "HTTP/1.0 200 OK\r\n" + type + "\r\n" + body;
                    case LENGTHLESS -> OK + type + "\r\n" + body;
                    case LAST -> OK + "Connection: close\r\n" + whole;
                    case GZIP -> OK + type + gzipped(body);
                    case LONG -> OK + whole + "HTTP/1.1 200 OK\r\nContent-Length: 7\r\n\r\nanother";
                    case SHORT ->
                            OK
                                    + type
                                    + "Content-Length: "
                                    + (body.length() + 9)
                                    + "\r\n\r\n"
                                    + body;
                    case RESET ->
                            (OK + whole).substring(0, random.nextInt(OK.length() + whole.length()));
                    case GARBAGE -> "NO HTTP\r\n\r\n" + body;
                    case DOUBTFUL -> OK + type + "Content-Length: 5\r\n" + chunks(body, random);
                };
        write(socket, bytes, random);
        if (way == Way.RESET) {
            socket.setSoLinger(true, 0);
        }
        return switch (way) {
            case LENGTH, EARLY, CHUNKS, INTERIM, GZIP, LONG, DOUBTFUL -> true;
            case CLOSED, OLD, LENGTHLESS, LAST, SHORT, RESET, GARBAGE -> false;
        };
    }

    private static String gzipped(String body) throws IOException {
        final ByteArrayOutputStream bytes = new ByteArrayOutputStream();
        try (GZIPOutputStream gzip = new GZIPOutputStream(bytes)) {
            gzip.write(body.getBytes(ISO_8859_1));
        }
        return "Content-Encoding: gzip\r\nContent-Length: "
                + bytes.size()
                + "\r\n\r\n"
                + bytes.toString(ISO_8859_1);
    }

    private static String chunks(String body, Random random) {
        final StringBuilder chunks = new StringBuilder("Transfer-Encoding: chunked\r\n\r\n");
        for (int from = 0; from < body.length(); ) {
            final int to = Math.min(body.length(), from + 1 + random.nextInt(300));
            chunks.append(Integer.toHexString(to - from))
                    .append(random.nextInt(3) == 0 ? ";a=b" : "")
                    .append("\r\n")
                    .append(body, from, to)
                    .append("\r\n");
            from = to;
        }
        return chunks.append(random.nextBoolean() ? "0\r\n\r\n" : "0;e\r\nX-T: 1\r\n\r\n")
                .toString();
    }

    private static void write(Socket socket, String text, Random random) throws IOException {
        final OutputStream out = socket.getOutputStream();
        final byte[] bytes = text.getBytes(ISO_8859_1);
        for (int from = 0; from < bytes.length; ) {
            final int to =
                    random.nextInt(3) == 0
                            ? bytes.length
                            : Math.min(bytes.length, from + 1 + random.nextInt(700));
            out.write(bytes, from, to - from);
            from = to;
        }
    }

    private static String line(InputStream in) throws IOException {
        final ByteArrayOutputStream line = new ByteArrayOutputStream();
        for (int b = in.read(); b >= 0; b = in.read()) {
            if (b == '\n') {
                return line.toString(ISO_8859_1).stripTrailing();
            }
            line.write(b);
        }
        return null;
    }

    @Override
    public void close() throws IOException {
        listening.close();
        sockets.close();
    }
}
