package io.kvasir.core.load;

/** Hears of worker slots that may have room for more requests. */
@FunctionalInterface
public interface RoomListener {
    /**
     * The slot may have room now: for a queue to look. Called after each change by the thread that
     * makes it, the booking writer and callers of the hot path among them: must not wait, allocate
     * or take a lock. What it throws ends neither the change nor the call of other listeners, and
     * is counted ({@link LoadBoard#listenerFailures}).
     *
     * @param slot worker slot
     */
    void roomMayBe(int slot);
}
