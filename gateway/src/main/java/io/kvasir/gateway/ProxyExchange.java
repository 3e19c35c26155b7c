package io.kvasir.gateway;

import io.kvasir.router.Lease;
import io.kvasir.router.Worker;

import org.eclipse.jetty.client.BytesRequestContent;
import org.eclipse.jetty.client.HttpClient;
import org.eclipse.jetty.client.Result;
import org.eclipse.jetty.http.HttpFields;
import org.eclipse.jetty.http.HttpHeader;
import org.eclipse.jetty.io.Content;
import org.eclipse.jetty.server.Request;
import org.eclipse.jetty.server.Response;
import org.eclipse.jetty.util.BufferUtil;
import org.eclipse.jetty.util.Callback;
import org.eclipse.jetty.util.IteratingCallback;
import org.eclipse.jetty.util.thread.Invocable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

import java.io.ByteArrayOutputStream;
import java.io.EOFException;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;

/**
 * One inference request on its way: booked on a worker, sent there, its answer passed on. As long
 * as the client has not got a byte, a failing worker is replaced by another one; afterwards the
 * failure is told in the stream.
 *
 * <p>After {@link #start} everything happens on I/O threads and nothing blocks. The exchange ends
 * once: by the answer's last byte, an error answer, or the client leaving. Whoever ends it frees
 * the lease.
 */
final class ProxyExchange {
    /** What every exchange of a gateway shares. */
    record Shared(
            GatewayConfig config,
            HttpClient client,
            AnsweredConnections answered,
            RoutingDesk desk,
            Fleet fleet,
            GatewayMetrics metrics) {}

    private static final Logger LOG = LoggerFactory.getLogger(ProxyExchange.class);

    /**
     * An answer that is no event stream is held back up to this size, so that it can still be
     * retried.
     */
    private static final int HELD_ANSWER_BYTES = 4 << 20;

    private static final int CLIENT_LEFT = 499;

    private final Shared shared;
    private final Request request;
    private final Response response;
    private final Callback callback;
    private final InferenceRequest inference;
    private final RoutedPrompt prompt;
    private final byte[] body;
    private final boolean dropUsage;
    private final String requestId;
    private final ClientWatch watch;

    // touched by one attempt at a time
    private final List<Worker> excluded = new ArrayList<>(2);
    private int attempts;
    private int staleRetries;

    // guarded by this
    private Attempt current;
    private boolean ended;

    private final AtomicBoolean counted = new AtomicBoolean();
    private volatile boolean writing;

    /**
     * @param body what is sent to the worker
     * @param dropUsage whether {@code body} asks for usage that the client did not ask for
     */
    ProxyExchange(
            Shared shared,
            Request request,
            Response response,
            Callback callback,
            InferenceRequest inference,
            RoutedPrompt prompt,
            byte[] body,
            boolean dropUsage,
            String requestId) {
        this.shared = shared;
        this.request = request;
        this.response = response;
        this.callback = callback;
        this.inference = inference;
        this.prompt = prompt;
        this.body = body;
        this.dropUsage = dropUsage;
        this.requestId = requestId;
        this.watch = new ClientWatch(request, this::clientLeft);
    }

    /** Books and sends; the caller is done. */
    void start() {
        // an idle connection is the worker's silence unless bytes wait for the client
        request.addIdleTimeoutListener(timeout -> writing);
        request.addFailureListener(this::clientLeft);
        watch.arm();
        guarded(() -> next(null));
    }

    /** A step that fails by a defect ends the exchange; nobody else would. */
    private void guarded(Runnable step) {
        try {
            step.run();
        } catch (RuntimeException e) {
            LOG.error("{} failed", requestId, e);
            final Attempt attempt = current();
            if (attempt != null) {
                attempt.abandon("internal", 500, e);
            }
            respond(
                    ApiException.internal(
                            "internal error; the gateway's log has request " + requestId));
        }
    }

