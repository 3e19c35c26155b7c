package io.kvasir.gateway.proxy;

import io.kvasir.gateway.log.LogText;
import io.kvasir.gateway.log.RequestRecord;
import io.kvasir.gateway.openai.ApiException;
import io.kvasir.gateway.openai.ChatAnswer;
import io.kvasir.gateway.openai.InferenceRequest;
import io.kvasir.gateway.openai.UsageReader;
import io.kvasir.gateway.routing.DecisionRecord;
import io.kvasir.gateway.routing.RequestPart;
import io.kvasir.gateway.routing.RoutingHeaders;
import io.kvasir.gateway.routing.WorkerReservations;
import io.kvasir.gateway.server.ClientProbe;
import io.kvasir.gateway.server.DisconnectWatcher;
import io.kvasir.gateway.server.RequestRecords;
import io.kvasir.gateway.server.Responses;
import io.kvasir.gateway.server.StalledWrite;
import io.kvasir.gateway.upstream.FaultAttribution;
import io.kvasir.gateway.upstream.Upstream;
import io.kvasir.gateway.upstream.UpstreamFault;
import io.kvasir.gateway.upstream.WorkerPool;
import io.kvasir.router.Lease;
import io.kvasir.router.PromptEnd;
import io.kvasir.router.Worker;
import io.kvasir.router.disagg.Leg;
import io.kvasir.router.disagg.LegFailure;
import io.kvasir.router.settings.Settings;

import org.eclipse.jetty.http.HttpFields;
import org.eclipse.jetty.io.Content;
import org.eclipse.jetty.server.Request;
import org.eclipse.jetty.server.Response;
import org.eclipse.jetty.util.Callback;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import org.slf4j.event.Level;
import org.slf4j.spi.LoggingEventBuilder;

import java.io.EOFException;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.function.Consumer;

/**
 * One inference request on its way: which worker is tried, whether another one follows, and when
 * the booking is released. As long as the client has not got a byte, a failing worker is replaced
 * by another one; afterwards the failure is written into the stream.
 *
 * <p>After {@link #start} everything happens on I/O threads and nothing blocks. The exchange ends
 * once: by the answer's last byte, an error answer, or the client leaving. What ends it frees the
 * lease.
 */
public final class ProxyExchange {
    private static final Logger LOG = LoggerFactory.getLogger(ProxyExchange.class);
    private static final String NO_WORKER = "no_worker"; // kind of a leg's failure

    /** The most of an answer's end that a connection takes at once. */
    private static final int AT_ONCE_BYTES = 64 << 10;

    private final ProxyContext context;
    private final ProxyRequest proxied;
    private final Request request;
    private final Response response;
    private final Callback callback;
    private final ClientProbe clientProbe;
    private final DisconnectWatcher watch;
    private final SplitExchange split; // null where no request is split

    // touched by one attempt at a time
    private final RetryPolicy retries;
    private final FaultAttribution faults;
    private final List<Worker> excluded = new ArrayList<>(2);

    // guarded by this
    private BookedAttempt current;
    private boolean committed; // the client gets the current attempt's answer
    private boolean ended;

    private StalledWrite stalled; // set before anything is written
    private volatile QueuedBooking queued; // null where it has not waited
    private volatile boolean cut;
    private volatile int decode; // the flow's number of the current one; 0 where there is none
    private volatile ApiException lastError; // of the decode side while the request is split
    private volatile String lastFailure; // of an attempt, for operators; null where none failed

