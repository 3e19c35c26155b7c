package io.kvasir.router;

import java.util.concurrent.atomic.AtomicReferenceArray;

/** The {@link PrefillPace} of each worker, and that of all together. Any thread. */
final class PrefillPaces {
    private final AtomicReferenceArray<PrefillPace> bySlot;
    private double tokens; // guarded by this
    private double seconds; // likewise
    private volatile double secondsPerToken;

    PrefillPaces(int slots) {
        bySlot = new AtomicReferenceArray<>(slots);
    }

    /** A worker's pace; that of the slot's worker before is forgotten, as it was another one. */
    PrefillPace of(Worker worker) {
        final PrefillPace known = bySlot.get(worker.slot());
        if (known != null && known.worker() == worker) {
            return known;
        }
        final PrefillPace fresh = new PrefillPace(worker, this);
        bySlot.set(worker.slot(), fresh); // of two at once one is lost, with what it has learned
        return fresh;
    }

    /**
     * Takes a sample of any worker; several prompts that end at once are samples without a time.
     *
     * @return seconds a token of all; 0 while nothing is known
     */
    synchronized double learn(double computed, double took) {
        tokens = tokens * PrefillPace.KEPT + computed;
        seconds = seconds * PrefillPace.KEPT + took;
        secondsPerToken = tokens > 0 ? seconds / tokens : 0;
        return secondsPerToken;
    }

    /** What a token takes; 0 while nothing is known. */
    double secondsPerToken() {
        return secondsPerToken;
    }
}
