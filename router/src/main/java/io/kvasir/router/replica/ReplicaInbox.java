package io.kvasir.router.replica;

import java.util.ArrayDeque;

/**
 * Messages of other routers on their way to the replica thread. Bounded: the oldest is dropped and
 * counted. Any thread; its lock is held for a step of the queue only.
 */
final class ReplicaInbox {
    private final int capacity;
    private final ArrayDeque<ReplicaMessage> messages = new ArrayDeque<>(); // guarded by this
    private long dropped; // guarded by this

    ReplicaInbox(int capacity) {
        this.capacity = capacity;
    }

    synchronized void add(ReplicaMessage message) {
        if (messages.size() == capacity) {
            messages.poll();
            dropped++;
        }
        messages.add(message);
    }

    /** The oldest; null if there is none. */
    synchronized ReplicaMessage poll() {
        return messages.poll();
    }

    synchronized boolean isEmpty() {
        return messages.isEmpty();
    }

    synchronized long dropped() {
        return dropped;
    }
}
