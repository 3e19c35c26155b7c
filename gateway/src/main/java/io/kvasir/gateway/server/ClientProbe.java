package io.kvasir.gateway.server;

import org.eclipse.jetty.http.HttpVersion;
import org.eclipse.jetty.io.EndPoint;
import org.eclipse.jetty.server.Request;

import java.io.EOFException;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.concurrent.Executor;
import java.util.concurrent.TimeUnit;
import java.util.function.Consumer;

/**
 * Finds out whether a client that has ended its sending side still reads. TCP says the same of one
 * that is closed and of one that waits for its answer; only what is written to them is answered
 * differently. Before the answer's head that is an interim answer, which every client of HTTP/1.1
 * skips; within an event stream it is a comment. The first write to a closed connection has it
 * reset, the next one fails.
 */
public final class ClientProbe {
    private static final byte[] INTERIM =
            "HTTP/1.1 100 Continue\r\n\r\n".getBytes(StandardCharsets.US_ASCII);

    private static final long FIRST_MS = 100;
    private static final long LAST_MS = 5_000;

    private final Request request;
    private final Consumer<Throwable> whenLeft;
    private Runnable comment; // guarded by this; null before the answer's head
    private boolean ended; // guarded by this
    private volatile boolean begun;

    /**
     * @param whenLeft called at most once, by a thread that may run for long
     */
    public ClientProbe(Request request, Consumer<Throwable> whenLeft) {
        this.request = request;
        this.whenLeft = whenLeft;
    }

    /** From now on the client is written to now and then. */
    public void begin() {
        begun = true;
        next(FIRST_MS, FIRST_MS);
    }

    /** Whether only a write tells if the client is still there. */
    public boolean hasBegun() {
        return begun;
    }

    private void next(long inMs, long thenInMs) {
        final Executor executor = request.getComponents().getExecutor();
        request.getComponents()
                .getScheduler()
                .schedule(
                        () -> executor.execute(() -> probe(thenInMs)), inMs, TimeUnit.MILLISECONDS);
    }

    private void probe(long nextMs) {
        try {
            if (write()) {
                next(nextMs, Math.min(LAST_MS, 2 * nextMs));
            }
        } catch (IOException e) {
            whenLeft.accept(e);
        }
    }

    /** False once there is nothing to find out. */
    private boolean write() throws IOException {
        final Runnable writeComment;
        synchronized (this) {
            if (ended) {
                return false;
            }
            writeComment = comment;
            if (writeComment == null) {
                return writeInterim();
            }
        }
        writeComment.run();
        return true;
    }

    private boolean writeInterim() throws IOException {
        if (request.getConnectionMetaData().getHttpVersion() != HttpVersion.HTTP_1_1) {
            return false; // HTTP/1.0 knows no interim answers: this client gets its answer
        }
        final EndPoint client = request.getConnectionMetaData().getConnection().getEndPoint();
        final ByteBuffer interim = ByteBuffer.wrap(INTERIM);
        if (!client.flush(interim) && interim.position() > 0) {
            throw new EOFException("the client takes no more bytes");
        }
        return true;
    }

    /**
     * The head of an answer is about to be sent; nothing is written before it from now on.
     *
     * @param writeComment writes a comment into the answer where it is an event stream
     */
    public synchronized void headFollows(Runnable writeComment) {
        comment = writeComment;
    }

    /** Nothing is written from now on. */
    public synchronized void end() {
        ended = true;
    }
}