    /** Prepares an exchange; nothing happens before {@link #start}. */
    public ProxyExchange(
            ProxyContext context,
            ProxyRequest proxied,
            Request request,
            Response response,
            Callback callback) {
        this.context = context;
        this.proxied = proxied;
        this.request = request;
        this.response = response;
        this.callback = callback;
        final Settings settings = context.config().settings(); // read once: one version of all
        final RetryPolicy.Rules rules = RetryPolicy.Rules.of(settings);
        this.retries = RetryPolicy.of(rules);
        this.faults = new FaultAttribution(proxied.body());
        this.clientProbe = new ClientProbe(request, this::clientLeft);
        this.watch = new DisconnectWatcher(request, clientProbe::begin, this::clientLeft);
        this.split =
                context.registry().routerOrNull(WorkerPool.PREFILL) != null
                        ? new SplitExchange(
                                context,
                                proxied,
                                request,
                                new DecodeSide(),
                                SplitContext.rules(settings),
                                rules)
                        : null;
    }

    /** Books and sends; the caller is done. */
    public void start() {
        stalled = StalledWrite.of(request);
        request.addFailureListener(this::clientLeft);
        context.running().add(this);
        final String model = context.registry().model();
        context.metrics().byModel().started(model);
        Request.addCompletionListener(
                request,
                _ -> {
                    context.running().remove(this);
                    context.metrics().byModel().over(model);
                });
        watch.arm();
        guarded(
                () -> {
                    if (split != null && split.waitsForPrefill()) {
                        admit(split.prefillPart(), split::startWith, this::noPrefill);
                    } else if (split != null) {
                        split.flow().start();
                    } else if (context.reservations().waits(RequestPart.WHOLE)) {
                        admit(RequestPart.WHOLE, this::sendFirst, this::respond);
                    } else {
                        next(null);
                    }
                });
    }

    /**
     * Ends it because the gateway ends: by an error answer, or a last event that says so. Does
     * nothing to one that has ended.
     */
    public void cut() {
        cut = true;
        if (split != null) {
            split.cut();
        }
        if (endUnanswered()) {
            guarded(this::answerCut);
            return;
        }
        final BookedAttempt tried = current();
        if (tried != null) {
            tried.attempt.abort(new EOFException("the gateway ends")); // the pump finds it
        }
    }

    private void answerCut() {
        answer(ApiException.draining());
        final BookedAttempt tried = current();
        if (tried != null) {
            tried.abandon("draining", 503, new EOFException("the gateway ends"));
        }
    }

    /** A step that fails by a defect ends the exchange; nothing else would. */
    private void guarded(Runnable step) {
        try {
            step.run();
        } catch (RuntimeException | Error e) {
            failedBy(e);
        }
    }

    /** Ends it by an error answer, or breaks off the answer that the client has a part of. */
    private void failedBy(Throwable defect) {
        log(Level.ERROR).setCause(LogText.of(defect)).log("{} failed", proxied.requestId());
        final BookedAttempt tried = current();
        if (tried != null) {
            tried.abandon("internal", 500, defect);
        }
        if (!isCommitted()) {
            respond(
                    ApiException.internal(
                            "internal error; the gateway's log has request "
                                    + proxied.requestId()));
        } else if (end()) {
            faults.ended();
            endWatch();
            finished(500);
            callback.failed(defect);
        }
    }

    private synchronized boolean isCommitted() {
        return committed;
    }

    /** Where there is no prefill worker at all, the flow finds what else can be done. */
    private void noPrefill(ApiException why) {
        if (why.isOfQueue()) {
            respond(why);
        } else {
            split.flow().start();
        }
    }

    private void sendFirst(WorkerReservations.Booking booking) {
        final BookedAttempt tried = begin(booking);
        if (tried != null) {
            dispatch(tried);
        }
    }

    /**
     * Books the first attempt, at once or when a worker has room; gives it up with the exchange.
     */
    private void admit(
            RequestPart part,
            Consumer<WorkerReservations.Booking> booked,
            Consumer<ApiException> refused) {
        final QueuedBooking begun =
                QueuedBooking.begin(
                        context.reservations(),
                        part,
                        proxied,
                        next -> context.client().getExecutor().execute(() -> guarded(next)),
                        booked,
                        refused);
        queued = begun;
        if (hasEnded()) {
            begun.giveUp();
        }
    }

