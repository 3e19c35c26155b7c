package io.kvasir.router.policy.builtin;

import io.kvasir.router.policy.Candidate;
import io.kvasir.router.policy.CandidateView;
import io.kvasir.router.policy.Eligibility;
import io.kvasir.router.policy.Eligibility.Verdict;
import io.kvasir.router.policy.Picker;
import io.kvasir.router.policy.SelectionPolicy;

/**
 * The two cost formulas that Dynamo had before the linear one (0.1, 0.2), as selection policies.
 * Loads are those that are booked here, and the engines' own where these are reported. What is not
 * known of a worker is replaced by what is known of the others: for its KV blocks the largest known
 * number, or, where none is known, the most blocks in use on any candidate; for the requests that
 * it runs at once likewise. Allocate nothing.
 *
 * @see <a href="https://github.com/ai-dynamo/dynamo">Dynamo</a> for their origin
 */
final class OlderFormulas {
    private static final double BALANCE_ALPHA = 0.7;
    private static final double NORMAL_ALPHA = 0.3;
    private static final double GAMMA = 0.1;
    private static final double BALANCE_THRESHOLD = 0.1;
    private static final double HIT_WEIGHT = 2;

    /**
     * {@code α · (load − mean load) + (1 − α) · new tokens / prompt tokens + 0.1 · requests /
     * request slots}, the load being the part of the KV blocks that is in use. α is 0.7 (balance)
     * while the loads' standard deviation is above a tenth of their mean, else 0.3 (normal). Full
     * workers are busy.
     */
    static final SelectionPolicy LOAD_DEVIATION =
            new SelectionPolicy(
                    "load-deviation",
                    OlderFormulas::unlessFull,
                    OlderFormulas::loadDeviation,
                    Picker.LOWEST);

    /**
     * {@code part in use + waiting − 2 · hit}: of the KV blocks, of the worker with most that
     * waits, and of the prompt. What waits are requests in the engines where all report them, else
     * prefill tokens booked here. Where all are 0 no worker is preferred.
     */
    static final SelectionPolicy LOGITS =
            new SelectionPolicy("logits", Eligibility.ALL, OlderFormulas::logits, Picker.LOWEST);

    private OlderFormulas() {}

    private static Verdict unlessFull(Candidate one) {
        final long blocks = one.worker().kvBlocks();
        final long requests = one.worker().requestSlots();
        return one.engineUsage() >= 1
                        || (blocks > 0 && one.activeBlocks() >= blocks)
                        || (requests > 0 && one.activeRequests() >= requests)
                ? Verdict.BUSY
                : Verdict.ELIGIBLE;
    }

    private static void loadDeviation(CandidateView all, double[] costs) {
        final int count = all.count();
        final double blocks = usualBlocks(all);
        final double slots = usualSlots(all);
        double sum = 0;
        for (int n = 0; n < count; n++) {
            costs[n] = load(all.candidate(n), blocks);
            sum += costs[n];
        }
        final double mean = sum / count;
        double squares = 0;
        for (int n = 0; n < count; n++) {
            squares += (costs[n] - mean) * (costs[n] - mean);
        }
        final double deviation = Math.sqrt(squares / count);
        final double alpha = deviation > BALANCE_THRESHOLD * mean ? BALANCE_ALPHA : NORMAL_ALPHA;
        for (int n = 0; n < count; n++) {
            final Candidate one = all.candidate(n);
            final double uncached = 1 - one.cachedTokens() / Math.max(1, all.requestTokens());
            final long own = one.worker().requestSlots();
            costs[n] =
                    alpha * (costs[n] - mean)
                            + (1 - alpha) * uncached
                            + GAMMA * one.activeRequests() / (own > 0 ? own : slots);
        }
    }

    private static void logits(CandidateView all, double[] costs) {
        final double blocks = usualBlocks(all);
        final boolean reported = reportWaiting(all);
        long waiting = 1;
        for (int n = 0; n < all.count(); n++) {
            waiting = Math.max(waiting, waiting(all.candidate(n), reported));
        }
        for (int n = 0; n < all.count(); n++) {
            final Candidate one = all.candidate(n);
            final double held = one.credit() * one.overlapBlocks() * all.blockSize();
            costs[n] =
                    load(one, blocks)
                            + (double) waiting(one, reported) / waiting
                            - HIT_WEIGHT * held / Math.max(1, all.requestTokens());
        }
    }

    /** Requests and tokens cannot be compared: one is taken of all. */
    private static boolean reportWaiting(CandidateView all) {
        for (int n = 0; n < all.count(); n++) {
            if (all.candidate(n).engineWaiting() < 0) {
                return false;
            }
        }
        return true;
    }

    private static long waiting(Candidate one, boolean reported) {
        return reported ? one.engineWaiting() : one.prefillTokens();
    }

    /** What was booked since a report is not in it, so the larger of both counts. */
    private static double load(Candidate one, double usualBlocks) {
        final long own = one.worker().kvBlocks();
        final double booked = one.activeBlocks() / (own > 0 ? own : usualBlocks);
        final double reported = one.engineUsage();
        return reported > booked ? reported : booked; // not of NaN
    }

    private static double usualBlocks(CandidateView all) {
        long known = 0;
        long inUse = 1;
        for (int n = 0; n < all.count(); n++) {
            final Candidate one = all.candidate(n);
            known = Math.max(known, one.worker().kvBlocks());
            inUse = Math.max(inUse, one.activeBlocks());
        }
        return known > 0 ? known : inUse;
    }

    private static double usualSlots(CandidateView all) {
        long known = 0;
        long running = 1;
        for (int n = 0; n < all.count(); n++) {
            final Candidate one = all.candidate(n);
            known = Math.max(known, one.worker().requestSlots());
            running = Math.max(running, one.activeRequests());
        }
        return known > 0 ? known : running;
    }
}
