package io.kvasir.router.queue;

import io.kvasir.router.Reach;

import java.util.LinkedHashSet;
import java.util.Set;
import java.util.TreeSet;

/**
 * Requests that wait and may go to the same workers, in order: if the first finds no room, none
 * does. Unless that was its own: then it stands aside, and the next one is tried, until something
 * has changed. Guarded by the {@link WaitingRoom}.
 */
final class Lane {
    /** More do not stand aside, so that a worker that has room costs so many tries at most. */
    private static final int MOST_ASIDE = 64;

    final Reach reach;
    final TreeSet<Entry> entries = new TreeSet<>(Entry::order); // to be tried
    private final Set<Entry> aside = new LinkedHashSet<>(); // refused since something has changed
    boolean ready; // something may have changed since its first one found no room

    Lane(Reach reach) {
        this.reach = reach;
    }

    Entry first() {
        return entries.first();
    }

    /** Has the others tried before this one; false where as many as may stand aside. */
    boolean setAside(Entry entry) {
        return aside.size() < MOST_ASIDE && entries.remove(entry) && aside.add(entry);
    }

    /** Has all tried again. */
    void takeBack() {
        entries.addAll(aside);
        aside.clear();
    }

    boolean contains(Entry entry) {
        return entries.contains(entry) || aside.contains(entry);
    }

    void remove(Entry entry) {
        if (!entries.remove(entry)) {
            aside.remove(entry);
        }
    }

    boolean isEmpty() {
        return entries.isEmpty() && aside.isEmpty();
    }

    static int order(Lane a, Lane b) {
        return Entry.order(a.first(), b.first());
    }
}
