package io.kvasir.gateway.upstream;

import static org.junit.jupiter.api.Assertions.assertEquals;

import static java.nio.charset.StandardCharsets.ISO_8859_1;

import io.kvasir.gateway.config.UpstreamHttp2;
import io.kvasir.gateway.testing.AcceptedSockets;

import org.eclipse.jetty.client.ByteBufferRequestContent;
import org.eclipse.jetty.client.HttpClient;
import org.eclipse.jetty.io.ClientConnector;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

import java.io.BufferedInputStream;
import java.io.IOException;
import java.io.InputStream;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.nio.ByteBuffer;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;

/**
 * A worker that answers before it has read the request, and writes bytes behind its answer that
 * belong to nothing: no later request waits for an answer on that connection.
 */
class UnaskedBytesTest {
    private static final int LARGE = 32 << 20; // more than a connection holds
    private static final String ANSWER = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}";

    private final CountDownLatch answered = new CountDownLatch(1);

    @ParameterizedTest
    @EnumSource(
            value = UpstreamHttp2.class,
            names = {"OFF", "AUTO"})
    void costTheWorkerItsConnection(UpstreamHttp2 http2) throws Exception {
        final HttpClient client =
                new HttpClient(UpstreamTransport.of(new ClientConnector(), http2));
        final AcceptedSockets sockets = new AcceptedSockets(this::serve);
        try (ServerSocket listening = new ServerSocket(0, 8, InetAddress.getLoopbackAddress())) {
            sockets.acceptFrom(listening);
            client.start();
            final String url = "http://127.0.0.1:" + listening.getLocalPort() + "/";
            final CompletableFuture<Void> first = new CompletableFuture<>();
            client.POST(url)
                    .idleTimeout(0, TimeUnit.MILLISECONDS)
                    .body(new ByteBufferRequestContent(ByteBuffer.allocate(LARGE)))
                    .onResponseSuccess(_ -> answered.countDown())
                    .send(_ -> first.complete(null));
            first.get(2, TimeUnit.MINUTES);
            assertEquals(
                    200, client.newRequest(url).timeout(1, TimeUnit.MINUTES).send().getStatus());
        } finally {
            client.stop();
            sockets.close();
        }
    }

    private void serve(Socket socket) throws IOException, InterruptedException {
        final InputStream in = new BufferedInputStream(socket.getInputStream());
        while (true) {
            int length = 0;
            String line = line(in);
            while (line != null && !line.isEmpty()) {
                if (line.startsWith("Content-Length: ")) {
                    length = Integer.parseInt(line.substring(16));
                }
                line = line(in);
            }
            if (line == null) {
                return;
            }
            socket.getOutputStream().write(ANSWER.getBytes(ISO_8859_1));
            if (length > 0) {
                writeBehind(socket);
            }
            in.skipNBytes(length);
        }
    }

    private void writeBehind(Socket socket) throws IOException, InterruptedException {
        answered.await();
        socket.getOutputStream().write("no answer\r\n\r\n".getBytes(ISO_8859_1));
        Thread.sleep(200); // so that they are read before the request is sent
    }

    private static String line(InputStream in) throws IOException {
        final StringBuilder line = new StringBuilder();
        for (int b = in.read(); b >= 0; b = in.read()) {
            if (b == '\n') {
                return line.toString().stripTrailing();
            }
            line.append((char) b);
        }
        return null;
    }
}
