package io.kvasir.gateway.server;

import org.eclipse.jetty.http.HttpVersion;
import org.eclipse.jetty.io.AbstractConnection;
import org.eclipse.jetty.io.AbstractEndPoint;
import org.eclipse.jetty.io.Connection;
import org.eclipse.jetty.io.Content;
import org.eclipse.jetty.io.EndPoint;
import org.eclipse.jetty.io.EofException;
import org.eclipse.jetty.server.Request;
import org.eclipse.jetty.util.Callback;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.util.function.Consumer;

/**
 * Sees that the client of a request leaves while its answer is still being made.
 *
 * <p>A connection of HTTP/2 is read all the time, so the server says itself that a stream was reset
 * or its connection closed. Of HTTP/1.1 the watch reads from the connection: once a request's body
 * is read the server does not read from its connection until the answer is complete, so a closed
 * connection would only show when a write fails: never while an engine is still prefilling. The
 * watch asks for the connection's next read event itself. It must be {@linkplain #cancel cancelled}
 * before the last byte of the answer is written: then the next request may arrive, and that is the
 * server's to read. Bytes that arrive earlier (an empty line, a pipelined request) are kept and
 * handed to the connection then.
 *
 * <p>A client that has ended its sending side may still read, and one that sends more than is kept
 * can no longer be watched by reading: both are reported as silent.
 */
public final class DisconnectWatcher implements Callback {
    private enum State {
        NEW,
        ARMED,
        ENDED
    }

    private final Request request;
    private final Connection connection;
    private final AbstractEndPoint endPoint;
    private final Runnable whenSilent;
    private final Consumer<Throwable> whenLeft;
    private State state = State.NEW;
    private ByteBuffer early; // null before the first early byte; ready to be filled

    /**
     * @param request its body must have been read to the end before {@link #arm}
     * @param whenSilent called at most once, on an I/O thread, when nothing more can be read
     * @param whenLeft called when the client has left, of HTTP/2 maybe twice and by the caller of
     *     {@link #arm}; must not block
     */
    public DisconnectWatcher(Request request, Runnable whenSilent, Consumer<Throwable> whenLeft) {
        this.request = request;
        this.connection = request.getConnectionMetaData().getConnection();
        final EndPoint e = connection.getEndPoint();
        this.endPoint = e instanceof AbstractEndPoint a ? a : null;
        this.whenSilent = whenSilent;
        this.whenLeft = whenLeft;
    }

    /** Starts watching; nothing happens where the connection cannot be watched. */
    public void arm() {
        if (request.getConnectionMetaData().getHttpVersion() == HttpVersion.HTTP_2) {
            listen();
        } else {
            read();
        }
    }

    private void listen() {
        request.addFailureListener(whenLeft);
        // a listener that comes after the failure is not called
        final Content.Chunk end = request.read();
        if (Content.Chunk.isFailure(end)) {
            whenLeft.accept(new EofException(end.getFailure())); // of the kind that is not logged
        } else if (end != null) {
            end.release();
        }
    }

    private synchronized void read() {
        if (state != State.NEW
                || endPoint == null
                || !(connection instanceof Connection.UpgradeFrom)
                || !(connection instanceof Connection.UpgradeTo)) {
            return;
        }
        state = endPoint.tryFillInterested(this) ? State.ARMED : State.ENDED;
    }

    /** Ends the watch; afterwards nothing is read from the connection any more. */
    public void cancel() {
        final boolean armed;
        final ByteBuffer kept;
        synchronized (this) {
            armed = state == State.ARMED;
            state = State.ENDED;
            kept = early;
            early = null;
        }
        if (armed) {
            // takes this callback out; a no-op when the event was just taken by another thread,
            // which then finds the watch ended and leaves the bytes where they are
            endPoint.getFillInterest().onFail(new WatchEnded());
        }
        if (kept != null) {
            ((Connection.UpgradeTo) connection).onUpgradeTo(kept.flip());
        }
    }

    @Override
    public void succeeded() {
        synchronized (this) {
            if (state != State.ARMED) {
                return;
            }
            state = State.ENDED;
            if (canReadMore()) {
                state = endPoint.tryFillInterested(this) ? State.ARMED : State.ENDED;
                return;
            }
        }
        whenSilent.run();
    }

    /** Takes what has arrived; false at the end of the stream and where no room is left. */
    private boolean canReadMore() {
        if (early == null) {
            early = earlierBytes();
        }
        try {
            while (early.hasRemaining()) {
                // the end point takes a buffer that is ready to be read, and fills it after its
                // limit
                final int filled = endPoint.fill(early.slice().limit(0));
                if (filled <= 0) {
                    return filled == 0;
                }
                early.position(early.position() + filled);
            }
        } catch (IOException e) {
            return false; // the next write says so, too
        }
        return false;
    }

    /** As much room as the connection has, with what it has read beyond the body. */
    private ByteBuffer earlierBytes() {
        final ByteBuffer all =
                ByteBuffer.allocate(
                        connection instanceof AbstractConnection c ? c.getInputBufferSize() : 1024);
        final ByteBuffer unconsumed = ((Connection.UpgradeFrom) connection).onUpgradeFrom();
        return unconsumed == null ? all : all.put(unconsumed);
    }

    @Override
    public void failed(Throwable cause) {
        synchronized (this) {
            if (state != State.ARMED) {
                return;
            }
            state = State.ENDED;
        }
        whenLeft.accept(cause);
    }

    @Override
    public InvocationType getInvocationType() {
        return InvocationType.NON_BLOCKING;
    }

    /** Tells {@link #failed} nothing; it is how a pending read event is taken back. */
    private static final class WatchEnded extends Exception {
        private static final long serialVersionUID = 1L;

        WatchEnded() {
            super("watch ended", null, false, false);
        }
    }
}
