package io.kvasir.gateway.server;

import io.kvasir.gateway.openai.ApiException;

import org.eclipse.jetty.http.HttpHeader;
import org.eclipse.jetty.http.HttpStatus;
import org.eclipse.jetty.http.HttpVersion;
import org.eclipse.jetty.io.AbstractEndPoint;
import org.eclipse.jetty.io.Connection;
import org.eclipse.jetty.io.EndPoint;
import org.eclipse.jetty.server.Connector;
import org.eclipse.jetty.server.HttpConfiguration;
import org.eclipse.jetty.server.HttpConnectionFactory;
import org.eclipse.jetty.server.internal.HttpConnection;
import org.eclipse.jetty.util.Callback;
import org.eclipse.jetty.util.thread.Scheduler;

import java.io.EOFException;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;

/**
 * An HTTP/1.1 connection of a client, with a limit of time for each request's head, as the idle
 * timeout begins again with each byte, and known to be idle where it is. There is no timer where a
 * head arrives at once.
 *
 * <p>What is not said to be otherwise runs on the thread that reads the connection.
 */
final class LimitedHttpConnection extends HttpConnection implements IdleConnection {
    private final long limitNs;
    private long requestsBefore; // when it was idle last
    private long bytesBefore;
    private volatile long headBeganNs; // read where a head is awaited
    private volatile long idleSinceNs; // 0 where a request is under way or has begun to come
    private volatile long headReadNs; // read where a head is awaited
    private volatile boolean awaitsHead; // some of it has come, and more is waited for
    private volatile boolean timed;
    private volatile Scheduler.Task timer;

    private LimitedHttpConnection(
            HttpConfiguration http, Connector connector, EndPoint endPoint, long limitNs) {
        super(http, connector, endPoint);
        this.limitNs = limitNs;
    }

    /** Makes such connections. */
    static final class Factory extends HttpConnectionFactory {
        private final Duration headTimeout;

        Factory(HttpConfiguration http, Duration headTimeout) {
            super(http);
            this.headTimeout = headTimeout;
        }

        @Override
        public Connection newConnection(Connector connector, EndPoint endPoint) {
            final LimitedHttpConnection connection =
                    new LimitedHttpConnection(
                            getHttpConfiguration(), connector, endPoint, headTimeout.toNanos());
            connection.setTransferEncodingChunkMaxLength(getTransferEncodingChunkMaxLength());
            return configure(connection, connector, endPoint);
        }
    }

    @Override
    public void onFillable() {
        awaitsHead = false;
        idleSinceNs = 0;
        super.onFillable();
    }

    /** Called between requests and within heads alone: bodies are waited for in another way. */
    @Override
    public void fillInterested(Callback callback) {
        if (headHasBegun()) {
            if (headBeganNs == 0) {
                headBeganNs = IdleConnection.nowNs();
            }
            headReadNs = IdleConnection.nowNs();
            awaitsHead = true;
            if (!timed) {
                schedule(limitNs - (System.nanoTime() - headBeganNs));
            }
        } else {
            headBeganNs = 0;
            idleSinceNs = IdleConnection.nowNs();
        }
        super.fillInterested(callback);
    }

    @Override
    public long idleSinceNs() {
        return idleSinceNs;
    }

    @Override
    public long silentSinceNs() {
        return awaitsHead ? headReadNs : idleSinceNs;
    }

    @Override
    public void cutHead() {
        if (awaitsHead) {
            endHead(ApiException.draining());
        }
    }

    @Override
    public void closeIfIdle() {
        if (idleSinceNs != 0 && getEndPoint() instanceof AbstractEndPoint endPoint) {
            endPoint.getFillInterest().onFail(new EOFException("idle at max-connections"));
        }
    }

    /**
     * Empty lines before a head are a part of it, which the parser does not say. After an answer
     * that was the connection's last there is none: only its end is waited for.
     */
    private boolean headHasBegun() {
        if (getEndPoint().isOutputShutdown()) {
            return false;
        }
        if (!getParser().isStart()) {
            return true;
        }
        final long requests = getMessagesIn();
        final long bytes = getBytesIn();
        if (requests == requestsBefore) {
            return bytes != bytesBefore;
        }
        requestsBefore = requests;
        bytesBefore = bytes;
        return false;
    }

    private void schedule(long inNs) {
        timed = true;
        timer =
                getConnector()
                        .getScheduler()
                        .schedule(this::checkHead, Math.max(1, inNs), TimeUnit.NANOSECONDS);
    }

    /** By the timer: the flag falls first, so that a head that waits again sees it. */
    private void checkHead() {
        timed = false;
        if (!awaitsHead) {
            return;
        }
        final long leftNs = limitNs - (System.nanoTime() - headBeganNs);
        if (leftNs > 0) {
            schedule(leftNs);
        } else {
            endHead(
                    ApiException.client(
                            HttpStatus.REQUEST_TIMEOUT_408,
                            null,
                            null,
                            "timeout",
                            "the request's head did not arrive in time"));
        }
    }

    /** Takes the connection's callback out, so that nothing is read any more. */
    private void endHead(ApiException error) {
        if (getEndPoint() instanceof AbstractEndPoint endPoint) {
            endPoint.getFillInterest().onFail(new EndedHeadException(error));
        }
    }

    @Override
    public void onFillInterestedFailed(Throwable cause) {
        if (cause instanceof EndedHeadException ended) {
            getEndPoint()
                    .write(
                            Callback.from(() -> super.onFillInterestedFailed(cause)),
                            ByteBuffer.wrap(answer(ended.error)));
        } else {
            super.onFillInterestedFailed(cause);
        }
    }

    /** No request, no answer: the bytes of one are written by hand. */
    private static byte[] answer(ApiException error) {
        final String body = error.json(null).toString();
        final StringBuilder answer = new StringBuilder();
        answer.append(HttpVersion.HTTP_1_1).append(' ').append(error.status()).append(' ');
        answer.append(HttpStatus.getMessage(error.status())).append("\r\n");
        put(answer, HttpHeader.CONTENT_TYPE, Responses.JSON);
        put(answer, HttpHeader.CONTENT_LENGTH, body.length());
        if (error.status() == HttpStatus.SERVICE_UNAVAILABLE_503) {
            put(answer, HttpHeader.RETRY_AFTER, 1);
        }
        put(answer, HttpHeader.CONNECTION, "close");
        return answer.append("\r\n").append(body).toString().getBytes(StandardCharsets.US_ASCII);
    }

    private static void put(StringBuilder answer, HttpHeader name, Object value) {
        answer.append(name).append(": ").append(value).append("\r\n");
    }

    @Override
    public void onClose(Throwable cause) {
        final Scheduler.Task last = timer;
        if (last != null) {
            last.cancel();
        }
        super.onClose(cause);
    }

    /** How a pending read is taken back from a connection whose head is awaited no longer. */
    private static final class EndedHeadException extends TimeoutException {
        private static final long serialVersionUID = 1L;

        private final transient ApiException error;

        EndedHeadException(ApiException error) {
            super(error.getMessage());
            this.error = error;
        }
    }
}
