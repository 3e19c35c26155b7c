package io.kvasir.gateway.testing;

import io.kvasir.gateway.config.WorkerConfig;

import org.eclipse.jetty.http.HttpFields;
import org.eclipse.jetty.http.HttpVersion;
import org.eclipse.jetty.http.MetaData;
import org.eclipse.jetty.http2.ErrorCode;
import org.eclipse.jetty.http2.HTTP2Session;
import org.eclipse.jetty.http2.api.Session;
import org.eclipse.jetty.http2.api.Stream;
import org.eclipse.jetty.http2.api.server.ServerSessionListener;
import org.eclipse.jetty.http2.frames.DataFrame;
import org.eclipse.jetty.http2.frames.GoAwayFrame;
import org.eclipse.jetty.http2.frames.HeadersFrame;
import org.eclipse.jetty.http2.frames.ResetFrame;
import org.eclipse.jetty.http2.server.RawHTTP2ServerConnectionFactory;
import org.eclipse.jetty.server.HttpConfiguration;
import org.eclipse.jetty.server.Server;
import org.eclipse.jetty.server.ServerConnector;
import org.eclipse.jetty.util.Callback;
import org.eclipse.jetty.util.component.LifeCycle;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;

/**
 * A scripted server of HTTP/2 by prior knowledge in place of an engine: what {@link FakeEngine} is
 * for HTTP/1.1, frame by frame.
 */
public final class FrameEngine implements AutoCloseable {
    /** What to do with one request. */
    public interface Script {
        void answer(Call call) throws IOException, InterruptedException;
    }

    private final Server server = new Server();
    private final ServerConnector connector;
    private final Set<Session> sessions = ConcurrentHashMap.newKeySet();
    public final List<Call> calls = new CopyOnWriteArrayList<>();
    public final AtomicInteger connections = new AtomicInteger();
    public final AtomicInteger inFlight = new AtomicInteger();
    public volatile Script script;
    public volatile Script health = call -> call.json(200, "{}");

    /** Answers only requests whose bodies it has read. */
    public volatile boolean readsBodies = true;

    public FrameEngine(int maxStreams, Script script) {
        this.script = script;
        final RawHTTP2ServerConnectionFactory frames =
                new RawHTTP2ServerConnectionFactory(new HttpConfiguration(), new Sessions());
        frames.setMaxConcurrentStreams(maxStreams);
        connector = new ServerConnector(server, 1, 1, frames);
        connector.setHost("127.0.0.1");
        server.addConnector(connector);
        try {
            server.start();
        } catch (Exception e) {
            throw new IllegalStateException(e);
        }
    }

    public WorkerConfig worker(String name) {
        return WorkerConfig.parse("http://127.0.0.1:" + connector.getLocalPort() + ",name=" + name);
    }

    /** Says that streams after the given one are not begun with, on all connections. */
    public void goAway(int lastStream) {
        for (Session session : sessions) {
            ((HTTP2Session) session)
                    .goAway(
                            new GoAwayFrame(lastStream, ErrorCode.NO_ERROR.code, null),
                            Callback.NOOP);
        }
    }

    /** Says that there will be a GOAWAY. */
    public void goAwayLater() {
        for (Session session : sessions) {
            ((HTTP2Session) session).goAway(GoAwayFrame.GRACEFUL, Callback.NOOP);
        }
    }

    /** Ends all connections without a word. */
    public void cut() {
        sessions.forEach(session -> ((HTTP2Session) session).getEndPoint().close());
    }

    @Override
    public void close() {
        LifeCycle.stop(server);
    }

    private final class Sessions implements ServerSessionListener {
        @Override
        public void onAccept(Session session) {
            connections.incrementAndGet();
            sessions.add(session);
        }

        @Override
        public void onClose(Session session, GoAwayFrame frame, Callback callback) {
            sessions.remove(session);
            callback.succeeded();
        }

        @Override
        public void onFailure(Session session, Throwable failure, Callback callback) {
            sessions.remove(session);
            callback.succeeded();
        }

