package io.kvasir.gateway.testing;

import static org.junit.jupiter.api.Assertions.assertTrue;

import io.kvasir.gateway.config.WorkerConfig;

import java.io.BufferedInputStream;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.io.UncheckedIOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.net.SocketException;
import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;

/**
 * A scripted HTTP/1.1 server in place of an engine: each inference request runs the script, which
 * writes bytes as it likes, waits, or breaks the connection. Knows when its client goes away.
 */
public final class FakeEngine implements AutoCloseable {
    /** What to do with one request. */
    public interface Script {
        void answer(Call call) throws IOException, InterruptedException;
    }

    /** One received request and the connection to answer on. */
    public static final class Call {
        public final String path;
        public final Map<String, String> headers;
        public final byte[] body;
        public final boolean first;
        private final Socket socket;
        private final OutputStream out;
        public final CountDownLatch clientGone = new CountDownLatch(1);

        /**
         * @param first whether it is the first on its connection
         */
        Call(String path, Map<String, String> headers, byte[] body, boolean first, Socket socket)
                throws IOException {
            this.path = path;
            this.headers = headers;
            this.body = body;
            this.first = first;
            this.socket = socket;
            this.out = socket.getOutputStream();
        }

        public String text() {
            return new String(body, StandardCharsets.UTF_8);
        }

        public void json(int status, String json) throws IOException {
            json(status, json.getBytes(StandardCharsets.UTF_8));
        }

        /** An answer whose bytes may be no text. */
        public void json(int status, byte[] json) throws IOException {
            raw(
                    "HTTP/1.1 "
                            + status
                            + " X\r\n"
                            + "Content-Type: application/json\r\n"
                            + "x-engine: fake\r\n"
                            + "Connection: close\r\n"
                            + "Content-Length: "
                            + json.length
                            + "\r\n\r\n");
            out.write(json);
            out.flush();
        }

        /** An answer that does not end the connection, or does not say so. */
        public void keepAlive(String text) throws IOException {
            raw("HTTP/1.1 200 OK\r\nContent-Length: " + text.length() + "\r\n\r\n" + text);
        }

        public void beginEvents() throws IOException {
            raw(
                    String.join(
                            "\r\n",
                            "HTTP/1.1 200 OK",
                            "Content-Type: text/event-stream; charset=utf-8",
                            "Connection: close",
                            "Transfer-Encoding: chunked",
                            "",
                            ""));
        }

        /** One chunk. */
        public void chunk(String text) throws IOException {
            raw(
                    Integer.toHexString(text.getBytes(StandardCharsets.UTF_8).length)
                            + "\r\n"
                            + text
                            + "\r\n");
        }

        /** A stream of an error instead of output. */
        public void errorEvent(int code) throws IOException {
            beginEvents();
            chunk("data: {\"error\":{\"code\":" + code + ",\"message\":\"made up\"}}\n\n");
            chunk("data: [DONE]\n\n");
            endChunks();
        }

        public void endChunks() throws IOException {
            raw("0\r\n\r\n");
        }

        public void raw(String text) throws IOException {
            final byte[] bytes = text.getBytes(StandardCharsets.UTF_8);
            raw(bytes, 0, bytes.length);
        }

        /** The same of any bytes. */
        public void raw(byte[] bytes, int offset, int length) throws IOException {
            out.write(bytes, offset, length);
            out.flush();
        }

        /** Ends the connection without a goodbye. */
        public void cut() throws IOException {
            socket.setSoLinger(true, 0);
            socket.close();
        }

        public boolean awaitClientGone(long seconds) throws InterruptedException {
            return clientGone.await(seconds, TimeUnit.SECONDS);
        }
    }

    private final ServerSocket server;
    private final Set<Socket> sockets = ConcurrentHashMap.newKeySet();
    public final List<Call> calls = new CopyOnWriteArrayList<>();
    public final AtomicInteger inFlight = new AtomicInteger();
    public final AtomicInteger bodiesToCut = new AtomicInteger(); // before they are read
    public volatile Script script;
    public volatile String metricsPage =
            "vllm:cache_config_info{block_size=\"16\",num_gpu_blocks=\"100\"} 1\n";
    public volatile Script tokenize = call -> call.json(404, "{}");
    public volatile Script models = call -> call.keepAlive("{}"); // lists none
    public volatile Script health = call -> call.json(200, "{}");

    public FakeEngine(Script script) {
        this(script, 0);
    }

    public FakeEngine(Script script, int port) {
        this(script, InetAddress.getLoopbackAddress(), port);
    }

