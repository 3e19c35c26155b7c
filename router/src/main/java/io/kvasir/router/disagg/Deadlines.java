package io.kvasir.router.disagg;

/** Lets something happen later. Thread-safe. */
public interface Deadlines {
    /**
     * Runs an action once, after a time, on any thread.
     *
     * @param delayNs nanoseconds, not negative
     * @param action quick; must not block
     * @return what cancels it; does nothing once the action has run, throws nothing
     */
    Runnable after(long delayNs, Runnable action);
}
