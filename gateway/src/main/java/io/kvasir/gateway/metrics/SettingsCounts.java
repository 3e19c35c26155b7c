package io.kvasir.gateway.metrics;

import java.util.Arrays;
import java.util.Collections;
import java.util.EnumMap;
import java.util.Locale;
import java.util.Map;
import java.util.concurrent.atomic.AtomicLong;

/** At which version the settings are, and how often they were changed. Any thread. */
public final class SettingsCounts {
    /** What changes settings. */
    public enum By {
        /** A call of the admin port, or of the program. */
        OPERATOR,
        /** The configuration file, read again. */
        FILE;

        /** As metrics write it. */
        String spelling() {
            return name().toLowerCase(Locale.ROOT);
        }
    }

    private final AtomicLong version = new AtomicLong(1);
    private final Map<By, AtomicLong> changed = zeros();
    private final Map<By, AtomicLong> refused = zeros();

    /** Settings that have never changed. */
    public SettingsCounts() {}

    private static Map<By, AtomicLong> zeros() {
        final Map<By, AtomicLong> counts = new EnumMap<>(By.class);
        Arrays.stream(By.values()).forEach(by -> counts.put(by, new AtomicLong()));
        return Collections.unmodifiableMap(counts);
    }

    /** Counted from 1, by changes. */
    public long version() {
        return version.get();
    }

    /** Some values are others now. */
    public void changed(By by) {
        changed.get(by).incrementAndGet();
        version.incrementAndGet();
    }

    /** A change was refused as a whole. */
    public void refused(By by) {
        refused.get(by).incrementAndGet();
    }

    /** How many were made, or refused, since the start. */
    public long count(By by, boolean isRefused) {
        return (isRefused ? refused : changed).get(by).get();
    }
}
