package io.kvasir.gateway.testing;

import org.eclipse.jetty.http.HttpFields;
import org.eclipse.jetty.http.HttpURI;
import org.eclipse.jetty.http.HttpVersion;
import org.eclipse.jetty.http.MetaData;
import org.eclipse.jetty.http2.ErrorCode;
import org.eclipse.jetty.http2.HTTP2Session;
import org.eclipse.jetty.http2.api.Session;
import org.eclipse.jetty.http2.api.Stream;
import org.eclipse.jetty.http2.client.HTTP2Client;
import org.eclipse.jetty.http2.frames.DataFrame;
import org.eclipse.jetty.http2.frames.Frame;
import org.eclipse.jetty.http2.frames.GoAwayFrame;
import org.eclipse.jetty.http2.frames.HeadersFrame;
import org.eclipse.jetty.http2.frames.ResetFrame;
import org.eclipse.jetty.http2.frames.SettingsFrame;
import org.eclipse.jetty.util.Callback;
import org.eclipse.jetty.util.component.LifeCycle;

import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.function.BooleanSupplier;

/** A client of HTTP/2 by prior knowledge: one connection, frame by frame. */
public final class FrameClient implements AutoCloseable {
    private final HTTP2Client client = new HTTP2Client();
    private final Session session;
    private final Ends ends;

    public FrameClient(int port) throws Exception {
        this(port, Frame.DEFAULT_MAX_SIZE * 4);
    }

    /**
     * @param streamWindow bytes that a stream may be ahead of what is read of it
     */
    public FrameClient(int port, int streamWindow) throws Exception {
        client.setInitialStreamRecvWindow(streamWindow);
        client.setMaxHeaderBlockFragment(Frame.DEFAULT_MAX_SIZE);
        client.setIdleTimeout(-1); // it stays until it is closed
        client.start();
        final long startNs = System.nanoTime();
        Ends made = connect(port);
        while (!made.settled()) { // closed as idle before it has said its settings
            if (System.nanoTime() - startNs > TimeUnit.MINUTES.toNanos(1)) {
                throw new AssertionError("the server has not said its settings");
            }
            made = connect(port);
        }
        ends = made;
        session = made.session;
    }

    private Ends connect(int port) throws Exception {
        final Ends made = new Ends();
        made.session =
                client.connect(new InetSocketAddress(InetAddress.getLoopbackAddress(), port), made)
                        .get(1, TimeUnit.MINUTES);
        return made;
    }

    /** Opens streams beyond the limit that the server has set. */
    public FrameClient ignoreStreamLimit() {
        ((HTTP2Session) session).setMaxLocalStreams(-1);
        return this;
    }

    /** Sends heads beyond the limit that the server has set. */
    public FrameClient ignoreHeadLimit() {
        ((HTTP2Session) session).getGenerator().getHpackEncoder().setMaxHeaderListSize(1 << 20);
        return this;
    }

    public Exchange post(String path, String body, String... headers) throws Exception {
        final Exchange exchange = begin("POST", path, false, headers);
        exchange.send(body, true);
        return exchange;
    }

    public Exchange get(String method, String path) throws Exception {
        return begin(method, path, true);
    }

    /** Sends a head. */
    public Exchange begin(String method, String path, boolean last, String... headers)
            throws Exception {
        return new Exchange(method, path, last, true, headers);
    }

    /** The same, of an answer that is not read until {@link Exchange#readOn}. */
    public Exchange postUnread(String path, String body) throws Exception {
        final Exchange exchange = new Exchange("POST", path, false, false);
        exchange.send(body, true);
        return exchange;
    }

    /** Takes no new answers, and says so. */
    public void goAway() throws Exception {
        ((HTTP2Session) session).goAway(GoAwayFrame.GRACEFUL, Callback.NOOP);
    }

    /** Leaves without a word. */
    public void cut() {
        ((HTTP2Session) session).getEndPoint().close();
    }

    public boolean awaitClosed() throws InterruptedException {
        return awaitClosed(TimeUnit.MINUTES.toMillis(1));
    }

    /** Waits for so long at the most. */
    public boolean awaitClosed(long ms) throws InterruptedException {
        return ends.closed.await(ms, TimeUnit.MILLISECONDS);
    }

    public boolean isClosed() {
        return ends.closed.getCount() == 0;
    }

    public List<GoAwayFrame> goAways() {
        synchronized (ends.goAways) {
            return List.copyOf(ends.goAways);
        }
    }

    @Override
    public void close() {
        LifeCycle.stop(client);
    }

    private static final class Ends implements Session.Listener {
        final CountDownLatch closed = new CountDownLatch(1);
        final List<GoAwayFrame> goAways = new ArrayList<>(); // guarded by itself
        private final CountDownLatch begun = new CountDownLatch(1);
        private volatile boolean settled;
        Session session;

        /** Whether the server has said its settings; false once it has closed without. */
        boolean settled() throws InterruptedException {
            return begun.await(1, TimeUnit.MINUTES) && settled;
        }

