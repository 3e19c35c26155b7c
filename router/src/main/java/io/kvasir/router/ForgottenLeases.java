package io.kvasir.router;

import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;
import java.util.function.Consumer;

/**
 * Counts leases that were collected while their bookings were open, and logs their number: at the
 * first tick after the first one, then at most once a minute if there are more. Any thread counts;
 * the logging is done by one at a time.
 */
final class ForgottenLeases {
    private static final Logger LOG = LoggerFactory.getLogger(ForgottenLeases.class);
    private static final long PERIOD_NS = TimeUnit.MINUTES.toNanos(1);

    private final Consumer<String> warn;
    private final AtomicLong count = new AtomicLong();
    private final AtomicLong warned = new AtomicLong();
    private volatile long lastNs; // when the latest warning was given; none while warned is 0

    ForgottenLeases() {
        this(LOG::warn);
    }

    /** For tests that read the lines. */
    ForgottenLeases(Consumer<String> warn) {
        this.warn = warn;
    }

    void add() {
        count.getAndIncrement();
    }

    long count() {
        return count.get();
    }

    /** Warns if there is something new to say. */
    void look(long nowNs) {
        final long all = count.get();
        final long before = warned.get();
        if (all > before
                && (before == 0 || nowNs - lastNs >= PERIOD_NS)
                && warned.compareAndSet(before, all)) {
            lastNs = nowNs;
            warn.accept(
                    "leases were forgotten: "
                            + all
                            + " since the start were collected without having been closed; their"
                            + " bookings counted as load until then; close each lease when its"
                            + " request has ended, whatever its outcome");
        }
    }
}