    private synchronized boolean hasEnded() {
        return ended;
    }

    /** Starts an attempt, or ends with what went wrong. */
    private void next(ApiException failure) {
        try {
            final BookedAttempt tried = begin(reserve());
            if (tried != null) {
                dispatch(tried);
            }
        } catch (ApiException e) {
            respond(failure == null ? e : failure);
        }
    }

    private WorkerReservations.Booking reserve() throws ApiException {
        return context.reservations()
                .reserve(
                        split == null ? RequestPart.WHOLE : split.decodePart(),
                        proxied.prompt(),
                        excluded,
                        proxied.requestId(),
                        proxied.inference().route.label,
                        retries.attempt() + 1);
    }

    /** Has an attempt be the current one; null where the exchange has ended. */
    private BookedAttempt begin(WorkerReservations.Booking booking) {
        final BookedAttempt tried =
                new BookedAttempt(booking, retries.attempt() == 0 ? 0 : retries.backoffNs());
        synchronized (this) {
            if (ended) {
                booking.lease().close();
                booking.decision().end("abandoned", 0, sinceStartNs());
                return null;
            }
            current = tried;
            retries.begun();
            final DecisionRecord decision = booking.decision();
            decision.traceIn(proxied.record().trace());
            proxied.record()
                    .routed(decision.mode().spelling(), decision.worker(), decision.tokens());
        }
        return tried;
    }

    /** Sends it, after a wait where it is a further attempt. */
    private void dispatch(BookedAttempt tried) {
        if (tried.waitNs == 0) {
            tried.send();
        } else {
            context.client()
                    .getScheduler()
                    .schedule(
                            () ->
                                    context.client()
                                            .getExecutor()
                                            .execute(() -> guarded(tried::send)),
                            tried.waitNs,
                            TimeUnit.NANOSECONDS);
        }
    }

    private boolean isSplit() {
        return split != null && split.flow().isSplit();
    }

    /** The side of a split request that answers the client, as its flow has it act. */
    private final class DecodeSide implements SplitExchange.DecodeSide {
        @Override
        public void chooseDecode(int number) {
            decode = number;
            if (isCommitted()) {
                return; // the client gets an answer already
            }
            final ApiException never = isSplit() ? null : split.neverOrNull();
            if (never != null) {
                respond(never);
                return;
            }
            if (!isSplit()
                    && retries.attempt() == 0
                    && context.reservations().waits(RequestPart.WHOLE)) {
                admit(
                        split.decodePart(),
                        booking -> {
                            if (begin(booking) != null) {
                                split.flow().decodeChosen(number);
                            }
                        },
                        ProxyExchange.this::respond);
                return;
            }
            try {
                if (begin(reserve()) != null) {
                    split.flow().decodeChosen(number);
                }
            } catch (ApiException e) {
                if (isSplit()) {
                    final LegFailure failure = new LegFailure(Leg.DECODE, NO_WORKER, true);
                    lastError = e.of(failure);
                    split.flow().decodeFailed(number, failure);
                } else {
                    respond(lastError == null ? e : lastError);
                }
            }
        }

        @Override
        public void sendDecode() {
            final BookedAttempt tried = current();
            if (tried != null) {
                dispatch(tried);
            }
        }

        @Override
        public void abortDecode() {
            final BookedAttempt tried;
            synchronized (ProxyExchange.this) {
                if (committed || current == null) {
                    return;
                }
                tried = current;
                current = null;
            }
            tried.abandon("superseded", 0, new EOFException("the other leg has failed"));
        }

        @Override
        public void report(LegFailure failure) {
            if (failure.leg() == Leg.PREFILL
                    && !failure.kind().equals(NO_WORKER)
                    && split.hasPrefill()) {
                lastFailure =
                        "upstream worker "
                                + split.prefillDecision().worker()
                                + " failed its part: "
                                + failure;
            }
            logFailure();
            refuse(
                    failure.leg() == Leg.DECODE && lastError != null
                            ? lastError
                            : ApiException.ofLeg(failure));
        }

