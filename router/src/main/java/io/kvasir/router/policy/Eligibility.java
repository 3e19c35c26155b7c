package io.kvasir.router.policy;

import java.util.Objects;

/**
 * Which workers may serve a request, beside what the router asks itself: health, exclusions, pins,
 * taints, limits of load. A pure function of its argument, asked once per candidate, in every mode,
 * by any thread that routes, by several at a time: it must not block or allocate.
 *
 * <p>A candidate for which it throws is {@link Verdict#INELIGIBLE}: what must not be is not done
 * because a check is broken. It is counted ({@link PolicyFailures}), and named where no worker is
 * left.
 */
@FunctionalInterface
public interface Eligibility {
    /** Every worker may. */
    Eligibility ALL = candidate -> Verdict.ELIGIBLE;

    /** Whether a worker may serve a request. */
    enum Verdict {
        /** It may. */
        ELIGIBLE,
        /** Not at this moment: it is full, and may when its load is less. */
        BUSY,
        /** It may not. */
        INELIGIBLE
    }

    /**
     * Judges one worker.
     *
     * @param candidate valid during the call
     * @return not null
     */
    Verdict of(Candidate candidate);

    /**
     * Both have to allow a worker.
     *
     * @param other asked where this one allows it
     * @return the two as one
     */
    default Eligibility and(Eligibility other) {
        Objects.requireNonNull(other, "other");
        return candidate -> {
            final Verdict first = of(candidate);
            return first == Verdict.ELIGIBLE ? other.of(candidate) : first;
        };
    }
}
