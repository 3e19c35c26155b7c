package io.kvasir.router.disagg;

import java.util.Arrays;
import java.util.Objects;

/**
 * Decides whether a request is split, by its limits or by what both alternatives are expected to
 * cost. Learns from what requests took: the time of a prefill by the tokens that had to be computed
 * until it was done, on the worker that decodes and on prefill workers, and that of a transfer by
 * the tokens of the prompt and by how far it went. Thread-safe.
 *
 * <pre>
 *   local  = prefill_d(queue_d + uncached_d) + weight · decodes_d · uncached_d · seconds per token_d
 *   remote = prefill_p(queue_p + uncached_p) + transfer(prompt)
 * </pre>
 *
 * <p>A prompt that is computed where others generate delays each of them by the time that its
 * tokens take; the weight says what a second of theirs counts against one of this request's.
 */
public final class SplitPolicy {
    /**
     * What is set of it.
     *
     * @param mode when to split
     * @param minTokens fewer tokens to compute are computed by the decode worker
     * @param minRatio so is a prompt of which a smaller part is to be computed, 0 to 1
     * @param maxQueue so is one whose prefill worker has more tokens to compute than that; 0 for no
     *     limit
     * @param harmWeight what a second of delay of a generating request counts, not negative
     */
    public record Limits(
            SplitMode mode, int minTokens, double minRatio, long maxQueue, double harmWeight) {
        /** Checks the values. */
        public Limits {
            Objects.requireNonNull(mode, "mode");
            if (!(minTokens >= 0 && minRatio >= 0 && minRatio <= 1 && maxQueue >= 0)
                    || !(harmWeight >= 0)) {
                throw new IllegalArgumentException(
                        "minTokens="
                                + minTokens
                                + ", minRatio="
                                + minRatio
                                + ", maxQueue="
                                + maxQueue
                                + ", harmWeight="
                                + harmWeight);
            }
        }
    }

    private final Limits limits;
    private final LearnedLine local = new LearnedLine();
    private final LearnedLine remote = new LearnedLine();
    private final LearnedLine transfer = new LearnedLine(); // over any distance
    private final LearnedLine[] transfers; // by distance

    /**
     * Makes one that knows nothing.
     *
     * @param limits what is set
     * @param distances that a transfer can have, at least 1
     */
    public SplitPolicy(Limits limits, int distances) {
        this.limits = limits;
        transfers = new LearnedLine[distances];
        Arrays.setAll(transfers, distance -> new LearnedLine());
    }

    /**
     * Whether a decision needs to know the alternatives.
     *
     * @return false where it is always the same
     */
    public boolean isConditional() {
        return limits.mode() == SplitMode.LIMITS || limits.mode() == SplitMode.COST;
    }

    /**
     * Whether requests are split at all.
     *
     * @return false for {@link SplitMode#NEVER}
     */
    public boolean splits() {
        return limits.mode() != SplitMode.NEVER;
    }

    /**
     * Decides.
     *
     * @param known what is known of the request
     * @return the decision with its reasons
     */
    public SplitChoice choose(SplitAlternatives known) {
        final double perToken = local.secondsPerToken();
        final double localSeconds = local.seconds(known.localQueue() + known.localUncached());
        final double harm =
                limits.harmWeight() * known.localDecodes() * known.localUncached() * perToken;
        final double prefill = remote.seconds(known.remoteQueue() + known.remoteUncached());
        final double moved = transferSeconds(known);
        final double gain = localSeconds + harm - prefill - moved;
        if (limits.mode() == SplitMode.COST && known.promptTokens() > 0 && !Double.isNaN(gain)) {
            return new SplitChoice(gain > 0, "cost", known, localSeconds, harm, prefill, moved);
        }
        final String whole = wholeFor(known);
        return new SplitChoice(
                whole == null,
                whole == null ? "limits" : whole,
                known,
                localSeconds,
                harm,
                prefill,
                moved);
    }

    private double transferSeconds(SplitAlternatives known) {
        final LearnedLine line = transfers[known.distance()];
        return (line.isKnown() ? line : transfer).seconds(known.promptTokens());
    }

    private String wholeFor(SplitAlternatives known) {
        if (known.promptTokens() == 0) {
            return null; // an unknown prompt may be long
        }
        if (known.localUncached() < limits.minTokens()) {
            return "min-tokens";
        }
        if (known.localUncached() < limits.minRatio() * known.promptTokens()) {
            return "min-ratio";
        }
        return limits.maxQueue() > 0 && known.remoteQueue() > limits.maxQueue() ? "queue" : null;
    }

    /**
     * A prompt was computed by the worker that decodes.
     *
     * @param tokens that it had to compute, those before it included
     * @param seconds until its first token
     */
    public void learnLocal(double tokens, double seconds) {
        local.learn(tokens, seconds);
    }

    /**
     * A prompt was computed by a prefill worker.
     *
     * @param tokens that it had to compute, those before it included
     * @param seconds until its answer
     */
    public void learnRemote(double tokens, double seconds) {
        remote.learn(tokens, seconds);
    }

    /**
     * Blocks were handed over.
     *
     * @param distance of the two workers
     * @param tokens of the prompt
     * @param seconds from the prefill worker's answer to the decode worker's first bytes
     */
    public void learnTransfer(int distance, double tokens, double seconds) {
        transfer.learn(tokens, seconds);
        transfers[distance].learn(tokens, seconds);
    }
}
