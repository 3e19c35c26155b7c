package io.kvasir.pipeline.publish;

import io.kvasir.pipeline.log.LogLimit;
import io.kvasir.pipeline.wire.KvBatch;
import io.kvasir.pipeline.zmtp.FailureWords;

import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

import java.io.IOException;
import java.io.InterruptedIOException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;

/**
 * Publishes the same events under the same numbers again until that succeeds, or it is closed.
 * Events that cannot be published at all are lost: their numbers are used up, so that readers know.
 */
final class PatientTransport implements RouterEventTransport {
    private static final Logger LOG = LoggerFactory.getLogger(PatientTransport.class);
    private static final long RETRY_MS = 200;

    private final RouterEventTransport transport;
    private final LogLimit lostLines = new LogLimit();
    private final AtomicLong failures = new AtomicLong();
    private final AtomicLong lost = new AtomicLong();
    private volatile String problem = "";
    private volatile boolean closed;

    PatientTransport(RouterEventTransport transport) {
        this.transport = transport;
    }

    @Override
    public void publish(long workerId, int dpRank, long firstEventId, KvBatch events)
            throws IOException {
        while (!closed) {
            try {
                transport.publish(workerId, dpRank, firstEventId, events);
                problem = "";
                return;
            } catch (UnpublishableException e) {
                lost(e, events.operations());
                return;
            } catch (IOException e) {
                failed(e);
            }
        }
        throw new IOException("closed before the events were published");
    }

    private void lost(UnpublishableException e, int count) {
        final String why = FailureWords.of(e);
        lost.getAndAdd(count);
        final String more = lostLines.take(System.nanoTime());
        if (more != null) {
            LOG.warn("{} events of an engine are lost to all readers: {}{}", count, why, more);
        }
        problem = why;
    }

    private void failed(IOException e) throws InterruptedIOException {
        final String why = FailureWords.of(e);
        failures.getAndIncrement();
        if (problem.isEmpty()) {
            LOG.warn("events of an engine cannot be published now: {}", why);
        }
        problem = why;
        try {
            TimeUnit.MILLISECONDS.sleep(RETRY_MS);
        } catch (InterruptedException interrupted) {
            Thread.currentThread().interrupt();
            throw new InterruptedIOException("interrupted");
        }
    }

    @Override
    public long maxMessageBytes() {
        return transport.maxMessageBytes();
    }

    @Override
    public long publisherId() {
        return transport.publisherId();
    }

    /** Events that could not be published at all. */
    long lost() {
        return lost.get();
    }

    long failures() {
        return failures.get();
    }

    /** Why the last try failed; empty since one succeeded. */
    String problem() {
        return problem;
    }

    @Override
    public void close() {
        closed = true;
        transport.close();
    }
}