    /** Starts an attempt, or ends with what went wrong. */
    private void next(ApiException failure) {
        try {
            begin(reserve());
        } catch (ApiException e) {
            respond(failure == null ? e : failure);
        }
    }

    private RoutingDesk.Booking reserve() throws ApiException {
        return shared.desk.reserve(
                prompt, excluded, requestId, inference.route.label, attempts + 1);
    }

    private void begin(RoutingDesk.Booking booking) {
        final Attempt attempt = new Attempt(booking);
        synchronized (this) {
            if (ended) {
                booking.lease().close();
                return;
            }
            current = attempt;
            attempts++;
        }
        attempt.send();
    }

    private boolean mayRetry() {
        return attempts <= shared.config.get(GatewaySettings.RETRIES);
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
        return true;
    }

    private synchronized boolean isCurrent(Attempt attempt) {
        return !ended && current == attempt;
    }

    private synchronized Attempt current() {
        return current;
    }

    private void clientLeft(Throwable cause) {
        if (!end()) {
            return;
        }
        watch.cancel();
        final Attempt attempt = current();
        if (attempt != null) {
            attempt.abandon("client_left", CLIENT_LEFT, cause);
        }
        shared.metrics.disconnected(inference.route);
        finished(CLIENT_LEFT, attempt);
        callback.failed(cause);
    }

    /** Ends with an error answer; nothing was sent before. */
    private void respond(ApiException error) {
        if (!end()) {
            return;
        }
        watch.cancel();
        final Attempt attempt = current();
        finished(error.status(), attempt);
        response.reset();
        if (attempt != null) {
            ProxyHeaders.putDecision(response.getHeaders(), requestId, attempt.booking.decision());
        }
        Answers.error(response, callback, error, requestId);
    }

    private void finished(int status, Attempt attempt) {
        if (!counted.compareAndSet(false, true)) {
            return;
        }
        shared.metrics.finished(
                inference.route,
                inference.stream,
                status,
                attempt == null ? "none" : attempt.booking.decision().mode().spelling(),
                sinceStartNs());
    }

    /** The request at one worker. */
    private final class Attempt {
        private final RoutingDesk.Booking booking;
        private final Lease lease;
        private final Upstream upstream;
        private org.eclipse.jetty.client.Request sent;
        private final AtomicBoolean over = new AtomicBoolean();
        private volatile Pump pump;

        Attempt(RoutingDesk.Booking booking) {
            this.booking = booking;
            this.lease = booking.lease();
            this.upstream = shared.fleet.of(lease.worker());
        }

        void send() {
            final String contentType = request.getHeaders().get(HttpHeader.CONTENT_TYPE);
            sent =
                    shared.client
                            .newRequest(upstream.url())
                            .path(
                                    upstream.path(
                                            inference.route.target(
                                                    request.getHttpURI().getQuery())))
                            .method("POST")
                            .idleTimeout(
                                    shared.config
                                            .get(GatewaySettings.UPSTREAM_IDLE_TIMEOUT)
                                            .toMillis(),
                                    TimeUnit.MILLISECONDS)
                            .headers(this::putHeaders)
                            .body(
                                    new BytesRequestContent(
                                            contentType == null ? "application/json" : contentType,
                                            body))
                            .onResponseContentSource(
                                    (answer, source) -> guarded(() -> onContent(answer, source)));
            sent.send(this::onComplete);
            if (!isCurrent(this)) {
                // it left before there was anything to abort
                abort(new EOFException("the client left"));
            }
        }

        private void putHeaders(HttpFields.Mutable headers) {
            ProxyHeaders.toWorker(request.getHeaders(), headers);
            if (!headers.contains(ProxyHeaders.REQUEST_ID)) {
                headers.put(ProxyHeaders.REQUEST_ID, requestId);
            }
            if (upstream.hasRanks()) {
                headers.put(ProxyHeaders.RANK, Integer.toString(booking.decision().dpRank()));
            }
        }

