package io.kvasir.router.queue;

import io.kvasir.router.Decision;
import io.kvasir.router.Decision.Exclusion;
import io.kvasir.router.KvRouter;
import io.kvasir.router.Lease;
import io.kvasir.router.RouteException;
import io.kvasir.router.RouteRequest;
import io.kvasir.router.Worker;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.PriorityQueue;
import java.util.concurrent.ConcurrentHashMap;

/**
 * The prompts that are being computed and have a stride of uncached blocks at least, by the hashes
 * of their beginnings: each whole stride, {@value #MARKS} at most. A prompt follows the one with
 * which it has most strides in common of those on workers that it may use, if one of these strides
 * is not cached anywhere. Any thread; of a bounded size: of each beginning, {@value #MOST_WORKERS}
 * workers that compute it are known.
 *
 * <p>A key names a whole beginning, so what was led with another stride is found where a beginning
 * of it ends at a stride of now. Flights keep the time that they were led with.
 */
final class PrefixFlights {
    /** Beginnings of one prompt that are known. */
    static final int MARKS = 32;

    /** Workers that compute a beginning and are known; prompts on further ones are not followed. */
    private static final int MOST_WORKERS = 8;

    private static final Flight[] NONE = {};

    private final KvRouter router;
    private final Map<Long, Flight[]> byKey = new ConcurrentHashMap<>(); // none is changed
    private final PriorityQueue<Flight> all = // guarded by this
            new PriorityQueue<>((a, b) -> Long.signum(a.endsNs - b.endsNs));
    private FlightRules rules; // guarded by this
    private long led; // guarded by this
    private long notLed; // likewise

    PrefixFlights(KvRouter router, FlightRules rules) {
        this.router = router;
        this.rules = rules;
    }

    /**
     * Takes other rules for what is led from now on. Where none is to be followed any more, all are
     * forgotten; else those that are under way stay, also beyond a lower limit.
     */
    synchronized void change(FlightRules wanted) {
        rules = wanted;
        if (!wanted.isOn()) {
            all.forEach(this::forget);
            all.clear();
        }
    }

    /** What a prompt has to do with those that are being computed; one thread at a time. */
    static final class Look {
        final long[] keys = new long[MARKS];
        private int stride; // blocks
        private int count;
        Flight ahead; // null for none
        int depth; // blocks in common with it
        boolean isCached; // all of them are, on its worker

        /** Forgets the prompt, and what it holds alive. */
        void clear() {
            count = 0;
            ahead = null;
        }

        /** Leading strides of the prompt, of which there may be none. */
        boolean isLong() {
            return count > 0;
        }
    }

    /**
     * Searches for the flight to follow: one on a worker that the request may use, and whose blocks
     * are not cached, or are cached there. An engine announces blocks before their prompt's first
     * token, and requests are booked before their blocks count as shared; until then the worker
     * that has them seems dearer than one that has nothing. What a worker without events is taken
     * to hold because the flight was booked on it is not cached as long as it is computed.
     *
     * @param request filled; is matched where there may be one
     * @param stride blocks
     */
    void look(RouteRequest request, Decision scratch, int stride, long nowNs, Look out) {
        out.ahead = null;
        out.stride = stride;
        out.count = request.prefixKeys(stride, out.keys);
        boolean peeked = false;
        for (int i = out.count - 1; i >= 0; i--) {
            for (Flight flight : byKey.getOrDefault(out.keys[i], NONE)) {
                if (flight.phase(nowNs) == Flight.Phase.OVER) {
                    continue;
                }
                if (!peeked) {
                    peek(request, scratch);
                    peeked = true;
                }
                if (mayUse(flight.worker, scratch)) {
                    compare(flight, (i + 1) * stride, request, nowNs, out);
                    return; // what is shorter is cached, too
                }
            }
        }
    }

    /** Takes a flight as the one to follow, unless its blocks are cached elsewhere. */
    private static void compare(
            Flight flight, int depth, RouteRequest request, long nowNs, Look out) {
        out.depth = depth;
        final boolean isPredicted = flight.isPredicted(nowNs);
        final int held =
                isPredicted
                        ? Math.min(flight.heldBefore(), request.overlap(flight.worker))
                        : request.overlap(flight.worker);
        final int deepest =
                isPredicted
                        ? Math.max(held, request.deepestOverlapBeside(flight.worker))
                        : request.deepestOverlap();
        final boolean isMissing = depth - deepest >= out.stride;
        out.isCached = depth - held < out.stride;
        if (isMissing || out.isCached) {
            out.ahead = flight;
        }
    }

    private void peek(RouteRequest request, Decision scratch) {
        try {
            router.peek(request, scratch);
        } catch (RouteException e) {
            // it was matched before it was refused; what follows finds out why
        }
    }

    /** Whether the request that was asked for could go to a worker, if not now, as it is busy. */
    private static boolean mayUse(Worker worker, Decision asked) {
        final Exclusion why = asked.exclusion(worker);
        return why == Exclusion.NONE || why == Exclusion.BUSY;
    }

    /**
     * Lets others follow a prompt that was just booked, if it has a stride that is not cached, and
     * prompts are still followed.
     *
     * @param request as it was booked
     */
    synchronized void lead(RouteRequest request, Lease lease, Look look, long nowNs) {
        if (!rules.isOn()
                || look.count * look.stride - request.deepestOverlap() < look.stride
                || !router.isPrefilling(lease.requestId())) {
            return;
        }
        sweep(nowNs);
        if (all.size() >= rules.most()) {
            notLed++;
            return;
        }
        final Flight flight =
                new Flight(
                        router,
                        lease,
                        request.overlap(lease.worker()),
                        Arrays.copyOf(look.keys, look.count),
                        nowNs + rules.waitNs());
        for (long key : flight.keys) {
            byKey.compute(key, (_, before) -> with(flight, before == null ? NONE : before, nowNs));
        }
        all.add(flight);
        led++;
    }

    /** Those of one beginning that are computed still, the new one after them, one of a worker. */
    private static Flight[] with(Flight flight, Flight[] before, long nowNs) {
        final List<Flight> all = new ArrayList<>();
        boolean isFirst = true;
        for (Flight each : before) {
            if (each.phase(nowNs) == Flight.Phase.COMPUTING) {
                all.add(each);
                isFirst &= each.worker != flight.worker;
            }
        }
        if (isFirst && all.size() < MOST_WORKERS) {
            all.add(flight);
        }
        return all.toArray(NONE);
    }

    private static Flight[] without(Flight flight, Flight[] before) {
        final Flight[] left =
                Arrays.stream(before).filter(each -> each != flight).toArray(Flight[]::new);
        return left.length == 0 ? null : left;
    }

    /** Forgets what is over: those that end first, and all where there is no room else. */
    private void sweep(long nowNs) {
        while (!all.isEmpty() && all.peek().phase(nowNs) == Flight.Phase.OVER) {
            forget(all.poll());
        }
        if (all.size() >= rules.most()) {
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
            byKey.computeIfPresent(key, (_, before) -> without(flight, before));
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
