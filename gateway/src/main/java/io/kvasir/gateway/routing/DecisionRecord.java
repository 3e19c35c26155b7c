package io.kvasir.gateway.routing;

import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;

import io.kvasir.core.index.StorageTier;
import io.kvasir.gateway.metrics.ModelMetrics;
import io.kvasir.gateway.openai.UsageReader;
import io.kvasir.gateway.trace.LegTrace;
import io.kvasir.gateway.trace.RequestTrace;
import io.kvasir.pipeline.source.IndexState;
import io.kvasir.router.Decision;
import io.kvasir.router.PromptEnd;
import io.kvasir.router.disagg.Leg;
import io.kvasir.router.disagg.SplitChoice;
import io.kvasir.router.policy.RoutingMode;

import java.time.Instant;
import java.util.Locale;
import java.util.Set;

/**
 * Why one attempt went where it went, and what came of it. The reasons are fixed when it is made;
 * the outcome is written by the exchange as it happens.
 */
public final class DecisionRecord {
    /** What was seen of one worker. */
    private record Candidate(
            String worker,
            int dpRank,
            Decision.Exclusion exclusion,
            IndexState state,
            int overlapBlocks,
            TierBlocks tiers,
            int activePrefixBlocks,
            double prefillBlocks,
            long decodeBlocks,
            long activeRequests,
            long eventSequence,
            double addedBlocks,
            double cost) {}

    /** Blocks of the prompt below a worker's device, each from where those above it end. */
    private record TierBlocks(int host, int disk, int shared) {
        private static final TierBlocks NONE = new TierBlocks(0, 0, 0);

        static TierBlocks of(Decision decision, int i) {
            final int host = decision.overlapBlocks(i, StorageTier.HOST);
            final int disk = decision.overlapBlocks(i, StorageTier.DISK);
            final int shared = decision.overlapBlocks(i, StorageTier.SHARED);
            return (host | disk | shared) == 0 ? NONE : new TierBlocks(host, disk, shared);
        }

        void put(ObjectNode json) {
            json.put("host_blocks", host);
            json.put("disk_blocks", disk);
            json.put("shared_blocks", shared);
        }
    }

    /**
     * What a choice is to be seen beside.
     *
     * @param candidates that could have been chosen, the chosen one included
     * @param nameOrNull the cheapest of the others, and its rank
     * @param cost of it; NaN where there is none
     */
    record RunnerUp(int candidates, String nameOrNull, double cost) {}

    /** Outcomes that are no error: nothing went wrong with this worker. */
    private static final Set<String> GIVEN_UP =
            Set.of("client_left", "superseded", "abandoned", "not_split", "draining");

    private final String requestId;
    private final Instant at;
    private final String route;
    private final int attempt;
    private final Leg leg; // null for a whole request
    private final String model;
    private final int prompts;
    private final RoutingMode mode;
    private final boolean bySession;
    private final double overlapWeight;
    private final double overlapCredit;
    private final double sharedMultiplier;
    private final double temperature;
    private final long settingsVersion;
    private final int tokens;
    private final int blocks;
    private final String worker;
    private final int dpRank;
    private final double cost;
    private final int overlapBlocks;
    private final TierBlocks tiers;
    private final int predictedCachedTokens;
    private final int heldTokens;
    private final long eventSequence;
    private final Candidate[] candidates;
    private final double tokensToCompute;
    private final long activeRequests;
    private final IndexState indexState;
    private final long settings;
    private final int blockSize;
    private volatile SplitChoice split; // null where it is not asked
    private volatile long queuedNs = -1; // where requests do not wait

    private volatile String outcome = "running";
    private volatile int status;
    private volatile int engineCachedTokens = UsageReader.UNKNOWN;
    private volatile int enginePromptTokens = UsageReader.UNKNOWN;
    private volatile long firstTokenNs = -1;
    private volatile PromptEnd promptEnd = PromptEnd.NOT_YET;
    private volatile long promptEndNs = -1;
    private volatile long durationNs = -1;
    private volatile LegTrace trace = LegTrace.NONE;

