package io.kvasir.nixl.exchange.zmq;

import static org.junit.jupiter.api.Assertions.assertEquals;

import io.kvasir.nixl.exchange.Records;
import io.kvasir.testsupport.Seeds;
import io.kvasir.testsupport.Zmtp;

import org.junit.jupiter.api.Test;

import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.nio.ByteBuffer;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;

/**
 * Connections to a side channel that say nothing, a part of a greeting, bytes by chance, frames
 * without an end or too long ones, and are left open, closed or reset: records are exchanged all
 * the same.
 */
class HostileConnectionsTest {
    private static final int CONNECTIONS = 200;
    private static final Duration PATIENCE = Duration.ofMinutes(1);
    private static final SideChannelConfig CONFIG =
            new SideChannelConfig(Duration.ofMillis(20), Duration.ofSeconds(10), 8);

    /** ZMQ does not connect again after some errors; the next silence makes a new socket. */
    private static final SideChannelConfig IMPATIENT =
            new SideChannelConfig(Duration.ofMillis(20), Duration.ofMillis(60), 8);

    private static final String HOST = "127.0.0.1";

    private Random random;

    @Test
    void recordsAreExchangedWhateverOthersSend() throws IOException {
        random = new Random(Seeds.next("HostileConnectionsTest"));
        final List<Socket> open = new ArrayList<>();
        try (SideChannelExchange a = new SideChannelExchange(HOST, 0, CONFIG);
                SideChannelExchange b = new SideChannelExchange(HOST, 0, CONFIG)) {
            b.know(HOST, a.port());
            for (int i = 1; i <= CONNECTIONS; i++) {
                connect(a.port(), open);
                if (i % 50 == 0) {
                    a.publish(Records.record("a" + i, 1, 1));
                    assertEquals("a" + i, b.find("a" + i, PATIENCE).name());
                }
            }
        } finally {
            for (Socket socket : open) {
                socket.close();
            }
        }
    }

    private void connect(int port, List<Socket> open) throws IOException {
        final Socket socket = new Socket(InetAddress.getLoopbackAddress(), port);
        open.add(socket);
        try {
            socket.getOutputStream().write(bytes());
        } catch (IOException e) {
            // it was closed, as it may be
        }
        switch (random.nextInt(3)) {
            case 0 -> socket.close();
            case 1 -> {
                socket.setSoLinger(true, 0);
                socket.close(); // a reset
            }
            default -> {}
        }
    }

    private byte[] bytes() {
        final ByteArrayOutputStream out = new ByteArrayOutputStream();
        switch (random.nextInt(6)) {
            case 0 -> {}
            case 1 -> chance(out, 200);
            case 2 -> {
                final byte[] greeting = Zmtp.greeting();
                out.write(greeting, 0, random.nextInt(greeting.length));
            }
            case 3 -> {
                out.writeBytes(Zmtp.greeting());
                chance(out, 100);
            }
            case 4 -> {
                out.writeBytes(Zmtp.greeting());
                final byte[] ready = Zmtp.ready("DEALER");
                ready[random.nextInt(ready.length)] = (byte) random.nextInt();
                out.writeBytes(ready);
                frames(out);
            }
            default -> {
                out.writeBytes(Zmtp.greeting());
                out.writeBytes(Zmtp.ready("DEALER"));
                frames(out);
            }
        }
        return out.toByteArray();
    }

    private void frames(ByteArrayOutputStream out) {
        for (int i = random.nextInt(6); i > 0; i--) {
            final int flags = random.nextInt(8);
            out.write(flags);
            if ((flags & 2) == 0) {
                final int length = random.nextInt(64);
                out.write(length);
                chance(out, length);
            } else {
                final long[] lengths = {
                    0, 20, 1L << 20, 1L << 40, Long.MAX_VALUE, -1, Long.MIN_VALUE
                };
                out.writeBytes(
                        ByteBuffer.allocate(8)
                                .putLong(lengths[random.nextInt(lengths.length)])
                                .array());
                chance(out, 30);
            }
        }
    }

    private void chance(ByteArrayOutputStream out, int most) {
        final byte[] bytes = new byte[random.nextInt(most + 1)];
        random.nextBytes(bytes);
        out.writeBytes(bytes);
    }

    /** A server that a side channel asks, and that answers by chance. */
    @Test
    void aPeerThatIsNoSideChannelHurtsNoOther() throws IOException {
        random = new Random(Seeds.next("aPeerThatIsNoSideChannelHurtsNoOther"));
        try (ServerSocket server = new ServerSocket(0, 50, InetAddress.getLoopbackAddress());
                SideChannelExchange a = new SideChannelExchange(HOST, 0, CONFIG);
                SideChannelExchange b = new SideChannelExchange(HOST, 0, IMPATIENT)) {
            b.know(HOST, server.getLocalPort());
            b.know(HOST, a.port());
            for (int i = 1; i <= 12; i++) {
                try (Socket socket = server.accept()) { // it comes again when it is closed
                    socket.getOutputStream().write(bytes());
                } catch (IOException e) {
                    // it was closed, as it may be
                }
            }
            a.publish(Records.record("a", 1, 1));
            assertEquals("a", b.find("a", PATIENCE).name());
        }
    }
}
