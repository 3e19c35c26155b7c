package io.kvasir.router.disagg;

import java.util.Objects;

/**
 * How one leg of a split request failed.
 *
 * @param leg which
 * @param kind what happened, as metrics and error answers write it, such as {@code timeout}
 * @param retryable whether the request may be computed anew; false where a worker may still be at
 *     work on it and must not be given twice the work
 */
public record LegFailure(Leg leg, String kind, boolean retryable) {
    /** Checks that nothing is left out. */
    public LegFailure {
        Objects.requireNonNull(leg, "leg");
        Objects.requireNonNull(kind, "kind");
    }

    /** Returns leg and kind. */
    @Override
    public String toString() {
        return leg.spelling() + " (" + kind + ")";
    }
}
