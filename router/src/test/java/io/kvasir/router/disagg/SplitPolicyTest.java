package io.kvasir.router.disagg;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

import java.util.List;

class SplitPolicyTest {
    private static SplitPolicy policy(SplitMode mode, double harmWeight) {
        return new SplitPolicy(new SplitPolicy.Limits(mode, 100, 0.5, 5000, harmWeight), 2);
    }

    private static SplitAlternatives prompt(int tokens, int cachedThere) {
        return new SplitAlternatives(tokens, tokens - cachedThere, 0, 0, tokens, 0, 0);
    }

    /** Prefill 1 ms a token on both, a transfer 50 ms and 0.1 ms a token. */
    private static SplitPolicy taught(double harmWeight) {
        final SplitPolicy policy = policy(SplitMode.COST, harmWeight);
        for (int i = 1; i <= 20; i++) {
            policy.learnLocal(100 * i, 0.1 * i);
            policy.learnRemote(100 * i, 0.1 * i);
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
                policy(SplitMode.LIMITS, 0)
                        .choose(new SplitAlternatives(1000, 1000, 0, 0, 1000, 5001, 0));
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
        final SplitAlternatives busy = new SplitAlternatives(2000, 2000, 0, 8, 2000, 0, 0);
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
        assertTrue(taught(0).choose(new SplitAlternatives(500, 500, 1000, 0, 500, 0, 0)).split());
        assertFalse(
                taught(0).choose(new SplitAlternatives(500, 500, 1000, 0, 500, 2000, 0)).split());
    }

    @Test
    void aPromptThatTheDecodeWorkerHoldsStaysThere() {
        assertFalse(taught(1).choose(new SplitAlternatives(4000, 16, 0, 8, 4000, 0, 0)).split());
    }

    @Test
    void untilOneSideIsKnownTheOtherStandsForIt() {
        final SplitPolicy onlyRemote = policy(SplitMode.COST, 1);
        final SplitPolicy onlyLocal = policy(SplitMode.COST, 1);
        for (int i = 1; i <= 20; i++) {
            onlyRemote.learnRemote(100 * i, 0.1 * i);
            onlyLocal.learnLocal(100 * i, 0.1 * i);
        }
        onlyRemote.learnTransfer(0, 100, 0.05);
        final SplitAlternatives known = new SplitAlternatives(2000, 2000, 500, 3, 1000, 200, 0);
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
            policy.learnRemote(100 * i, 0.1 * i);
            policy.learnTransfer(0, 100 * i, 0.05 + 0.01 * i);
        }
        assertEquals(2, probes(policy, prompt(50, 0), 128), "and may change");
    }

    @Test
    void longPromptsAndLongQueuesAreNoProbesNorIsAnythingByLimits() {
        assertEquals(0, probes(taught(1), prompt(5000, 4950), 640));
        assertEquals(0, probes(taught(1), new SplitAlternatives(50, 50, 0, 0, 50, 5000, 0), 640));
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
        final SplitChoice near =
                policy.choose(new SplitAlternatives(1000, 1000, 1000, 0, 1000, 0, 0));
        final SplitChoice far =
                policy.choose(new SplitAlternatives(1000, 1000, 1000, 0, 1000, 0, 1));
        assertEquals(0.15, near.transferSeconds(), 1e-6);
        assertEquals(10, far.transferSeconds(), 1e-6);
        assertTrue(near.split());
        assertFalse(far.split());
    }

    @Test
    void overADistanceOfWhichNothingIsKnownItTakesWhatAnyOtherTook() {
        final SplitChoice unknown =
                taught(0).choose(new SplitAlternatives(1000, 1000, 1000, 0, 1000, 0, 1));
        assertEquals(0.15, unknown.transferSeconds(), 1e-6);
    }
}
