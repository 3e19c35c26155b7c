package io.kvasir.router.policy;

import java.util.Map;

/**
 * What a selection policy sees of a worker: what it is called and how much it can take. A router's
 * {@code Worker} is one, and no policy gets anything else of it to change. Thread-safe.
 */
public interface CandidateWorker {
    /**
     * The worker's number.
     *
     * @return unsigned 64-bit, shared by the ranks of one worker
     */
    long id();

    /**
     * The worker's name.
     *
     * @return as registered
     */
    String name();

    /**
     * Where requests for this worker go.
     *
     * @return as registered
     */
    String url();

    /**
     * The data-parallel rank.
     *
     * @return 0 without data parallelism
     */
    int dpRank();

    /**
     * What keeps requests from it that do not tolerate that.
     *
     * @return one bit a taint, as registered
     */
    long taints();

    /**
     * What it is labelled with.
     *
     * @return as registered; immutable
     */
    Map<String, String> labels();

    /**
     * The dense number that indexes this worker's bits and load cell.
     *
     * @return 0..maxWorkers-1; reused after the worker was removed
     */
    int slot();

    /**
     * KV blocks of the engine's cache.
     *
     * @return 0 where it is not known
     */
    long kvBlocks();

    /**
     * Most tokens of one step of the engine.
     *
     * @return 0 where it is not known
     */
    long batchTokens();

    /**
     * Most requests that the engine runs at once.
     *
     * @return 0 where it is not known
     */
    long requestSlots();
}
