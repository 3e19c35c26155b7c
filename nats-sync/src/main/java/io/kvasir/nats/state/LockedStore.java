package io.kvasir.nats.state;

import io.kvasir.router.spi.StateStore;

import java.io.IOException;
import java.time.Duration;

/** A store that many processes share, of which the lock may be lost while it is held. */
public interface LockedStore extends StateStore {
    /** Gives the lock back, if this store has it; it may be taken again. */
    void unlock();

    /** Whether this store has the lock as far as it knows; see {@link #checkLock}. */
    boolean isLocked();

    /**
     * Makes sure that this store has the lock, right now and for the time that a holder may be
     * silent.
     *
     * @throws IllegalStateException if it has it not, or no longer
     * @throws IOException if that cannot be found out
     */
    void checkLock() throws IOException;

    /**
     * How long objects stay that nothing deletes, as others may have made the bucket.
     *
     * @return zero for ever
     */
    Duration maxAge() throws IOException;

    /**
     * How long ago an object was written, by the server's clock: those of processes may differ.
     *
     * @return null if it is not there
     */
    Duration age(String object) throws IOException;
}
