package io.kvasir.router;

import io.kvasir.pipeline.source.EventPlane;
import io.kvasir.pipeline.source.PlanePosition;

/** A transport that keeps its messages, as far as a plane is concerned. */
final class KeptTransport {
    private KeptTransport() {}

    /**
     * Begins behind what the plane has kept, as one over JetStream does; it is not connected yet.
     *
     * @param store in which it keeps its messages
     * @return the transport, with nothing to close
     */
    static AutoCloseable begin(EventPlane plane, long store) {
        plane.keepsMessages();
        final PlanePosition before = plane.keptBeforeOrNull();
        if (before != null) {
            plane.onResumed(before);
        }
        if (before == null || before.store() != store) {
            plane.onRenumbered(store);
        }
        plane.keep();
        plane.onDisconnected("not yet");
        return () -> {};
    }
}
