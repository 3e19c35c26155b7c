package io.kvasir.router;

import io.kvasir.router.policy.WorkerCost;

import java.util.Arrays;

/**
 * What a request's own cost says of every candidate. Owned by a {@link Selection}; reused, one
 * thread at a time.
 */
final class AddedCosts {
    private double[] blocks = new double[8]; // by slot; of candidates alone
    private boolean any;

    /** Forgets what was said. */
    void clear() {
        any = false;
    }

    /** Whether a cost was asked. */
    boolean any() {
        return any;
    }

    /** Asks about every candidate; those with an infinite cost are none from here on. */
    void ask(WorkerCost cost, Candidates candidates, CandidateCursor cursor) {
        final int end = candidates.workers().slotEnd();
        if (blocks.length < end) {
            blocks = new double[end];
        }
        any = true;
        cursor.take();
        for (int n = 0; n < cursor.count(); n++) {
            final int slot = cursor.slot(n);
            blocks[slot] = cost.blocks(cursor.at(slot));
            if (blocks[slot] == Double.POSITIVE_INFINITY) {
                candidates.drop(slot);
            }
        }
    }

    /** Changes what was said of a candidate; for all of them, or for none. */
    void change(int slot, double more, int end) {
        if (!any) {
            if (blocks.length < end) {
                blocks = new double[end];
            }
            Arrays.fill(blocks, 0, end, 0);
            any = true;
        }
        blocks[slot] += more;
    }

    /** What was said of a candidate; 0 where none was asked. */
    double blocks(int candidateSlot) {
        return any ? blocks[candidateSlot] : 0;
    }
}
