package io.kvasir.gateway.upstream;

import java.util.HashSet;
import java.util.Set;

/**
 * Counts good answers and different requests that failed, over the last moments: between one and
 * two halves of the window ago. Time comes with the calls. Not thread-safe.
 */
final class FaultWindow {
    /** More are counted as this many. */
    private static final int MAX_FAULTS_KEPT = 1024;

    private long halfNs;
    private Half current = new Half(0);
    private Half previous = new Half(0);

    private static final class Half {
        private final long beginNs;
        private final Set<Long> faults = new HashSet<>();
        private long good;

        Half(long beginNs) {
            this.beginNs = beginNs;
        }
    }

    FaultWindow(long lengthNs) {
        length(lengthNs);
    }

    /** Has the halves that begin from now on be of another length. */
    void length(long lengthNs) {
        halfNs = Math.max(1, lengthNs / 2);
    }

    void good(long nowNs) {
        turn(nowNs);
        current.good++;
    }

    /**
     * A request failed.
     *
     * @param request the same for requests that say the same
     */
    void fault(long request, long nowNs) {
        turn(nowNs);
        if (!previous.faults.contains(request) && current.faults.size() < MAX_FAULTS_KEPT) {
            current.faults.add(request);
        }
    }

    private void turn(long nowNs) {
        final long passedNs = nowNs - current.beginNs;
        if (passedNs >= 0 && passedNs < halfNs) {
            return;
        }
        previous = passedNs >= 0 && passedNs < 2 * halfNs ? current : new Half(nowNs);
        current = new Half(nowNs);
    }

    void clear(long nowNs) {
        previous = new Half(nowNs);
        current = new Half(nowNs);
    }

    /** Different requests that failed. */
    int faults() {
        return previous.faults.size() + current.faults.size();
    }

    /** Whether failed requests are at least so many of a hundred. */
    boolean faultsAreAtLeast(int percent) {
        final long all = faults() + previous.good + current.good;
        return all > 0 && faults() * 100L >= percent * all;
    }
}
