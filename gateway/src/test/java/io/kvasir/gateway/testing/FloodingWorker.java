package io.kvasir.gateway.testing;

import io.kvasir.gateway.config.WorkerConfig;

import org.eclipse.jetty.http2.frames.FrameType;

import java.io.ByteArrayOutputStream;
import java.io.DataInputStream;
import java.io.IOException;
import java.io.OutputStream;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.nio.charset.StandardCharsets;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicInteger;

import javax.net.ServerSocketFactory;
import javax.net.ssl.SSLContext;
import javax.net.ssl.SSLParameters;
import javax.net.ssl.SSLServerSocket;

/**
 * A worker that answers anything with interim answers until its connection is closed; after very
 * many it leaves off, so that a gateway without a limit fails its test and not the process.
 */
public final class FloodingWorker implements AutoCloseable {
    private static final int HEADS_PER_WRITE = 100;
    private static final int MOST_BYTES = 32 << 20; // far more than two sockets hold
    private static final int PREFACE_BYTES = 24; // of a client of HTTP/2
    private static final byte[] HEAD =
            "HTTP/1.1 103 Early Hints\r\nLink: a\r\n\r\n".getBytes(StandardCharsets.US_ASCII);

    /** {@code :status: 103}, not indexed, of the first stream. */
    private static final byte[] HEAD_FRAME =
            RawFrames.frame(1, 4, 1, new byte[] {0x08, 0x03, '1', '0', '3'});

    private static final byte[] SETTINGS_FRAME = RawFrames.frame(4, 0, 0, new byte[0]);

    private final ServerSocket server;
    private final boolean http2;
    private final String scheme;
    private final byte[] heads;
    private final Set<Socket> sockets = ConcurrentHashMap.newKeySet();
    public final AtomicInteger open = new AtomicInteger();

    /** Connections that the gateway has closed. */
    public final AtomicInteger closed = new AtomicInteger();

    /** Connections on which all there was has been written. */
    public final AtomicInteger whole = new AtomicInteger();

    public FloodingWorker(boolean http2) throws IOException {
        this(http2, null);
    }

    /**
     * @param tlsOrNull of a worker behind TLS, which offers its one version
     */
    public FloodingWorker(boolean http2, SSLContext tlsOrNull) throws IOException {
        this.http2 = http2;
        this.heads = repeated(http2 ? HEAD_FRAME : HEAD);
        this.scheme = tlsOrNull == null ? "http" : "https";
        this.server =
                (tlsOrNull == null
                                ? ServerSocketFactory.getDefault()
                                : tlsOrNull.getServerSocketFactory())
                        .createServerSocket(0, 50, InetAddress.getLoopbackAddress());
        if (server instanceof SSLServerSocket tls) {
            final SSLParameters offered = tls.getSSLParameters();
            offered.setApplicationProtocols(new String[] {http2 ? "h2" : "http/1.1"});
            tls.setSSLParameters(offered);
        }
        Thread.ofVirtual().start(this::accept);
    }

    private static byte[] repeated(byte[] head) {
        final ByteArrayOutputStream all = new ByteArrayOutputStream();
        for (int i = 0; i < HEADS_PER_WRITE; i++) {
            all.writeBytes(head);
        }
        return all.toByteArray();
    }

    public WorkerConfig worker(String name) {
        return WorkerConfig.parse(
                scheme + "://127.0.0.1:" + server.getLocalPort() + ",name=" + name);
    }

    private void accept() {
        try {
            while (true) {
                final Socket socket = server.accept();
                sockets.add(socket);
                open.incrementAndGet();
                Thread.ofVirtual().start(() -> flood(socket));
            }
        } catch (IOException e) {
            // the test is over
        }
    }

    private void flood(Socket socket) {
        try (socket) {
            final OutputStream out = socket.getOutputStream();
            if (http2) {
                out.write(SETTINGS_FRAME);
                awaitHead(socket);
            } else {
                var _ = socket.getInputStream().read(); // a request has begun
            }
            for (int i = 0; i < MOST_BYTES; i += heads.length) {
                out.write(heads);
            }
            whole.incrementAndGet();
        } catch (IOException e) {
            closed.incrementAndGet();
        } finally {
            open.decrementAndGet();
            sockets.remove(socket);
        }
    }

    private static void awaitHead(Socket socket) throws IOException {
        final DataInputStream in = new DataInputStream(socket.getInputStream());
        in.skipNBytes(PREFACE_BYTES);
        FrameType type;
        do {
            type = RawFrames.read(in).type();
        } while (type != FrameType.HEADERS);
    }

    @Override
    public void close() throws IOException {
        server.close();
        for (Socket socket : sockets) {
            socket.close();
        }
    }
}
