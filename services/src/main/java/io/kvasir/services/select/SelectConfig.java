package io.kvasir.services.select;

import io.kvasir.router.settings.SessionMode;
import io.kvasir.services.slots.SlotsConfig;

import java.time.Duration;
import java.util.Objects;

/**
 * What a selection service is started with.
 *
 * @param slots where it listens, ranks of all workers, reservations and their blocks, and how long
 *     a reservation counts at most
 * @param maxModels models and routing groups at once, each with an index of its own
 * @param indexBytes memory that one index may grow to; 0 = a tenth of the machine's
 * @param selectionTtl how long a selection with an id waits for its reservation
 * @param maxSelections selections that wait at once; the oldest is dropped for a further one
 * @param sessionTtl how long after its last reservation a session stays with its rank; 0 = not at
 *     all
 * @param sessionMode what a session's rank means
 */
public record SelectConfig(
        SlotsConfig slots,
        int maxModels,
        long indexBytes,
        Duration selectionTtl,
        int maxSelections,
        Duration sessionTtl,
        SessionMode sessionMode) {
    /** Longest time that a session stays with its worker. */
    public static final Duration MOST_SESSION_TTL = Duration.ofDays(365);

    /**
     * Checks the values.
     *
     * @throws IllegalArgumentException if one is out of range
     */
    public SelectConfig {
        Objects.requireNonNull(slots, "slots");
        if (maxModels < 1) {
            throw new IllegalArgumentException("maxModels must be 1 or more: " + maxModels);
        }
        if (selectionTtl.isNegative() || selectionTtl.isZero()) {
            throw new IllegalArgumentException("selectionTtl must be above 0: " + selectionTtl);
        }
        Objects.requireNonNull(sessionMode, "sessionMode");
        if (sessionTtl.isNegative() || sessionTtl.compareTo(MOST_SESSION_TTL) > 0) {
            throw new IllegalArgumentException(
                    "sessionTtl must be 0 to " + MOST_SESSION_TTL + ": " + sessionTtl);
        }
        if (maxSelections < 1) {
            throw new IllegalArgumentException("maxSelections must be 1 or more: " + maxSelections);
        }
    }

    /** Usual sizes: 4,096 ranks, 64 models, 65,536 reservations, a minute for 65,536 selections. */
    public static SelectConfig of(String host, int port) {
        return new SelectConfig(
                SlotsConfig.of(host, port),
                64,
                0,
                Duration.ofMinutes(1),
                65_536,
                Duration.ZERO,
                SessionMode.HARD);
    }

    /** The same with other sizes of the tracker. */
    public SelectConfig withSlots(SlotsConfig changed) {
        return new SelectConfig(
                changed,
                maxModels,
                indexBytes,
                selectionTtl,
                maxSelections,
                sessionTtl,
                sessionMode);
    }

    /** The same with other sizes of the indexes. */
    public SelectConfig withIndexes(int models, long bytes) {
        return new SelectConfig(
                slots, models, bytes, selectionTtl, maxSelections, sessionTtl, sessionMode);
    }

    /** The same with other limits of selections. */
    public SelectConfig withSelections(Duration ttl, int most) {
        return new SelectConfig(slots, maxModels, indexBytes, ttl, most, sessionTtl, sessionMode);
    }

    /** The same with sessions that stay with their ranks. */
    public SelectConfig withSessions(Duration ttl, SessionMode mode) {
        return new SelectConfig(
                slots, maxModels, indexBytes, selectionTtl, maxSelections, ttl, mode);
    }
}
