package io.kvasir.router.disagg;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.kvasir.testsupport.Trials;

import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

import java.util.List;
import java.util.concurrent.atomic.AtomicBoolean;

/** Whether a request is split, by limits and by what was learned. */
class SplitPolicyTest {
    private static SplitPolicy policy(SplitMode mode, double harmWeight) {
        return new SplitPolicy(new SplitPolicy.Limits(mode, 100, 0.5, 5000, harmWeight), 2);
    }

    private static SplitAlternatives alternatives(
            int tokens,
            double localUncached,
            double localQueue,
            long localDecodes,
            double remoteUncached,
            double remoteQueue,
            int distance) {
        return new SplitAlternatives(
                tokens,
                localUncached,
                localQueue,
                localDecodes,
                1,
                remoteUncached,
                remoteQueue,
                1,
                distance);
    }

    private static SplitAlternatives prompt(int tokens, int cachedThere) {
        return alternatives(tokens, tokens - cachedThere, 0, 0, tokens, 0, 0);
    }

    /** Prefill 1 ms a token on both, a transfer 50 ms and 0.1 ms a token. */
    private static SplitPolicy taught(double harmWeight) {
        final SplitPolicy policy = policy(SplitMode.COST, harmWeight);
        for (int i = 1; i <= 20; i++) {
            policy.learnLocal(new WorkerPace(), 100 * i, 0.1 * i);
            policy.learnRemote(new WorkerPace(), 100 * i, 0.1 * i);
            policy.learnTransfer(0, 100 * i, 0.05 + 0.01 * i);
        }
        return policy;
    }

    @ParameterizedTest
    @CsvSource({
        "0, 0, true, limits",
        "99, 0, false, min-tokens",
        "100, 0, true, limits",
        "1000, 499, true, limits",
        "1000, 501, false, min-ratio",
        "1000, 901, false, min-tokens"
    })
    void limitsKeepShortAndCachedPromptsWhole(
            int tokens, int cached, boolean split, String reason) {
        final SplitChoice choice = policy(SplitMode.LIMITS, 0).choose(prompt(tokens, cached));
        assertEquals(split, choice.split());
        assertEquals(reason, choice.reason());
    }

    @Test
    void aLongQueueOfThePrefillWorkerKeepsAPromptWhole() {
        final SplitChoice choice =
                policy(SplitMode.LIMITS, 0).choose(alternatives(1000, 1000, 0, 0, 1000, 5001, 0));
        assertFalse(choice.split());
        assertEquals("queue", choice.reason());
    }

    @Test
    void limitsDecideWhileTooLittleIsKnown() {
        final SplitChoice choice = policy(SplitMode.COST, 1).choose(prompt(50, 0));
        assertEquals("min-tokens", choice.reason());
        assertTrue(Double.isNaN(choice.localSeconds()));
    }

    @Test
    void withEqualWorkersThatAreIdleATransferIsNotWorthIt() {
        assertFalse(taught(1).choose(prompt(2000, 0)).split());
    }

    @Test
    void harmToRunningRequestsMakesItWorthIt() {
        final SplitAlternatives busy = alternatives(2000, 2000, 0, 8, 2000, 0, 0);
        final SplitChoice choice = taught(0.5).choose(busy);
        assertTrue(choice.split());
        assertEquals("cost", choice.reason());
        assertEquals(2, choice.localSeconds(), 1e-6);
        assertEquals(0.5 * 8 * 2, choice.harmSeconds(), 1e-6);
        assertEquals(2, choice.prefillSeconds(), 1e-6);
        assertEquals(0.25, choice.transferSeconds(), 1e-6);
        assertFalse(taught(0).choose(busy).split());
    }

    @Test
    void aQueueAtTheDecodeWorkerMakesItWorthIt() {
        assertTrue(taught(0).choose(alternatives(500, 500, 1000, 0, 500, 0, 0)).split());
        assertFalse(taught(0).choose(alternatives(500, 500, 1000, 0, 500, 2000, 0)).split());
    }

    @Test
    void aPromptThatTheDecodeWorkerHoldsStaysThere() {
        assertFalse(taught(1).choose(alternatives(4000, 16, 0, 8, 4000, 0, 0)).split());
    }

