package io.kvasir.pipeline.source;

import io.kvasir.pipeline.wire.LoraNumbers;

import java.util.Map;

/** A running source of events of one (worker, rank). All methods may be called by any thread. */
public interface EventSource extends IndexView, AutoCloseable {
    /** Counters, state and the last problem, as of now. */
    SourceStatus status();

    /**
     * The same {@link #state} and {@link #credit}, for callers that ask for them at each decision:
     * what they read of a thousand sources is in none of the processor's nearer caches, and every
     * object on the way costs a read of memory.
     *
     * @return always the same one
     */
    IndexView view();

    /**
     * Whether the source has loaded and everything received is in the index, so that waiting longer
     * would not show more: {@link IndexState#EXACT}, or {@link IndexState#DEGRADED} with nothing
     * left to apply.
     */
    boolean ready();

    /**
     * How much has come so far, to be kept from a prompt's booking until {@link #reportServed}.
     * Never waits.
     *
     * @return a mark that means something to this source alone
     */
    long activityMark();

    /**
     * Says that the engine has computed a prompt's full blocks that it did not have before, which
     * it must announce: a source that then stays silent becomes {@link IndexState#STALE}. A prompt
     * since whose booking something has come does not count: engines announce blocks as they are
     * computed, which is before the answer is there, and those of several prompts in one message.
     * Never waits.
     *
     * @param activityBefore the {@link #activityMark} as the prompt was booked
     */
    void reportServed(long activityBefore);

    /**
     * Empties the slot in the index, in order after the events already handed on. For a caller that
     * has just made the engine drop its cache: the engine itself announces that only later. Events
     * that wait for older ones, or are replayed, come after it, and the blocks that they store stay
     * until that announcement.
     */
    void clear();

    /**
     * Compares what was believed of a request with what the engine then said. A view whose
     * forecasts are persistently wrong is {@link IndexState#DEGRADED} until they are right again
     * ({@link ForecastWatch}), and everything is asked for again where it can be.
     *
     * <p>Of requests that had the worker to themselves, repeated over-prediction means that the
     * index believes in blocks that the engine does not have: under {@link RemovalRule#AUTO} the
     * rule changes first, and in any case the slot is emptied and loaded again.
     *
     * @param believedTokens prompt tokens that the index took the engine to have cached
     * @param statedTokens prompt tokens that the engine reports as cached
     * @param hadWorkerAlone whether no other request was there from the decision to the answer
     */
    void reportEngineHit(int believedTokens, int statedTokens, boolean hadWorkerAlone);

    /**
     * Forgets what was concluded from {@link #reportEngineHit}, of forecasts: they count as right
     * until comparisons show otherwise.
     */
    void forgetForecasts();

    /**
     * Forgets all that was concluded from {@link #reportEngineHit}, of removals, too: what was
     * believed was wrong for a reason that is known now and is not of the index. Where removals
     * have another rule by that, everything is asked for again.
     */
    void judgeHitsAnew();

    /**
     * Says how many tokens a block has by the engine's word beside its events, such as its page of
     * metrics: a view of another size is not {@link IndexState#EXACT}, unless the events name the
     * right one. 0 where the engine does not say.
     */
    void reportBlockSize(int tokens);

    /**
     * Has the load reports passed on that come among the events; without a listener they are
     * counted as ignored messages.
     *
     * @param listener called for each
     */
    void onLoad(LoadListener listener);

    /**
     * Says which LoRA adapters the engine that runs now gives which numbers, in place of what was
     * said before; beside what is configured and what events say themselves. Where blocks were left
     * out that have a name now, everything is asked for again. A number that blocks were stored
     * under another name by is believed no more until the engine clears its cache or starts anew;
     * what is known is dropped and loaded again. Forgotten when the engine starts anew: so say it
     * again from time to time.
     *
     * @param names by number; at most {@value LoraNumbers#MOST}
     * @throws IllegalArgumentException if they are too many, a number is 0 or a name is empty
     */
    void loraNumbers(Map<Long, String> names);

    /** What it has learned of its engine beside the blocks, as of now. */
    StreamMemory memory();

    /** Stops the source; its blocks stay in the index until the slot is retired. Idempotent. */
    @Override
    void close();
}