    /**
     * @param leg part of a split request; null for a whole one
     * @param model name of the model whose workers were chosen among
     * @param prompts how many prompts the request has, 1 or more
     */
    DecisionRecord(
            String requestId,
            Instant at,
            String route,
            int attempt,
            Leg leg,
            String model,
            int prompts,
            Decision decision) {
        this.requestId = requestId;
        this.at = at;
        this.route = route;
        this.attempt = attempt;
        this.leg = leg;
        this.model = model;
        this.prompts = prompts;
        this.mode = decision.mode();
        this.bySession = decision.bySession();
        this.overlapWeight = decision.overlapWeight();
        this.overlapCredit = decision.overlapCredit();
        this.sharedMultiplier = decision.sharedCacheMultiplier();
        this.temperature = decision.temperature();
        this.settingsVersion = decision.settingsVersion();
        this.tokens = decision.requestTokens();
        this.blocks = decision.requestBlocks();
        this.worker = decision.worker().name();
        this.dpRank = decision.worker().dpRank();
        this.cost = decision.cost();
        this.overlapBlocks = decision.overlapBlocks();
        this.predictedCachedTokens = decision.predictedCachedTokens();
        this.heldTokens = decision.predictedHeldTokens();
        this.tokensToCompute = decision.tokensToCompute();
        this.eventSequence = decision.eventSequence();
        this.indexState = decision.indexState();
        this.settings = decision.settingsNumber();
        this.blockSize = decision.blockSize();
        long active = 0;
        TierBlocks found = TierBlocks.NONE;
        this.candidates = new Candidate[decision.candidateCount()];
        for (int i = 0; i < candidates.length; i++) {
            candidates[i] =
                    new Candidate(
                            decision.candidate(i).name(),
                            decision.candidate(i).dpRank(),
                            decision.exclusion(i),
                            decision.state(i),
                            decision.overlapBlocks(i),
                            TierBlocks.of(decision, i),
                            decision.activePrefixBlocks(i),
                            decision.prefillBlocks(i),
                            decision.decodeBlocks(i),
                            decision.activeRequests(i),
                            decision.eventSequence(i),
                            decision.addedBlocks(i),
                            decision.cost(i));
            if (decision.candidate(i) == decision.worker()) {
                active = decision.activeRequests(i);
                found = candidates[i].tiers;
            }
        }
        activeRequests = active;
        tiers = found;
    }

    String requestId() {
        return requestId;
    }

    /** Name of the model whose workers were chosen among. */
    public String model() {
        return model;
    }

    /** Name of the chosen worker. */
    public String worker() {
        return worker;
    }

    /** Data-parallel rank of the chosen worker. */
    public int dpRank() {
        return dpRank;
    }

    /** How the request was routed. */
    public RoutingMode mode() {
        return mode;
    }

    /** Tokens of the prompt, 0 where they are unknown. */
    public int tokens() {
        return tokens;
    }

    /** Leading blocks of the prompt that the chosen worker held. */
    public int overlapBlocks() {
        return overlapBlocks;
    }

    /** Tokens of the prompt that the chosen worker need not compute. */
    public int predictedCachedTokens() {
        return predictedCachedTokens;
    }

    /** Tokens of the prompt that the chosen worker fetches, as another one computes it. */
    public int tokensToFetch() {
        return tokens - heldTokens;
    }

    /** Blocks that the worker holds below its device, or can load. */
    public int lowerTierBlocks() {
        return tiers.host + tiers.disk + tiers.shared;
    }

    /** Number of the last event of the chosen worker that was applied. */
    public long eventSequence() {
        return eventSequence;
    }

    /** Requests that were booked on the chosen worker before. */
    public long activeRequests() {
        return activeRequests;
    }

    /** Tokens that the chosen worker has to compute until this prompt is, those before included. */
    public double tokensToCompute() {
        return tokensToCompute;
    }