        @Override
        public void onSettings(Session of, SettingsFrame frame) {
            settled = true;
            begun.countDown();
        }

        @Override
        public void onGoAway(Session of, GoAwayFrame frame) {
            synchronized (goAways) {
                goAways.add(frame);
            }
        }

        @Override
        public void onClose(Session of, GoAwayFrame frame, Callback callback) {
            closed.countDown();
            begun.countDown();
            callback.succeeded();
        }

        @Override
        public void onFailure(Session of, Throwable failure, Callback callback) {
            closed.countDown();
            begun.countDown();
            callback.succeeded();
        }
    }

    /** One stream. */
    public final class Exchange implements Stream.Listener {
        private final Stream stream;
        private final boolean reads;
        private final StringBuilder text = new StringBuilder(); // guarded by this, as all below
        private final List<MetaData.Response> heads = new ArrayList<>();
        private boolean ended;
        private String failure;

        private Exchange(String method, String path, boolean last, boolean reads, String... headers)
                throws Exception {
            this.reads = reads;
            final HttpFields.Mutable fields = HttpFields.build();
            for (String header : headers) {
                final int colon = header.indexOf(':');
                fields.add(header.substring(0, colon), header.substring(colon + 1).strip());
            }
            final MetaData.Request head =
                    new MetaData.Request(
                            method,
                            HttpURI.from("http://gateway" + path),
                            HttpVersion.HTTP_2,
                            fields);
            stream =
                    session.newStream(new HeadersFrame(head, null, last), this)
                            .get(1, TimeUnit.MINUTES);
        }

        public Exchange send(String part, boolean last) {
            stream.data(
                    new DataFrame(
                            stream.getId(),
                            ByteBuffer.wrap(part.getBytes(StandardCharsets.UTF_8)),
                            last),
                    Callback.NOOP);
            return this;
        }

        public void reset() {
            stream.reset(
                    new ResetFrame(stream.getId(), ErrorCode.CANCEL_STREAM_ERROR.code),
                    Callback.NOOP);
        }

        void readOn() {
            stream.demand();
        }

        @Override
        public void onHeaders(Stream of, HeadersFrame frame) {
            synchronized (this) {
                heads.add((MetaData.Response) frame.getMetaData());
                ended |= frame.isEndStream();
                notifyAll();
            }
            if (reads && !frame.isEndStream()) {
                of.demand();
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
            synchronized (this) {
                text.append(StandardCharsets.UTF_8.decode(data.frame().getByteBuffer()));
                ended |= last;
                notifyAll();
            }
            data.release();
            if (!last) {
                of.demand();
            }
        }

        @Override
        public void onReset(Stream of, ResetFrame frame, Callback callback) {
            failed(ErrorCode.toString(frame.getError(), "other"));
            callback.succeeded();
        }

        @Override
        public void onFailure(Stream of, int error, String reason, Throwable cause, Callback done) {
            failed(reason);
            done.succeeded();
        }

        private synchronized void failed(String reason) {
            if (failure == null) {
                failure = reason;
            }
            notifyAll();
        }

        /** Waits for a part of the text; returns the text so far. */
        public synchronized String await(String part) throws InterruptedException {
            awaitUntil(() -> text.indexOf(part) >= 0, part);
            return text.toString();
        }

        /** Waits for the end of the answer; returns all of it. */
        public synchronized String whole() throws InterruptedException {
            awaitUntil(() -> ended, "the end");
            return text.toString();
        }

        /** Waits for the reset of the stream or its connection's end; returns the reason. */
        public synchronized String failure() throws InterruptedException {
            awaitUntil(() -> failure != null, "a failure");
            return failure;
        }

        /** Waits for a head, interim ones included. */
        public synchronized MetaData.Response head(int number) throws InterruptedException {
            awaitUntil(() -> heads.size() > number, "a head");
            return heads.get(number);
        }

        public synchronized boolean hasFailed() {
            return failure != null;
        }

        /** Whether the server takes it no more: it has ended the connection, or said so before. */
        public boolean isRefused() {
            return hasFailed()
                    || isClosed()
                    || goAways().stream().anyMatch(end -> end.getLastStreamId() < stream.getId());
        }

        public synchronized boolean hasEnded() {
            return ended;
        }

        public int status() throws InterruptedException {
            return head(0).getStatus();
        }

        private void awaitUntil(BooleanSupplier condition, String what)
                throws InterruptedException {
            final long deadline = System.nanoTime() + 60_000_000_000L;
            while (!condition.getAsBoolean()) {
                final long leftMs = (deadline - System.nanoTime()) / 1_000_000;
                if (leftMs <= 0 || (failure != null && !what.equals("a failure"))) {
                    throw new AssertionError(
                            what + " did not come; failure " + failure + ", " + heads + text);
                }
                wait(leftMs);
            }
        }
    }
}
