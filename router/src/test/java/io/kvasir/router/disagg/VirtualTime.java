package io.kvasir.router.disagg;

import java.util.Comparator;
import java.util.PriorityQueue;
import java.util.Random;
import java.util.concurrent.TimeUnit;

/**
 * Time that moves from one due action to the next, on one thread. Actions that are due in the same
 * moment run in an order drawn at random.
 */
final class VirtualTime {
    private final Random random;
    private final PriorityQueue<Timer> timers =
            new PriorityQueue<>(
                    Comparator.comparingLong((Timer t) -> t.dueNs).thenComparingInt(t -> t.order));
    private long nowNs;

    /** Something that happens later. */
    private static final class Timer {
        private final long dueNs;
        private final int order;
        private Runnable action; // null once it has run or was cancelled

        Timer(long dueNs, int order, Runnable action) {
            this.dueNs = dueNs;
            this.order = order;
            this.action = action;
        }
    }

    /** Deadlines of one owner, which are counted. */
    final class Owner implements Deadlines {
        private int open;

        @Override
        public Runnable after(long delayNs, Runnable action) {
            open++;
            final boolean[] over = new boolean[1];
            final Runnable cancel =
                    VirtualTime.this.after(
                            delayNs,
                            () -> {
                                close(over);
                                action.run();
                            });
            return () -> {
                close(over);
                cancel.run();
            };
        }

        private void close(boolean[] over) {
            if (!over[0]) {
                over[0] = true;
                open--;
            }
        }

        /** Deadlines that are neither over nor cancelled. */
        int open() {
            return open;
        }
    }

    VirtualTime(Random random) {
        this.random = random;
    }

    long nowNs() {
        return nowNs;
    }

    Runnable after(long delayNs, Runnable action) {
        final Timer timer = new Timer(nowNs + delayNs, random.nextInt(), action);
        timers.add(timer);
        return () -> timer.action = null;
    }

    void afterMs(long delayMs, Runnable action) {
        after(TimeUnit.MILLISECONDS.toNanos(delayMs), action);
    }

    /** Moves to the next moment in which something happens; false where nothing will. */
    boolean next() {
        final Timer timer = timers.poll();
        if (timer == null) {
            return false;
        }
        nowNs = timer.dueNs;
        final Runnable action = timer.action;
        timer.action = null;
        if (action != null) {
            action.run();
        }
        return true;
    }

    /** Moves on for so long. */
    void pass(long ns) {
        final long end = nowNs + ns;
        while (!timers.isEmpty() && timers.peek().dueNs <= end) {
            next();
        }
        nowNs = end;
    }
}
