package io.kvasir.gateway.proxy;

import io.kvasir.gateway.openai.ApiException;
import io.kvasir.gateway.routing.RequestPart;
import io.kvasir.gateway.routing.WorkerReservations;
import io.kvasir.router.queue.QueueTicket;

import java.util.concurrent.Executor;
import java.util.function.Consumer;

/**
 * A booking that is had at once or when a worker has room. What follows a wait runs on the executor
 * and never on the queue's own thread, behind which others wait; without a wait it runs in the
 * caller.
 */
final class QueuedBooking implements WorkerReservations.Waiter {
    private final ProxyRequest proxied;
    private final Executor executor;
    private final Consumer<WorkerReservations.Booking> booked;
    private final Consumer<ApiException> refused;
    private final Thread caller = Thread.currentThread();
    private final long beginNs = System.nanoTime();
    private volatile QueueTicket ticket; // null before the reservations have given it

    private QueuedBooking(
            ProxyRequest proxied,
            Executor executor,
            Consumer<WorkerReservations.Booking> booked,
            Consumer<ApiException> refused) {
        this.proxied = proxied;
        this.executor = executor;
        this.booked = booked;
        this.refused = refused;
    }

    /**
     * Asks for one.
     *
     * @param executor of what follows a wait
     */
    static QueuedBooking begin(
            WorkerReservations reservations,
            RequestPart part,
            ProxyRequest proxied,
            Executor executor,
            Consumer<WorkerReservations.Booking> booked,
            Consumer<ApiException> refused) {
        final QueuedBooking begun = new QueuedBooking(proxied, executor, booked, refused);
        begun.ticket =
                reservations.admit(
                        part,
                        proxied.prompt(),
                        proxied.requestId(),
                        proxied.inference().route.label,
                        proxied.rank(),
                        begun);
        return begun;
    }

    @Override
    public void booked(WorkerReservations.Booking booking, long waitedNs) {
        goOn(
                () -> {
                    proxied.record().queued(waitedNs);
                    booked.accept(booking);
                });
    }

    @Override
    public void refused(ApiException why) {
        final boolean atOnce = isCaller() && ticket == null;
        final long waitedNs = atOnce ? 0 : System.nanoTime() - beginNs;
        goOn(
                () -> {
                    proxied.record().queued(waitedNs);
                    refused.accept(why);
                });
    }

    /** Ends the wait, which counts as far as it went. */
    void giveUp() {
        if (ticket.cancel()) {
            proxied.record().queued(System.nanoTime() - beginNs);
        }
    }

    private boolean isCaller() {
        return Thread.currentThread().equals(caller);
    }

    private void goOn(Runnable next) {
        if (isCaller()) {
            next.run();
        } else {
            executor.execute(next);
        }
    }
}
