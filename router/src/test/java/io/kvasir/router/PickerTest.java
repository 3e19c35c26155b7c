package io.kvasir.router;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.kvasir.pipeline.IndexState;
import io.kvasir.testsupport.Seeds;

import org.junit.jupiter.api.Test;

class PickerTest {
    private static final int SAMPLES = 20_000;

    private final Picker picker = new Picker(RandomSource.seeded(Seeds.next("PickerTest")));

    /** A decision whose candidates have these costs; NaN is a worker that is not eligible. */
    private static Decision costs(double... costs) {
        final Decision decision = new Decision();
        final RouteRequest request = new RouteRequest(16, 16, 8);
        decision.begin(request, 16, RoutingMode.KV, 1, 0);
        for (int i = 0; i < costs.length; i++) {
            final Worker worker =
                    new Worker(WorkerSpec.of(i, "w" + i, "http://w" + i), i, null, null);
            decision.candidate(
                    worker,
                    Double.isNaN(costs[i])
                            ? Decision.Exclusion.UNAVAILABLE
                            : Decision.Exclusion.NONE,
                    IndexState.EXACT,
                    -1);
            decision.figures(i, 0, 0, costs[i], 0, 0, costs[i]);
        }
        return decision;
    }

    @Test
    void theWorkedExampleOfTheLinearCostChoosesTheSecondWorker() {
        final int blocks = 10;
        final int[] cached = {2, 5, 8};
        final int[] decode = {10, 5, 9};
        final double[] costs = new double[3];
        for (int i = 0; i < 3; i++) {
            costs[i] = CostModel.LINEAR.cost(1, blocks - cached[i], decode[i], 0);
        }
        assertArrayEquals(new double[] {18, 10, 11}, costs);
        final Decision decision = costs(costs);
        decision.choose(picker.cheapest(decision, 0));
        assertEquals("w1", decision.worker().name());
        assertEquals(10, decision.cost());
    }

    @Test
    void tiesAreBrokenUniformly() {
        final Decision decision = costs(3, 1, Double.NaN, 1, 2, 1);
        final int[] chosen = new int[6];
        for (int i = 0; i < SAMPLES; i++) {
            chosen[picker.cheapest(decision, 0)]++;
        }
        assertEquals(SAMPLES, chosen[1] + chosen[3] + chosen[5]);
        for (int i : new int[] {1, 3, 5}) {
            assertEquals(SAMPLES / 3.0, chosen[i], SAMPLES * 0.03, "worker " + i);
        }
    }

    @Test
    void aTemperatureSamplesBySoftmaxOverTheRangeOfCosts() {
        final Decision decision = costs(10, 20, Double.NaN, 15);
        final int[] chosen = new int[4];
        for (int i = 0; i < SAMPLES; i++) {
            chosen[picker.cheapest(decision, 0.5)]++;
        }
        // exp(-(cost - 10) / (10 · 0.5)): 1, e^-2, e^-1
        final double total = 1 + Math.exp(-2) + Math.exp(-1);
        assertEquals(SAMPLES / total, chosen[0], SAMPLES * 0.03);
        assertEquals(SAMPLES * Math.exp(-2) / total, chosen[1], SAMPLES * 0.03);
        assertEquals(SAMPLES * Math.exp(-1) / total, chosen[3], SAMPLES * 0.03);
        assertEquals(0, chosen[2], "not eligible");
    }

    @Test
    void equalCostsMakeAnyTemperatureUniform() {
        final Decision decision = costs(7, 7);
        int first = 0;
        for (int i = 0; i < SAMPLES; i++) {
            first += 1 - picker.cheapest(decision, 2);
        }
        assertEquals(SAMPLES / 2.0, first, SAMPLES * 0.03);
    }

    @Test
    void nobodyIsChosenWhereNobodyIsEligible() {
        assertEquals(-1, picker.cheapest(costs(Double.NaN), 0));
        assertTrue(costs().candidateCount() == 0);
    }

    @Test
    void theExplanationNamesTheChoiceAndItsReasons() {
        final Decision decision = costs(18, 10, Double.NaN);
        decision.choose(1);
        final String text = decision.explain();
        assertTrue(text.contains(" -> w1/0: cost 10.000"), text);
        assertTrue(text.contains("    w0/0: cost 18.000"), text);
        assertTrue(text.contains("w2/0: not a candidate, UNAVAILABLE"), text);
    }
}
