package io.kvasir.nats;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.kvasir.nats.events.EventSubjects;
import io.kvasir.nats.events.NatsEventTransport;
import io.kvasir.testsupport.Eventually;
import io.nats.client.ConnectionListener.Events;

import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.Set;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.SynchronousQueue;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;

/** A server that lets its clients in or refuses them. Pauses are taken and not spent. */
class LastingConnectionTest {
    /** The client waits for all of it where it is refused. */
    private static final Duration TIMEOUT = Duration.ofMillis(200);

    private final SynchronousQueue<Long> pauses = new SynchronousQueue<>();
    private final BlockingQueue<Events> events = new LinkedBlockingQueue<>();
    private ServerSocket server;
    private final AtomicInteger pings = new AtomicInteger();
    private volatile boolean refuses;
    private volatile boolean hangs;
    private volatile Socket client; // the last one

    @BeforeEach
    void start() throws IOException {
        server = new ServerSocket(0, 9, InetAddress.getLoopbackAddress());
        Thread.ofPlatform().daemon().start(this::serve);
    }

    @AfterEach
    void stop() throws IOException {
        server.close();
    }

    private void serve() {
        while (!server.isClosed()) {
            try (Socket accepted = server.accept()) {
                client = accepted;
                talk(accepted);
            } catch (IOException e) {
                Thread.onSpinWait(); // the client has left, or the server is closed
            }
        }
    }

    private void talk(Socket accepted) throws IOException {
        say(accepted, "INFO {\"server_id\":\"i\",\"version\":\"2.10.0\",\"max_payload\":1048576}");
        final BufferedReader in =
                new BufferedReader(
                        new InputStreamReader(
                                accepted.getInputStream(), StandardCharsets.US_ASCII));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            if (line.equals("PING")) {
                pings.incrementAndGet();
                if (hangs) {
                    continue;
                }
                if (refuses) {
                    say(accepted, "-ERR 'Authorization Violation'");
                    return;
                }
                say(accepted, "PONG");
            }
        }
    }

    private static void say(Socket to, String line) throws IOException {
        to.getOutputStream().write((line + "\r\n").getBytes(StandardCharsets.US_ASCII));
    }

    private NatsAccess access() {
        return new NatsAccess("nats://127.0.0.1:" + server.getLocalPort(), null, null, TIMEOUT);
    }

    private LastingConnection made(NatsAccess access) throws InterruptedException {
        return made(access, _ -> {});
    }

    private LastingConnection made(NatsAccess access, LastingConnection.Preparation preparation)
            throws InterruptedException {
        while (true) {
            try {
                return LastingConnection.make(
                        access.options("x"),
                        (_, event) -> events.add(event),
                        preparation,
                        pauses::put);
            } catch (IOException e) {
                Thread.sleep(1); // a slow machine
            }
        }
    }

    private void assertPauses(long... expectedMs) throws InterruptedException {
        for (long each : expectedMs) {
            final long ms = TimeUnit.NANOSECONDS.toMillis(pauses.take());
            assertTrue(ms >= each * 3 / 4 && ms <= each * 5 / 4, ms + " ms");
        }
    }

    /** Until the client lets go of the server, and then until it is let in again. */
    private void refuseFor(long... expectedMs) throws Exception {
        refuses = true;
        client.close();
        assertPauses(expectedMs);
        events.clear();
        refuses = false;
        Events event = Events.CLOSED;
        while (event != Events.RECONNECTED) {
            final Long pause = pauses.poll(); // of a try that was refused before
            assertTrue(pause == null || pause > 0);
            event = events.poll(1, TimeUnit.MILLISECONDS);
        }
    }

    @Test
    void aServerThatRefusesIsTriedLessOftenAndFromTheStartAfterItHasLetOneIn() throws Exception {
        final NatsAccess access = access();
        final LastingConnection lasting = made(access);
        try {
            refuseFor(200, 400, 800, 1600, 2000, 2000);
            refuseFor(200, 400);
            assertEquals(access.address(), NatsAccess.addressOf(lasting.now()));
        } finally {
            lasting.close();
        }
    }

    @Test
    void oneThreadMakesItAnewHoweverOftenItIsClosedMeanwhile() throws Exception {
        final int closedAtOnce = 4;
        final Set<Thread> threads = ConcurrentHashMap.newKeySet();
        final AtomicInteger made = new AtomicInteger();
        final LastingConnection lasting =
                made(
                        access(),
                        connection -> {
                            threads.add(Thread.currentThread());
                            if (made.incrementAndGet() <= closedAtOnce) {
                                connection.close();
                            }
                        });
        try {
            while (made.get() <= closedAtOnce || !lasting.isConnected()) {
                pauses.poll(1, TimeUnit.MILLISECONDS);
            }
            threads.remove(Thread.currentThread()); // made the first one
            assertEquals(1, threads.size(), threads::toString);
        } finally {
            lasting.close();
        }
    }

    @Test
    void aServerThatAnswersIsNotLeft() throws Exception {
        final LastingConnection lasting = made(Patient.access(access().servers()));
        try {
            final int before = pings.get();
            while (pings.get() < before + 3) {
                lasting.unanswered();
                Thread.sleep(1);
            }
            assertFalse(events.contains(Events.DISCONNECTED), events::toString);
        } finally {
            lasting.close();
        }
    }

    @Test
    void aServerThatHangsIsLeft() throws Exception {
        final LastingConnection lasting = made(access());
        try {
            hangs = true;
            while (!events.contains(Events.DISCONNECTED)) {
                lasting.unanswered();
                Thread.sleep(1);
            }
            hangs = false;
            Eventually.holds("it is back", () -> events.contains(Events.RECONNECTED));
        } finally {
            lasting.close();
        }
    }

    @Test
    void aThreadThatIsInterruptedClosesItsConnectionToo() throws Exception {
        final NatsEventTransport transport =
                new NatsEventTransport(
                        new NatsAccess(access().servers(), null, null, Duration.ofSeconds(20)),
                        EventSubjects.kvEvents("ns", "backend", "generate"));
        Thread.currentThread().interrupt();
        transport.close();
        assertTrue(Thread.interrupted(), "it stays interrupted");
        Eventually.holds("the client has left", () -> client.isClosed());
    }
}