        @Override
        public void refuse(ApiException refusal) {
            if (endUnanswered()) { // one that is passed on was left alone by abortDecode, too
                answer(refusal);
            }
        }

        @Override
        public void answerWith(CompleteAnswer answer, WorkerReservations.Booking prefill) {
            if (endUnanswered()) {
                answer(answer, prefill);
            }
        }
    }

    private LoggingEventBuilder log(Level level) {
        return LOG.atLevel(level).addKeyValue(RequestRecord.LOG_KEY, proxied.requestId());
    }

    private long sinceStartNs() {
        return System.nanoTime() - request.getHeadersNanoTime();
    }

    /** True for the one caller that ends the exchange. */
    private synchronized boolean end() {
        if (ended) {
            return false;
        }
        ended = true;
        final QueuedBooking begun = queued;
        if (begun != null) {
            begun.giveUp();
        }
        return true;
    }

    /** The same, for a caller that answers itself: false where a pump writes to the client. */
    private synchronized boolean endUnanswered() {
        return (current == null || current.pump == null) && end();
    }

    private synchronized boolean isCurrent(BookedAttempt tried) {
        return !ended && current == tried;
    }

    private synchronized BookedAttempt current() {
        return current;
    }

    private void clientLeft(Throwable cause) {
        if (!end()) {
            return;
        }
        endWatch();
        final int status = RequestRecords.statusOfBrokenOff(request);
        final boolean left = status == RequestRecord.CLIENT_LEFT;
        final BookedAttempt tried = current();
        if (tried != null) {
            tried.abandon(left ? "client_left" : "draining", status, cause);
        }
        if (left) {
            context.metrics().disconnected(proxied.inference().route);
        }
        finished(status);
        callback.failed(cause);
    }

    /** Ends with an error answer; nothing was sent before. */
    private void respond(ApiException error) {
        if (end()) {
            if (!cut) {
                logFailure();
            }
            answer(error);
        }
    }

    /** The line for operators of a request that failed; its client gets the kind of failure. */
    private void logFailure() {
        final String failed = lastFailure;
        if (failed != null) {
            log(Level.WARN).log("{}: {}", proxied.requestId(), failed);
        }
    }

    private void answer(ApiException error) {
        faults.ended();
        endWatch();
        final BookedAttempt tried = current();
        finished(error.status());
        response.reset();
        if (tried != null && proxied.trusted()) {
            ProxyHeaders.putDecision(response.getHeaders(), proxied, tried.booking.decision());
        }
        Responses.error(response, callback, error, proxied.requestId());
    }

    /** Ends with what a prefill worker has answered; nothing was sent before. */
    private void answer(CompleteAnswer answer, WorkerReservations.Booking prefill) {
        endWatch();
        final DecisionRecord decision = prefill.decision();
        proxied.record().routed(decision.mode().spelling(), decision.worker(), decision.tokens());
        proxied.record().firstByte(sinceStartNs());
        final UsageReader usage = answer.usage();
        generated(prefill.upstream(), usage.promptTokens(), usage.completionTokens());
        completed(prefill.upstream(), usage, Math.max(0, usage.completionTokens()));
        finished(200);
        if (proxied.trusted()) {
            final HttpFields.Mutable headers = response.getHeaders();
            ProxyHeaders.putDecision(headers, proxied, decision);
            headers.put(RoutingHeaders.PREFILL_WORKER, decision.worker());
        }
        Responses.write(response, callback, 200, answer.type(), answer.body());
    }

    /** Tokens have come, of an answer that is complete or will never be. */
    private void generated(Upstream worker, int promptTokens, int count) {
        if (count > 0) {
            proxied.record().tokens(promptTokens, count);
            context.metrics().generated(worker, proxied.inference().route, count);
        }
    }

