package io.kvasir.router;

/**
 * The worker that a prompt is best sent to.
 *
 * @param worker the worker
 * @param overlapBlocks leading blocks of the prompt that it holds
 */
public record BestWorker(Worker worker, int overlapBlocks) {
    static BestWorker of(Decision chosen) {
        return new BestWorker(chosen.worker(), chosen.overlapBlocks());
    }

    /**
     * The worker's id.
     *
     * @return as of {@link WorkerSpec#id}, 64 unsigned bits
     */
    public long workerId() {
        return worker.id();
    }

    /**
     * The worker's data-parallel rank.
     *
     * @return as of {@link WorkerSpec#dpRank}
     */
    public int dpRank() {
        return worker.dpRank();
    }
}
