package io.kvasir.nixl.engine;

import java.util.ArrayDeque;

/**
 * Transfers of one priority that wait, in the order in which they go; also walked over from first
 * to last, a few at a time, so that each is seen however long the first one waits. Every operation
 * costs the same whatever waits, and none allocates once arrays have grown. One thread.
 */
final class WaitingTransfers {
    // in order: those the walk has passed, then those it has not
    private ArrayDeque<Transfer> passed = new ArrayDeque<>();
    private ArrayDeque<Transfer> ahead = new ArrayDeque<>();

    int size() {
        return passed.size() + ahead.size();
    }

    void addFirst(Transfer transfer) {
        passed.addFirst(transfer);
    }

    void addLast(Transfer transfer) {
        ahead.addLast(transfer);
    }

    /** The first, which stays; null when there is none. */
    Transfer peekFirst() {
        return passed.isEmpty() ? ahead.peekFirst() : passed.peekFirst();
    }

    /** Takes the first; null when there is none. */
    Transfer pollFirst() {
        return passed.isEmpty() ? ahead.pollFirst() : passed.pollFirst();
    }

    /**
     * Takes the next of the walk, which begins anew behind the last; {@link #pass} puts it back
     * where it was. Null when there is none.
     */
    Transfer pollNext() {
        if (ahead.isEmpty()) {
            final ArrayDeque<Transfer> all = passed;
            passed = ahead;
            ahead = all;
        }
        return ahead.pollFirst();
    }

    /** Puts back what {@link #pollNext} has just taken. */
    void pass(Transfer transfer) {
        passed.addLast(transfer);
    }
}
