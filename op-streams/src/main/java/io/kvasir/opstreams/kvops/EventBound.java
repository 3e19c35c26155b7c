package io.kvasir.opstreams.kvops;

import java.util.concurrent.TimeUnit;

/** What a store or removal may cost, whatever the worker holds and however full the index is. */
final class EventBound {
    private static final long EVENT_NS = TimeUnit.MICROSECONDS.toNanos(2);
    private static final long BLOCK_NS = 100;

    private EventBound() {}

    /** CPU time granted to an event of so many blocks, in nanoseconds. */
    static long ns(int blocks) {
        return EVENT_NS + blocks * BLOCK_NS;
    }
}
