package io.kvasir.core.index;

import io.kvasir.core.radix.OverlapScores;

import java.util.ArrayList;
import java.util.List;
import java.util.Set;

/** All that an index answers. */
record IndexAnswers(
        List<Set<List<Long>>> contents, List<List<Long>> numbers, List<List<Integer>> depths) {
    static IndexAnswers of(PrefixIndex index, SlotEvents events) {
        final List<Set<List<Long>>> contents = new ArrayList<>();
        final List<List<Long>> numbers = new ArrayList<>();
        for (int s = 0; s < index.config().maxWorkerSlots(); s++) {
            contents.add(SlotCopies.contents(index, s));
            numbers.add(
                    List.of(
                            index.heldBlocks(s),
                            index.missingBlocks(s),
                            index.turnover(s),
                            index.refusedBlocks(s),
                            index.evictedBlocks(s),
                            index.appliedSequence(s),
                            index.keptWord(s, 1)));
        }
        numbers.add(List.of(index.blocks(), index.heldBlocks(), index.usedBytes()));
        final List<List<Integer>> depths = new ArrayList<>();
        final OverlapScores scores = new OverlapScores(index.config().maxWorkerSlots());
        for (long[] prompt : events.prompts) {
            index.match(prompt, prompt.length, scores);
            final List<Integer> of = new ArrayList<>();
            for (int s = 0; s < index.config().maxWorkerSlots(); s++) {
                of.add(scores.depth(s));
            }
            depths.add(of);
        }
        return new IndexAnswers(contents, numbers, depths);
    }

    /** Without what depends on where the index is: kept words, and the lines of the arena. */
    IndexAnswers withoutKept() {
        final List<List<Long>> less = new ArrayList<>();
        for (List<Long> of : numbers) {
            less.add(of.subList(0, of.size() - 1));
        }
        return new IndexAnswers(contents, less, depths);
    }
}
