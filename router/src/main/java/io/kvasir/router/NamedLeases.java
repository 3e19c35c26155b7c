package io.kvasir.router;

import java.util.Map;
import java.util.Objects;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.function.IntSupplier;

/**
 * Bookings by the callers' own request ids. Any thread. Holds no more than twice the open bookings
 * and {@value #SLACK}: ids of bookings that ended otherwise go when there are more.
 */
final class NamedLeases {
    /** Longest id. */
    static final int MAX_ID_LENGTH = 1_024;

    private static final int SLACK = 1_024;

    private final Map<String, Named> byId = new ConcurrentHashMap<>();
    private final AtomicBoolean pruning = new AtomicBoolean();
    private final IntSupplier openBookings;

    /** Books with a lease. */
    @FunctionalInterface
    interface Booker {
        void reserve(Lease lease) throws RouteException;
    }

    /** A booking that is there, or is being made. */
    private static final class Named {
        final Lease lease = new Lease();
        volatile boolean pending = true;

        boolean isLive() {
            return pending || lease.isOpen();
        }
    }

    NamedLeases(IntSupplier openBookings) {
        this.openBookings = openBookings;
    }

    /**
     * Books under an id.
     *
     * @throws IllegalArgumentException if the id is empty or too long
     * @throws IllegalStateException if a booking of that id is open
     * @throws RouteException as of the booker; the id is free then
     */
    Lease reserve(String requestId, Booker booker) throws RouteException {
        check(requestId);
        final Named named = new Named();
        final Named now =
                byId.compute(requestId, (id, old) -> old == null || !old.isLive() ? named : old);
        if (now != named) {
            throw new IllegalStateException(
                    "request id="
                            + requestId
                            + " has an open booking; free it before it is booked again");
        }
        boolean booked = false;
        try {
            booker.reserve(named.lease);
            booked = true;
        } finally {
            named.pending = false;
            if (!booked) {
                byId.remove(requestId, named);
            }
        }
        prune();
        return named.lease;
    }

    private static void check(String requestId) {
        Objects.requireNonNull(requestId, "requestId");
        if (requestId.isEmpty() || requestId.length() > MAX_ID_LENGTH) {
            throw new IllegalArgumentException(
                    "a request id of "
                            + requestId.length()
                            + " characters; it has 1 to "
                            + MAX_ID_LENGTH);
        }
    }

    /** The booking of an id; null where none is open. */
    Lease openOrNull(String requestId) {
        Objects.requireNonNull(requestId, "requestId");
        final Named named = byId.get(requestId);
        return named != null && !named.pending && named.lease.isOpen() ? named.lease : null;
    }

    /** Releases a booking; false where none of that id is open. */
    boolean free(String requestId) {
        Objects.requireNonNull(requestId, "requestId");
        final Named named = byId.get(requestId);
        if (named == null || named.pending || !byId.remove(requestId, named)) {
            return false;
        }
        final boolean open = named.lease.isOpen();
        named.lease.close();
        return open;
    }

    int size() {
        return byId.size();
    }

    private void prune() {
        if (byId.size() > 2 * openBookings.getAsInt() + SLACK
                && pruning.compareAndSet(false, true)) {
            try {
                byId.values().removeIf(named -> !named.isLive());
            } finally {
                pruning.set(false);
            }
        }
    }
}
