package io.kvasir.router;

/** A booked prompt whose first output token its caller does not see. Any thread reads. */
final class WatchedPrompt {
    final long number;
    final Worker worker;
    final long bookedNs;
    final double tokens;
    final long[] hashes; // empty where no event can tell
    final long[] eagleHashes; // likewise
    private volatile PromptEnd end = PromptEnd.NOT_YET;
    private volatile long endNs;

    /**
     * @param number of the booking
     * @param bookedNs when it was made
     * @param tokens that the worker has to compute until the prompt is, those before included
     * @param hashes of the prompt's full blocks; empty if the worker held all of them
     * @param eagleHashes those of engines that draft with EAGLE; empty where there are none
     */
    WatchedPrompt(
            long number,
            Worker worker,
            long bookedNs,
            double tokens,
            long[] hashes,
            long[] eagleHashes) {
        this.number = number;
        this.worker = worker;
        this.bookedNs = bookedNs;
        this.tokens = tokens;
        this.hashes = hashes;
        this.eagleHashes = eagleHashes;
    }

    void end(PromptEnd how, long nowNs) {
        endNs = nowNs;
        end = how;
    }

    PromptEnd end() {
        return end;
    }

    /** Time from the booking; meaningless before there is an end. */
    long durationNs() {
        return endNs - bookedNs;
    }
}
