package io.kvasir.opstreams.kvops;

import java.util.concurrent.TimeUnit;
import java.util.function.LongSupplier;

/**
 * Repeats passes until their figures stand still. How many that takes depends on the stream: the
 * compilers count calls, and a stream of a few hundred queries has to be replayed a hundred times
 * before a query costs what it costs a router that runs for a minute (2.9 us after three passes,
 * 1.9 us afterwards).
 *
 * <p>Passes are taken together in windows of at least {@value #WINDOW_MS} ms. The figures stand
 * still when {@value #STILL} windows in a row are not better, neither in events nor in queries, by
 * more than {@value #BETTER_PER_CENT} % than the window before them. What else runs on the machine
 * makes a window worse, which is not taken for progress, and the time has a limit.
 */
final class WarmUp {
    static final int STILL = 4;
    static final int WINDOW_MS = 200;
    static final int BETTER_PER_CENT = 3;

    private static final double BETTER = 1 - BETTER_PER_CENT / 100.0;

    private final LongSupplier clock;
    private double stillApplyNs = Double.MAX_VALUE;
    private double stillQueryNs = Double.MAX_VALUE;
    private int stillWindows;
    private int passes;
    private boolean settled;

    WarmUp() {
        this(System::nanoTime);
    }

    /** With a given clock, in nanoseconds. */
    WarmUp(LongSupplier clock) {
        this.clock = clock;
    }

    /** One pass over the stream. */
    @FunctionalInterface
    interface Pass {
        /**
         * Carries it out.
         *
         * @param limitNs when it should end at the latest; one that cannot is carried to its end
         */
        PassCost run(long limitNs);
    }

    /**
     * Repeats a pass until its figures stand still or the time is over; at least once.
     *
     * @param limitNs time for all passes together
     */
    void run(Pass pass, long limitNs) {
        final long startNs = clock.getAsLong();
        while (!settled && (passes == 0 || clock.getAsLong() - startNs < limitNs)) {
            settled = window(pass, startNs, limitNs);
        }
    }

    private boolean window(Pass pass, long startNs, long limitNs) {
        final long windowNs = clock.getAsLong();
        double applyNs = 0;
        double queryNs = 0;
        int windowPasses = 0;
        do {
            final PassCost cost = pass.run(limitNs - (clock.getAsLong() - startNs));
            applyNs += cost.applyNs();
            queryNs += cost.queryNs();
            windowPasses++;
        } while (clock.getAsLong() - windowNs < TimeUnit.MILLISECONDS.toNanos(WINDOW_MS));
        passes += windowPasses;
        return standsStill(applyNs / windowPasses, queryNs / windowPasses);
    }

    private boolean standsStill(double applyNs, double queryNs) {
        boolean better = false;
        if (applyNs < stillApplyNs * BETTER) {
            stillApplyNs = applyNs;
            better = true;
        }
        if (queryNs < stillQueryNs * BETTER) {
            stillQueryNs = queryNs;
            better = true;
        }
        stillWindows = better ? 0 : stillWindows + 1;
        return stillWindows >= STILL;
    }

    /** Passes carried out. */
    int passes() {
        return passes;
    }

    /** Whether the figures stood still before the time was over. */
    boolean settled() {
        return settled;
    }
}
