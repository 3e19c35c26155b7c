package io.kvasir.gateway;

import org.eclipse.jetty.io.AbstractEndPoint;
import org.eclipse.jetty.io.Connection;
import org.eclipse.jetty.io.EndPoint;
import org.eclipse.jetty.server.Request;
import org.eclipse.jetty.util.Callback;

import java.io.EOFException;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.util.function.Consumer;

/**
 * Notices that the client of an HTTP/1.1 request has gone while its answer is still being made.
 *
 * <p>Once a request's body is read the server does not read from its connection until the answer is
 * complete, so a closed connection would only show when a write fails: never while an engine is
 * still prefilling. The watch asks for the connection's next read event itself. It must be
 * {@linkplain #cancel cancelled} before the last byte of the answer is written: then the next
 * request may arrive, and that is the server's to read. Bytes that arrive earlier (a pipelined
 * request) are handed to the connection, to be parsed after this answer, and the watch ends. A
 * client that shuts down its sending side counts as gone.
 */
final class ClientWatch implements Callback {
    private static final int PIPELINED_BYTES = 1024;

    private enum State {
        NEW,
        ARMED,
        ENDED
    }

    private final Connection connection;
    private final AbstractEndPoint endPoint;
    private final Consumer<Throwable> whenGone;
    private State state = State.NEW;

    /**
     * @param request its body must have been read to the end before {@link #arm}
     * @param whenGone called at most once, on an I/O thread; must not block
     */
    ClientWatch(Request request, Consumer<Throwable> whenGone) {
        this.connection = request.getConnectionMetaData().getConnection();
        final EndPoint e = connection.getEndPoint();
        this.endPoint = e instanceof AbstractEndPoint a ? a : null;
        this.whenGone = whenGone;
    }

    /**
     * Starts watching; nothing happens where the connection cannot be watched (HTTP/2 tells by
     * itself).
     */
    synchronized void arm() {
        if (state != State.NEW
                || endPoint == null
                || !(connection instanceof Connection.UpgradeTo)) {
            return;
        }
        state = State.ARMED;
        if (!endPoint.tryFillInterested(this)) {
            state = State.ENDED;
        }
    }

    /** Ends the watch; afterwards nothing is read from the connection any more. */
    void cancel() {
        synchronized (this) {
            if (state != State.ARMED) {
                state = State.ENDED;
                return;
            }
            state = State.ENDED;
        }
        // takes this callback out; a no-op when the event was just taken by another thread,
        // which then finds the watch ended and leaves the bytes where they are
        endPoint.getFillInterest().onFail(new WatchEnded());
    }

    @Override
    public void succeeded() {
        Throwable gone = null;
        synchronized (this) {
            if (state != State.ARMED) {
                return;
            }
            state = State.ENDED;
            try {
                final ByteBuffer pipelined = ByteBuffer.allocate(PIPELINED_BYTES).limit(0);
                final int filled = endPoint.fill(pipelined);
                if (filled < 0) {
                    gone = new EOFException("the client closed the connection");
                } else if (filled > 0) {
                    ((Connection.UpgradeTo) connection).onUpgradeTo(pipelined);
                } else {
                    state = State.ARMED; // a spurious event
                    if (!endPoint.tryFillInterested(this)) {
                        state = State.ENDED;
                    }
                }
            } catch (IOException e) {
                gone = e;
            }
        }
        if (gone != null) {
            whenGone.accept(gone);
        }
    }

    @Override
    public void failed(Throwable cause) {
        synchronized (this) {
            if (state != State.ARMED) {
                return;
            }
            state = State.ENDED;
        }
        whenGone.accept(cause);
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
