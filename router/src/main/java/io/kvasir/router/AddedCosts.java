package io.kvasir.router;

/**
 * What a request's own cost says of every candidate. Owned by a {@link Selection}, of which it
 * shows one candidate at a time; reused, one thread at a time.
 */
final class AddedCosts implements Candidate {
    private final Selection selection;
    private double[] blocks = new double[8]; // by slot; of candidates alone
    private boolean any;
    private int slot;

    AddedCosts(Selection selection) {
        this.selection = selection;
    }

    /** Forgets what was said. */
    void clear() {
        any = false;
    }

    /** Whether a cost was asked. */
    boolean any() {
        return any;
    }

    /** Asks about every candidate; those with an infinite cost are none from here on. */
    void ask(WorkerCost cost) {
        final Candidates candidates = selection.candidates();
        final int end = candidates.workers().slotEnd();
        if (blocks.length < end) {
            blocks = new double[end];
        }
        any = true;
        for (slot = 0; slot < end; slot++) {
            if (candidates.contains(slot)) {
                blocks[slot] = cost.blocks(this);
                if (blocks[slot] == Double.POSITIVE_INFINITY) {
                    candidates.drop(slot);
                }
            }
        }
    }

    /** What was said of a candidate; 0 where none was asked. */
    double blocks(int candidateSlot) {
        return any ? blocks[candidateSlot] : 0;
    }

    @Override
    public Worker worker() {
        return selection.workers().at(slot);
    }

    @Override
    public int requestBlocks() {
        return selection.requestBlocks();
    }

    @Override
    public int overlapBlocks() {
        return selection.costs().overlap(slot);
    }

    @Override
    public double prefillBlocks() {
        return selection.prefillBlocks(slot);
    }

    @Override
    public long decodeBlocks() {
        return selection.decodeBlocks(slot);
    }

    @Override
    public long activeRequests() {
        return selection.candidates().loads().activeRequests(slot);
    }
}
