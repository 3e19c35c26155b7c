package io.kvasir.gateway.proxy;

import io.kvasir.gateway.server.AnswerMemory;

import org.eclipse.jetty.io.Content;

import java.io.IOException;
import java.net.ProtocolException;
import java.util.Arrays;
import java.util.function.Consumer;

/**
 * Reads an answer to its end, up to a limit and as far as there is memory, and reports once: the
 * bytes or a failure. Runs on I/O threads; never blocks.
 */
final class BodyCollector {
    /** There is no memory for more of the answer. */
    static final class NoMemoryException extends IOException {
        private static final long serialVersionUID = 1L;

        NoMemoryException() {
            super("no memory for more of an answer");
        }
    }

    private static final long UNKNOWN_LENGTH = -1;

    private final Content.Source source;
    private final int limit;
    private final Consumer<byte[]> whole;
    private final Consumer<Throwable> failed;
    private final HeldAnswer held; // guarded by this until it has ended
    private boolean demanded; // guarded by this
    private boolean ended; // guarded by this

    /**
     * @param limit most bytes; a longer answer is a failure
     * @param memory what the bytes are counted in until one of the next two has returned
     */
    BodyCollector(
            Content.Source source,
            int limit,
            AnswerMemory memory,
            Consumer<byte[]> whole,
            Consumer<Throwable> failed) {
        this.source = source;
        this.held = new HeldAnswer(memory, UNKNOWN_LENGTH);
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
        try {
            if (failure == null) {
                final int length = held.length();
                whole.accept(Arrays.copyOf(held.takeArray(), length));
            } else {
                failed.accept(failure);
            }
        } finally {
            held.free();
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
            final boolean hasMemory = held.add(chunk.getByteBuffer());
            chunk.release();
            if (held.length() > limit) {
                ended = true;
                return new ProtocolException("an answer of more than " + limit + " bytes");
            }
            if (!hasMemory) {
                ended = true;
                return new NoMemoryException();
            }
            if (ended) {
                return null;
            }
        }
    }
}
