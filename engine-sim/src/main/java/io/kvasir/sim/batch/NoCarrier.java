package io.kvasir.sim.batch;

/** A carrier for ranks that pull nothing. */
public enum NoCarrier implements KvPull.Carrier {
    INSTANCE;

    @Override
    public void begin(SimRequest request) {
        throw new AssertionError("nothing is pulled here");
    }

    @Override
    public void moved(SimRequest request) {
        throw new AssertionError("nothing is pulled here");
    }

    @Override
    public void cancel(SimRequest request) {
        throw new AssertionError("nothing is pulled here");
    }
}
