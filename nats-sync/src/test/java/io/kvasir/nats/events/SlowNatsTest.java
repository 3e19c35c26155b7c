package io.kvasir.nats.events;

import io.kvasir.nats.NatsAccess;

import org.junit.jupiter.api.Test;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.OutputStream;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.nio.charset.StandardCharsets;
import java.time.Duration;

/** A server that answers the first ping, as it lets a client in, and others when the test says. */
class SlowNatsTest {
    private static final String INFO =
            "INFO {\"server_id\":\"slow\",\"version\":\"2.10.0\",\"proto\":1,"
                    + "\"headers\":true,\"max_payload\":1048576}\r\n";
    private static final Duration TIMEOUT = Duration.ofSeconds(1);

    private int unanswered; // pings; guarded by this
    private boolean slow = true; // guarded by this
    private boolean let; // a client is in; guarded by this

    private void serve(ServerSocket server) {
        try (Socket client = server.accept();
                OutputStream out = client.getOutputStream();
                BufferedReader in =
                        new BufferedReader(
                                new InputStreamReader(
                                        client.getInputStream(), StandardCharsets.US_ASCII))) {
            out.write(INFO.getBytes(StandardCharsets.US_ASCII));
            for (String line = in.readLine(); line != null; line = in.readLine()) {
                if (line.startsWith("PING")) {
                    pinged(out);
                }
            }
        } catch (IOException e) {
            // the test is over
        }
    }

    private synchronized void pinged(OutputStream out) throws IOException {
        unanswered++;
        if (!let || !slow) {
            let = true;
            for (; unanswered > 0; unanswered--) {
                out.write("PONG\r\n".getBytes(StandardCharsets.US_ASCII));
            }
        }
    }

    private synchronized void answerFromNowOn() {
        slow = false;
    }

    @Test
    void subscriptionsThatAreConfirmedLateAreWaitedFor() throws Exception {
        try (ServerSocket server = new ServerSocket(0, 1, InetAddress.getLoopbackAddress());
                ObservedPlane observed = new ObservedPlane()) {
            Thread.ofPlatform().daemon().start(() -> serve(server));
            final NatsAccess access =
                    new NatsAccess(
                            "nats://127.0.0.1:" + server.getLocalPort(), null, null, TIMEOUT);
            final NatsEventSource source =
                    new NatsEventSource(
                            access,
                            EventSubjects.kvEvents("ns", "backend", "generate"),
                            observed.plane);
            observed.await(
                    () -> !observed.plane.status().unconnected().startsWith("connecting to"),
                    "what it waits for");
            answerFromNowOn();
            observed.await(() -> observed.plane.status().isConnected(), "the connection");
            source.close();
        }
    }
}
