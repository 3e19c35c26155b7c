package io.kvasir.panama.nixl;

import java.lang.foreign.MemorySegment;

/** Receives notifications of peers. */
@FunctionalInterface
public interface NixlNotificationHandler {
    /**
     * Called once a notification, in the order of each sender.
     *
     * @param agent name of the sender
     * @param message its bytes; valid during the call
     */
    void onNotification(String agent, MemorySegment message);
}
