package io.kvasir.router;

import java.util.ArrayList;
import java.util.List;

/**
 * What the load of a worker would be if a prompt was sent there.
 *
 * @param worker the worker, a candidate for the prompt
 * @param overlapBlocks leading blocks of the prompt that it holds
 * @param potentialPrefillTokens tokens that it would have to compute until the prompt is, those of
 *     the prompts before it included
 * @param potentialDecodeBlocks blocks that it would have in use
 */
public record PotentialLoad(
        Worker worker,
        int overlapBlocks,
        double potentialPrefillTokens,
        long potentialDecodeBlocks) {

    /** Those of all candidates that are left of a match, in order of registration. */
    static List<PotentialLoad> of(Decision matched) {
        final int blockSize = matched.selection().blockSize();
        final List<PotentialLoad> loads = new ArrayList<>(matched.candidateCount());
        for (int i = 0; i < matched.candidateCount(); i++) {
            if (matched.exclusion(i) == Decision.Exclusion.NONE) {
                loads.add(
                        new PotentialLoad(
                                matched.candidate(i),
                                matched.overlapBlocks(i),
                                matched.prefillBlocks(i) * blockSize,
                                matched.decodeBlocks(i)));
            }
        }
        return loads;
    }
}
