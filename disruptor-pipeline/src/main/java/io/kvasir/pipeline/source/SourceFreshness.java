package io.kvasir.pipeline.source;

import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.LongSupplier;

/**
 * Whether a source still gets messages of its engine, and since when it does not. The credit of a
 * view for which nothing comes falls to nothing within {@link FreshnessLimits#decayNs}, and is back
 * as soon as the reason has ended.
 *
 * <p>Reasons: there is no connection; it came back, and its engine may be another one; prompts with
 * new blocks were served and no message followed; {@value #MUTE} times as many were, messages
 * followed, and none of them stored a block.
 *
 * <p>Any thread may call {@link #activityMark}, {@link #served}, {@link #isSilent} and {@link
 * #left}; the rest is guarded by the stream's lock.
 */
final class SourceFreshness {
    private static final long NEVER = Long.MIN_VALUE;
    private static final int MUTE = 8;

    private final FreshnessLimits limits;
    private final LongSupplier nanoClock;
    private final AtomicInteger servedPrompts = new AtomicInteger();
    private final AtomicInteger unstoredPrompts = new AtomicInteger();
    private final AtomicInteger messages = new AtomicInteger(); // modulo 2^32
    private final AtomicInteger stores = new AtomicInteger(); // likewise
    private volatile long servedSinceNs = NEVER;
    private volatile long silentSinceNs = NEVER;
    private volatile long unstoredSinceNs = NEVER;
    private volatile long muteSinceNs = NEVER;
    private volatile long unknownSinceNs = NEVER; // unconnected or doubted
    private String unconnected; // why there is no connection, null while there is one
    private String doubt; // why the engine or its events may be others, null without

    SourceFreshness(FreshnessLimits limits, LongSupplier nanoClock) {
        this.limits = limits;
        this.nanoClock = nanoClock;
    }

    /** How many messages have come, and how many of them could have stored blocks. */
    long activityMark() {
        return ((long) messages.get() << Integer.SIZE) | Integer.toUnsignedLong(stores.get());
    }

    /**
     * A prompt was served whose new blocks the engine must announce.
     *
     * @param activityBefore the mark as it was booked: if something has come since, that may have
     *     announced them
     */
    void served(long activityBefore) {
        final long now = nanoClock.getAsLong();
        final long mark = activityMark();
        if (mark >>> Integer.SIZE == activityBefore >>> Integer.SIZE) {
            if (servedSinceNs == NEVER) {
                servedSinceNs =
                        now; // benign race: the later of two threads moves it by less than a call
            }
            servedPrompts.getAndIncrement();
        }
        if ((int) mark == (int) activityBefore) {
            if (unstoredSinceNs == NEVER) {
                unstoredSinceNs = now; // the same
            }
            unstoredPrompts.getAndIncrement();
        }
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
        final long unstored = unstoredSinceNs;
        if (muteSinceNs == NEVER
                && unstored != NEVER
                && unstoredPrompts.get() >= (long) MUTE * limits.servedPrompts()
                && now - unstored >= limits.silentAfterNs()) {
            muteSinceNs = now;
        }
    }

    boolean isSilent() {
        return silentSinceNs != NEVER;
    }

    /** Messages come, and none of them stores a block. */
    boolean isMute() {
        return muteSinceNs != NEVER;
    }

    /** A message has come. */
    void received() {
        messages.lazySet(messages.getPlain() + 1); // under the stream's lock
        if (servedSinceNs != NEVER || silentSinceNs != NEVER) {
            servedPrompts.set(0);
            servedSinceNs = NEVER;
            silentSinceNs = NEVER;
        }
    }

    /** A message has stored blocks, or could have: what it says is not known yet. */
    void stored() {
        stores.lazySet(stores.getPlain() + 1); // under the stream's lock
        if (unstoredSinceNs != NEVER || muteSinceNs != NEVER) {
            unstoredPrompts.set(0);
            unstoredSinceNs = NEVER;
            muteSinceNs = NEVER;
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
     * The engine may be another one than before, or events of it may be missing.
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
        if (isMute()) {
            return "no event stored a block since "
                    + unstoredPrompts.get()
                    + " prompts with new blocks were served, although messages came: see the drops";
        }
        return doubt;
    }

    /** What is left of the credit: 1 while messages come, down to 0. */
    double left() {
        final long unknown = unknownSinceNs;
        final long silent = silentSinceNs;
        final long mute = muteSinceNs;
        if (unknown == NEVER && silent == NEVER && mute == NEVER) {
            return 1;
        }
        final long now = nanoClock.getAsLong();
        final long age = Math.max(age(unknown, now), Math.max(age(silent, now), age(mute, now)));
        return Math.max(0, 1 - (double) age / limits.decayNs());
    }

    private static long age(long since, long now) {
        return since == NEVER ? 0 : now - since;
    }
}
