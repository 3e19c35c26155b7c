package io.kvasir.nixl.engine;

import io.kvasir.nixl.engine.Transfer.State;
import io.kvasir.nixl.transport.KvTransport.Operation;

import org.HdrHistogram.Histogram;

import java.util.EnumMap;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;

/**
 * What the transfers of an engine took, all links together. The engine's thread writes and
 * allocates nothing.
 *
 * <p>Counters only grow and any thread reads them. Times are kept to 1 % from 64 ns to an hour
 * (what is beyond counts as an hour) in plain histograms of the engine's thread; {@link
 * TransferEngine#takeTimes} swaps one for an empty one.
 */
public final class EngineTelemetry {
    /** What is timed. */
    public enum Span {
        /** A transfer, from its submission to its first request. */
        WAITING,
        /** Making and posting a request; the engine's thread does nothing else meanwhile. */
        POSTING,
        /** A request, from its making until its end was seen. */
        REQUEST,
        /** A stage, from its first request until its bytes were all there. */
        STAGE,
        /** A transfer that was done, from its submission to its end. */
        TRANSFER
    }

    private static final long SHORTEST_NS = 64;
    private static final long LONGEST_NS = TimeUnit.HOURS.toNanos(1);
    private static final int DIGITS = 2;

    private final Map<Span, Histogram> times = new EnumMap<>(Span.class);
    private final Map<State, AtomicLong> transfers = new EnumMap<>(State.class);
    private final Map<Operation, AtomicLong> bytes = new EnumMap<>(Operation.class);
    private final AtomicLong descriptors = new AtomicLong();
    private final AtomicLong requests = new AtomicLong();
    private final AtomicLong busyNs = new AtomicLong();

    EngineTelemetry() {
        for (Span span : Span.values()) {
            times.put(span, histogram());
        }
        for (State state : State.values()) {
            transfers.put(state, new AtomicLong());
        }
        for (Operation operation : Operation.values()) {
            bytes.put(operation, new AtomicLong());
        }
    }

    /**
     * Transfers that have ended.
     *
     * @param end one way to end; of other states there are none
     * @return since the start
     */
    public long transfers(State end) {
        return transfers.get(end).get();
    }

    /**
     * Bytes of requests that were done, also of transfers that failed later.
     *
     * @param operation pulls or pushes
     * @return since the start
     */
    public long bytes(Operation operation) {
        return bytes.get(operation).get();
    }

    /**
     * Descriptors of requests that were done, neighbours counted apart.
     *
     * @return since the start
     */
    public long descriptors() {
        return descriptors.get();
    }

    /**
     * Requests that were done.
     *
     * @return since the start
     */
    public long requests() {
        return requests.get();
    }

    /**
     * Time in which something was in flight, up to the engine's last look. Bytes over this time are
     * what the way brings, bytes over the time that has passed are what was asked of it.
     *
     * @return nanoseconds since the start
     */
    public long busyNs() {
        return busyNs.get();
    }

    /**
     * A histogram that can hold all times.
     *
     * @return empty, for {@link TransferEngine#takeTimes} or for sums of what that gave
     */
    public static Histogram histogram() {
        return new Histogram(SHORTEST_NS, LONGEST_NS, DIGITS);
    }

    static void check(Histogram empty) {
        if (empty.getLowestDiscernibleValue() > SHORTEST_NS
                || empty.getHighestTrackableValue() < LONGEST_NS
                || empty.getTotalCount() != 0) {
            throw new IllegalArgumentException(
                    "an empty histogram from "
                            + SHORTEST_NS
                            + " to "
                            + LONGEST_NS
                            + " ns is needed, see EngineTelemetry.histogram; given: "
                            + empty.getLowestDiscernibleValue()
                            + " to "
                            + empty.getHighestTrackableValue()
                            + " with "
                            + empty.getTotalCount()
                            + " values");
        }
    }

    // -- the engine's

    void took(Span span, long ns) {
        times.get(span).recordValue(Math.clamp(ns, 0, LONGEST_NS));
    }

    Histogram swap(Span span, Histogram empty) {
        return times.put(span, empty);
    }

    void ended(State state) {
        add(transfers.get(state), 1);
    }

    void moved(Operation operation, int descriptorCount, long byteCount) {
        add(bytes.get(operation), byteCount);
        add(descriptors, descriptorCount);
        add(requests, 1);
    }

    void busy(long ns) {
        add(busyNs, Math.max(0, ns));
    }

    /** One thread writes. */
    private static void add(AtomicLong counter, long more) {
        counter.lazySet(counter.getPlain() + more);
    }
}