    /** An answer is complete and good. */
    private void completed(Upstream worker, UsageReader usage, int generated) {
        context.metrics()
                .byModel()
                .answered(
                        worker.model(),
                        Math.max(usage.promptTokens(), proxied.prompt().tokens().length),
                        generated);
    }

    /** The last bytes are about to be written, or none are. */
    private void endWatch() {
        clientProbe.end();
        watch.cancel();
    }

    private void finished(int status) {
        if (split != null) {
            split.ended();
        }
        if (context.metrics().ended(proxied.record(), status)) {
            context.metrics()
                    .finished(
                            proxied.inference().route,
                            proxied.inference().stream,
                            context.registry().model(),
                            status,
                            sinceStartNs());
        }
    }

    /** Whether its answer is asked for as a stream. */
    public boolean isStream() {
        return proxied.inference().stream;
    }

    /** One attempt with its booking, and what its outcome means for the exchange. */
    private final class BookedAttempt implements ResponsePump.Listener {
        private final WorkerReservations.Booking booking;
        private final Lease lease;
        private final Upstream upstream;
        private final UpstreamAttempt attempt;
        private final AtomicBoolean over = new AtomicBoolean();
        private final long waitNs;
        private final int number = decode; // of the flow
        private volatile long sentNs;
        private volatile int status;
        private volatile ResponsePump pump;
        private volatile int streamedTokens;
        private final TokenTimes times;
        private final FailureMessages messages;
        private int undelivered; // status after the last byte, 0 for none; of the pump's thread

        /**
         * @param waitNs how long to wait before it is sent
         */
        BookedAttempt(WorkerReservations.Booking booking, long waitNs) {
            this.booking = booking;
            this.waitNs = waitNs;
            this.lease = booking.lease();
            this.upstream = booking.upstream();
            this.times =
                    new TokenTimes(
                            context,
                            proxied,
                            upstream,
                            lease.worker(),
                            ProxyExchange.this::sinceStartNs);
            this.messages = new FailureMessages(upstream, retries, proxied.trusted());
            this.attempt =
                    new UpstreamAttempt(
                            context, upstream, proxied.inference().stream, this::outcome);
        }

        void send() {
            if (!isCurrent(this)) {
                return; // the client left while this waited
            }
            final ByteBuffer body;
            try {
                body = body();
            } catch (ApiException e) {
                abandon("abandoned", e.status(), null);
                respond(e);
                return;
            }
            sentNs = System.nanoTime();
            attempt.send(
                    route().target(request.getHttpURI().getQuery()),
                    ProxyHeaders.toWorker(context, request, proxied.requestId(), booking),
                    body,
                    retries.attempt() > 1);
            if (!isCurrent(this)) {
                // it left before there was anything to abort
                attempt.abort(new EOFException("the client left"));
            }
        }

        private InferenceRequest.Route route() {
            return upstream.takesTokens()
                    ? InferenceRequest.Route.COMPLETIONS
                    : proxied.inference().route;
        }

        private ByteBuffer body() throws ApiException {
            if (upstream.takesTokens()) { // which has no part in split requests
                return proxied.tokenBody();
            }
            return split == null ? proxied.body(booking) : split.mainBody();
        }

        private ChatAnswer chatOrNull() {
            return upstream.takesTokens() ? proxied.prompt().tokenForm().chatOrNull() : null;
        }

        private void outcome(UpstreamAttempt.Outcome outcome) {
            guarded(
                    () -> {
                        switch (outcome) {
                            case UpstreamAttempt.Answered answer -> answered(answer);
                            case UpstreamAttempt.Broken _ -> readFailure();
                            case UpstreamAttempt.Failed failure -> failed(failure);
                        }
                    });
        }

        private void readFailure() {
            final ResponsePump reading = pump;
            if (reading != null) {
                reading.readOn();
            }
        }