        /** The answer's head is there. */
        private void onContent(org.eclipse.jetty.client.Response answer, Content.Source source) {
            shared.answered.add(answer.getRequest());
            final UpstreamFault fault = faultOf(answer.getStatus());
            if (fault != null && mayRetry() && isCurrent(this)) {
                excluded.add(lease.worker());
                try {
                    final RoutingDesk.Booking other = reserve();
                    failed(fault, "status " + answer.getStatus());
                    begin(other);
                    abort(new EOFException("tried elsewhere")); // this one is history by now
                    return;
                } catch (ApiException e) {
                    LOG.debug("{}: nobody else can take it: {}", requestId, e.getMessage());
                }
            }
            if (fault == null) {
                upstream.answered();
            } else {
                upstream.fault(fault, "status " + answer.getStatus());
            }
            pump = new Pump(this, answer, source);
            pump.iterate();
        }

        private UpstreamFault faultOf(int status) {
            return status == 429 || status == 503
                    ? UpstreamFault.BUSY
                    : status >= 500 ? UpstreamFault.STATUS : null;
        }

        private void onComplete(Result result) {
            if (result.isSucceeded()) {
                return;
            }
            if (pump != null) {
                pump.iterate(); // it finds the failure in the content
            } else {
                guarded(() -> failedWithoutAnswer(result.getFailure()));
            }
        }

        private void failedWithoutAnswer(Throwable failure) {
            final UpstreamFault fault = UpstreamFault.of(failure);
            if (shared.answered.wasStale(sent, fault)
                    && isCurrent(this)
                    && staleRetries < AnsweredConnections.STALE_RETRIES) {
                staleRetries++;
                attempts--;
                abandon("stale_connection", 0, null);
                next(null);
            } else {
                broken(fault, UpstreamFault.describe(failure));
            }
        }

        /** Failed before the client got a byte: somebody else, or an error answer. */
        private void broken(UpstreamFault fault, String cause) {
            if (!isCurrent(this)) {
                return;
            }
            failed(fault, cause);
            final ApiException error =
                    ApiException.upstream(
                            fault.status(), fault, upstream.name(), describe(fault, cause));
            if (!mayRetry()) {
                respond(error);
                return;
            }
            excluded.add(lease.worker());
            next(error);
        }

        /** Books the failure on the worker and frees the lease. */
        private void failed(UpstreamFault fault, String cause) {
            upstream.fault(fault, cause);
            abandon(fault.spelling(), 0, null);
            LOG.debug("{}: {}", requestId, describe(fault, cause));
        }

        private String describe(UpstreamFault fault, String cause) {
            return "upstream worker "
                    + upstream.name()
                    + " at "
                    + upstream.url()
                    + " failed ("
                    + fault.spelling()
                    + ", attempt "
                    + attempts
                    + " of "
                    + (shared.config.get(GatewaySettings.RETRIES) + 1)
                    + "): "
                    + cause;
        }

        /** Gives the worker up; aborts what is under way if there is a cause. */
        void abandon(String outcome, int status, Throwable abortCause) {
            lease.close();
            if (over.compareAndSet(false, true)) {
                booking.decision().end(outcome, status, sinceStartNs());
                shared.metrics.attempt(upstream.name(), outcome);
            }
            if (abortCause != null) {
                abort(abortCause);
            }
        }

        void abort(Throwable cause) {
            final org.eclipse.jetty.client.Request underWay = sent;
            if (underWay != null) {
                var _ = underWay.abort(cause); // false means that it is over, which is as good
            }
        }

        void firstToken() {
            lease.prefillComplete();
            final long ns = sinceStartNs();
            booking.decision().firstToken(ns);
            shared.metrics.firstToken(inference.route, ns);
        }

