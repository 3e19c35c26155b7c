package io.kvasir.pipeline.ring;

import com.lmax.disruptor.BusySpinWaitStrategy;
import com.lmax.disruptor.WaitStrategy;
import com.lmax.disruptor.YieldingWaitStrategy;

/** How a writer thread waits for work. */
public enum WaitMode {
    /**
     * Parks; no CPU when idle, some microseconds to wake up. Publishing takes no lock, and wakes
     * the thread where it is parked. The default.
     */
    BLOCKING,
    /**
     * Spins and yields briefly, then sleeps {@value #SLEEP_NS} ns at a time, {@value #SLEEPS}
     * times, then parks. Publishing takes no lock, and wakes the thread only where nothing was
     * published for so long.
     */
    SLEEPING,
    /** Spins and yields; uses a core while idle, gives it up to others. */
    YIELDING,
    /** Spins; for a reserved core. */
    BUSY_SPIN;

    private static final int YIELDS = 100;
    private static final int SLEEPS = 10;
    private static final long SLEEP_NS = 500_000;

    /** What the Disruptor calls it; a new one for each ring. */
    public WaitStrategy strategy() {
        return switch (this) {
            case BLOCKING -> new ParkingWait(0, 0, 0);
            case SLEEPING -> new ParkingWait(YIELDS, SLEEPS, SLEEP_NS);
            case YIELDING -> new YieldingWaitStrategy();
            case BUSY_SPIN -> new BusySpinWaitStrategy();
        };
    }
}
