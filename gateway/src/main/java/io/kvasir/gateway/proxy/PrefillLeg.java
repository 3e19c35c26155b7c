package io.kvasir.gateway.proxy;

import io.kvasir.gateway.log.LogText;
import io.kvasir.gateway.log.RequestRecord;
import io.kvasir.gateway.routing.WorkerReservations;
import io.kvasir.gateway.upstream.FaultAttribution;
import io.kvasir.gateway.upstream.UpstreamFault;
import io.kvasir.protocol.handoff.MalformedJsonException;
import io.kvasir.protocol.handoff.VerbatimJson;

import org.eclipse.jetty.client.Response;
import org.eclipse.jetty.http.HttpFields;
import org.eclipse.jetty.http.HttpStatus;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

import java.io.EOFException;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.util.concurrent.atomic.AtomicBoolean;

/**
 * The request to one booked prefill worker, sent once, or again where the worker has not begun with
 * it. Its booking ends with it. Reports once: an answer with status 200, a refusal of the request
 * itself, a failure, or that it was aborted.
 */
final class PrefillLeg {
    private static final Logger LOG = LoggerFactory.getLogger(PrefillLeg.class);

    /** What becomes of it. */
    interface Listener {
        /**
         * What the whole answer comes to, called just before {@link #answered}.
         *
         * @return {@link #OK}, or what is wrong with it
         */
        String judge(VerbatimJson answer);

        /** The whole answer, as far as it is JSON; null where it is not. */
        void answered(VerbatimJson answer);

        /**
         * A 4xx: the worker finds fault with the request, as any other would.
         *
         * @param body what the worker says
         */
        void refused(int status, byte[] body);

        /** The worker failed. */
        void failed(UpstreamFault fault);

        /** What came of it could not be worked off, by a defect; it is over. */
        void defect();

        /** It was aborted while its worker may have it: what that holds is not known. */
        void aborted();
    }

    /** Outcome of an answer that does what it was asked for. */
    static final String OK = "ok";

    /** What the worker gets. */
    private record Message(String target, HttpFields headers, ByteBuffer body) {}

    private static final int MAX_ANSWER_BYTES = 16 << 20;

    private final ProxyContext context;
    private final ProxyRequest proxied;
    private final WorkerReservations.Booking booking;
    private final FaultAttribution faults;
    private final long startNs = System.nanoTime();
    private final RetryPolicy retries;
    private final Listener listener;
    private final AtomicBoolean over = new AtomicBoolean();
    private volatile UpstreamAttempt attempt;
    private volatile Message message; // null before it is sent
    private volatile boolean underWay; // its worker may have it
    private volatile long sentNs;
    private volatile int status; // of its answer, also one that an event states; 0 before the head
    private volatile BodyCollector collector;
    private volatile Runnable limit; // cancels it; null where none was set

    /**
     * @param faults of all prefills of the exchange
     * @param rules of the exchange
     */
    PrefillLeg(
            ProxyContext context,
            ProxyRequest proxied,
            WorkerReservations.Booking booking,
            FaultAttribution faults,
            RetryPolicy.Rules rules,
            Listener listener) {
        this.context = context;
        this.proxied = proxied;
        this.booking = booking;
        this.faults = faults;
        this.listener = listener;
        this.retries = RetryPolicy.of(rules);
        this.attempt = newAttempt();
        booking.decision().traceIn(proxied.record().trace());
    }

    WorkerReservations.Booking booking() {
        return booking;
    }

    private UpstreamAttempt newAttempt() {
        return new UpstreamAttempt(context, booking.upstream(), false, this::outcome);
    }

    /** Sends it; see {@link UpstreamAttempt#send}. */
    void send(String target, HttpFields headers, ByteBuffer body) {
        send(new Message(target, headers, body));
    }

    private void send(Message what) {
        message = what;
        underWay = true;
        if (over.get()) { // read after it is set: one that ends it reports what may be sent
            return;
        }
        retries.begun();
        sentNs = System.nanoTime();
        final UpstreamAttempt sent = attempt;
        sent.send(what.target, what.headers, what.body, retries.attempt() > 1);
        if (over.get()) {
            sent.abort(new EOFException("given up")); // before there was anything to abort
        }
    }

    /** When it was sent last. */
    long sentNs() {
        return sentNs;
    }

    /** Ends it; does nothing where it has ended before. */
    void abort(String why) {
        if (!end(why, 0)) {
            return;
        }
        attempt.abort(new EOFException(why));
        if (underWay) {
            listener.aborted();
        }
    }

    /** Whether it was sent, or is about to be sent again. */
    boolean isSent() {
        return message != null;
    }

    /** Whether its worker may have it; not while it waits to be sent again. */
    boolean isUnderWay() {
        return underWay;
    }

    /** Whether the worker has answered, if not to the end, that it has done its part. */
    boolean isAnswered() {
        return HttpStatus.isSuccess(status);
    }

