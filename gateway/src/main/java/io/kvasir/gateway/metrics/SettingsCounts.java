package io.kvasir.gateway.metrics;

import java.util.Locale;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.atomic.AtomicLongArray;

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
    private final AtomicLongArray changed = new AtomicLongArray(By.values().length);
    private final AtomicLongArray refused = new AtomicLongArray(By.values().length);

    /** Settings that have never changed. */
    public SettingsCounts() {}

    /** Counted from 1, by changes. */
    public long version() {
        return version.get();
    }

    /** Some values are others now. */
    public void changed(By by) {
        changed.incrementAndGet(by.ordinal());
        version.incrementAndGet();
    }

    /** A change was refused as a whole. */
    public void refused(By by) {
        refused.incrementAndGet(by.ordinal());
    }

    long count(By by, boolean isRefused) {
        return (isRefused ? refused : changed).get(by.ordinal());
    }
}
