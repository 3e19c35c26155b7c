package io.kvasir.gateway.server;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.kvasir.gateway.testing.FrameClient;
import io.kvasir.gateway.testing.RawClient;

import org.eclipse.jetty.http2.HTTP2Connection;
import org.eclipse.jetty.http2.HTTP2Stream;
import org.eclipse.jetty.http2.server.HTTP2CServerConnectionFactory;
import org.eclipse.jetty.io.Connection;
import org.eclipse.jetty.io.Content;
import org.eclipse.jetty.io.IdleTimeout;
import org.eclipse.jetty.server.Handler;
import org.eclipse.jetty.server.HttpConfiguration;
import org.eclipse.jetty.server.HttpConnectionFactory;
import org.eclipse.jetty.server.Request;
import org.eclipse.jetty.server.Response;
import org.eclipse.jetty.server.Server;
import org.eclipse.jetty.server.ServerConnector;
import org.eclipse.jetty.util.Callback;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;

/** The idle time of a client begins anew when an answer is written to it. */
class StalledWriteTest {
    private static final long IDLE_MS = 60_000;
    private static final int SILENT_MS = 100;

    private final Server server = new Server();
    private final ServerConnector connector =
            new ServerConnector(
                    server,
                    new HttpConnectionFactory(),
                    new HTTP2CServerConnectionFactory(new HttpConfiguration()));

    @BeforeEach
    void start() throws Exception {
        connector.setHost("127.0.0.1");
        connector.setIdleTimeout(IDLE_MS);
        server.addConnector(connector);
        server.setHandler(
                new Handler.Abstract() {
                    @Override
                    public boolean handle(Request request, Response response, Callback callback)
                            throws Exception {
                        Content.Source.asByteBuffer(request);
                        Content.Sink.write(response, true, said(request), callback);
                        return true;
                    }
                });
        server.start();
    }

    @AfterEach
    void stop() throws Exception {
        server.stop();
    }

    private static String said(Request request) throws InterruptedException {
        final StalledWrite stalled = StalledWrite.of(request);
        assertTrue(!stalled.test(new TimeoutException()), "nothing is written");
        final long silentMs = silentMs(request);
        Thread.sleep(SILENT_MS);
        final long beganNs = System.nanoTime();
        stalled.writing(true);
        final long afterMs = silentMs(request);
        final long passedMs = TimeUnit.NANOSECONDS.toMillis(System.nanoTime() - beganNs);
        return silentMs >= 0 && afterMs <= passedMs + 1
                ? "anew."
                : silentMs + " ms, then " + afterMs + " ms, " + passedMs + " ms after the write.";
    }

    /** How long the request's stream or connection has been idle. */
    private static long silentMs(Request request) {
        final Connection connection = request.getConnectionMetaData().getConnection();
        if (connection instanceof HTTP2Connection http2) {
            final HTTP2Stream stream =
                    http2.getSession().getStream(Integer.parseInt(request.getId()));
            return IDLE_MS
                    - TimeUnit.NANOSECONDS.toMillis(stream.getExpireNanoTime() - System.nanoTime());
        }
        return ((IdleTimeout) connection.getEndPoint()).getIdleFor();
    }

    @Test
    void ofHttp11ItIsTheConnections() throws Exception {
        try (RawClient client = new RawClient(connector.getLocalPort())) {
            client.post("/", "{}").readUntil("anew.");
        }
    }

    @Test
    void ofHttp2ItIsTheStreams() throws Exception {
        try (FrameClient client = new FrameClient(connector.getLocalPort())) {
            assertEquals("anew.", client.post("/", "{}").whole());
        }
    }
}
