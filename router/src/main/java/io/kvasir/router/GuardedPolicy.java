package io.kvasir.router;

import io.kvasir.router.policy.Candidate;
import io.kvasir.router.policy.CandidateView;
import io.kvasir.router.policy.CostModel;
import io.kvasir.router.policy.Eligibility;
import io.kvasir.router.policy.Eligibility.Verdict;
import io.kvasir.router.policy.Picker;
import io.kvasir.router.policy.PolicyFailures;
import io.kvasir.router.policy.RandomSource;
import io.kvasir.router.policy.SelectionPolicy;

import org.agrona.ErrorHandler;

import java.util.Arrays;
import java.util.concurrent.atomic.LongAdder;

/**
 * Asks a {@link SelectionPolicy}, which may be an embedder's own, and continues where it fails: by
 * what each of its parts says of that. Failures are counted and passed on. Any thread; allocates
 * only where something fails.
 */
final class GuardedPolicy {
    private final SelectionPolicy policy;
    private final RandomSource random;
    private final ErrorHandler errors;
    private final LongAdder judging;
    private final LongAdder pricing;
    private final LongAdder unknownCosts;
    private final LongAdder picking;

    GuardedPolicy(SelectionPolicy policy, RandomSource random, ErrorHandler errors) {
        this.policy = policy;
        this.random = random;
        this.errors = errors;
        judging = new LongAdder();
        pricing = new LongAdder();
        unknownCosts = new LongAdder();
        picking = new LongAdder();
    }

    private GuardedPolicy(SelectionPolicy policy, GuardedPolicy before) {
        this.policy = policy;
        random = before.random;
        errors = before.errors;
        judging = before.judging;
        pricing = before.pricing;
        unknownCosts = before.unknownCosts;
        picking = before.picking;
    }

    /** Another policy, whose failures count on from those of this one. */
    GuardedPolicy of(SelectionPolicy other) {
        return other.equals(policy) ? this : new GuardedPolicy(other, this);
    }

    SelectionPolicy policy() {
        return policy;
    }

    String name() {
        return policy.name();
    }

    /** Whether it has a rule of its own about which workers may be chosen. */
    boolean judges() {
        return !policy.eligibility().equals(Eligibility.ALL);
    }

    /** Whether the linear cost, and the lowest of it, are what it takes. */
    boolean isLinear() {
        return hasLinearCost() && policy.picker().equals(Picker.LOWEST);
    }

    boolean hasLinearCost() {
        return policy.costModel().equals(CostModel.LINEAR);
    }

    Verdict judge(Candidate candidate) {
        Exception cause;
        try {
            final Verdict verdict = policy.eligibility().of(candidate);
            if (verdict != null) {
                return verdict;
            }
            cause = new NullPointerException("no verdict on " + candidate.worker());
        } catch (Exception e) {
            cause = e;
        } catch (LinkageError | AssertionError | StackOverflowError e) {
            cause = new IllegalStateException(e);
        }
        failed(judging, "eligibility", cause);
        return Verdict.INELIGIBLE;
    }

    /** Computes the costs; those that are no numbers are NaN. */
    void price(CandidateView candidates, double[] costs) {
        Exception cause = null;
        Arrays.fill(costs, 0, candidates.count(), Double.NaN);
        try {
            policy.costModel().price(candidates, costs);
        } catch (Exception e) {
            cause = e;
        } catch (LinkageError | AssertionError | StackOverflowError e) {
            cause = new IllegalStateException(e);
        }
        if (cause != null) {
            failed(pricing, "cost model", cause);
            CostModel.LINEAR.price(candidates, costs);
        }
        int unknown = 0;
        for (int n = 0; n < candidates.count(); n++) {
            unknown += Double.isNaN(costs[n]) ? 1 : 0;
        }
        if (unknown > 0) {
            unknownCosts.add(unknown);
        }
    }

    /**
     * Has one picked.
     *
     * @param costs finite; not what they were any more where the picker writes into them
     * @return its number; -1 where the picker failed
     */
    int pick(CandidateView candidates, double[] costs) {
        Exception cause;
        try {
            final int picked = policy.picker().pick(candidates, costs, random);
            if (picked >= 0 && picked < candidates.count()) {
                return picked;
            }
            cause =
                    new IndexOutOfBoundsException(
                            "picked " + picked + " of " + candidates.count() + " candidates");
        } catch (Exception e) {
            cause = e;
        } catch (LinkageError | AssertionError | StackOverflowError e) {
            cause = new IllegalStateException(e);
        }
        failed(picking, "picker", cause);
        return -1;
    }

    /** Picks the one with the lowest of finite costs, for a picker that failed. */
    int pickLowest(CandidateView candidates, double[] costs) {
        return Picker.LOWEST.pick(candidates, costs, random);
    }

    private void failed(LongAdder count, String part, Exception cause) {
        count.increment();
        errors.onError(
                new IllegalStateException(
                        "the " + part + " of selection-policy=" + policy.name() + " failed",
                        cause));
    }

    /** How often it has failed. */
    PolicyFailures failures() {
        return new PolicyFailures(judging.sum(), pricing.sum(), unknownCosts.sum(), picking.sum());
    }
}
