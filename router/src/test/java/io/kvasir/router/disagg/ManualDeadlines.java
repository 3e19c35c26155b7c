package io.kvasir.router.disagg;

import java.util.ArrayList;
import java.util.List;

/** Deadlines that a test lets fire, also those that were cancelled a moment too late. */
final class ManualDeadlines implements Deadlines {
    /** One deadline that was set. */
    static final class Set {
        private final long delayNs;
        private final Runnable action;
        private boolean open = true;

        private Set(long delayNs, Runnable action) {
            this.delayNs = delayNs;
            this.action = action;
        }

        long delayNs() {
            return delayNs;
        }

        void fire() {
            open = false;
            action.run();
        }
    }

    /** All that were ever set, in order. */
    final List<Set> all = new ArrayList<>();

    @Override
    public Runnable after(long delayNs, Runnable action) {
        final Set set = new Set(delayNs, action);
        all.add(set);
        return () -> set.open = false;
    }

    /** The only one that runs. */
    Set open() {
        final List<Set> open = all.stream().filter(set -> set.open).toList();
        if (open.size() != 1) {
            throw new AssertionError(open.size() + " deadlines run");
        }
        return open.getFirst();
    }

    boolean noneOpen() {
        return all.stream().noneMatch(set -> set.open);
    }
}