        private void answered(UpstreamAttempt.Answered answer) {
            status = answer.head().getStatus();
            final UpstreamFault fault = UpstreamFault.ofStatus(status);
            if (fault == null) {
                upstream.answered();
                faults.answered();
                if (mayBlameHandoff()) {
                    attempt.abort(new EOFException("computed anew"));
                    legFailed(UpstreamFault.STATUS, "status " + status, true, false);
                    return;
                }
            } else if (replaced(fault, "status " + status)) {
                return;
            }
            if (takeOver(answer)) {
                pump.readOn();
            } else {
                attempt.abort(new EOFException("the exchange has ended"));
            }
        }

        /**
         * Whether a refusal may be one of what the prefill worker gave for this one rather than of
         * the client's request, which the prefill worker found nothing wrong with. Asking one
         * worker without that tells; where none can be asked, it is no refusal of the request.
         */
        private boolean mayBlameHandoff() {
            return status >= 400
                    && isSplit()
                    && (split.fallsBackAlone()
                            ? retries.allowsAnother(UpstreamFault.STATUS, true)
                            : split.isHandedOver());
        }

        /** From here on the pump alone writes to the client; false where something else did. */
        private boolean takeOver(UpstreamAttempt.Answered answer) {
            synchronized (ProxyExchange.this) {
                if (isCurrent(this)) {
                    pump =
                            new ResponsePump(
                                    response,
                                    answer,
                                    proxied.inference().route.form,
                                    proxied.dropUsage(),
                                    chatOrNull(),
                                    context.coding(),
                                    context.answers(),
                                    this);
                }
                return pump != null;
            }
        }

        private void failed(UpstreamAttempt.Failed failure) {
            if (isSplit()) {
                // that a connection was stale is a guess: a worker that dies is as silent
                legFailed(failure.fault(), failure.cause(), failure.sent(), failure.unprocessed());
            } else if (!failure.unprocessed()) {
                replace(failure.fault(), failure.cause(), failure.sent());
            } else if (isCurrent(this)) {
                final ApiException error = messages.forClient(failure.fault());
                abandon(failure.unprocessedOutcome(), 0, null);
                lastFailure = messages.forOperators(failure.fault(), failure.cause());
                if (retries.allowsAnother(failure.fault(), failure.sent())) {
                    next(null); // the same worker can take it
                } else {
                    respond(error);
                }
            }
        }

        /**
         * Failed while the request is split, before the client got a byte. What follows is decided
         * by the flow: blocks that this worker may have fetched are not fetched again.
         *
         * @param sent the worker has the whole request
         * @param unprocessed no fault of the worker
         */
        private void legFailed(
                UpstreamFault fault, String cause, boolean sent, boolean unprocessed) {
            if (!isCurrent(this)) {
                return;
            }
            final boolean another = retries.allowsAnother(fault, sent);
            final boolean own = fault != UpstreamFault.STATUS; // else it may be the hand-off's
            if (!unprocessed && own) {
                attribute(fault, cause, sent);
            }
            abandoned(fault, cause);
            final LegFailure failure = new LegFailure(Leg.DECODE, fault.spelling(), another);
            lastError = messages.forClient(fault).of(failure);
            if (another && !unprocessed && own) {
                excluded.add(lease.worker());
            }
            if (another && attempt.isUnseen(fault)) {
                split.flow().decodeUnsent(number);
            } else {
                split.flow().decodeFailed(number, failure);
            }
        }

        /** Failed before the client got a byte: another worker, or an error answer. */
        private void replace(UpstreamFault fault, String cause, boolean sent) {
            if (!isCurrent(this)) {
                return;
            }
            attribute(fault, cause, sent);
            abandoned(fault, cause);
            final ApiException error = messages.forClient(fault);
            if (!retries.allowsAnother(fault, sent)) {
                respond(error);
                return;
            }
            excluded.add(lease.worker());
            next(error);
        }

