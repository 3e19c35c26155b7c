package io.kvasir.router.queue;

import io.kvasir.router.Decision;
import io.kvasir.router.KvRouter;
import io.kvasir.router.Lease;
import io.kvasir.router.RouteException;
import io.kvasir.router.RouteRequest;
import io.kvasir.router.settings.RouterSettings;
import io.kvasir.router.settings.Settings;

import java.util.ArrayDeque;
import java.util.Arrays;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;

/**
 * The prompts that are being computed and have a stride of uncached blocks at least, by the hashes
 * of their beginnings: each whole stride, {@value #MARKS} at most. A prompt follows the one with
 * which it has most strides in common, if one of these is not cached anywhere. Any thread; of a
 * fixed size.
 */
final class PrefixFlights {
    /** Beginnings of one prompt that are known. */
    static final int MARKS = 32;

    private final KvRouter router;
    private final int stride; // blocks
    private final long waitNs;
    private final int most;
    private final Map<Long, Flight> byKey = new ConcurrentHashMap<>();
    private final ArrayDeque<Flight> all = new ArrayDeque<>(); // by their end; guarded by this
    private long led; // guarded by this
    private long notLed; // likewise

    PrefixFlights(KvRouter router, Settings settings) {
        this.router = router;
        final int blockSize = settings.get(RouterSettings.BLOCK_SIZE);
        final int tokens = settings.get(RouterSettings.SINGLE_FLIGHT_TOKENS);
        stride = Math.ceilDiv(tokens, blockSize);
        waitNs = settings.get(RouterSettings.SINGLE_FLIGHT_WAIT).toNanos();
        most = settings.get(RouterSettings.SINGLE_FLIGHT_PROMPTS);
    }

    long waitNs() {
        return waitNs;
    }

    /** What a prompt has to do with those that are being computed; one thread at a time. */
    static final class Look {
        final long[] keys = new long[MARKS];
        private int count;
        Flight ahead; // null for none
        int depth; // blocks in common with it

        /** Leading strides of the prompt, of which there may be none. */
        boolean isLong() {
            return count > 0;
        }
    }

    /**
     * Searches for the flight to follow.
     *
     * @param request filled; is matched where there may be one
     */
    void look(RouteRequest request, Decision scratch, long nowNs, Look out) {
        out.ahead = null;
        out.count = request.prefixKeys(stride, out.keys);
        for (int i = out.count - 1; i >= 0; i--) {
            final Flight flight = byKey.get(out.keys[i]);
            if (flight != null && flight.phase(nowNs) != Flight.Phase.OVER) {
                out.depth = (i + 1) * stride;
                if (out.depth - cached(request, scratch) >= stride) {
                    out.ahead = flight;
                }
                return; // what is shorter is cached, too
            }
        }
    }

    private int cached(RouteRequest request, Decision scratch) {
        try {
            router.select(request, scratch);
        } catch (RouteException e) {
            // it was matched before it was refused; what follows finds out why
        }
        return request.deepestOverlap();
    }

    /**
     * Lets others follow a prompt that was just booked, if it has a stride that is not cached.
     *
     * @param request as it was booked
     */
    synchronized void lead(RouteRequest request, Lease lease, Look look, long nowNs) {
        if (look.count * stride - request.deepestOverlap() < stride
                || !router.isPrefilling(lease.requestId())) {
            return;
        }
        sweep(nowNs);
        if (all.size() >= most) {
            notLed++;
            return;
        }
        final Flight flight =
                new Flight(router, lease, Arrays.copyOf(look.keys, look.count), nowNs + waitNs);
        for (long key : flight.keys) {
            byKey.merge(
                    key,
                    flight,
                    (old, young) -> old.phase(nowNs) == Flight.Phase.COMPUTING ? old : young);
        }
        all.add(flight);
        led++;
    }

    /** Forgets what is over: the oldest ones, and all where there is no room else. */
    private void sweep(long nowNs) {
        while (!all.isEmpty() && all.peek().phase(nowNs) == Flight.Phase.OVER) {
            forget(all.poll());
        }
        if (all.size() >= most) {
            all.removeIf(
                    flight -> {
                        final boolean over = flight.phase(nowNs) != Flight.Phase.COMPUTING;
                        if (over) {
                            forget(flight);
                        }
                        return over;
                    });
        }
    }

    private void forget(Flight flight) {
        for (long key : flight.keys) {
            byKey.remove(key, flight);
        }
    }

    /** Forgets what is over; some times a second, so that no lease is kept for long. */
    synchronized void tidy(long nowNs) {
        sweep(nowNs);
    }

    synchronized int count() {
        return all.size();
    }

    synchronized long led() {
        return led;
    }

    synchronized long notLed() {
        return notLed;
    }
}
