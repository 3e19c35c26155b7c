package io.kvasir.router;

import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

import java.util.HashSet;
import java.util.Set;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;
import java.util.function.Consumer;
import java.util.function.Supplier;

/**
 * Logs a warning once when a limit is nearly reached, and a line when it is not any more.
 *
 * <p>Any thread may look; one at a time does, at most once a second of the clock that it is given.
 */
final class FillWatch {
    private static final Logger LOG = LoggerFactory.getLogger(FillWatch.class);
    private static final double WARN_FROM = 0.8;
    private static final double CALM_BELOW = 0.7;
    private static final long PERIOD_NS = TimeUnit.SECONDS.toNanos(1);

    private final Supplier<RouterStatus> status;
    private final Consumer<String> warn;
    private final Consumer<String> info;
    private final AtomicLong nextNs = new AtomicLong(Long.MIN_VALUE); // before the first look
    private final Set<String> full = new HashSet<>(); // guarded by this

    FillWatch(Supplier<RouterStatus> status) {
        this(status, LOG::warn, LOG::info);
    }

    /** For tests that read the lines. */
    FillWatch(Supplier<RouterStatus> status, Consumer<String> warn, Consumer<String> info) {
        this.status = status;
        this.warn = warn;
        this.info = info;
    }

    /** Checks all limits, unless that was done less than a second ago. */
    void look(long nowNs) {
        final long next = nextNs.get();
        if ((next == Long.MIN_VALUE || nowNs - next >= 0)
                && nextNs.compareAndSet(next, nowNs + PERIOD_NS)) {
            look(status.get());
        }
    }

    private synchronized void look(RouterStatus now) {
        for (RouterStatus.Usage usage : now.usages()) {
            if (usage.fraction() >= WARN_FROM && full.add(usage.resource())) {
                warn.accept(describe(usage) + "; raise " + usage.setting());
            } else if (usage.fraction() < CALM_BELOW && full.remove(usage.resource())) {
                info.accept(describe(usage) + " again");
            }
        }
    }

    private static String describe(RouterStatus.Usage usage) {
        return usage.resource()
                + " is "
                + Math.round(100 * usage.fraction())
                + " % full: "
                + usage.used()
                + " of "
                + usage.limit();
    }
}
