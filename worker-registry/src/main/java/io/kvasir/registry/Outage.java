package io.kvasir.registry;

import java.time.Duration;
import java.util.HashSet;
import java.util.Set;
import java.util.function.LongSupplier;
import java.util.regex.Pattern;

/**
 * A time in which a store does not answer: which of its reasons are to be said, and how long it
 * lasts. One thread.
 */
final class Outage {
    /** Reasons of one outage that are said; they may well alternate between a few. */
    static final int MOST_REASONS = 4;

    /** The same reason at another member, or of another call, is no other one. */
    private static final Pattern ADDRESS = Pattern.compile("\\b[a-z]+://[^\\s,\\]]+");

    private final LongSupplier nanoTime;
    private final Set<String> reasons = new HashSet<>(); // empty: there is none
    private long sinceNs;

    Outage(LongSupplier nanoTime) {
        this.nanoTime = nanoTime;
    }

    /** Begins one, or goes on; true if the reason is to be said. */
    boolean isNews(String cause) {
        if (reasons.isEmpty()) {
            sinceNs = nanoTime.getAsLong();
        }
        return reasons.size() < MOST_REASONS && reasons.add(ADDRESS.matcher(cause).replaceAll(""));
    }

    /** Ends it; zero if there was none. */
    Duration end() {
        if (reasons.isEmpty()) {
            return Duration.ZERO;
        }
        reasons.clear();
        return Duration.ofNanos(nanoTime.getAsLong() - sinceNs);
    }
}