    @Test
    void untilOneSideIsKnownTheOtherStandsForIt() {
        final SplitPolicy onlyRemote = policy(SplitMode.COST, 1);
        final SplitPolicy onlyLocal = policy(SplitMode.COST, 1);
        for (int i = 1; i <= 20; i++) {
            onlyRemote.learnRemote(new WorkerPace(), 100 * i, 0.1 * i);
            onlyLocal.learnLocal(new WorkerPace(), 100 * i, 0.1 * i);
        }
        onlyRemote.learnTransfer(0, 100, 0.05);
        final SplitAlternatives known = alternatives(2000, 2000, 500, 3, 1000, 200, 0);
        for (SplitPolicy policy : List.of(onlyRemote, onlyLocal)) {
            final SplitChoice choice = policy.choose(known);
            assertEquals(2.5, choice.localSeconds(), 1e-6);
            assertEquals(6, choice.harmSeconds(), 1e-6);
            assertEquals(1.2, choice.prefillSeconds(), 1e-6);
        }
    }

    /** Prompts that the limits keep whole would never tell what a transfer takes. */
    @Test
    void shortPromptsAreSplitNowAndThenToLearnWhatItTakes() {
        final SplitPolicy policy = policy(SplitMode.COST, 1);
        assertEquals(10, probes(policy, prompt(50, 0), 80));
        for (int i = 1; i <= 20; i++) {
            policy.learnRemote(new WorkerPace(), 100 * i, 0.1 * i);
            policy.learnTransfer(0, 100 * i, 0.05 + 0.01 * i);
        }
        assertEquals(2, probes(policy, prompt(50, 0), 128), "and may change");
    }

    @Test
    void longPromptsAndLongQueuesAreNoProbesNorIsAnythingByLimits() {
        assertEquals(0, probes(taught(1), prompt(5000, 4950), 640));
        assertEquals(0, probes(taught(1), alternatives(50, 50, 0, 0, 50, 5000, 0), 640));
        assertEquals(0, probes(taught(1), prompt(0, 0), 640));
        assertEquals(0, probes(policy(SplitMode.LIMITS, 1), prompt(50, 0), 640));
    }

    private static int probes(SplitPolicy policy, SplitAlternatives known, int requests) {
        int probes = 0;
        for (int i = 0; i < requests; i++) {
            final SplitChoice choice = policy.choose(known);
            final boolean probe = choice.reason().equals("probe");
            assertEquals(probe || choice.reason().equals("limits"), choice.split());
            probes += probe ? 1 : 0;
        }
        return probes;
    }

    @ParameterizedTest
    @CsvSource({
        "-1, 0, 0, 0",
        "0, -0.1, 0, 0",
        "0, 1.1, 0, 0",
        "0, NaN, 0, 0",
        "0, 0, -1, 0",
        "0, 0, 0, -1"
    })
    void limitsThatCannotBeAreRefused(int tokens, double ratio, long queue, double harm) {
        assertThrows(
                IllegalArgumentException.class,
                () -> new SplitPolicy.Limits(SplitMode.COST, tokens, ratio, queue, harm));
    }

    @Test
    void aTransferTakesWhatItTookOverTheSameDistance() {
        final SplitPolicy policy = taught(0);
        for (int i = 1; i <= 20; i++) {
            policy.learnTransfer(1, 100 * i, 1.0 * i);
        }
        final SplitChoice near = policy.choose(alternatives(1000, 1000, 1000, 0, 1000, 0, 0));
        final SplitChoice far = policy.choose(alternatives(1000, 1000, 1000, 0, 1000, 0, 1));
        assertEquals(0.15, near.transferSeconds(), 1e-6);
        assertEquals(10, far.transferSeconds(), 1e-6);
        assertTrue(near.split());
        assertFalse(far.split());
    }

    @Test
    void overADistanceOfWhichNothingIsKnownItTakesWhatAnyOtherTook() {
        final SplitChoice unknown = taught(0).choose(alternatives(1000, 1000, 1000, 0, 1000, 0, 1));
        assertEquals(0.15, unknown.transferSeconds(), 1e-6);
    }

