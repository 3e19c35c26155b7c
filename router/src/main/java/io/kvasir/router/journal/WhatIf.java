package io.kvasir.router.journal;

import java.util.HashMap;
import java.util.Map;
import java.util.Objects;

/**
 * What another policy would have chosen, and what would have come of it, by the decisions of a
 * journal. Each decision is judged by itself, among the candidates that are listed of it, with the
 * loads and caches that the recorded decisions have led to; so it says in which direction a change
 * goes and how often it matters, not what a fleet under the other policy would hold. What a session
 * has decided stays with its worker.
 *
 * <p>The time to the first token of another choice is estimated by a straight line through the
 * recorded ones: so much in any case, and so much for each block that the worker had to prefill
 * until then. One thread.
 */
public final class WhatIf {
    /** Chooses one of the listed candidates. */
    @FunctionalInterface
    public interface Policy {
        /**
         * Chooses.
         *
         * @param record lists one candidate or more
         * @return index of a listed candidate
         */
        int choose(JournalRecord record);
    }

    private final Policy policy;
    private final Map<String, Integer> requests = new HashMap<>(); // by worker that was listed
    private long decisions;
    private long changed;
    private long incomplete;
    private double promptTokens;
    private double cachedTokens;
    private double prefillBlocks;
    private double decodeBlocks;
    private final int blockSize;

    // of the recorded choices whose first token was seen: blocks to prefill against seconds
    private long timed;
    private double sumBlocks;
    private double sumSeconds;
    private double sumBlocksBlocks;
    private double sumBlocksSeconds;
    private double timedBlocks; // of this policy, for the same decisions

    /**
     * Judges a policy.
     *
     * @param policy chooses
     * @param blockSize tokens per block
     * @throws IllegalArgumentException if that is less than 1
     */
    public WhatIf(Policy policy, int blockSize) {
        if (blockSize < 1) {
            throw new IllegalArgumentException("blockSize=" + blockSize + " must be 1 or more");
        }
        this.policy = Objects.requireNonNull(policy, "policy");
        this.blockSize = blockSize;
    }

    /** What was chosen. */
    public static Policy recorded() {
        return _ -> 0;
    }

    /**
     * The cheapest by the linear cost.
     *
     * @param weight what a block to prefill counts
     * @throws IllegalArgumentException if that is negative or no number
     */
    public static Policy linear(double weight) {
        if (!(weight >= 0)) {
            throw new IllegalArgumentException("weight=" + weight + " must be 0 or more");
        }
        return record ->
                least(
                        record,
                        i ->
                                weight * record.prefillBlocks(i)
                                        + record.decodeBlocks(i)
                                        + record.addedBlocks(i));
    }

    /** The one with the fewest requests. */
    public static Policy leastConnections() {
        return record -> least(record, record::activeRequests);
    }

    private interface Measure {
        double of(int candidate);
    }

    /** The first of the least: of equal ones the recorded choice, then the cheaper one then. */
    private static int least(JournalRecord record, Measure measure) {
        int least = 0;
        for (int i = 1; i < record.listed(); i++) {
            if (measure.of(i) < measure.of(least)) {
                least = i;
            }
        }
        return least;
    }

    /** Takes a decision into account; those without a worker are left out. */
    public void add(JournalRecord record) {
        if (record.listed() == 0) {
            return;
        }
        final int choice = record.isBySession() ? 0 : policy.choose(record);
        decisions++;
        changed += choice == 0 ? 0 : 1;
        incomplete += record.listed() < record.candidates() ? 1 : 0;
        for (int i = 0; i < record.listed(); i++) {
            requests.merge(record.worker(i), i == choice ? 1 : 0, Integer::sum);
        }
        if (record.prefills()) {
            final int reusable = record.tokens() == 0 ? 0 : (record.tokens() - 1) / blockSize;
            promptTokens += record.tokens();
            cachedTokens += (double) Math.min(heldBlocks(record, choice), reusable) * blockSize;
        }
        prefillBlocks += record.prefillBlocks(choice);
        decodeBlocks += record.decodeBlocks(choice);
        if (record.firstTokenNs() != JournalRecord.UNKNOWN) {
            addTime(record.prefillBlocks(0), record.firstTokenNs() / 1e9);
            timedBlocks += record.prefillBlocks(choice);
        }
    }

    private static int heldBlocks(JournalRecord record, int candidate) {
        return record.overlapBlocks(candidate)
                + record.hostBlocks(candidate)
                + record.diskBlocks(candidate)
                + record.sharedBlocks(candidate);
    }

    private void addTime(double blocks, double seconds) {
        timed++;
        sumBlocks += blocks;
        sumSeconds += seconds;
        sumBlocksBlocks += blocks * blocks;
        sumBlocksSeconds += blocks * seconds;
    }

    /** Decisions that were taken into account. */
    public long decisions() {
        return decisions;
    }

    /** Decisions that the policy would have made otherwise. */
    public long changed() {
        return changed;
    }

    /** Decisions of which not all candidates are listed: others could have won. */
    public long incomplete() {
        return incomplete;
    }

    /** Tokens of the prompts that the chosen workers held. */
    public double cachedTokens() {
        return cachedTokens;
    }

    /** Blocks to prefill until the prompts were computed, of all decisions. */
    public double prefillBlocks() {
        return prefillBlocks;
    }

    /** Share of the prompts' tokens that the chosen workers held; NaN without prompts. */
    public double hitRate() {
        return cachedTokens / promptTokens;
    }

    /** Blocks to prefill until the prompt is computed, on average; NaN without decisions. */
    public double meanPrefillBlocks() {
        return prefillBlocks / decisions;
    }

    /** Blocks in use on the chosen worker, on average; NaN without decisions. */
    public double meanDecodeBlocks() {
        return decodeBlocks / decisions;
    }

    /** Requests of the worker that got most / their mean over the workers that were listed. */
    public double spread() {
        final int most = requests.values().stream().mapToInt(Integer::intValue).max().orElse(0);
        return (double) most * requests.size() / decisions;
    }

    /**
     * Mean time to the first token, estimated where this policy chooses otherwise.
     *
     * @return seconds; NaN where fewer than two decisions have a time, or all prefilled the same
     */
    public double meanFirstTokenSeconds() {
        final double determinant = timed * sumBlocksBlocks - sumBlocks * sumBlocks;
        if (timed < 2 || determinant <= 1e-9 * timed * sumBlocksBlocks) {
            return Double.NaN;
        }
        final double perBlock =
                Math.max(0, (timed * sumBlocksSeconds - sumBlocks * sumSeconds) / determinant);
        return (sumSeconds + perBlock * (timedBlocks - sumBlocks)) / timed;
    }
}