        private void attribute(UpstreamFault fault, String cause, boolean sent) {
            faults.failed(upstream, fault, cause, sent, attempt.lostConnection());
            if (fault == UpstreamFault.BUSY) {
                lease.worker().full(cause, attempt.retryAfter());
            }
        }

        /** Frees the lease of an attempt that failed. */
        private void abandoned(UpstreamFault fault, String cause) {
            lease.workerFailed();
            abandon(fault.spelling(), 0, null);
            lastFailure = messages.forOperators(fault, cause);
            log(Level.DEBUG).log("{}: {}", proxied.requestId(), lastFailure);
        }

        /** Gives the worker up; aborts what is under way if there is a cause. */
        private void abandon(String outcome, int status, Throwable abortCause) {
            lease.close();
            if (over.compareAndSet(false, true)) {
                booking.decision().end(outcome, status, sinceStartNs());
                context.metrics().attempt(upstream.name(), outcome);
                generated(upstream, UsageReader.UNKNOWN, streamedTokens);
            }
            if (abortCause != null) {
                attempt.abort(abortCause);
            }
        }

        @Override
        public boolean isWanted() {
            return isCurrent(this);
        }

        @Override
        public boolean claim() {
            if (split != null && status != 200) {
                split.flow().errorStarted(number); // before the client has a part of it
            }
            synchronized (ProxyExchange.this) {
                if (!isCurrent(this)) {
                    return false;
                }
                committed = true;
            }
            if (split != null && status == 200) {
                split.decodeStarted(number, booking);
            }
            return true;
        }

        @Override
        public void committing(HttpFields.Mutable headers) {
            clientProbe.headFollows(pump::writeComment);
            proxied.record().firstByte(sinceStartNs());
            if (proxied.trusted()) {
                ProxyHeaders.putDecision(headers, proxied, booking.decision());
                if (isSplit()) {
                    ProxyHeaders.putPrefill(headers, proxied, split.prefillDecision());
                }
            }
        }

        @Override
        public void firstToken() {
            lease.prefillComplete();
            booking.decision().firstToken(times.first());
            if (split != null && !isSplit()) {
                split.wholeStarted(booking, System.nanoTime() - sentNs);
            }
        }

        @Override
        public void outputTokens(int total, int events) {
            streamedTokens = total;
            lease.outputTokens(total);
            times.events(events);
        }

        /** A decode worker counts what it has fetched as cached; the prefill worker knows. */
        @Override
        public int cachedTokens() {
            return isSplit() ? split.prefillDecision().engineCachedTokens() : UsageReader.UNKNOWN;
        }

        private void promptEnded(PromptEnd how, long afterBookingNs) {
            booking.decision().promptEnd(how, afterBookingNs);
            if (how == PromptEnd.STORED && split != null && !isSplit()) {
                split.wholeStarted(booking, afterBookingNs);
            }
        }

        /**
         * All is known before the last byte is written: its reader finds it in the metrics. Where
         * it is in doubt that there is one, or the rest is more than a connection takes at once,
         * the status is known after it.
         */
        @Override
        public void complete(int status, UsageReader usage, int last) {
            endWatch(); // the next request may arrive once the last byte is written
            if (!over.compareAndSet(false, true)) {
                return;
            }
            if (split != null && status == 200) {
                split.flow().decodeDone(number);
                split.answered();
            }
            final int generated = Math.max(usage.completionTokens(), streamedTokens);
            if (generated > 0) {
                lease.outputTokens(generated);
            }
            generated(upstream, usage.promptTokens(), generated);
            times.complete(generated);
            if (status == 200) {
                completed(upstream, usage, generated);
                lease.prefillComplete(); // an answer that is no stream shows nothing earlier
                promptEnded(lease.promptEnd(), lease.promptEndNs());
            }
            lease.close();
            if (status == 200 && !isSplit()) { // else what it has fetched counts as cached, too
                context.feedback().completed(proxied, booking, upstream, usage);
            }
            booking.decision().end(status < 400 ? "ok" : "status", status, sinceStartNs());
            context.metrics().attempt(upstream.name(), status < 400 ? "ok" : "status_" + status);
            if (status >= 500) {
                final UpstreamFault fault = UpstreamFault.ofStatus(status);
                lastFailure =
                        messages.forOperators(
                                fault == null ? UpstreamFault.STATUS : fault, "status " + status);
                logFailure();
            }
            if (clientProbe.hasBegun() || last > AT_ONCE_BYTES) {
                undelivered = status; // if it leaves, or has left, it does not get this answer
            } else {
                finished(status);
            }
        }

