package io.kvasir.gateway.proxy;

import org.eclipse.jetty.io.Content;
import org.eclipse.jetty.util.BufferUtil;

import java.io.ByteArrayOutputStream;
import java.net.ProtocolException;
import java.util.function.Consumer;

/**
 * Reads an answer to its end, up to a limit, and reports once: the bytes or a failure. Runs on I/O
 * threads; never blocks.
 */
final class BodyCollector {
    private final Content.Source source;
    private final int limit;
    private final Consumer<byte[]> whole;
    private final Consumer<Throwable> failed;
    private final ByteArrayOutputStream bytes = new ByteArrayOutputStream(1024);
    private boolean demanded; // guarded by this
    private boolean ended; // guarded by this

    /**
     * @param limit most bytes; a longer answer is a failure
     */
    BodyCollector(
            Content.Source source, int limit, Consumer<byte[]> whole, Consumer<Throwable> failed) {
        this.source = source;
        this.limit = limit;
        this.whole = whole;
        this.failed = failed;
    }

    /** Begins, and continues where there may be something to read. */
    void readOn() {
        final Throwable failure;
        synchronized (this) {
            if (ended || demanded) {
                return;
            }
            failure = read();
            if (!ended) {
                demanded = true;
                source.demand(this::demandMet);
                return;
            }
        }
        if (failure == null) {
            whole.accept(bytes.toByteArray());
        } else {
            failed.accept(failure);
        }
    }

    /** The answer has broken off: reading gives the failure, whether or not it was asked for. */
    void broken() {
        demandMet();
    }

    private void demandMet() {
        synchronized (this) {
            demanded = false;
        }
        readOn();
    }

    /** Takes what is there; null unless it fails. */
    private Throwable read() {
        while (true) {
            final Content.Chunk chunk = source.read();
            if (chunk == null) {
                return null;
            }
            if (Content.Chunk.isFailure(chunk)) {
                ended = true;
                return chunk.getFailure();
            }
            ended = chunk.isLast();
            bytes.writeBytes(BufferUtil.toArray(chunk.getByteBuffer()));
            chunk.release();
            if (bytes.size() > limit) {
                ended = true;
                return new ProtocolException("an answer of more than " + limit + " bytes");
            }
            if (ended) {
                return null;
            }
        }
    }
}