    public FakeEngine(Script script, InetAddress address, int port) {
        this.script = script;
        try {
            server = new ServerSocket();
            server.setReuseAddress(true);
            server.bind(new InetSocketAddress(address, port), 512);
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
        Thread.ofVirtual().name("fake-engine").start(this::accept);
    }

    public int port() {
        return server.getLocalPort();
    }

    public String url() {
        return "http://127.0.0.1:" + port();
    }

    public WorkerConfig worker(String name) {
        return WorkerConfig.parse(url() + ",name=" + name);
    }

    private void accept() {
        while (!server.isClosed()) {
            try {
                final Socket socket = server.accept();
                socket.setTcpNoDelay(true);
                sockets.add(socket);
                if (server.isClosed()) {
                    socket.close(); // accepted while the engine died
                }
                Thread.ofVirtual().start(() -> serve(socket));
            } catch (IOException e) {
                return; // closed
            }
        }
    }

    private void serve(Socket socket) {
        try (socket) {
            final InputStream in = new BufferedInputStream(socket.getInputStream());
            boolean more = one(in, true, socket);
            while (more) {
                more = one(in, false, socket);
            }
        } catch (SocketException e) {
            // the gateway or the script ended it
            sockets.remove(socket);
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        } finally {
            sockets.remove(socket);
        }
    }

    private boolean one(InputStream in, boolean first, Socket socket)
            throws IOException, InterruptedException {
        final String requestLine = line(in);
        if (requestLine == null) {
            return false;
        }
        final Map<String, String> headers = new TreeMap<>(String.CASE_INSENSITIVE_ORDER);
        for (String line = line(in); line != null && !line.isEmpty(); line = line(in)) {
            final int colon = line.indexOf(':');
            headers.merge(
                    line.substring(0, colon).toLowerCase(Locale.ROOT),
                    line.substring(colon + 1).strip(),
                    (a, b) -> a + ", " + b);
        }
        if (headers.containsKey("content-length") && takes(bodiesToCut)) {
            reset(socket);
            return false;
        }
        final byte[] body =
                in.readNBytes(Integer.parseInt(headers.getOrDefault("content-length", "0")));
        final Call call =
                new Call(
                        requestLine.substring(
                                requestLine.indexOf(' ') + 1, requestLine.lastIndexOf(' ')),
                        headers,
                        body,
                        first,
                        socket);
        switch (call.path) {
            case "/health" -> health.answer(call);
            case "/metrics" -> call.keepAlive(metricsPage);
            case "/tokenize" -> tokenize.answer(call);
            case "/v1/models" -> models.answer(call);
            default -> {
                calls.add(call);
                inFlight.incrementAndGet();
                Thread.ofVirtual().start(() -> watch(in, call));
                try {
                    script.answer(call);
                } finally {
                    inFlight.decrementAndGet();
                }
                return false; // the watch has the connection's input now
            }
        }
        return true;
    }

    private static boolean takes(AtomicInteger left) {
        return left.getAndUpdate(now -> Math.max(0, now - 1)) > 0;
    }

    private static void watch(InputStream in, Call call) {
        try {
            if (in.read() < 0) {
                call.clientGone.countDown();
            }
        } catch (IOException e) {
            call.clientGone.countDown();
        }
    }

    private static String line(InputStream in) throws IOException {
        final ByteArrayOutputStream line = new ByteArrayOutputStream();
        for (int b = in.read(); b >= 0; b = in.read()) {
            if (b == '\n') {
                return line.toString(StandardCharsets.UTF_8).stripTrailing();
            }
            line.write(b);
        }
        return line.size() == 0 ? null : line.toString(StandardCharsets.UTF_8);
    }

    /** Takes no connection any more; those that are open go on. */
    public void stopListening() {
        try {
            server.close();
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    /** Dies: every connection is cut and the port is closed. */
    @Override
    public void close() {
        stopListening();
        sockets.forEach(FakeEngine::reset);
    }

    private static void reset(Socket socket) {
        try (socket) {
            socket.setSoLinger(true, 0);
        } catch (IOException e) {
            assertTrue(socket.isClosed(), "closed by its own thread in this moment");
        }
    }

    /** A chat stream of vLLM's form: role, tokens, finish, usage if it was asked for, end mark. */
    public static Script chatStream(int tokens, long millisBetween) {
        return call -> {
            call.beginEvents();
            call.chunk(
                    event(
                            "{\"index\":0,\"delta\":{\"role\":\"assistant\",\"content\":\"\"},\"finish_reason\":null}"));
            for (int i = 0; i < tokens; i++) {
                Thread.sleep(millisBetween);
                call.chunk(
                        event(
                                "{\"index\":0,\"delta\":{\"content\":\"t"
                                        + i
                                        + " \"},\"finish_reason\":null}"));
            }
            call.chunk(event("{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}"));
            if (call.text().contains("\"include_usage\":true")) {
                call.chunk(usageEvent(3, tokens, 0));
            }
            call.chunk("data: [DONE]\n\n");
            call.endChunks();
        };
    }

    public static String event(String choice) {
        return "data:"
                   + " {\"id\":\"c1\",\"object\":\"chat.completion.chunk\",\"created\":1,\"model\":\"m\",\"choices\":["
                + choice
                + "]}\n\n";
    }

    public static String usageEvent(int prompt, int completion, int cached) {
        return "data:"
                   + " {\"id\":\"c1\",\"object\":\"chat.completion.chunk\",\"created\":1,\"model\":\"m\",\"choices\":[],"
                   + "\"usage\":{\"prompt_tokens\":"
                + prompt
                + ",\"total_tokens\":"
                + (prompt + completion)
                + ",\"completion_tokens\":"
                + completion
                + ",\"prompt_tokens_details\":{\"cached_tokens\":"
                + cached
                + "}}}\n\n";
    }
}
