package io.kvasir.router.disagg;

import java.util.ArrayList;
import java.util.List;

/** Deadlines that a test lets fire, also those that were cancelled a moment too late. */
final class ManualDeadlines implements Deadlines {
    /** One deadline that was set. */
    record Set(long delayNs, Runnable action, boolean[] cancelled) {
        boolean open() {
            return !cancelled[0];
        }

        void fire() {
            cancelled[0] = true;
            action.run();
        }
    }

    /** All that were ever set, in order. */
    final List<Set> all = new ArrayList<>();

    @Override
    public Runnable after(long delayNs, Runnable action) {
        final Set set = new Set(delayNs, action, new boolean[1]);
        all.add(set);
        return () -> set.cancelled[0] = true;
    }

    /** The only one that runs. */
    Set open() {
        final List<Set> open = all.stream().filter(Set::open).toList();
        if (open.size() != 1) {
            throw new AssertionError(open.size() + " deadlines run: " + open);
        }
        return open.getFirst();
    }

    boolean noneOpen() {
        return all.stream().noneMatch(Set::open);
    }
}
