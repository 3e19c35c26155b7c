package io.kvasir.router.queue;

import io.kvasir.router.Reach;

import java.util.TreeSet;

/**
 * Requests that wait and may go to the same workers, in order: if the first finds no room, none
 * does. Guarded by the {@link WaitingRoom}.
 */
final class Lane {
    final Reach reach;
    final TreeSet<Entry> entries = new TreeSet<>(Entry::order);
    boolean ready; // something may have changed since its first one found no room

    Lane(Reach reach) {
        this.reach = reach;
    }

    Entry first() {
        return entries.first();
    }

    static int order(Lane a, Lane b) {
        return Entry.order(a.first(), b.first());
    }
}
