package io.kvasir.gateway;

import io.kvasir.gateway.metrics.GatewayMetrics;
import io.kvasir.gateway.openai.ApiException;
import io.kvasir.gateway.routing.PromptExecutor;
import io.kvasir.gateway.server.ClientProbe;
import io.kvasir.gateway.server.DisconnectWatcher;
import io.kvasir.gateway.server.RequestFailures;
import io.kvasir.gateway.server.RequestRecords;
import io.kvasir.gateway.server.StalledWrite;

import org.eclipse.jetty.server.Request;
import org.eclipse.jetty.server.Response;
import org.eclipse.jetty.util.Callback;

import java.io.IOException;
import java.util.concurrent.atomic.AtomicReference;

/**
 * The CPU work of one request between its body's last byte and its booking. It waits and runs on a
 * {@link PromptExecutor}; a client that leaves meanwhile ends it there.
 */
final class PromptTask {
    /** What is done with a body. */
    interface Work {
        /**
         * Does it; may be interrupted.
         *
         * @return how the request continues, which does not block
         */
        Runnable run() throws ApiException, IOException;
    }

    private static final int NANOS_PER_MICRO = 1_000;

    private enum State {
        WORKING,
        /** The request continues, or is answered. */
        DONE,
        LEFT
    }

    private final PromptExecutor executor;
    private final RequestFailures failures;
    private final GatewayMetrics metrics;
    private final boolean answers;
    private final Request request;
    private final Response response;
    private final Callback callback;
    private final ClientProbe clientProbe;
    private final DisconnectWatcher watch;
    private final AtomicReference<State> state = new AtomicReference<>(State.WORKING);
    private StalledWrite stalled; // set before the work begins
    private volatile PromptExecutor.Job job;
    private long queuedNs; // where it is traced

    /**
     * @param answers whether the work's outcome is the answer itself; otherwise its idle connection
     *     is another's to judge once the work is done
     * @param request its body has been read
     */
    PromptTask(
            PromptExecutor executor,
            RequestFailures failures,
            GatewayMetrics metrics,
            boolean answers,
            Request request,
            Response response,
            Callback callback) {
        this.executor = executor;
        this.failures = failures;
        this.metrics = metrics;
        this.answers = answers;
        this.request = request;
        this.response = response;
        this.callback = callback;
        this.clientProbe = new ClientProbe(request, this::clientLeft);
        this.watch = new DisconnectWatcher(request, clientProbe::begin, this::clientLeft);
    }

    /**
     * Puts the work into the queue; the caller is done. A client is watched only where there is
     * time for it to leave: watching costs a call of the I/O thread.
     *
     * @param mayTakeLong whether the work may take long although the body is small
     * @throws ApiException 429 if the queue is full
     */
    void start(int bodyBytes, boolean mayTakeLong, Work work) throws ApiException {
        // the connection is idle because we work, not because its client is
        stalled = StalledWrite.of(request);
        if (mayTakeLong || !executor.isQuick(bodyBytes)) {
            watch.arm();
        }
        if (RequestRecords.of(request).trace().isRecording()) {
            queuedNs = System.nanoTime();
        }
        try {
            job = executor.submit(bodyBytes, () -> run(work));
        } catch (ApiException e) {
            if (end()) {
                throw e;
            }
            return;
        }
        if (state.get() == State.LEFT) {
            job.cancel(); // it left before there was a job
        }
    }

    private void run(Work work) {
        Runnable next;
        if (queuedNs != 0) {
            RequestRecords.of(request)
                    .trace()
                    .put("kvasir.prompt_wait_us", (System.nanoTime() - queuedNs) / NANOS_PER_MICRO);
        }
        try {
            next = work.run();
        } catch (Throwable e) { // an Error too is one request's: the thread and the others go on
            next = () -> failures.answer(request, response, callback, e);
        }
        if (end()) {
            goOn(next);
        }
    }

    private void goOn(Runnable next) {
        stalled.writing(answers);
        try {
            next.run();
        } catch (Throwable e) {
            failures.answer(request, response, callback, e);
        }
    }

    /** True if the client is there; it is not watched any more. */
    private boolean end() {
        if (!state.compareAndSet(State.WORKING, State.DONE)) {
            return false;
        }
        clientProbe.end();
        watch.cancel();
        return true;
    }

    private void clientLeft(Throwable cause) {
        if (!state.compareAndSet(State.WORKING, State.LEFT)) {
            return;
        }
        clientProbe.end();
        final PromptExecutor.Job underWay = job;
        if (underWay != null) {
            underWay.cancel();
        }
        var _ =
                metrics.ended(
                        RequestRecords.of(request), RequestRecords.statusOfBrokenOff(request));
        callback.failed(cause);
    }
}