    /**
     * The worker is about to be asked: from here to its end the attempt is a span.
     *
     * @param request the trace of the client's request
     */
    public void traceIn(RequestTrace request) {
        trace = request.leg(leg == null ? "generate" : leg.spelling());
        if (trace.isRecording()) {
            trace.put("kvasir.worker", worker)
                    .put("kvasir.dp_rank", dpRank)
                    .put("kvasir.attempt", attempt)
                    .put("kvasir.prompt_tokens", tokens)
                    .put("kvasir.overlap_blocks", overlapBlocks)
                    .put("kvasir.predicted_cached_tokens", predictedCachedTokens)
                    .put("kvasir.active_requests", activeRequests);
            if (queuedNs >= 0) {
                trace.put("kvasir.queue_wait_us", queuedNs / 1_000);
            }
            DecisionAttributes.put(trace, this);
        }
    }

    /** The state of the chosen worker's index. */
    public IndexState indexState() {
        return indexState;
    }

    /**
     * The choice beside the one by cached blocks alone.
     *
     * @param prefillPool whether it was made among prefill workers
     */
    ModelMetrics.Choice choice(boolean prefillPool) {
        int best = overlapBlocks;
        for (Candidate each : candidates) {
            if (each.exclusion == Decision.Exclusion.NONE) {
                best = Math.max(best, each.overlapBlocks);
            }
        }
        return new ModelMetrics.Choice(
                tokens,
                Decision.cachedTokens(best, tokens, blockSize),
                Decision.cachedTokens(overlapBlocks, tokens, blockSize),
                prefillPool,
                blockSize);
    }

    /** Cost of the chosen worker in blocks; NaN where the mode has none. */
    double cost() {
        return cost;
    }

    /** Equal numbers, equal settings of the router. */
    long settings() {
        return settings;
    }

    /** How many could have been chosen, and the cheapest of those that were not. */
    RunnerUp runnerUp() {
        int count = 0;
        Candidate least = null;
        for (Candidate each : candidates) {
            if (each.exclusion == Decision.Exclusion.NONE) {
                count++;
                final boolean isChosen = each.worker.equals(worker) && each.dpRank == dpRank;
                if (!isChosen && (least == null || each.cost < least.cost)) {
                    least = each;
                }
            }
        }
        return new RunnerUp(
                count,
                least == null ? null : least.worker + "/" + least.dpRank,
                least == null ? Double.NaN : least.cost);
    }

    /** The span of the attempt; does nothing where it is not traced. */
    public LegTrace trace() {
        return trace;
    }

    /** The record is of a prefill worker that was considered: whether the request was split. */
    public void split(SplitChoice choice) {
        split = choice;
    }

    /** The request has waited for a worker, perhaps for no time. */
    void queued(long ns) {
        queuedNs = ns;
    }

    /** What the engine states of the prompt; {@link UsageReader#UNKNOWN} where it does not. */
    public void usage(int promptTokens, int cachedTokens) {
        enginePromptTokens = promptTokens;
        engineCachedTokens = cachedTokens;
        if (cachedTokens != UsageReader.UNKNOWN) {
            trace.put("kvasir.engine_cached_tokens", cachedTokens);
        }
    }

    /** What the engine took from its cache; {@link UsageReader#UNKNOWN} where it does not say. */
    public int engineCachedTokens() {
        return engineCachedTokens;
    }

    /** The first output token has come. */
    public void firstToken(long sinceStartNs) {
        firstTokenNs = sinceStartNs;
        trace.event("first_token");
    }

    /** How it was known that the prompt was computed, and when after the booking, or -1. */
    public void promptEnd(PromptEnd how, long afterBookingNs) {
        promptEnd = how;
        promptEndNs = afterBookingNs;
    }

    /** Ends the record; {@code outcome} is "ok" or what went wrong. */
    public void end(String how, int httpStatus, long sinceStartNs) {
        status = httpStatus;
        durationNs = sinceStartNs;
        outcome = how;
        trace.end(how, httpStatus, !how.equals("ok") && !GIVEN_UP.contains(how));
    }

