package io.kvasir.sim.batch;

/** Counters of one life of one rank. Owned by the thread of the step loop. */
final class RankStats {
    long queriedTokens;
    long hitTokens;
    long promptTokens;
    long promptTokensCached;
    long generationTokens;
    long preemptions;
    long admitted;
    long stopped;
    long reachedLength;
    long aborted;
    long steps;
    final HandoffStats handoff = new HandoffStats();

    final Histogram timeToFirstToken =
            new Histogram(
                    0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5,
                    7.5, 10, 20, 40, 80, 160, 640, 2560);
    final Histogram interTokenLatency =
            new Histogram(
                    0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.75, 1, 2.5, 5, 7.5,
                    10, 20, 40, 80);
    final Histogram endToEnd = requestTime();
    final Histogram queueTime = requestTime();

    private static Histogram requestTime() {
        return new Histogram(
                0.3, 0.5, 0.8, 1, 1.5, 2, 2.5, 5, 10, 15, 20, 30, 40, 50, 60, 120, 240, 480, 960,
                1920, 7680);
    }
}
