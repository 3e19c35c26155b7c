package io.kvasir.router.disagg;

import java.util.Arrays;
import java.util.Objects;
import java.util.concurrent.atomic.AtomicInteger;

/**
 * Decides whether a request is split, by its limits or by what both alternatives are expected to
 * cost. Learns from what requests took: the time of a prefill by the tokens that had to be computed
 * until it was done, on the worker that decodes and on prefill workers, and that of a transfer by
 * the tokens of the prompt and by how far it went. Thread-safe.
 *
 * <pre>
 *   local  = pace_d · (prefill(queue_d + uncached_d) + weight · decodes_d · uncached_d · seconds per token)
 *   remote = pace_p · prefill(queue_p + uncached_p) + transfer(prompt)
 * </pre>
 *
 * <p>A prompt that is computed where others generate delays each of them by the time that its
 * tokens take; the weight says what a second of theirs counts against one of this request's. The
 * same terms, in blocks, decide between the workers of a pool: {@link #wholeBlocks}, {@link
 * #prefillBlocks}.
 *
 * <p>As long as nothing is known of prefills on one side, those of the other side stand for them.
 * What a request takes that is split is learned from requests that are split, so some of those that
 * would not be are split to find out, short ones only.
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

    /** One of so many is split to find out what a transfer takes, while that is not known. */
    private static final int FIRST_PROBES = 8;

    /** And later, as it may change. */
    private static final int LATER_PROBES = 64;

    /** More tokens than that are never moved or computed to find out something. */
    private static final int LONGEST_PROBE = 4096;

    /**
     * What a block in use counts where the delay of its users is counted by itself; 1 elsewhere. It
     * keeps a worker from filling up.
     */
    private static final double BLOCK_IN_USE = 0.3;

    private volatile Limits limits;
    private final AtomicInteger mayProbe = new AtomicInteger();
    private final LearnedLine local = new LearnedLine();
    private final LearnedLine remote = new LearnedLine();
    private final LearnedLine transfer = new LearnedLine(); // over any distance
    private final LearnedLine[] transfers; // by distance

    /**
     * Makes one that knows nothing.
     *
     * @param limits what is set
     * @param distances that a transfer can have, at least 1
     * @throws IllegalArgumentException if there are fewer
     */
    public SplitPolicy(Limits limits, int distances) {
        this.limits = Objects.requireNonNull(limits, "limits");
        if (distances < 1) {
            throw new IllegalArgumentException("distances=" + distances + " must be 1 or more");
        }
        transfers = new LearnedLine[distances];
        Arrays.setAll(transfers, distance -> new LearnedLine());
    }

    /**
     * Has decisions from now on go by other limits; what was learned stays.
     *
     * @param changed from now on
     */
    public void limits(Limits changed) {
        limits = Objects.requireNonNull(changed, "limits");
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
     * Whether workers are chosen by what requests are expected to take, too.
     *
     * @return whether {@link #wholeBlocks} and {@link #prefillBlocks} are to be added to their cost
     */
    public boolean weighsWorkers() {
        return limits.mode() == SplitMode.COST;
    }

    /**
     * What speaks for or against a worker that is to do all of a request, beside the blocks that it
     * has to prefill and those in use there: those that it takes longer for than the others, and
     * those that the prompt delays running requests by.
     *
     * @param pace of the worker, as of {@link WorkerPace#factor}
     * @param prefillBlocks that it has to compute until the prompt is done
     * @param uncachedBlocks of the prompt that it has to compute
     * @param decodes requests that generate there
     * @param blocksInUse there, with the prompt
     * @return blocks; less than 0 where blocks in use have counted for more than they do here
     */
    public double wholeBlocks(
            double pace,
            double prefillBlocks,
            double uncachedBlocks,
            long decodes,
            long blocksInUse) {
        return prefillBlocks(pace, prefillBlocks)
                + limits.harmWeight() * decodes * pace * uncachedBlocks
                - (1 - BLOCK_IN_USE) * blocksInUse;
    }

    /**
     * What speaks against a worker that is to compute a prompt, beside the blocks that it has to
     * compute: those that it takes longer for than the others.
     *
     * @param pace of the worker, as of {@link WorkerPace#factor}
     * @param prefillBlocks that it has to compute until the prompt is done
     * @return blocks; less than 0 where it is faster
     */
    public double prefillBlocks(double pace, double prefillBlocks) {
        return (pace - 1) * prefillBlocks;
    }

    /**
     * Decides.
     *
     * @param known what is known of the request
     * @return the decision with its reasons
     */
    public SplitChoice choose(SplitAlternatives known) {
        final Limits now = limits; // read once: they may be others in the next moment
        final LearnedLine here = local.orElse(remote);
        final LearnedLine there = remote.orElse(local);
        final double localSeconds =
                known.localPace() * here.seconds(known.localQueue() + known.localUncached());
        final double harm =
                now.harmWeight()
                        * known.localDecodes()
                        * known.localUncached()
                        * known.localPace()
                        * here.secondsPerToken();
        final double prefill =
                known.remotePace() * there.seconds(known.remoteQueue() + known.remoteUncached());
        final double moved = transferSeconds(known);
        final double gain = localSeconds + harm - prefill - moved;
        final boolean byCost =
                now.mode() == SplitMode.COST && known.promptTokens() > 0 && !Double.isNaN(gain);
        final String limit = byCost ? null : limitOf(now, known);
        final boolean worth = byCost ? gain > 0 : limit == null;
        final boolean probe = !worth && probes(now.mode(), known);
        final String decided = byCost ? "cost" : Objects.requireNonNullElse(limit, "limits");
        return new SplitChoice(
                worth || probe,
                probe ? "probe" : decided,
                known,
                localSeconds,
                harm,
                prefill,
                moved);
    }

    /** Whether a request that would not be split is, to learn from it. */
    private boolean probes(SplitMode mode, SplitAlternatives known) {
        if (mode != SplitMode.COST
                || known.promptTokens() == 0
                || known.promptTokens() + known.remoteQueue() > LONGEST_PROBE) {
            return false;
        }
        final int every = remote.isKnown() && transfer.isKnown() ? LATER_PROBES : FIRST_PROBES;
        return mayProbe.incrementAndGet() % every == 0;
    }

    private double transferSeconds(SplitAlternatives known) {
        return transfers[known.distance()].orElse(transfer).seconds(known.promptTokens());
    }

    /** The limit by which a request is not split; null if there is none. */
    private static String limitOf(Limits limits, SplitAlternatives known) {
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
     * @param pace of that worker
     * @param tokens that it had to compute, those before it included
     * @param seconds until its first token
     */
    public void learnLocal(WorkerPace pace, double tokens, double seconds) {
        learn(local, pace, tokens, seconds);
    }

    /**
     * A prompt was computed by a prefill worker.
     *
     * @param pace of that worker
     * @param tokens that it had to compute, those before it included
     * @param seconds until its answer
     */
    public void learnRemote(WorkerPace pace, double tokens, double seconds) {
        learn(remote, pace, tokens, seconds);
    }

    private static void learn(LearnedLine pool, WorkerPace pace, double tokens, double seconds) {
        pace.learn(pool.seconds(tokens), seconds); // NaN while the pool is not known
        pool.learn(tokens, seconds);
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
