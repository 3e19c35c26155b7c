package io.kvasir.pipeline.source;

import java.util.concurrent.TimeUnit;

/**
 * When a source that gets nothing counts as stale, and how fast its view loses its credit.
 *
 * @param silentAfterNs time without a message, from the first prompt served since the last one
 * @param servedPrompts prompts with blocks that were new to the engine, served in that time
 * @param decayNs time in which the credit of a stale view falls from full to nothing
 */
public record FreshnessLimits(long silentAfterNs, int servedPrompts, long decayNs) {
    /** 5 s and 3 prompts; the credit is spent after 2 s more. */
    public static final FreshnessLimits DEFAULT =
            new FreshnessLimits(TimeUnit.SECONDS.toNanos(5), 3, TimeUnit.SECONDS.toNanos(2));

    /**
     * Checks the values.
     *
     * @throws IllegalArgumentException if one is not positive
     */
    public FreshnessLimits {
        if (silentAfterNs <= 0 || servedPrompts <= 0 || decayNs <= 0) {
            throw new IllegalArgumentException(
                    "must be positive: silentAfterNs="
                            + silentAfterNs
                            + ", servedPrompts="
                            + servedPrompts
                            + ", decayNs="
                            + decayNs);
        }
    }
}