        /** The answer is complete and usage, where stated, is compared with what was predicted. */
        void completed(int status, AnswerReader usage) {
            if (!over.compareAndSet(false, true)) {
                return;
            }
            if (usage.completionTokens() > 0) {
                lease.outputTokens(usage.completionTokens());
            }
            if (status == 200) {
                lease.prefillComplete(); // an answer in one piece tells nothing earlier
            }
            lease.close();
            if (status == 200 && usage.promptTokens() >= 0) {
                compare(usage);
            }
            booking.decision().end(status < 400 ? "ok" : "status", status, sinceStartNs());
            shared.metrics.attempt(upstream.name(), status < 400 ? "ok" : "status_" + status);
            finished(status, this);
        }

        /**
         * Lets the source judge what removals mean, by requests that had the worker to themselves:
         * a neighbour's blocks may push out the prefix between decision and admission, which says
         * nothing of the rule.
         */
        private void judgeRemovals(int predicted, int actual) {
            final Worker worker = lease.worker();
            if (worker.source() != null
                    && booking.decision().workerWasIdle()
                    && worker.activeRequests() <= 1) {
                worker.source().reportEngineHit(predicted, actual);
            }
        }

        private void compare(AnswerReader usage) {
            final int actual = upstream.cachedTokens(usage);
            booking.decision().usage(usage.promptTokens(), actual);
            if (!prompt.known() || inference.prompts > 1) {
                return; // usage sums up the whole batch
            }
            if (usage.promptTokens() != prompt.tokens().length) {
                shared.metrics.tokenMismatch(upstream.name());
                return;
            }
            if (actual >= 0) {
                final int predicted = booking.decision().predictedCachedTokens();
                shared.metrics.compared(upstream.name(), predicted, actual);
                judgeRemovals(predicted, actual);
            }
        }
    }

    /**
     * Moves an answer from the worker to the client, one write at a time: what the client does not
     * take is not asked of the worker.
     */
    private final class Pump extends IteratingCallback {
        private final Attempt attempt;
        private final org.eclipse.jetty.client.Response answer;
        private final Content.Source source;
        private final Runnable onDemand =
                Invocable.from(InvocationType.NON_BLOCKING, this::iterate);
        private final EventStream events;
        private final AnswerReader reader;
        private ByteArrayOutputStream held;
        private Content.Chunk passing;
        private boolean committed;
        private boolean upstreamEnded;
        private boolean firstToken;
        private boolean lastWrite;
        private UpstreamFault fault;

        Pump(Attempt attempt, org.eclipse.jetty.client.Response answer, Content.Source source) {
            this.attempt = attempt;
            this.answer = answer;
            this.source = source;
            final String type = answer.getHeaders().get(HttpHeader.CONTENT_TYPE);
            final boolean isEvents =
                    answer.getStatus() == 200
                            && type != null
                            && type.toLowerCase(Locale.ROOT).startsWith("text/event-stream");
            this.events = isEvents ? new EventStream(dropUsage) : null;
            this.reader = isEvents ? events.usage() : new AnswerReader();
            this.held = isEvents ? null : new ByteArrayOutputStream(1024);
        }

        @Override
        public InvocationType getInvocationType() {
            return InvocationType.NON_BLOCKING;
        }

        @Override
        protected Action process() {
            while (true) {
                if (lastWrite || !isCurrent(attempt)) {
                    return Action.SUCCEEDED;
                }
                if (upstreamEnded) {
                    return writeLast(events.rest());
                }
                final Content.Chunk chunk = source.read();
                if (chunk == null) {
                    source.demand(onDemand);
                    return Action.IDLE;
                }
                if (Content.Chunk.isFailure(chunk)) {
                    return broken(
                            UpstreamFault.of(chunk.getFailure()),
                            UpstreamFault.describe(chunk.getFailure()));
                }
                final Action action = events != null ? event(chunk) : plain(chunk);
                if (action != null) {
                    return action;
                }
            }
        }

