package io.kvasir.sim;

/** A carrier for ranks that pull nothing. */
enum NoCarrier implements KvPull.Carrier {
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
