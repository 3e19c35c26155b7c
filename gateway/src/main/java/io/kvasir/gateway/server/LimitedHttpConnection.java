package io.kvasir.gateway.server;

import org.eclipse.jetty.http.HttpField;
import org.eclipse.jetty.http.HttpHeader;
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
import java.time.Duration;
import java.util.concurrent.TimeUnit;

/**
 * An HTTP/1.1 connection of a client, with a limit of time for each request's head, as the idle
 * timeout begins again with each byte, and known to be idle where it is. There is no timer where a
 * head arrives at once.
 *
 * <p>What is not said to be otherwise runs on the thread that reads the connection.
 */
final class LimitedHttpConnection extends HttpConnection implements IdleConnection {
    private final long limitNs;
    private RequestHandler requests; // set by the constructor above, so it has no value here
    private long requestsBefore; // when it was idle last
    private long bytesBefore;
    private volatile long headBeganNs; // read where a head is awaited
    private volatile long idleSinceNs; // 0 where a request is under way or has begun to come
    private volatile long headReadNs; // read where a head is awaited
    private volatile boolean awaitsHead; // some of it has come, and more is waited for
    private volatile boolean cut; // by one thread, the one that ends the gateway
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
    protected RequestHandler newRequestHandler() {
        requests = new WithoutUpgrades();
        return requests;
    }

    /**
     * {@code Upgrade} is ignored, as no server has to take one up, and none may where {@code
     * Connection} does not name it (RFC 9110, 7.8). Jetty would answer 400 then.
     */
    private final class WithoutUpgrades extends RequestHandler {
        @Override
        public void parsedHeader(HttpField field) {
            if (field.getHeader() != HttpHeader.UPGRADE) {
                super.parsedHeader(field);
            }
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
    public long headSinceNs() {
        return awaitsHead ? headBeganNs : 0;
    }

    @Override
    public void endHead() {
        if (awaitsHead) {
            var _ = end(EndedHead.late(headBeganNs)); // false: the rest of it has come
        }
    }

    @Override
    public boolean cutHead() {
        if (awaitsHead && !cut) {
            cut = end(EndedHead.cut(headBeganNs));
        }
        return cut;
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
            endHead();
        }
    }

    /**
     * Takes the connection's callback out, so that nothing is read any more.
     *
     * @return false if it is out already: the rest of the head has come
     */
    private boolean end(EndedHead head) {
        return getEndPoint() instanceof AbstractEndPoint endPoint
                && endPoint.getFillInterest().onFail(head);
    }

    /** Such a head is answered, logged and counted as what the parser refuses is. */
    @Override
    public void onFillInterestedFailed(Throwable cause) {
        if (cause instanceof EndedHead head) {
            getParser().close(); // reads no rest of it for the answer
            requests.badMessage(head);
        } else {
            super.onFillInterestedFailed(cause);
        }
    }

    @Override
    public void onClose(Throwable cause) {
        final Scheduler.Task last = timer;
        if (last != null) {
            last.cancel();
        }
        super.onClose(cause);
    }
}
