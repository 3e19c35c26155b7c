package io.kvasir.gateway;

import org.eclipse.jetty.http.HttpHeader;
import org.eclipse.jetty.http.HttpMethod;
import org.eclipse.jetty.http.HttpStatus;
import org.eclipse.jetty.io.Content;
import org.eclipse.jetty.server.Handler;
import org.eclipse.jetty.server.Request;
import org.eclipse.jetty.server.Response;
import org.eclipse.jetty.server.Server;
import org.eclipse.jetty.server.ServerConnector;
import org.eclipse.jetty.util.Callback;
import org.eclipse.jetty.util.component.LifeCycle;
import org.eclipse.jetty.util.thread.QueuedThreadPool;

import java.io.OutputStream;
import java.net.URI;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;

/** A worker without a model: it answers every completion with the same few words. */
final class StubWorker implements AutoCloseable {
    private static final int TOKENS = 16;
    private static final String USAGE =
            "\"usage\":{\"prompt_tokens\":200,\"completion_tokens\":16,\"total_tokens\":216}";
    private static final byte[] TOKEN =
            event(
                    "{\"object\":\"chat.completion.chunk\",\"choices\":[{\"index\":0,\"delta\":"
                            + "{\"content\":\" word\"}}]}");
    private static final byte[] END = event("{\"choices\":[]," + USAGE + "}");
    private static final byte[] DONE = event("[DONE]");
    private static final byte[] WHOLE =
            ("{\"object\":\"chat.completion\",\"choices\":[{\"index\":0,\"message\":{\"role\":"
                            + "\"assistant\",\"content\":\"word\"}}],"
                            + USAGE
                            + "}")
                    .getBytes(StandardCharsets.UTF_8);

    private final Server server;
    private final ServerConnector connector;

    private StubWorker() {
        final QueuedThreadPool threads = new QueuedThreadPool(32, 2);
        threads.setName("kvasir-stub");
        server = new Server(threads);
        connector = new ServerConnector(server, 1, 1);
        connector.setHost("127.0.0.1");
        server.addConnector(connector);
        server.setHandler(new Completions());
    }

    /** Starts one on a free port of the loopback. */
    static StubWorker start() throws Exception {
        final StubWorker worker = new StubWorker();
        worker.server.start();
        return worker;
    }

    URI url() {
        return URI.create("http://127.0.0.1:" + connector.getLocalPort());
    }

    @Override
    public void close() {
        LifeCycle.stop(server);
    }

    private static byte[] event(String data) {
        return ("data: " + data + "\n\n").getBytes(StandardCharsets.UTF_8);
    }

    private static final class Completions extends Handler.Abstract {
        @Override
        public boolean handle(Request request, Response response, Callback callback)
                throws Exception {
            if (!HttpMethod.POST.is(request.getMethod())) {
                final boolean health = Request.getPathInContext(request).equals("/health");
                response.setStatus(health ? HttpStatus.OK_200 : HttpStatus.NOT_FOUND_404);
                callback.succeeded();
                return true;
            }
            final String body = Content.Source.asString(request, StandardCharsets.UTF_8);
            if (body.contains("\"stream\":true")) {
                stream(response, callback);
            } else {
                response.getHeaders().put(HttpHeader.CONTENT_TYPE, "application/json");
                response.write(true, ByteBuffer.wrap(WHOLE), callback);
            }
            return true;
        }

        private static void stream(Response response, Callback callback) throws Exception {
            response.getHeaders().put(HttpHeader.CONTENT_TYPE, "text/event-stream");
            try (OutputStream out = Content.Sink.asOutputStream(response)) {
                for (int i = 0; i < TOKENS; i++) {
                    out.write(TOKEN);
                }
                out.write(END);
                out.write(DONE);
            }
            callback.succeeded();
        }
    }
}
