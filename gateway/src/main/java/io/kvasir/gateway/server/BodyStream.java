package io.kvasir.gateway.server;

import io.kvasir.gateway.openai.ApiException;

import org.eclipse.jetty.io.Content;
import org.eclipse.jetty.server.Request;
import org.eclipse.jetty.util.thread.Invocable;

import java.io.IOException;
import java.io.InputStream;
import java.io.InterruptedIOException;
import java.nio.ByteBuffer;
import java.util.concurrent.Semaphore;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.function.Consumer;

/**
 * The bytes of a request's body as they arrive, within a limit of time that grows with them. One
 * thread, which is blocked while it waits; any thread may cut it.
 */
final class BodyStream extends InputStream {
    private static final long NS_PER_S = 1_000_000_000L;

    private final Request request;
    private final long beganNs = System.nanoTime();
    private final long limitNs;
    private final long bytesPerSecond;
    private final BodyReader.Limit limit;
    private final Consumer<BodyStream> closed;
    private final Semaphore arrival = new Semaphore(0);
    private final Runnable onArrival =
            Invocable.from(Invocable.InvocationType.NON_BLOCKING, arrival::release);
    private long arrived;
    private Content.Chunk chunk; // some of its bytes are to be read; null for none
    private boolean ended;
    private IOException failure;
    private volatile boolean cut;

    /**
     * @param limitNs longest time of a body without bytes
     * @param bytesPerSecond so many bytes prolong it by a second; 0 for none
     * @param limit bytes that are read; reading further fails with a 413 as its cause
     * @param closed called by {@link #close}
     */
    BodyStream(
            Request request,
            long limitNs,
            long bytesPerSecond,
            BodyReader.Limit limit,
            Consumer<BodyStream> closed) {
        this.request = request;
        this.limitNs = limitNs;
        this.bytesPerSecond = bytesPerSecond;
        this.limit = limit;
        this.closed = closed;
    }

    @Override
    public int read() throws IOException {
        final byte[] one = new byte[1];
        return read(one, 0, 1) < 0 ? -1 : one[0] & 0xFF;
    }

    @Override
    public int read(byte[] to, int offset, int length) throws IOException {
        if (length == 0) {
            return 0;
        }
        if (!next()) {
            return -1;
        }
        final ByteBuffer bytes = chunk.getByteBuffer();
        final int count = Math.min(length, bytes.remaining());
        bytes.get(to, offset, count);
        if (!bytes.hasRemaining()) {
            release();
        }
        return count;
    }

    /** A stream after this one may ask whether the end is reached; until then it is not. */
    @Override
    public int available() {
        return chunk != null ? chunk.getByteBuffer().remaining() : ended ? 0 : 1;
    }

    /** Reads and throws away so many bytes at most, or a chunk more. */
    void discard(long most) throws IOException {
        for (long left = most; left > 0 && next(); release()) {
            left -= chunk.remaining();
        }
    }

    /** Has reading fail where more is waited for, now or later: the gateway ends. */
    void cut() {
        cut = true;
        arrival.release();
    }

    /** Waits for a chunk with bytes; false at the end. */
    private boolean next() throws IOException {
        while (chunk == null) {
            if (ended) {
                return false;
            }
            if (failure != null) {
                throw failure;
            }
            final Content.Chunk read = request.read();
            if (read == null) {
                await();
            } else if (Content.Chunk.isFailure(read)) {
                throw failed(read.getFailure());
            } else {
                take(read);
            }
        }
        return true;
    }

    private void take(Content.Chunk read) throws IOException {
        ended = read.isLast();
        arrived += read.remaining();
        if (arrived > limit.bytes()) {
            read.release();
            throw failed(limit.exceeded(-1));
        }
        if (read.hasRemaining()) {
            chunk = read;
        } else {
            read.release();
        }
    }

    private void await() throws IOException {
        request.demand(onArrival);
        awaitArrival();
        if (cut) {
            throw failed(ApiException.draining());
        }
    }

    private void awaitArrival() throws IOException {
        final long leftNs = beganNs + limitNs + prolongedNs() - System.nanoTime();
        try {
            if (!arrival.tryAcquire(leftNs, TimeUnit.NANOSECONDS)) {
                throw failed(new TimeoutException("the request body did not arrive in time"));
            }
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            throw (IOException) new InterruptedIOException("interrupted").initCause(e);
        }
    }

    private long prolongedNs() {
        return bytesPerSecond == 0 ? 0 : arrived * NS_PER_S / bytesPerSecond;
    }

    /** What has failed once stays so: a demand may be under way that nothing waits for. */
    private IOException failed(Throwable cause) {
        failure = new IOException(cause.getMessage(), cause);
        return failure;
    }

    private void release() {
        chunk.release();
        chunk = null;
    }

    @Override
    public void close() {
        closed.accept(this);
        if (chunk != null) {
            release();
        }
    }
}
