package io.kvasir.gateway.metrics;

import io.kvasir.router.Worker;

import java.util.List;

/** How alike the loads of workers are. */
final class LoadBalance {
    private LoadBalance() {}

    /**
     * The standard deviation of the available workers' load as a part of its mean: the coefficient
     * of variation.
     *
     * @param blockSize tokens of a block
     * @return 0 where there is no load
     */
    static double score(List<Worker> workers, int blockSize) {
        final double[] loads =
                workers.stream()
                        .filter(Worker::available)
                        .mapToDouble(
                                worker ->
                                        worker.activeBlocks()
                                                + (double) worker.prefillTokens() / blockSize)
                        .toArray();
        double mean = 0;
        for (double load : loads) {
            mean += load / loads.length;
        }
        double variance = 0;
        for (double load : loads) {
            variance += (load - mean) * (load - mean) / loads.length;
        }
        return mean <= 0 ? 0 : Math.sqrt(variance) / mean;
    }
}
