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
     * @return tokens booked there, and those of others, as its engine reports
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
     * @return blocks of requests booked there, and those of others, as its engine reports
     */
    long activeBlocks();

    /**
     * What runs on the worker.
     *
     * @return requests booked on it, and those of others, as its engine reports
     */
    long activeRequests();

    /**
     * What the worker's engine runs by its own report. Like all that follows it is as old as the
     * report, which counts for a time ({@code engine-load-ttl-ms}).
     *
     * @return requests; -1 where it is not known
     */
    long engineRunning();

    /**
     * What waits in the worker's engine by its own report.
     *
     * @return requests; -1 where it is not known
     */
    long engineWaiting();

    /**
     * The part of the engine's cache that running requests use, by its own report.
     *
     * @return 0 to 1; NaN where it is not known
     */
    double engineUsage();

    /**
     * The engine's cache by its own report.
     *
     * @return KV blocks; -1 where it is not known
     */
    long engineBlocks();

    /**
     * Requests that others than this router have sent to the worker; part of {@link
     * #activeRequests}.
     *
     * @return 0 where nothing is reported
     */
    long othersRequests();

    /**
     * Blocks in use by requests of others; part of {@link #activeBlocks}.
     *
     * @return 0 where nothing is reported
     */
    long othersBlocks();

    /**
     * Tokens to prefill of waiting requests of others; part of {@link #prefillTokens}.
     *
     * @return 0 where nothing is reported
     */
    long othersPrefillTokens();
}
