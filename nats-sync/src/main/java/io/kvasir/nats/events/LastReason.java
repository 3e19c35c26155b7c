package io.kvasir.nats.events;

/** Tells a reason from the one before it, for what is tried again and again. One thread. */
final class LastReason {
    private String last = "";

    /** Whether it is another than the one before it, or the first since that ended. */
    boolean isNew(String reason) {
        final boolean differs = !last.equals(reason);
        last = reason;
        return differs;
    }

    /** It has worked. */
    void ended() {
        last = "";
    }
}
