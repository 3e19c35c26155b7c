package io.kvasir.gateway;

import io.kvasir.gateway.server.ConnectionCap;
import io.kvasir.gateway.upstream.Descriptors;

/**
 * Keeps the default of {@code max-connections} at what workers leave of the file descriptors, as
 * they come and go. Thread-safe.
 */
final class ClientShare {
    private final ConnectionCap cap;
    private final long free;
    private long ofWorkers; // guarded by this

    /**
     * @param cap its limit is set from now on
     * @param free descriptors that clients, their requests and workers share
     */
    ClientShare(ConnectionCap cap, long free) {
        this.cap = cap;
        this.free = free;
    }

    /**
     * A worker is there.
     *
     * @param count descriptors that it takes without a request
     * @return what is run once it is not
     */
    Runnable begun(long count) {
        changed(count);
        return () -> changed(-count);
    }

    private synchronized void changed(long difference) {
        ofWorkers += difference;
        cap.setMaxNetworkConnectionCount(Descriptors.affordableConnections(free - ofWorkers));
    }
}
