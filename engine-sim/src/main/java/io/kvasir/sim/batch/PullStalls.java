package io.kvasir.sim.batch;

/**
 * Where one pull stands still on demand.
 *
 * @param beforeNs before its order is sent
 * @param duringNs while half of its bytes are moved
 * @param afterNs after the other engine was notified of its end
 */
record PullStalls(long beforeNs, long duringNs, long afterNs) {
    static final PullStalls NONE = new PullStalls(0, 0, 0);
}