    /**
     * Ends it after a time, unless it ends before; the first such limit holds. Called by one thread
     * at a time.
     */
    void abortAfter(long delayNs, String why) {
        if (limit != null) {
            return;
        }
        limit = context.split().deadlines().after(delayNs, () -> abort(why));
        if (over.get()) { // read after the limit is set: one of the two cancels it
            limit.run();
        }
    }

    boolean isOver() {
        return over.get();
    }

    /** A step that fails by a defect ends it; nothing else would. */
    private void guarded(Runnable step) {
        try {
            step.run();
        } catch (RuntimeException | Error e) {
            LOG.atError()
                    .addKeyValue(RequestRecord.LOG_KEY, proxied.requestId())
                    .setCause(LogText.of(e))
                    .log("the prefill of {} failed", proxied.requestId());
            var _ = end("internal", 0);
            attempt.abort(e);
            listener.defect();
        }
    }

    private void outcome(UpstreamAttempt.Outcome outcome) {
        guarded(() -> take(outcome));
    }

    private void take(UpstreamAttempt.Outcome outcome) {
        switch (outcome) {
            case UpstreamAttempt.Answered answer -> {
                status = answer.head().getStatus();
                collector =
                        new BodyCollector(
                                answer.content(),
                                MAX_ANSWER_BYTES,
                                context.answers(),
                                bytes -> guarded(() -> whole(read(answer.head(), bytes))),
                                failure ->
                                        failed(
                                                failure instanceof BodyCollector.NoMemoryException
                                                        ? UpstreamFault.MEMORY
                                                        : UpstreamFault.of(failure),
                                                UpstreamFault.describe(failure),
                                                true));
                collector.readOn();
            }
            case UpstreamAttempt.Broken _ -> {
                final BodyCollector reading = collector;
                if (reading != null) {
                    reading.broken();
                }
            }
            case UpstreamAttempt.Failed failure -> {
                if (failure.unprocessed()) {
                    unprocessed(failure);
                } else {
                    failed(failure.fault(), failure.cause(), failure.sent());
                }
            }
        }
    }

    /** No fault of the worker, which can take it. */
    private void unprocessed(UpstreamAttempt.Failed failure) {
        if (!retries.allowsAnother(failure.fault(), failure.sent())) {
            if (end(failure.unprocessedOutcome(), 0)) {
                listener.failed(failure.fault());
            }
        } else if (!over.get()) {
            context.metrics().attempt(booking.upstream().name(), failure.unprocessedOutcome());
            attempt = newAttempt();
            underWay = false;
            context.split()
                    .deadlines()
                    .after(retries.backoffNs(), () -> guarded(() -> send(message)));
        }
    }

    private PrefillAnswer read(Response head, byte[] bytes) {
        return PrefillAnswer.of(proxied.inference().route.form, head, bytes);
    }

    private void whole(PrefillAnswer answer) {
        status = answer.status();
        if (answer.fault() != null) {
            failed(answer.fault(), answer.cause(), true);
            return;
        }
        booking.upstream().answered();
        faults.answered();
        if (status != 200) {
            if (end("status", status)) {
                listener.refused(status, answer.body());
            }
            return;
        }
        if (!release(200)) {
            return;
        }
        context.feedback().completed(proxied, booking, booking.upstream(), answer.usage());
        final VerbatimJson parsed = parsed(answer.body());
        ended(listener.judge(parsed), 200); // its span takes nothing of the engine any more
        listener.answered(parsed);
    }

    private static VerbatimJson parsed(byte[] bytes) {
        try {
            return VerbatimJson.parse(bytes);
        } catch (MalformedJsonException e) {
            return null;
        }
    }

    private void failed(UpstreamFault fault, String cause, boolean sent) {
        booking.lease().workerFailed();
        if (end(fault.spelling(), 0)) {
            faults.failed(booking.upstream(), fault, cause, sent, attempt.lostConnection());
            if (fault == UpstreamFault.BUSY) {
                booking.lease().worker().full(cause, attempt.retryAfter());
            }
            attempt.abort(new IOException(cause)); // what is left of an answer is not read
            listener.failed(fault);
        }
    }

    /**
     * True for the one that ends it.
     *
     * @param with status of the answer; 0 without one
     */
    private boolean end(String outcome, int with) {
        if (!release(with)) {
            return false;
        }
        ended(outcome, with);
        return true;
    }

    /** Gives up what it holds; true for the one that ends it. */
    private boolean release(int with) {
        if (!over.compareAndSet(false, true)) {
            return false;
        }
        final Runnable running = limit;
        if (running != null) {
            running.run(); // else it holds the request's bytes until it fires
        }
        if (with == 200) {
            booking.lease().prefillComplete();
        }
        booking.lease().close();
        return true;
    }

    private void ended(String outcome, int with) {
        booking.decision().end(outcome, with, System.nanoTime() - startNs);
        context.metrics().attempt(booking.upstream().name(), outcome);
    }
}
