package io.kvasir.router.policy;

import io.kvasir.core.index.StorageTier;
import io.kvasir.pipeline.source.IndexState;

/**
 * One worker that a request may go to, as a decision sees it. Read on the thread that routes, while
 * the decision is made; the numbers stand still for that time.
 */
public interface Candidate {
    /**
     * The worker itself, whatever the request.
     *
     * @return a registered one
     */
    CandidateWorker worker();

    /**
     * The prompt's length.
     *
     * @return full blocks
     */
    int requestBlocks();

    /**
     * How much of the prompt the worker holds on its device.
     *
     * @return leading blocks
     */
    int overlapBlocks();

    /**
     * How much of the prompt the worker holds in a tier, or can load from shared storage.
     *
     * @param tier where; {@link StorageTier#DEVICE} is {@link #overlapBlocks()}
     * @return blocks, from where those in the tiers above end
     */
    int overlapBlocks(StorageTier tier);

    /**
     * How much of the prompt is in use by requests that run on the worker.
     *
     * @return leading blocks
     */
    int activePrefixBlocks();

    /**
     * How far the index can be trusted for the worker.
     *
     * @return the state that its credit is of
     */
    IndexState state();

    /**
     * What a cached block counts on the worker.
     *
     * @return 0 (nothing) to 1 (in full)
     */
    double credit();

    /**
     * What of the prompt the engine is taken to have in its cache, {@link #credit} included: whole
     * blocks, those of lower tiers by their weights, never the last token, nothing where the worker
     * does not compute the prompt.
     *
     * @return tokens, fractional
     */
    double cachedTokens();

    /**
     * What the worker has to prefill until the prompt is done, its queue included.
     *
     * @return blocks, fractional
     */
    double prefillBlocks();

    /**
     * What the worker has in use if the prompt runs there.
     *
     * @return blocks
     */
    long decodeBlocks();

    /**
     * What the worker has to prefill without the prompt.
     *
     * @return tokens booked there
     */
    long prefillTokens();

    /**
     * What is left of {@link #prefillTokens} at the pace that was seen of the worker: since the
     * last first token it has worked on the prompts that are booked. Never less than half of them,
     * and all of them while nothing was seen.
     *
     * @return tokens, fractional
     */
    double remainingPrefillTokens();

    /**
     * How long the worker takes for a prompt beside what all workers take, by the first tokens that
     * callers have seen ({@code Lease.prefillComplete}).
     *
     * @return 1 if as long, or while nothing was seen; 2 if twice as long; 1/8 to 8
     */
    double pace();

    /**
     * What the worker has in use without the prompt.
     *
     * @return blocks
     */
    long activeBlocks();

    /**
     * What runs on the worker.
     *
     * @return requests booked on it
     */
    long activeRequests();
}
