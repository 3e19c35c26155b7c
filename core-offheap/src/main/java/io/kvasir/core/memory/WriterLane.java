package io.kvasir.core.memory;

/**
 * How the one writer thread of a structure enters its {@link MemoryGate}: at each of its calls, or
 * once for as long as the thread lives.
 *
 * <p>Owner: the writer thread. {@link #pin} and {@link #unpin} may be called by another thread when
 * its start and end order them.
 */
public final class WriterLane {
    private static final int PINNED = -2;
    private static final int NO_LANE = -1;

    private final MemoryGate gate;
    private int pinned = NO_LANE;

    /**
     * @param gate whose memory the writer thread changes
     */
    public WriterLane(MemoryGate gate) {
        this.gate = gate;
    }

    /**
     * Keeps the memory until {@link #unpin}, also after the close of the gate; the calls between
     * cost nothing.
     *
     * @throws ClosedException if the gate is closed
     * @throws IllegalStateException if it is pinned already: a structure has one writer
     */
    public void pin() {
        if (pinned != NO_LANE) {
            throw new IllegalStateException("there is a writer thread already");
        }
        pinned = gate.enterOrThrow();
    }

    /** Ends what {@link #pin} began; the writer thread makes no further call. */
    public void unpin() {
        final int lane = pinned;
        if (lane != NO_LANE) {
            pinned = NO_LANE;
            gate.exit(lane);
        }
    }

    /**
     * Enters for one call.
     *
     * @return what {@link #exit} must be given
     * @throws ClosedException if the gate is closed, and not pinned
     */
    public int enter() {
        return pinned == NO_LANE ? gate.enterOrThrow() : PINNED;
    }

    /** Ends one call. */
    public void exit(int lane) {
        if (lane != PINNED) {
            gate.exit(lane);
        }
    }
}
