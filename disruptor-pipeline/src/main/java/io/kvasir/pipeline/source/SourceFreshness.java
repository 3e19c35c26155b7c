package io.kvasir.pipeline.source;

import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.LongSupplier;

/**
 * Whether a source still hears from its engine, and since when it does not. The credit of a view
 * for which nothing is heard falls to nothing within {@link FreshnessLimits#decayNs}, and is back
 * as soon as the reason has ended.
 *
 * <p>Reasons: there is no connection; it came back, and its engine may be another one; prompts with
 * new blocks were served and no message followed.
 *
 * <p>Any thread may call {@link #served}, {@link #isSilent} and {@link #left}; the rest is guarded
 * by the stream's lock.
 */
final class SourceFreshness {
    private static final long NEVER = Long.MIN_VALUE;

    private final FreshnessLimits limits;
    private final LongSupplier nanoClock;
    private final AtomicInteger servedPrompts = new AtomicInteger();
    private volatile long servedSinceNs = NEVER;
    private volatile long silentSinceNs = NEVER;
    private volatile long unknownSinceNs = NEVER; // unconnected or doubted
    private String unconnected; // why there is no connection, null while there is one
    private String doubt; // why the engine or its events may be others, null without

    SourceFreshness(FreshnessLimits limits, LongSupplier nanoClock) {
        this.limits = limits;
        this.nanoClock = nanoClock;
    }

    /** A prompt was served whose new blocks the engine must announce. */
    void served() {
        final long now = nanoClock.getAsLong();
        if (servedSinceNs == NEVER) {
            servedSinceNs =
                    now; // benign race: the later of two threads moves it by less than a call
        }
        servedPrompts.getAndIncrement();
        look(now);
    }

    /** Checks whether the engine has been silent for too long. */
    void look() {
        look(nanoClock.getAsLong());
    }

    private void look(long now) {
        final long since = servedSinceNs;
        if (silentSinceNs == NEVER
                && since != NEVER
                && servedPrompts.get() >= limits.servedPrompts()
                && now - since >= limits.silentAfterNs()) {
            silentSinceNs = now;
        }
    }

    boolean isSilent() {
        return silentSinceNs != NEVER;
    }

    /** A message has come. */
    void heard() {
        if (servedSinceNs != NEVER || silentSinceNs != NEVER) {
            servedPrompts.set(0);
            servedSinceNs = NEVER;
            silentSinceNs = NEVER;
        }
    }

    void unconnected(String why) {
        unconnected = why;
        unknown();
    }

    void connected() {
        unconnected = null;
        known();
    }

    boolean isConnected() {
        return unconnected == null;
    }

    /**
     * The engine may be another one than was heard before, or events of it may be missing.
     *
     * @param why in words
     */
    void doubt(String why) {
        doubt = why;
        unknown();
    }

    /** The engine is the same, or nothing of the other one is left. */
    void believe() {
        doubt = null;
        known();
    }

    boolean isDoubted() {
        return doubt != null;
    }

    private void unknown() {
        if (unknownSinceNs == NEVER) {
            unknownSinceNs = nanoClock.getAsLong();
        }
    }

    private void known() {
        if (unconnected == null && doubt == null) {
            unknownSinceNs = NEVER;
        }
    }

    /** Why the source is stale, in words; null if it is not. */
    String why() {
        if (unconnected != null) {
            return "no connection for events: " + unconnected;
        }
        if (isSilent()) {
            return "no event came since "
                    + servedPrompts.get()
                    + " prompts with new blocks were served: check that the engine publishes its"
                    + " events, and the address and topic";
        }
        return doubt;
    }

    /** What is left of the credit: 1 while messages come, down to 0. */
    double left() {
        final long unknown = unknownSinceNs;
        final long silent = silentSinceNs;
        if (unknown == NEVER && silent == NEVER) {
            return 1;
        }
        final long now = nanoClock.getAsLong();
        final long age =
                Math.max(unknown == NEVER ? 0 : now - unknown, silent == NEVER ? 0 : now - silent);
        return Math.max(0, 1 - (double) age / limits.decayNs());
    }
}