    /** The record as {@code GET /debug/decisions} shows it. */
    public ObjectNode json() {
        final ObjectNode json = JsonNodeFactory.instance.objectNode();
        json.put("request_id", requestId);
        json.put("at", at.toString());
        json.put("route", route);
        json.put("attempt", attempt);
        json.put("leg", leg == null ? null : leg.spelling());
        json.put("mode", mode.spelling());
        json.put("by_session", bySession);
        json.put("overlap_weight", overlapWeight);
        json.put("overlap_credit", overlapCredit);
        json.put("shared_cache_multiplier", sharedMultiplier);
        json.put("temperature", temperature);
        json.put("settings_version", settingsVersion);
        json.put("prompts", prompts);
        json.put("tokens", tokens);
        json.put("blocks", blocks);
        json.put("worker", worker);
        json.put("dp_rank", dpRank);
        json.put("index_state", indexState.name().toLowerCase(Locale.ROOT));
        number(json, "cost", cost);
        json.put("overlap_blocks", overlapBlocks);
        tiers.put(json);
        json.put("predicted_cached_tokens", predictedCachedTokens);
        json.put("event_sequence", eventSequence);
        json.put("outcome", outcome);
        count(json, "status", status == 0 ? UsageReader.UNKNOWN : status);
        count(json, "engine_cached_tokens", engineCachedTokens);
        count(json, "engine_prompt_tokens", enginePromptTokens);
        number(json, "queue_wait_ms", queuedNs < 0 ? Double.NaN : queuedNs / 1e6);
        number(json, "ttft_ms", firstTokenNs < 0 ? Double.NaN : firstTokenNs / 1e6);
        json.put("prompt_end", promptEnd.name().toLowerCase(Locale.ROOT));
        number(json, "prompt_end_ms", promptEndNs < 0 ? Double.NaN : promptEndNs / 1e6);
        number(json, "duration_ms", durationNs < 0 ? Double.NaN : durationNs / 1e6);
        final SplitChoice choice = split;
        if (choice != null) {
            split(json.putObject("split"), choice);
        }
        final ArrayNode list = json.putArray("candidates");
        for (Candidate c : candidates) {
            final ObjectNode item = list.addObject();
            item.put("worker", c.worker);
            item.put("dp_rank", c.dpRank);
            item.put(
                    "excluded",
                    c.exclusion == Decision.Exclusion.NONE
                            ? null
                            : c.exclusion.name().toLowerCase(Locale.ROOT));
            item.put("index_state", c.state.name().toLowerCase(Locale.ROOT));
            item.put("overlap_blocks", c.overlapBlocks);
            c.tiers.put(item);
            item.put("active_prefix_blocks", c.activePrefixBlocks);
            item.put("prefill_blocks", c.prefillBlocks);
            item.put("decode_blocks", c.decodeBlocks);
            item.put("active_requests", c.activeRequests);
            item.put("event_sequence", c.eventSequence);
            number(item, "added_blocks", c.addedBlocks);
            number(item, "cost", c.cost);
        }
        return json;
    }

    private static void split(ObjectNode json, SplitChoice choice) {
        json.put("split", choice.split());
        json.put("reason", choice.reason());
        json.put("local_uncached_tokens", choice.alternatives().localUncached());
        json.put("local_queue_tokens", choice.alternatives().localQueue());
        json.put("local_active_requests", choice.alternatives().localDecodes());
        json.put("local_pace", choice.alternatives().localPace());
        json.put("remote_uncached_tokens", choice.alternatives().remoteUncached());
        json.put("remote_queue_tokens", choice.alternatives().remoteQueue());
        json.put("remote_pace", choice.alternatives().remotePace());
        json.put("transfer_distance", choice.alternatives().distance());
        number(json, "local_seconds", choice.localSeconds());
        number(json, "harm_seconds", choice.harmSeconds());
        number(json, "prefill_seconds", choice.prefillSeconds());
        number(json, "transfer_seconds", choice.transferSeconds());
    }

    private static void number(ObjectNode json, String name, double value) {
        if (Double.isNaN(value)) {
            json.putNull(name);
        } else {
            json.put(name, value);
        }
    }

    private static void count(ObjectNode json, String name, int value) {
        if (value == UsageReader.UNKNOWN) {
            json.putNull(name);
        } else {
            json.put(name, value);
        }
    }
}
