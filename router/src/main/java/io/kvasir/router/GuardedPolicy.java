package io.kvasir.router;

import io.kvasir.pipeline.log.LogLimit;
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
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

import java.util.Arrays;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.LongAdder;

/**
 * Asks a {@link SelectionPolicy}, which may be an embedder's own, and continues where it fails: by
 * what each of its parts says of that. Failures are counted and passed on; the first one of each
 * part is logged, as the others come as often as workers are chosen; of costs that are no numbers
 * one in 10 s, as each may be of another worker. Any thread; allocates only where something fails.
 */
final class GuardedPolicy {
    private static final Logger LOG = LoggerFactory.getLogger(GuardedPolicy.class);

    private final SelectionPolicy policy;
    private final RandomSource random;
    private final ErrorHandler errors;
    private final Part eligibility;
    private final Part costModel;
    private final LongAdder unknownCosts;
    private final LogLimit unknownCostLines = new LogLimit(1, LogLimit.PERIOD_NS);
    private final Part picker;

    /** What has failed of a part: counted for all policies, logged for each. */
    private record Part(String name, LongAdder failures, AtomicBoolean logged) {
        Part(String name) {
            this(name, new LongAdder(), new AtomicBoolean());
        }

        /** The same part of another policy. */
        Part ofOther() {
            return new Part(name, failures, new AtomicBoolean());
        }
    }

    GuardedPolicy(SelectionPolicy policy, RandomSource random, ErrorHandler errors) {
        this.policy = policy;
        this.random = random;
        this.errors = errors;
        eligibility = new Part("eligibility");
        costModel = new Part("cost model");
        unknownCosts = new LongAdder();
        picker = new Part("picker");
    }

    private GuardedPolicy(SelectionPolicy policy, GuardedPolicy before) {
        this.policy = policy;
        random = before.random;
        errors = before.errors;
        eligibility = before.eligibility.ofOther();
        costModel = before.costModel.ofOther();
        unknownCosts = before.unknownCosts;
        picker = before.picker.ofOther();
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

    /** Whether a candidate may be chosen; null where that failed, so that it may not. */
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
        failed(eligibility, cause);
        return null;
    }

    /**
     * Computes the costs; those that are no numbers are NaN.
     *
     * @param requestIdOrNull for the log
     */
    void price(CandidateView candidates, double[] costs, String requestIdOrNull) {
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
            failed(costModel, cause);
            CostModel.LINEAR.price(candidates, costs);
        }
        int unknown = 0;
        for (int n = 0; n < candidates.count(); n++) {
            unknown += Double.isNaN(costs[n]) ? 1 : 0;
        }
        if (unknown > 0) {
            unknownCosts.add(unknown);
            logUnknown(candidates, costs, unknown, requestIdOrNull);
        }
    }

    private void logUnknown(
            CandidateView candidates, double[] costs, int unknown, String requestIdOrNull) {
        final String more = unknownCostLines.take(System.nanoTime());
        if (more == null) {
            return;
        }
        int first = 0;
        while (!Double.isNaN(costs[first])) {
            first++;
        }
        LOG.error(
                "the cost model of selection-policy={} gave worker {}{} no number as its cost for"
                        + " request {} of {} tokens, which counts as the dearest;"
                        + " RouterStatus.policyFailures counts further ones{}",
                policy.name(),
                candidates.candidate(first).worker(),
                unknown == 1 ? "" : ", and " + (unknown - 1) + " more,",
                requestIdOrNull == null ? "without an id" : requestIdOrNull,
                candidates.requestTokens(),
                more);
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
        failed(picker, cause);
        return -1;
    }

    /** Picks the one with the lowest of finite costs, for a picker that failed. */
    int pickLowest(CandidateView candidates, double[] costs) {
        return Picker.LOWEST.pick(candidates, costs, random);
    }

    private void failed(Part part, Exception cause) {
        part.failures.increment();
        final String what =
                "the " + part.name + " of selection-policy=" + policy.name() + " failed";
        if (part.logged.compareAndSet(false, true)) {
            LOG.error("{}; RouterStatus.policyFailures counts further ones", what, cause);
        }
        errors.onError(new IllegalStateException(what, cause));
    }

    /** How often it has failed. */
    PolicyFailures failures() {
        return new PolicyFailures(
                eligibility.failures.sum(),
                costModel.failures.sum(),
                unknownCosts.sum(),
                picker.failures.sum());
    }
}