        /** Has another worker answer instead; false where none can take the request. */
        @Override
        public boolean replaced(UpstreamFault fault, String cause) {
            if (isSplit()) {
                attempt.abort(new EOFException("computed anew"));
                legFailed(fault, cause, true, false);
                return true;
            }
            attribute(fault, cause, true);
            if (!retries.allowsAnother(fault, true) || !isCurrent(this)) {
                return false;
            }
            excluded.add(lease.worker());
            try {
                final WorkerReservations.Booking other = reserve();
                abandoned(fault, cause);
                final BookedAttempt next = begin(other);
                if (next != null) {
                    dispatch(next);
                }
                attempt.abort(new EOFException("tried elsewhere"));
                return true;
            } catch (ApiException e) {
                log(Level.DEBUG)
                        .log(
                                "{}: no other worker can take it: {}",
                                proxied.requestId(),
                                LogText.of(e.getMessage()));
                return false;
            }
        }

        @Override
        public void faulted(UpstreamFault fault, String cause) {
            attribute(fault, cause, true);
        }

        @Override
        public byte[] broken(UpstreamFault fault, String cause, ResponsePump.Progress progress) {
            if (cut && progress != ResponsePump.Progress.PART) {
                return cutOff(progress);
            }
            if (progress == ResponsePump.Progress.NOTHING) {
                attempt.abort(new EOFException("given up"));
                if (isSplit()) {
                    legFailed(fault, cause, true, false);
                } else {
                    replace(fault, cause, true);
                }
                return null;
            }
            attempt.abort(
                    new EOFException("given up")); // where it is the gateway that has ended it
            attribute(fault, cause, true);
            faults.ended();
            abandoned(fault, cause);
            logFailure();
            if (progress == ResponsePump.Progress.EVENTS) {
                finished(fault.status());
                endWatch();
                final ApiException error = messages.forClient(fault);
                return (isSplit()
                                ? error.of(new LegFailure(Leg.DECODE, fault.spelling(), false))
                                : error)
                        .event(proxied.inference().route.form, proxied.requestId());
            }
            if (end()) {
                endWatch();
                finished(fault.status());
                callback.failed(new EOFException(messages.forOperators(fault, cause)));
            }
            return null;
        }

        private byte[] cutOff(ResponsePump.Progress progress) {
            faults.ended();
            if (progress == ResponsePump.Progress.NOTHING) {
                respond(ApiException.draining());
                abandon("draining", 503, null);
                return null;
            }
            abandon("draining", 503, null);
            finished(503);
            endWatch();
            return ApiException.draining()
                    .event(proxied.inference().route.form, proxied.requestId());
        }

        @Override
        public void endFollows(Content.Source rest) {
            attempt.awaitEnd(rest);
        }

        @Override
        public void writing(boolean underWay) {
            stalled.writing(underWay);
        }

        @Override
        public void delivered() {
            if (end()) {
                faults.ended();
                if (undelivered > 0) {
                    finished(undelivered);
                }
                callback.succeeded();
            }
        }

        @Override
        public void clientFailed(Throwable cause) {
            clientLeft(cause);
        }

        @Override
        public void defect(Throwable cause) {
            failedBy(cause);
        }
    }
}