    /** One line for both would expect 2.5 ms a token of either. */
    @Test
    void workersOfUnlikeSpeedAreExpectedToTakeWhatEachTakes() {
        final SplitPolicy policy = policy(SplitMode.COST, 0);
        final WorkerPace fast = new WorkerPace();
        final WorkerPace slow = new WorkerPace();
        for (int round = 0; round < 20; round++) {
            for (int i = 1; i <= 20; i++) {
                policy.learnRemote(fast, 100 * i, 0.1 * i);
                policy.learnRemote(slow, 100 * i, 0.4 * i);
                policy.learnLocal(new WorkerPace(), 100 * i, 0.2 * i);
                policy.learnTransfer(0, 100 * i, 0.001);
            }
        }
        assertEquals(1, policy.choose(on(fast)).prefillSeconds(), 0.15);
        assertEquals(4, policy.choose(on(slow)).prefillSeconds(), 0.3);
        assertTrue(policy.choose(on(fast)).split());
        assertFalse(policy.choose(on(slow)).split());
        assertFalse(policy.choose(on(new WorkerPace())).split(), "2.5 s are more than 2 s");
    }

    private static SplitAlternatives on(WorkerPace prefillWorker) {
        return new SplitAlternatives(1000, 1000, 0, 0, 1, 1000, 0, prefillWorker.factor(), 0);
    }

    @Test
    void aSlowDecodeWorkerTakesLongerAndDelaysLonger() {
        final SplitChoice choice =
                taught(0.5).choose(new SplitAlternatives(1000, 1000, 500, 2, 3, 1000, 0, 1, 0));
        assertEquals(3 * 1.5, choice.localSeconds(), 1e-6);
        assertEquals(3 * 0.5 * 2, choice.harmSeconds(), 1e-6);
    }

    /** The same prompt where 3 generate, and where none does but 40 blocks more are to compute. */
    @ParameterizedTest
    @CsvSource({"0, true", "0.5, true", "1, false"})
    void aWorkerCountsForWhatThePromptDelaysThere(double weight, boolean busyOne) {
        final SplitPolicy policy = policy(SplitMode.COST, weight);
        final double busy = 20 + policy.wholeBlocks(1, 20, 20, 3, 100) + 100;
        final double idle = 60 + policy.wholeBlocks(1, 60, 60, 0, 100) + 100;
        assertEquals(0.3 * 100 + 20 + weight * 60, busy, 1e-9);
        assertEquals(busyOne, busy < idle + 1e-9);
    }

    @Test
    void aWorkerCountsForHowSlowItIs() {
        final SplitPolicy policy = policy(SplitMode.COST, 1);
        assertEquals(20, policy.prefillBlocks(2, 20), 1e-9);
        assertEquals(-10, policy.prefillBlocks(0.5, 20), 1e-9);
        assertEquals(20 + 2 * 2 * 5, policy.wholeBlocks(2, 20, 5, 2, 0), 1e-9);
    }

    @Test
    void onlyCostWeighsWorkers() {
        for (SplitMode mode : SplitMode.values()) {
            assertEquals(mode == SplitMode.COST, policy(mode, 1).weighsWorkers());
        }
    }

    @ParameterizedTest
    @ValueSource(ints = {0, -1})
    void aTransferHasADistance(int distances) {
        final SplitPolicy.Limits limits = new SplitPolicy.Limits(SplitMode.COST, 0, 0, 0, 0);
        assertEquals(
                "distances=" + distances + " must be 1 or more",
                assertThrows(
                                IllegalArgumentException.class,
                                () -> new SplitPolicy(limits, distances))
                        .getMessage());
        assertEquals(
                "limits",
                assertThrows(NullPointerException.class, () -> new SplitPolicy(null, 1))
                        .getMessage());
    }

    /** Each of the two splits such a prompt; the mode of one with the weight of the other not. */
    @Test
    void aChoiceGoesByLimitsOfOneVersionBesideAThreadThatChangesThem() throws Exception {
        final SplitPolicy.Limits byCost = new SplitPolicy.Limits(SplitMode.COST, 0, 0, 0, 10);
        final SplitPolicy.Limits byLimits = new SplitPolicy.Limits(SplitMode.LIMITS, 0, 0, 0, 0);
        final SplitPolicy policy = taught(10);
        policy.limits(byCost);
        final AtomicBoolean over = new AtomicBoolean();
        final Thread changes =
                Thread.ofPlatform()
                        .start(
                                () -> {
                                    while (!over.get()) {
                                        policy.limits(byLimits);
                                        policy.limits(byCost);
                                    }
                                });
        try {
            for (int i = 0; i < Trials.of(20_000, 400_000); i++) {
                final SplitChoice choice = policy.choose(alternatives(200, 200, 0, 4, 200, 0, 0));
                assertTrue(choice.split(), choice::toString);
            }
        } finally {
            over.set(true);
            changes.join();
        }
    }
}
