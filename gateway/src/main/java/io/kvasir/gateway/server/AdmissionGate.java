package io.kvasir.gateway.server;

import io.kvasir.gateway.openai.ApiException;

import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.atomic.AtomicReference;
import java.util.function.IntSupplier;
import java.util.function.LongSupplier;

/**
 * Limits that a request is held against before anything is spent on it: requests under way, and
 * bytes of their bodies in memory. Thread-safe.
 *
 * <p>A request counts from {@link #enter} to its booking by the router, which counts it from there
 * on, and again where its answer waits for its client when the booking has ended; its body counts
 * until the request has ended.
 */
public final class AdmissionGate {
    private final int maxRequests;
    private final LongSupplier maxBytes;
    private final IntSupplier bookings;
    private final AtomicInteger preparing = new AtomicInteger();
    private final AtomicInteger unread = new AtomicInteger();
    private final AtomicLong bytes = new AtomicLong();

    /**
     * @param maxBytes asked each time
     * @param bookings requests that the routers count
     */
    public AdmissionGate(int maxRequests, LongSupplier maxBytes, IntSupplier bookings) {
        this.maxRequests = maxRequests;
        this.maxBytes = maxBytes;
        this.bookings = bookings;
    }

    /**
     * Lets a request in.
     *
     * @throws ApiException 429 if there are as many as may be
     */
    public Admission enter() throws ApiException {
        if (preparing.incrementAndGet() + unread.get() + bookings.getAsInt() > maxRequests) {
            preparing.decrementAndGet();
            throw ApiException.overloaded(
                    "too many requests are being served at this moment", "max-active-requests");
        }
        return new Admission();
    }

    /** Requests that are let in and not booked yet. */
    public int preparing() {
        return preparing.get();
    }

    /** Requests that their worker is done with, and whose answer waits for its client. */
    public int unread() {
        return unread.get();
    }

    /** Bytes of bodies in memory. */
    public long bodyBytes() {
        return bytes.get();
    }

    private enum State {
        PREPARES,
        /** Booked, or answered; the gate does not count it. */
        PREPARED,
        UNREAD,
        ENDED
    }

    /** One request's share of the limits. Its bytes are taken by one thread. */
    public final class Admission implements BodyReader.Budget {
        private final AtomicReference<State> state = new AtomicReference<>(State.PREPARES);
        private final AtomicLong taken = new AtomicLong();

        @Override
        public void expect(long count) throws ApiException {
            final long most = maxBytes.getAsLong();
            if (count > most) {
                throw ApiException.tooLarge(count, most, "max-body-bytes-in-flight");
            }
            if (bytes.get() + count > most) {
                throw full();
            }
        }

        @Override
        public void take(long count) throws ApiException {
            final long most = maxBytes.getAsLong();
            if (taken.get() + count > most) {
                throw ApiException.tooLarge(-1, most, "max-body-bytes-in-flight");
            }
            if (bytes.addAndGet(count) > most) {
                bytes.addAndGet(-count);
                throw full();
            }
            taken.addAndGet(count);
        }

        private ApiException full() {
            return ApiException.overloaded(
                    "too many bytes of request bodies are in memory at this moment",
                    "max-body-bytes-in-flight");
        }

        /** The request is about to be booked, or is answered. */
        public void prepared() {
            if (state.compareAndSet(State.PREPARES, State.PREPARED)) {
                preparing.decrementAndGet();
            }
        }

        /** All of its answer is written, but the client has not taken it yet. */
        void unread() {
            if (state.compareAndSet(State.PREPARED, State.UNREAD)) {
                unread.incrementAndGet();
            }
        }

        /** The request has ended. */
        public void end() {
            switch (state.getAndSet(State.ENDED)) {
                case PREPARES -> preparing.decrementAndGet();
                case UNREAD -> unread.decrementAndGet();
                case PREPARED, ENDED -> {}
            }
            giveBack();
        }

        @Override
        public void giveBack() {
            bytes.addAndGet(-taken.getAndSet(0));
        }
    }
}
