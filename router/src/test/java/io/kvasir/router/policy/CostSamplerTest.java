package io.kvasir.router.policy;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;

import io.kvasir.testsupport.Seeds;

import org.junit.jupiter.api.Test;

class CostSamplerTest {
    private static final int SAMPLES = 20_000;
    private static final double NOT_ELIGIBLE = Double.NaN;

    private final RandomSource random = RandomSource.seeded(Seeds.next("CostSamplerTest"));

    private int pick(double temperature, double... costs) {
        return CostSampler.cheapest(costs, costs.length, temperature, random);
    }

    @Test
    void theWorkedExampleOfTheLinearCostChoosesTheSecondWorker() {
        final int blocks = 10;
        final int[] cached = {2, 5, 8};
        final int[] decode = {10, 5, 9};
        final double[] costs = new double[3];
        for (int i = 0; i < 3; i++) {
            costs[i] = CostModel.linear(1, blocks - cached[i], decode[i]);
        }
        assertArrayEquals(new double[] {18, 10, 11}, costs);
        assertEquals(1, pick(0, costs));
    }

    @Test
    void tiesAreBrokenUniformly() {
        final int[] chosen = new int[6];
        for (int i = 0; i < SAMPLES; i++) {
            chosen[pick(0, 3, 1, NOT_ELIGIBLE, 1, 2, 1)]++;
        }
        assertEquals(SAMPLES, chosen[1] + chosen[3] + chosen[5]);
        for (int i : new int[] {1, 3, 5}) {
            assertEquals(SAMPLES / 3.0, chosen[i], SAMPLES * 0.03, "worker " + i);
        }
    }

    @Test
    void aTemperatureSamplesBySoftmaxOverTheRangeOfCosts() {
        final int[] chosen = new int[4];
        for (int i = 0; i < SAMPLES; i++) {
            chosen[pick(0.5, 10, 20, NOT_ELIGIBLE, 15)]++;
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
        int first = 0;
        for (int i = 0; i < SAMPLES; i++) {
            first += 1 - pick(2, 7, 7);
        }
        assertEquals(SAMPLES / 2.0, first, SAMPLES * 0.03);
    }

    @Test
    void theFirstIsChosenWhereNoneCanBe() {
        assertEquals(0, pick(0, NOT_ELIGIBLE));
        assertEquals(0, pick(1, NOT_ELIGIBLE, NOT_ELIGIBLE));
    }

    @Test
    void aRandomNumberThatIsNoneChoosesTheCheapest() {
        final RandomSource broken =
                new RandomSource() {
                    @Override
                    public long nextLong() {
                        return 0;
                    }

                    @Override
                    public double nextDouble() {
                        return Double.NaN;
                    }
                };
        assertEquals(1, CostSampler.cheapest(new double[] {2, 1, 3}, 3, 1, broken));
    }
}
