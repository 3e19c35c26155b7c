package io.kvasir.router;

import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.Optional;

/**
 * Which workers hold how much of a prompt.
 *
 * @param requestBlocks full blocks of the prompt
 * @param matches workers that hold at least one leading block, the one that holds most first, in
 *     order of registration where they hold as much
 */
public record PrefixMatches(int requestBlocks, List<Match> matches) {
    private static final Comparator<Match> DEEPEST_FIRST =
            Comparator.comparingInt(Match::blocks).reversed();

    /**
     * What one worker holds.
     *
     * @param worker the worker, available or not
     * @param blocks leading blocks of the prompt that it holds, at least 1
     */
    public record Match(Worker worker, int blocks) {}

    /** Copies the list. */
    public PrefixMatches {
        matches = List.copyOf(matches);
    }

    /** Those that a match has found. */
    static PrefixMatches of(Decision matched) {
        final List<Match> found = new ArrayList<>();
        for (int i = 0; i < matched.candidateCount(); i++) {
            if (matched.overlapBlocks(i) > 0) {
                found.add(new Match(matched.candidate(i), matched.overlapBlocks(i)));
            }
        }
        found.sort(DEEPEST_FIRST);
        return new PrefixMatches(matched.requestBlocks(), found);
    }

    /**
     * The worker that holds most.
     *
     * @return the first of them where several do; empty where none holds anything
     */
    public Optional<Match> best() {
        return matches.stream().findFirst();
    }

    /**
     * The most that any worker holds.
     *
     * @return leading blocks; 0 where none holds anything
     */
    public int max() {
        return matches.isEmpty() ? 0 : matches.getFirst().blocks();
    }
}
