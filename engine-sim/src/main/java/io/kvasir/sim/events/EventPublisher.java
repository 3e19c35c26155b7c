package io.kvasir.sim.events;

/** Where event messages go. */
public interface EventPublisher {
    /** Takes a message; one that is lost is kept for replay but not sent. */
    void publish(int rank, long sequence, byte[] payload, boolean lost);
}
