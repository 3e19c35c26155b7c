package io.kvasir.cli.load;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;

import com.sun.net.httpserver.HttpServer;

import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

import java.io.IOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.URI;
import java.time.Duration;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.Semaphore;
import java.util.concurrent.TimeUnit;

/** A driver that is interrupted, at a server that never answers. */
class TraceDriverTest {
    private static final long LIMIT_S = 120;
    private static final long HOUR_MS = 3_600_000;

    private final Semaphore asked = new Semaphore(0);
    private HttpServer server;

    @BeforeEach
    void listen() throws IOException {
        server = HttpServer.create(new InetSocketAddress(InetAddress.getLoopbackAddress(), 0), 0);
        server.createContext(
                "/",
                exchange -> {
                    exchange.getRequestBody().readAllBytes();
                    asked.release();
                });
        server.start();
    }

    @AfterEach
    void close() {
        server.stop(0);
    }

    @Test
    void aRequestThatIsNotYetDueIsNotSent() throws Exception {
        assertEquals(InterruptedException.class, interrupted(0, HOUR_MS).getClass());
        assertEquals(0, asked.availablePermits());
    }

    @Test
    void anAnswerThatDoesNotComeIsNotWaitedFor() throws Exception {
        assertEquals(InterruptedException.class, interrupted(0).getClass());
    }

    /** What a driver throws that is interrupted once its first request has come. */
    private Throwable interrupted(long... timestampsMs) throws Exception {
        final List<MooncakeTrace.Request> requests =
                Arrays.stream(timestampsMs)
                        .mapToObj(ms -> new MooncakeTrace.Request(ms, 1, 1, new long[] {1}))
                        .toList();
        final CompletableFuture<Throwable> thrown = new CompletableFuture<>();
        final URI url = URI.create("http://127.0.0.1:" + server.getAddress().getPort());
        try (LoadClient client = new LoadClient(url, Duration.ofHours(1), Map.of())) {
            final TraceDriver driver =
                    new TraceDriver(client, new TracePrompts("m", 256), new RunStats(1), 1, 1);
            final Thread thread =
                    Thread.ofVirtual()
                            .start(
                                    () ->
                                            thrown.complete(
                                                    assertThrows(
                                                            Throwable.class,
                                                            () -> driver.play(requests))));
            asked.acquire();
            thread.interrupt();
            return thrown.get(LIMIT_S, TimeUnit.SECONDS);
        }
    }
}
