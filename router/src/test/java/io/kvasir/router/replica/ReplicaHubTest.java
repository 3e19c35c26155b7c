package io.kvasir.router.replica;

import java.util.Random;

class ReplicaHubTest extends ReplicaLinkContract {
    private final ReplicaHub hub = new ReplicaHub(new Random(1));
    private long nowNs;

    @Override
    protected ReplicaLink open() {
        return hub.open();
    }

    @Override
    protected void deliver() {
        hub.advance(++nowNs);
    }
}
