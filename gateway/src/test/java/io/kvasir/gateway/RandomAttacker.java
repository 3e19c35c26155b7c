package io.kvasir.gateway;

import io.kvasir.gateway.testing.FaultyEngine;
import io.kvasir.gateway.testing.Gateways;

import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.OutputStream;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.Socket;
import java.net.http.HttpRequest;
import java.util.List;
import java.util.SplittableRandom;
import java.util.random.RandomGenerator;

/**
 * Attacks gateways, each attack by a seed of its own: what is sent, how slowly, and how the client
 * leaves. What an attack gets for an answer is not looked at. Any thread.
 */
final class RandomAttacker {
    /** Workers of these names come and go; others are left alone. */
    private static final List<String> NAMES = List.of("x1", "x2", "x3");

    private static final int PATIENCE_MS = 2_000;
    private static final int HURRY_MS = 150;
    private static final int MAX_PIPELINED = 20;

    private final long seed;
    private final List<GatewayServer> gateways;
    private final List<FaultyEngine> engines;

    /**
     * @param engines of workers that are added
     */
    RandomAttacker(long seed, List<GatewayServer> gateways, List<FaultyEngine> engines) {
        this.seed = seed;
        this.gateways = gateways;
        this.engines = engines;
    }

    /** The same number is the same attack. */
    void attack(long number) throws InterruptedException {
        final RandomGenerator random = new SplittableRandom(seed + number * 0x9E3779B97F4A7C15L);
        final HostileRequests requests = new HostileRequests(random);
        final GatewayServer gateway = requests.oneOf(gateways);
        switch (random.nextInt(20)) {
            case 0 -> changeFleet(gateway, requests, random);
            case 1, 2, 3, 4 -> visit(gateway, requests.withHostileHead(), random);
            case 5, 6, 7, 8 -> visit(gateway, requests.withHostileBody(), random);
            case 9, 10 -> visit(gateway, requests.withTemplate(), random);
            case 11 -> visit(gateway, pipelined(requests, random), random);
            default -> visit(gateway, requests.faulty(), random);
        }
    }

    private static byte[] pipelined(HostileRequests requests, RandomGenerator random) {
        final ByteArrayOutputStream all = new ByteArrayOutputStream();
        for (int i = 1 + random.nextInt(MAX_PIPELINED); i > 0; i--) {
            all.writeBytes(random.nextInt(10) > 0 ? requests.faulty() : requests.withHostileHead());
        }
        return all.toByteArray();
    }

    private static void visit(GatewayServer gateway, byte[] request, RandomGenerator random)
            throws InterruptedException {
        try (Socket socket = new Socket()) {
            if (random.nextInt(8) == 0) {
                socket.setReceiveBufferSize(4_096);
            }
            socket.connect(new InetSocketAddress(InetAddress.getLoopbackAddress(), gateway.port()));
            socket.setTcpNoDelay(true);
            socket.setSoTimeout(random.nextInt(10) == 0 ? PATIENCE_MS : HURRY_MS);
            send(socket.getOutputStream(), request, random);
            leave(socket, random);
        } catch (IOException e) {
            // the gateway has had enough of it
        }
    }

    /** At once, in parts, byte by byte for a while, or not to the end. */
    private static void send(OutputStream out, byte[] request, RandomGenerator random)
            throws IOException, InterruptedException {
        switch (random.nextInt(8)) {
            case 0 -> {
                for (int at = 0; at < Math.min(request.length, 200); at++) {
                    out.write(request, at, 1);
                    if (random.nextInt(20) == 0) {
                        Thread.sleep(10);
                    }
                }
                out.write(
                        request, Math.min(request.length, 200), Math.max(0, request.length - 200));
            }
            case 1 -> out.write(request, 0, random.nextInt(request.length));
            case 2 -> {
                final int half = random.nextInt(request.length);
                out.write(request, 0, half);
                Thread.sleep(random.nextInt(200));
                out.write(request, half, request.length - half);
            }
            case 3 -> {
                out.write(request);
                out.write(random.nextBoolean() ? new byte[] {'\r', '\n'} : new byte[] {1, 2, 3});
            }
            default -> out.write(request);
        }
    }

    private static void leave(Socket socket, RandomGenerator random)
            throws IOException, InterruptedException {
        switch (random.nextInt(8)) {
            case 0 -> {}
            case 1 -> socket.setSoLinger(true, 0);
            case 2 -> {
                Thread.sleep(random.nextInt(300));
                if (random.nextBoolean()) {
                    socket.setSoLinger(true, 0);
                }
            }
            case 3 -> {
                socket.shutdownOutput();
                read(socket, Long.MAX_VALUE);
            }
            case 4 -> read(socket, random.nextInt(600));
            case 5 -> {
                read(socket, random.nextInt(5_000));
                socket.setSoLinger(true, 0);
            }
            default -> read(socket, Long.MAX_VALUE);
        }
    }

    /** To the end, a silence, or so many bytes. */
    private static void read(Socket socket, long bytes) throws IOException {
        final byte[] buffer = new byte[8_192];
        long left = bytes;
        while (left > 0) {
            final int count =
                    socket.getInputStream().read(buffer, 0, (int) Math.min(left, buffer.length));
            if (count < 0) {
                return;
            }
            left -= count;
        }
    }

    /** Adds, drains, resumes or removes a worker; or asks the admin port for nonsense. */
    private void changeFleet(
            GatewayServer gateway, HostileRequests requests, RandomGenerator random)
            throws InterruptedException {
        final String name = requests.oneOf(NAMES);
        switch (random.nextInt(6)) {
            case 0, 1 ->
                    admin(
                            gateway,
                            "POST",
                            "",
                            "{\"name\":\""
                                    + name
                                    + "\",\"url\":\""
                                    + requests.oneOf(engines).url()
                                    + "\"}");
            case 2 -> admin(gateway, "POST", "/" + name + "/drain", "");
            case 3 -> admin(gateway, "POST", "/" + name + "/resume", "");
            case 4 -> admin(gateway, "DELETE", "/" + name, "");
            default ->
                    admin(
                            gateway,
                            "POST",
                            "",
                            requests.oneOf(
                                    List.of(
                                            "",
                                            "[",
                                            "{\"url\":\"http://127.0.0.1:1\",\"name\":\""
                                                    + name
                                                    + "\"}",
                                            "{\"url\":7}",
                                            "x".repeat(100_000))));
        }
    }

    private static void admin(GatewayServer gateway, String method, String path, String body)
            throws InterruptedException {
        try {
            var _ =
                    Gateways.send(
                            Gateways.adminRequest(gateway, "/admin/workers" + path)
                                    .method(method, HttpRequest.BodyPublishers.ofString(body)));
        } catch (InterruptedException e) {
            throw e;
        } catch (IOException e) {
            // a kept connection that has just been closed
        } catch (Exception e) {
            throw new AssertionError(e);
        }
    }
}