        /** A piece of an event stream; null when there is nothing to write yet. */
        private Action event(Content.Chunk chunk) {
            upstreamEnded = chunk.isLast();
            final ByteBuffer ready = events.accept(chunk.getByteBuffer());
            chunk.release();
            if (events.sawFirstToken()) {
                if (!firstToken) {
                    firstToken = true;
                    attempt.firstToken();
                }
                attempt.lease.outputTokens(events.outputTokens());
            }
            if (upstreamEnded && !events.sawDone() && !events.sawError()) {
                if (ready.hasRemaining()) {
                    write(ready); // whole events that came with the end
                    upstreamEnded = false;
                    return Action.SCHEDULED;
                }
                return broken(UpstreamFault.PROTOCOL, "the event stream ended without [DONE]");
            }
            return ready.hasRemaining() ? write(ready) : null;
        }

        /** A piece of any other answer; null when there is nothing to write yet. */
        private Action plain(Content.Chunk chunk) {
            final boolean last = chunk.isLast();
            if (held == null) {
                if (last) {
                    final ByteBuffer rest =
                            ByteBuffer.wrap(BufferUtil.toArray(chunk.getByteBuffer()));
                    chunk.release();
                    return writeLast(rest);
                }
                passing = chunk;
                return write(chunk.getByteBuffer());
            }
            final byte[] bytes = BufferUtil.toArray(chunk.getByteBuffer());
            chunk.release();
            held.writeBytes(bytes);
            if (last) {
                final byte[] whole = held.toByteArray();
                reader.read(whole, 0, whole.length);
                return writeLast(ByteBuffer.wrap(whole));
            }
            if (held.size() > HELD_ANSWER_BYTES) {
                final ByteBuffer soFar = ByteBuffer.wrap(held.toByteArray());
                held = null;
                return write(soFar);
            }
            return null;
        }

        private Action write(ByteBuffer bytes) {
            commit();
            writing = true;
            response.write(false, bytes, this);
            return Action.SCHEDULED;
        }

        private Action writeLast(ByteBuffer bytes) {
            commit();
            lastWrite = true;
            // all is known now; who reads the last byte finds it in the metrics and decisions
            if (fault == null) {
                attempt.completed(answer.getStatus(), reader);
            } else {
                finished(fault.status(), attempt);
            }
            watch.cancel(); // from here on the next request may arrive, and it is the server's
            // to read
            writing = true;
            response.write(true, bytes, this);
            return Action.SCHEDULED;
        }

        private void commit() {
            if (committed) {
                return;
            }
            committed = true;
            response.setStatus(answer.getStatus());
            ProxyHeaders.toClient(answer.getHeaders(), events != null, response.getHeaders());
            ProxyHeaders.putDecision(response.getHeaders(), requestId, attempt.booking.decision());
        }

        /** The worker failed under its answer. */
        private Action broken(UpstreamFault how, String cause) {
            if (!committed) {
                attempt.abort(new EOFException("given up"));
                attempt.broken(how, cause);
                return Action.SUCCEEDED;
            }
            fault = how;
            attempt.failed(how, cause);
            if (events == null) {
                if (end()) {
                    watch.cancel();
                    finished(502, attempt);
                    callback.failed(new EOFException(attempt.describe(how, cause)));
                }
                return Action.SUCCEEDED;
            }
            final ApiException error =
                    ApiException.upstream(
                            how.status(),
                            how,
                            attempt.upstream.name(),
                            attempt.describe(how, cause));
            return writeLast(ByteBuffer.wrap(error.event(requestId)));
        }

        @Override
        protected void onSuccess() {
            writing = false;
            if (passing != null) {
                passing.release();
                passing = null;
            }
        }

        @Override
        protected void onCompleteSuccess() {
            if (lastWrite && end()) {
                callback.succeeded();
            }
        }

        @Override
        protected void onCompleteFailure(Throwable cause) {
            if (passing != null) {
                passing.release();
                passing = null;
            }
            clientLeft(cause);
        }
    }
}
