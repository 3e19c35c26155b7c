package io.kvasir.bench.gateway;

import org.HdrHistogram.ConcurrentHistogram;
import org.HdrHistogram.Histogram;

import java.io.BufferedInputStream;
import java.io.IOException;
import java.io.InputStream;
import java.net.InetAddress;
import java.net.Socket;
import java.nio.charset.StandardCharsets;
import java.util.Random;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicReference;
import java.util.concurrent.locks.LockSupport;
import java.util.stream.Collectors;

/**
 * Clients that ask at fixed times, whether earlier answers have come or not: a time is from the
 * moment at which a request was due to the last byte of its answer.
 */
final class OpenLoop {
    private static final int CONNECTIONS = 64;
    private static final int PROMPT_TOKENS = 512;
    private static final int PROMPTS = 256;
    private static final long HIGHEST_NS = 60_000_000_000L;

    private final int port;
    private final byte[][] requests = new byte[PROMPTS][];

    /**
     * @param stream whether answers are asked for as streams
     */
    OpenLoop(int port, boolean stream) {
        this.port = port;
        final Random random = new Random(1);
        for (int i = 0; i < PROMPTS; i++) {
            requests[i] = request(random, stream);
        }
    }

    private static byte[] request(Random random, boolean stream) {
        final String body =
                "{\"model\":\"m\",\"max_tokens\":"
                        + StubEngine.TOKENS
                        + ",\"temperature\":0,\"prompt\":"
                        + random.ints(PROMPT_TOKENS, 0, 128_000)
                                .mapToObj(Integer::toString)
                                .collect(Collectors.joining(",", "[", "]"))
                        + (stream
                                ? ",\"stream\":true,\"stream_options\":{\"include_usage\":true}"
                                : "")
                        + "}";
        return ("POST /v1/completions HTTP/1.1\r\n"
                        + "Host: 127.0.0.1\r\n"
                        + "Content-Type: application/json\r\n"
                        + "Content-Length: "
                        + body.length()
                        + "\r\n\r\n"
                        + body)
                .getBytes(StandardCharsets.US_ASCII);
    }

    /**
     * Asks, and waits for the last answer.
     *
     * @return times in ns
     * @throws IllegalStateException if one was no 200
     */
    Histogram ask(int perSecond, int seconds) throws InterruptedException {
        final int count = perSecond * seconds;
        final Histogram times = new ConcurrentHistogram(HIGHEST_NS, 3);
        final AtomicInteger next = new AtomicInteger();
        final AtomicReference<Exception> failure = new AtomicReference<>();
        final long startNs = System.nanoTime();
        try (ExecutorService clients = Executors.newVirtualThreadPerTaskExecutor()) {
            for (int i = 0; i < CONNECTIONS; i++) {
                clients.execute(
                        () -> {
                            try {
                                client(next, count, startNs, 1_000_000_000L / perSecond, times);
                            } catch (Exception e) {
                                failure.compareAndSet(null, e);
                            }
                        });
            }
        }
        if (failure.get() != null) {
            throw new IllegalStateException("a request failed", failure.get());
        }
        return times;
    }

    private void client(AtomicInteger next, int count, long startNs, long everyNs, Histogram times)
            throws IOException {
        try (Socket socket = new Socket(InetAddress.getLoopbackAddress(), port)) {
            socket.setTcpNoDelay(true);
            final InputStream in = new BufferedInputStream(socket.getInputStream());
            for (int i = next.getAndIncrement(); i < count; i = next.getAndIncrement()) {
                final long dueNs = startNs + i * everyNs;
                for (long left = dueNs - System.nanoTime();
                        left > 0;
                        left = dueNs - System.nanoTime()) {
                    LockSupport.parkNanos(left);
                }
                socket.getOutputStream().write(requests[i % PROMPTS]);
                final HttpMessage answer = HttpMessage.read(in);
                if (answer == null || !answer.start().contains(" 200 ")) {
                    throw new IOException(
                            answer == null ? "closed" : answer.start() + " " + answer.body());
                }
                times.recordValue(Math.min(System.nanoTime() - dueNs, HIGHEST_NS));
            }
        }
    }
}
