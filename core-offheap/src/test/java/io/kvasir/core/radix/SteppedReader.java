package io.kvasir.core.radix;

import io.kvasir.core.memory.OffHeap;

/** A reader of any tree, from a memory of the test's choice, that stops at each of its steps. */
public final class SteppedReader {
    private final OffHeap memory;
    private final RadixTree tree;
    private final int slots;

    /** Reads the runs of a tree from another memory with the same layout. */
    public SteppedReader(OffHeap memory, RadixTree tree, int slots) {
        this.memory = memory;
        this.tree = tree;
        this.slots = slots;
    }

    /** Matches a whole prompt; calls the action at each step. Returns how many steps it took. */
    public int match(long[] prompt, OverlapScores out, Runnable atEachStep) {
        final int[] steps = {0};
        final RadixMatcher reader =
                new RadixMatcher(memory, tree.root(), slots, tree.runChildren().secret()) {
                    @Override
                    void at(Step step) {
                        steps[0]++;
                        atEachStep.run();
                    }
                };
        reader.match(prompt, prompt.length, out);
        return steps[0];
    }
}
