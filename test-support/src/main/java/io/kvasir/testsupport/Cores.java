package io.kvasir.testsupport;

/** Cores, which may be fewer than the threads of a test. */
public final class Cores {
    private Cores() {}

    /**
     * Lets another thread run, such as the one that is waited for. A loop that spins instead keeps
     * one of few cores from it for milliseconds.
     */
    @SuppressWarnings("ThreadPriorityCheck") // no order is relied on, only that others get on
    public static void giveWay() {
        Thread.yield();
    }
}