        @Override
        public Map<Integer, Integer> onPreface(Session session) {
            return null; // those of the factory
        }

        @Override
        public Stream.Listener onNewStream(Stream stream, HeadersFrame frame) {
            final Call call = new Call(stream, (MetaData.Request) frame.getMetaData());
            if (frame.isEndStream() || !readsBodies) {
                call.begin();
            } else {
                stream.demand();
            }
            return call;
        }
    }

    /** One received request and its stream. */
    public final class Call implements Stream.Listener {
        public final String path;
        public final HttpFields headers;
        public final Session session;
        public final Stream stream;
        public final CountDownLatch clientGone = new CountDownLatch(1);
        private final StringBuilder body = new StringBuilder();

        private Call(Stream stream, MetaData.Request head) {
            this.stream = stream;
            this.session = stream.getSession();
            this.path = head.getHttpURI().getPath();
            this.headers = head.getHttpFields();
        }

        public String text() {
            return body.toString();
        }

        private void begin() {
            Thread.ofVirtual().start(this::run);
        }

        private void run() {
            try {
                switch (path) {
                    case "/health" -> health.answer(this);
                    case "/metrics", "/tokenize", "/v1/models" -> json(404, "{}");
                    default -> {
                        calls.add(this);
                        inFlight.incrementAndGet();
                        try {
                            script.answer(this);
                        } finally {
                            inFlight.decrementAndGet();
                        }
                    }
                }
            } catch (IOException e) {
                clientGone.countDown();
            } catch (InterruptedException e) {
                Thread.currentThread().interrupt();
            }
        }

        @Override
        public void onDataAvailable(Stream of) {
            final Stream.Data data = of.readData();
            if (data == null) {
                of.demand();
                return;
            }
            final boolean last = data.frame().isEndStream();
            body.append(StandardCharsets.UTF_8.decode(data.frame().getByteBuffer()));
            data.release();
            if (last) {
                begin();
            } else {
                of.demand();
            }
        }

        @Override
        public void onReset(Stream of, ResetFrame frame, Callback callback) {
            clientGone.countDown();
            callback.succeeded();
        }

        @Override
        public void onFailure(Stream of, int error, String reason, Throwable cause, Callback done) {
            clientGone.countDown();
            done.succeeded();
        }

        public void json(int status, String json) throws IOException, InterruptedException {
            head(status, "application/json", false);
            data(json, true);
        }

        public void beginEvents() throws IOException, InterruptedException {
            head(200, "text/event-stream", false);
        }

        public void event(String text) throws IOException, InterruptedException {
            data(text, false);
        }

        public void endEvents() throws IOException, InterruptedException {
            data("data: [DONE]\n\n", true);
        }

        public void interim(int status) throws IOException, InterruptedException {
            head(status, "text/plain", false);
        }

        void head(int status, String type, boolean last) throws IOException, InterruptedException {
            final MetaData.Response head =
                    new MetaData.Response(
                            status,
                            null,
                            HttpVersion.HTTP_2,
                            HttpFields.build().put("content-type", type));
            await(stream.headers(new HeadersFrame(stream.getId(), head, null, last)));
        }

        /** Waits until it is sent: a window may be shut. */
        private void data(String text, boolean last) throws IOException, InterruptedException {
            final ByteBuffer bytes = ByteBuffer.wrap(text.getBytes(StandardCharsets.UTF_8));
            await(stream.data(new DataFrame(stream.getId(), bytes, last)));
        }

        private static void await(Future<?> sent) throws IOException, InterruptedException {
            try {
                sent.get();
            } catch (ExecutionException e) {
                throw new IOException(e.getCause());
            }
        }

        public void reset(ErrorCode code) {
            stream.reset(new ResetFrame(stream.getId(), code.code), Callback.NOOP);
        }

        public boolean awaitClientGone(long seconds) throws InterruptedException {
            return clientGone.await(seconds, TimeUnit.SECONDS);
        }
    }
}
