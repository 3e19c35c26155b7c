package io.kvasir.router.settings;

import io.kvasir.core.index.CapacityRule;
import io.kvasir.core.load.PredictedPrefixesConfig;
import io.kvasir.core.memory.BuddyArena;
import io.kvasir.core.radix.RadixTree;
import io.kvasir.pipeline.ring.WaitMode;
import io.kvasir.router.journal.DecisionJournal;
import io.kvasir.router.journal.JournalRecord;
import io.kvasir.router.policy.RoutingMode;
import io.kvasir.router.policy.SelectionPolicy;
import io.kvasir.router.policy.builtin.SelectionPolicies;

import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;

/**
 * The table of what can be set of a router.
 *
 * <p>To add a row: one constant {@code NAME = row(Setting.integer("name", default, least, most,
 * doc))} here, one {@code settings.get(RouterSettings.NAME)} where the value is needed, and one run
 * of {@code SettingDocumentsTest} with {@code -Dkvasir.documents=write}. Builder, flag, variable,
 * YAML key, help and documents follow from the row; a message that names the knob uses its name. A
 * row of which a running router can take a change is {@code live(...)} instead, is read through
 * what a decision reads its values from, and has a probe in {@code LiveSettingsTest}.
 */
public final class RouterSettings {
    /** Value of {@link #INDEX_BYTES} by which the limits of blocks size the index. */
    public static final long BY_LIMITS = 0;

    /** {@link #QUEUE_THRESHOLD} of no limit. */
    public static final double NO_QUEUE = -1;

    /** {@link #QUEUE_PREFILL_TOKENS} of no limit. */
    public static final long NO_QUEUE_TOKENS = -1;

    /** Least index, in bytes: 64 KiB. */
    public static final long MIN_INDEX_BYTES = 64 << 10;

    /** Largest index, in bytes: one arena of lines, almost 128 GiB. */
    public static final long MAX_INDEX_BYTES = (Integer.MAX_VALUE - 1L) * BuddyArena.LINE_LENGTH;

    /** Most blocks that an index can be set to hold. */
    public static final long MOST_BLOCKS = 1L << 30;

    private static final int MAX = Integer.MAX_VALUE;

    private static final List<Setting<?>> ROWS = new ArrayList<>();

    /** Tokens per block. */
    public static final Setting<Integer> BLOCK_SIZE =
            row(
                    Setting.integer(
                                    "block-size",
                                    16,
                                    1,
                                    MAX,
                                    "Tokens per block, as in the engines.")
                            .alias("kv-cache-block-size")
                            .variable("DYN_KV_CACHE_BLOCK_SIZE"));

    /** Default routing mode. */
    public static final Setting<RoutingMode> MODE =
            live(
                    Setting.choice("mode", RoutingMode.KV, "How the worker of a request is chosen.")
                            .alias("router-mode")
                            .variable("DYN_ROUTER_MODE"));

    /** Most requests of a worker in mode consistent-hash. */
    public static final Setting<Double> HASH_LOAD_FACTOR =
            live(
                    Setting.decimal(
                            "hash-load-factor",
                            1.25,
                            1,
                            Double.POSITIVE_INFINITY,
                            "Mode consistent-hash: how many times its share of the running"
                                    + " requests a worker has at most; what it has more goes to"
                                    + " the next one for the same key."));

    /** How long a session stays with its worker; zero for not at all. */
    public static final Setting<Duration> SESSION_TTL =
            live(
                    Setting.duration(
                                    "session-affinity-ttl-secs",
                                    0,
                                    0,
                                    "How long after its last request a session stays with the"
                                            + " worker that had it, in any mode but direct and"
                                            + " consistent-hash. 0 = not at all.")
                            .alias("router-session-affinity-ttl-secs")
                            .variable("DYN_ROUTER_SESSION_AFFINITY_TTL_SECS"));

    /** What a session's worker means. */
    public static final Setting<SessionMode> SESSION_MODE =
            live(
                    Setting.choice(
                                    "session-affinity-mode",
                                    SessionMode.HARD,
                                    "hard = the session's worker as long as it may be chosen; soft"
                                        + " = unless its load exceeds the least one by more than"
                                        + " the blocks of the prompt.")
                            .alias("router-session-affinity-mode")
                            .variable("DYN_ROUTER_SESSION_AFFINITY_MODE"));

    /** Sessions that are remembered. */
    public static final Setting<Integer> MAX_SESSIONS =
            row(
                    Setting.integer(
                            "max-sessions",
                            65_536,
                            1,
                            1 << 24,
                            "Sessions that stay with their workers at once; beyond it those that"
                                    + " would end soonest are forgotten. 25 bytes each."));

    /** What it means for a request that a worker has its adapter. */
    public static final Setting<LoraMode> LORA_MODE =
            live(
                    Setting.choice(
                            "lora-mode",
                            LoraMode.OFF,
                            "Which workers a request for a LoRA adapter may go to: off = any;"
                                    + " preferred = those that have it, any where none of them may"
                                    + " be chosen; required = those that have it."));

    /** What decides among workers. */
    public static final Setting<String> SELECTION_POLICY =
            live(
                    Setting.text(
                                    "selection-policy",
                                    "NAME",
                                    name -> name,
                                    SelectionPolicy.LINEAR.name(),
                                    "Which workers may be chosen, what each costs, and which one is"
                                        + " taken: linear = overlap-weight × blocks to prefill +"
                                        + " blocks in use; prefill-time = overlap-weight × pace ×"
                                        + " (left of the prompts before + 4 × uncached) + blocks in"
                                        + " use / 64, the pace and what is left learned from first"
                                        + " tokens (ADR 28); load-deviation = α × (load − mean"
                                        + " load) + (1 − α) × uncached part of the prompt + 0.1 ×"
                                        + " requests / request slots, α 0.7 while loads differ,"
                                        + " else 0.3, full workers left out; logits = load +"
                                        + " waiting part − 2 × hit part, any worker where all are"
                                        + " 0.")
                            .where(
                                    SelectionPolicies::has,
                                    String.join(", ", SelectionPolicies.builtIn())
                                            + ", or one of a SelectionPolicyProvider on the class"
                                            + " path"));

    /** Weight of a block to prefill against a block to decode. */
    public static final Setting<Double> OVERLAP_WEIGHT =
            live(
                    Setting.decimal(
                                    "overlap-weight",
                                    1,
                                    0,
                                    Double.POSITIVE_INFINITY,
                                    "Weight of a block to prefill against a block to decode; 0 ="
                                            + " load alone.")
                            .alias("kv-overlap-score-weight")
                            .alias("router-kv-overlap-score-weight")
                            .variable("DYN_KV_OVERLAP_SCORE_WEIGHT")
                            .variable("DYN_ROUTER_KV_OVERLAP_SCORE_WEIGHT")
                            .variable("DYN_OVERLAP_SCORE_WEIGHT"));

    /** What a block in host memory counts against one on the device. */
    public static final Setting<Double> HOST_CACHE_HIT_WEIGHT =
            row(
                    Setting.decimal(
                                    "host-cache-hit-weight",
                                    0.75,
                                    0,
                                    1,
                                    "What a block in a worker's host memory counts against one on"
                                            + " its device, where the prompt's blocks on the device"
                                            + " end. 0 = not at all: no event of that tier is"
                                            + " followed. Its index may take as much memory as the"
                                            + " device's, once a worker announces such blocks.")
                            .alias("router-host-cache-hit-weight")
                            .variable("DYN_ROUTER_HOST_CACHE_HIT_WEIGHT"));

    /** What a block on disk counts against one on the device. */
    public static final Setting<Double> DISK_CACHE_HIT_WEIGHT =
            row(
                    Setting.decimal(
                                    "disk-cache-hit-weight",
                                    0.25,
                                    0,
                                    1,
                                    "The same for a block on a worker's disk, where those on the"
                                            + " device and the host end.")
                            .alias("router-disk-cache-hit-weight")
                            .variable("DYN_ROUTER_DISK_CACHE_HIT_WEIGHT"));

    /** What a block in shared storage counts against one on the device. */
    public static final Setting<Double> SHARED_CACHE_MULTIPLIER =
            row(
                    Setting.decimal(
                                    "shared-cache-multiplier",
                                    0,
                                    0,
                                    1,
                                    "The same for a block in the storage that all workers of the"
                                            + " model load from, where a worker's own end; only for"
                                            + " workers that share one. 0.5 is usual where there is"
                                            + " such a storage.")
                            .variable("DYN_SHARED_CACHE_MULTIPLIER"));

    /** Whether an index is kept. */
    public static final Setting<IndexUse> PREFIX_INDEX =
            row(
                    Setting.choice(
                            "prefix-index",
                            IndexUse.AUTO,
                            "Whether what workers hold is followed or predicted: auto = unless"
                                + " overlap-weight is 0, so that nothing of it counts (with another"
                                + " selection-policy than linear it may); on = also then, for"
                                + " requests that override the weight; off = never. Without it no"
                                + " event is received, nothing is saved, and there is no memory or"
                                + " thread for it."));

    /** Sampling temperature. */
    public static final Setting<Double> TEMPERATURE =
            live(
                    Setting.decimal(
                                    "temperature",
                                    0,
                                    0,
                                    Double.POSITIVE_INFINITY,
                                    "0 takes the cheapest worker, above 0 samples by cost.")
                            .alias("router-temperature")
                            .variable("DYN_ROUTER_TEMPERATURE"));

    /** Credit of a worker whose events are known to be incomplete. */
    public static final Setting<Double> DEGRADED_CREDIT =
            live(
                    Setting.decimal(
                            "degraded-credit",
                            0.5,
                            0,
                            1,
                            "What a cached block counts on a worker whose events are known to be"
                                    + " incomplete."));

    /** What is concluded from cache hits that are not as predicted. */
    public static final Setting<PredictionCheck> PREDICTION_CHECK =
            live(
                    Setting.choice(
                            "prediction-check",
                            PredictionCheck.BOTH,
                            "Whether cached blocks of a worker count degraded-credit while its"
                                    + " engine's own cache hits are persistently other ones than"
                                    + " predicted: both = too high or too low, over = too high"
                                    + " alone, off = never."));

    /** How much less blocks count that most candidates hold. */
    public static final Setting<Double> HOT_PREFIX_DISCOUNT =
            live(
                    Setting.decimal(
                            "hot-prefix-discount",
                            0,
                            0,
                            Double.POSITIVE_INFINITY,
                            "With the linear cost, takes credit off cached blocks that most"
                                    + " candidates hold, so that a prompt that most hold does not"
                                    + " keep requests from the others. Of a block that a share h"
                                    + " of the candidates holds (1 = all), where h is above 0.5,"
                                    + " the part min(1, X × (2h − 1)) of its credit is taken off."
                                    + " 0 takes nothing off; with 1 a block counts nothing if all"
                                    + " hold it, with 5 if three in five do."));

    /** Seed of ties, sampling and random mode. */
    public static final Setting<Long> SEED =
            row(
                    Setting.number(
                            "seed",
                            null,
                            Long.MIN_VALUE,
                            Long.MAX_VALUE,
                            "Seed of ties and sampling; not set, it is random."));

    /** Seed of the hashes in the index. */
    public static final Setting<Long> HASH_SEED =
            row(
                    Setting.number(
                            "hash-seed",
                            null,
                            Long.MIN_VALUE,
                            Long.MAX_VALUE,
                            "Seed of the hashes in the index. Not set, it is random, so that"
                                    + " prompts with the same hashes cannot be made; 1337 is the"
                                    + " public one, for sources that bring hashes and no tokens."));

    /** Limit of registered (worker, dp rank) pairs. */
    public static final Setting<Integer> MAX_WORKERS =
            row(
                    Setting.integer(
                            "max-workers",
                            256,
                            1,
                            RadixTree.MAX_WORKER_SLOTS,
                            "(Worker, dp rank) pairs that can be registered at once."));

    /** What becomes of blocks that do not fit into the index. */
    public static final Setting<CapacityRule> INDEX_FULL =
            row(
                    Setting.choice(
                            "index-full",
                            CapacityRule.EVICT,
                            "What happens when blocks do not fit into the index: the worker that"
                                    + " has most in it gives up its oldest ones (evict), so that"
                                    + " each has its share; or they are refused (refuse)."));

    /** Part of the memory that the index may grow to where its size is not set. */
    public static final Setting<Double> INDEX_MEMORY_SHARE =
            row(
                    Setting.decimal(
                            "index-memory-share",
                            0.1,
                            0,
                            0.9,
                            "Part of the machine's or the container's memory that the index may"
                                    + " grow to, where no limit of it is set; 0 = the default"
                                    + " limits. Memory is taken as it is needed."));

    /** Distinct blocks in the index. */
    public static final Setting<Long> MAX_BLOCKS =
            row(
                    Setting.number(
                            "max-blocks",
                            1L << 20,
                            1,
                            MOST_BLOCKS,
                            "Distinct blocks in the index; sizes its memory. Where neither this nor"
                                    + " max-held-blocks nor index-bytes is set, the index may grow"
                                    + " to index-memory-share."));

    /** (Worker, block) pairs in the index; 0 takes twice {@link #MAX_BLOCKS}. */
    public static final Setting<Long> MAX_HELD_BLOCKS =
            row(
                    Setting.number(
                            "max-held-blocks",
                            0L,
                            0,
                            MOST_BLOCKS,
                            "(Worker, block) pairs in the index: the sum of the workers' cache"
                                + " sizes and a quarter; sizes its memory. 0 = twice max-blocks."));

    /** Off-heap bytes of the index. */
    public static final Setting<Long> INDEX_BYTES =
            row(
                    Setting.number(
                                    "index-bytes",
                                    BY_LIMITS,
                                    MIN_INDEX_BYTES,
                                    MAX_INDEX_BYTES,
                                    "Memory of the index; the limits of blocks hold beside it. 0 ="
                                        + " by these limits, which fits prompts of 8 blocks and"
                                        + " more: shorter ones that share nothing need 100 to 360"
                                        + " bytes a block.")
                            .or(BY_LIMITS));

    /** Bookings at once. */
    public static final Setting<Integer> MAX_ACTIVE_REQUESTS =
            row(
                    Setting.integer(
                            "max-active-requests",
                            8192,
                            1,
                            1 << 27,
                            "Requests booked at once; more are refused, by the gateway with a 429"
                                    + " and Retry-After. There they count until their client has"
                                    + " the answer."));

    /** Blocks of one prompt that are matched and tracked. */
    public static final Setting<Integer> MAX_BLOCKS_PER_REQUEST =
            row(
                    Setting.integer(
                            "max-blocks-per-request",
                            65_536,
                            1,
                            MAX,
                            "Blocks of one prompt that are matched and tracked; deeper ones count"
                                    + " as not cached."));

    /** Whether the blocks of running requests count as load. */
    public static final Setting<Boolean> TRACK_ACTIVE_BLOCKS =
            row(
                    Setting.bool(
                                    "track-active-blocks",
                                    true,
                                    "Count the blocks that running requests use as load; if not,"
                                            + " workers differ by what they have to prefill.")
                            .alias("router-track-active-blocks")
                            .variable("DYN_ROUTER_TRACK_ACTIVE_BLOCKS"));

    /** Whether running requests share the blocks of a common prefix. */
    public static final Setting<Boolean> ASSUME_KV_REUSE =
            live(
                    Setting.bool(
                                    "assume-kv-reuse",
                                    true,
                                    "Count a block that several requests of a worker use once; if"
                                            + " not, as for engines that do not share blocks, each"
                                            + " request's blocks are its own.")
                            .alias("router-assume-kv-reuse")
                            .variable("DYN_ROUTER_ASSUME_KV_REUSE"));

    /** Whether prompts count as work to prefill. */
    public static final Setting<Boolean> TRACK_PREFILL_TOKENS =
            live(
                    Setting.bool(
                                    "track-prefill-tokens",
                                    true,
                                    "Count prompts that are not computed yet as load, less what of"
                                            + " them is cached; if not, overlap-weight is 0 and"
                                            + " workers differ by their blocks in use alone.")
                            .alias("router-track-prefill-tokens")
                            .variable("DYN_ROUTER_TRACK_PREFILL_TOKENS"));

    /** Part of a worker's KV blocks in use from which it is busy. */
    public static final Setting<Double> BUSY_DECODE_BLOCKS =
            live(
                    Setting.decimal(
                                    "active-decode-blocks-threshold",
                                    0,
                                    0,
                                    1,
                                    "A worker is busy, and no candidate in any mode, while more"
                                            + " than this part of its KV blocks is in use by"
                                            + " requests booked there, where their number is known;"
                                            + " 0 = never.")
                            .alias("busy-threshold")
                            .variable("DYN_ACTIVE_DECODE_BLOCKS_THRESHOLD"));

    /** Tokens to prefill from which a worker is busy. */
    public static final Setting<Long> BUSY_PREFILL_TOKENS =
            live(
                    Setting.number(
                                    "active-prefill-tokens-threshold",
                                    0L,
                                    0,
                                    Long.MAX_VALUE,
                                    "A worker is busy while more tokens are booked there to be"
                                            + " prefilled; 0 = never.")
                            .variable("DYN_ACTIVE_PREFILL_TOKENS_THRESHOLD"));

    /** The same as a multiple of the tokens of one step. */
    public static final Setting<Double> BUSY_PREFILL_SHARE =
            live(
                    Setting.decimal(
                                    "active-prefill-tokens-threshold-frac",
                                    0,
                                    0,
                                    Double.POSITIVE_INFINITY,
                                    "The same as a multiple of the tokens of one step of the engine"
                                        + " (max_num_batched_tokens), where these are known; 0 ="
                                        + " never.")
                            .variable("DYN_ACTIVE_PREFILL_TOKENS_THRESHOLD_FRAC"));

    /** Expected time to the first token from which a worker is busy. */
    public static final Setting<Duration> BUSY_TTFT =
            live(
                    Setting.duration(
                            "busy-ttft-ms",
                            0,
                            0,
                            "A worker is busy for a request while its first token is expected there"
                                + " later than this, by the pace of prompts that is learned from"
                                + " first tokens, what is left to prefill and what of the prompt is"
                                + " not cached; not before a pace is known, nor while nothing is"
                                + " booked there to be prefilled. 0 = never."));

    /** Whether the load that engines report counts. */
    public static final Setting<Boolean> ENGINE_LOAD =
            row(
                    Setting.bool(
                            "engine-load",
                            false,
                            "Take what engines report of their load (page of metrics, SGLang's load"
                                    + " reports on the event socket, kv_metrics of an event plane):"
                                    + " requests, waiting prompts and blocks beyond those that are"
                                    + " booked here count as load of the worker, and selection"
                                    + " policies see the reports."));

    /** How long a report counts. */
    public static final Setting<Duration> ENGINE_LOAD_TTL =
            row(
                    Setting.duration(
                            "engine-load-ttl-ms",
                            5_000,
                            1,
                            "How long a report of an engine's load counts that no other one"
                                    + " follows."));

    /** How long a worker that is full is left out. */
    public static final Setting<Duration> BUSY_LEASE =
            row(
                    Setting.duration(
                            "busy-lease-ms",
                            0,
                            0,
                            "How long a worker gets no requests, in any mode, after it has refused"
                                    + " one for its load (429, 503, 529), or has reported that it"
                                    + " is full, or for as long as it asks (Retry-After) where that"
                                    + " is longer, a minute at most; then one request is tried"
                                    + " before it gets all again. 0 = it is not left out."));

    /** Waiting requests from which an engine is full. */
    public static final Setting<Long> ENGINE_WAITING_LIMIT =
            row(
                    Setting.number(
                            "engine-waiting-threshold",
                            0L,
                            0,
                            Long.MAX_VALUE,
                            "A worker is full, for busy-lease-ms, when its engine reports more"
                                    + " waiting requests; 0 = never. Needs engine-load."));

    /** Part of an engine's cache in use from which it is full. */
    public static final Setting<Double> ENGINE_USAGE_LIMIT =
            row(
                    Setting.decimal(
                            "engine-cache-usage-threshold",
                            0,
                            0,
                            1,
                            "A worker is full, for busy-lease-ms, when its engine reports that more"
                                    + " than this part of its KV blocks is in use; 0 = never. Needs"
                                    + " engine-load."));

    /** Load, as a multiple of the tokens of one step, from which a worker has no room. */
    public static final Setting<Double> QUEUE_THRESHOLD =
            live(
                    Setting.decimal(
                                    "queue-threshold",
                                    NO_QUEUE,
                                    0,
                                    Double.POSITIVE_INFINITY,
                                    "Let requests wait while every worker that they could use has"
                                            + " more tokens booked to be prefilled than this"
                                            + " multiple of the tokens of one step of its engine"
                                            + " (max_num_batched_tokens); a worker of which these"
                                            + " are not known has room. -1 = no such limit.")
                            .or(NO_QUEUE)
                            .alias("router-queue-threshold")
                            .variable("DYN_ROUTER_QUEUE_THRESHOLD"));

    /** The same in tokens. */
    public static final Setting<Long> QUEUE_PREFILL_TOKENS =
            live(
                    Setting.number(
                                    "queue-prefill-tokens",
                                    NO_QUEUE_TOKENS,
                                    0,
                                    Long.MAX_VALUE,
                                    "The same in tokens, for engines whose steps are not known;"
                                        + " with both a worker has room within both. -1 = no such"
                                        + " limit.")
                            .or(NO_QUEUE_TOKENS));

    /** Which of the requests that wait is next. */
    public static final Setting<QueuePolicy> QUEUE_POLICY =
            live(
                    Setting.choice(
                                    "queue-policy",
                                    QueuePolicy.FCFS,
                                    "Which request is next, of those with equal priority, deadline"
                                            + " and window of queue-aging-ms: fcfs = the first that"
                                            + " came; lcfs = the last; wspt = the one with the"
                                            + " fewest uncached tokens.")
                            .alias("router-queue-policy")
                            .variable("DYN_ROUTER_QUEUE_POLICY"));

    /** Requests that may wait. */
    public static final Setting<Integer> QUEUE_MAX_REQUESTS =
            live(
                    Setting.integer(
                            "queue-max-requests",
                            1024,
                            1,
                            1 << 24,
                            "Requests that may wait for a worker at once; beyond it one of lower"
                                    + " priority gives way, or the new one is refused."));

    /** Tokens of their prompts. */
    public static final Setting<Long> QUEUE_MAX_TOKENS =
            live(
                    Setting.number(
                            "queue-max-tokens",
                            16L << 20,
                            1,
                            Long.MAX_VALUE,
                            "Tokens of the prompts of these, likewise; 4 bytes of heap each."));

    /** How long a request may wait. */
    public static final Setting<Duration> QUEUE_MAX_WAIT =
            live(
                    Setting.duration(
                            "queue-max-wait-ms",
                            30_000,
                            1,
                            "How long a request may wait for a worker; then it is refused."));

    /** After which wait a request counts as one of the next higher priority. */
    public static final Setting<Duration> QUEUE_AGING =
            live(
                    Setting.duration(
                            "queue-aging-ms",
                            10_000,
                            0,
                            "Window of arrival: a request goes before those of its priority that"
                                    + " come in a later window, and before those of a priority"
                                    + " higher by n that come n windows later, so that none waits"
                                    + " for ever. 0 = never: priority and queue-policy alone."));

    /** What a request does whose uncached prefix another one is computing. */
    public static final Setting<SingleFlight> SINGLE_FLIGHT =
            live(
                    Setting.choice(
                            "single-flight",
                            SingleFlight.OFF,
                            "What requests do that begin with the same uncached blocks as one whose"
                                    + " prompt is being computed: off = nothing; draw = that worker"
                                    + " counts as one that holds these blocks; wait = they wait"
                                    + " until it does, within the limits of the queue."));

    /** Uncached tokens from which on a common prefix counts. */
    public static final Setting<Integer> SINGLE_FLIGHT_TOKENS =
            live(
                    Setting.integer(
                            "single-flight-tokens",
                            2_048,
                            1,
                            MAX,
                            "Uncached tokens in common from which on requests do so, in whole"
                                    + " blocks."));

    /** How long a request waits for another one's prefix. */
    public static final Setting<Duration> SINGLE_FLIGHT_WAIT =
            live(
                    Setting.duration(
                            "single-flight-wait-ms",
                            5_000,
                            1,
                            "How long a prompt that is being computed counts, and how long a"
                                    + " request waits for it; then the request is booked anyway."));

    /** Prompts that others can follow. */
    public static final Setting<Integer> SINGLE_FLIGHT_PROMPTS =
            live(
                    Setting.integer(
                            "single-flight-prompts",
                            1_024,
                            1,
                            1 << 20,
                            "Prompts being computed that others can follow; further ones are not"
                                    + " followed."));

    /** Whether generated blocks count as active blocks. */
    public static final Setting<Boolean> TRACK_OUTPUT_BLOCKS =
            live(
                    Setting.bool(
                                    "track-output-blocks",
                                    true,
                                    "Count generated blocks as load, too.")
                            .alias("router-track-output-blocks")
                            .variable("DYN_ROUTER_TRACK_OUTPUT_BLOCKS"));

    /** How the thread that applies bookings waits for them. */
    public static final Setting<WaitMode> BOOKING_WAIT =
            row(
                    Setting.choice(
                            "booking-wait",
                            WaitMode.SLEEPING,
                            "How the thread that applies bookings waits for them; with blocking, a"
                                    + " booking wakes it where it is parked: some microseconds."));

    /** How long a booking lasts at most; zero for as long as its lease is open. */
    public static final Setting<Duration> BOOKING_TIMEOUT =
            live(
                    Setting.duration(
                            "booking-timeout-ms",
                            3_600_000,
                            0,
                            "How long a request counts as load of its worker at most; its answer"
                                    + " continues. 0 = as long as it runs."));

    /** Whether workers without events are taken to hold what was routed to them. */
    public static final Setting<Boolean> APPROXIMATE =
            row(
                    Setting.bool(
                            "approximate",
                            false,
                            "Take workers without events to hold what was routed to them of"
                                    + " late."));

    /** How long a routed prompt counts as held by a worker without events. */
    public static final Setting<Duration> TTL =
            live(
                    Setting.duration(
                                    "ttl-secs",
                                    120,
                                    1,
                                    "Approximate: how long a routed prompt counts.")
                            .alias("router-ttl")
                            .alias("router-ttl-secs")
                            .variable("DYN_ROUTER_TTL_SECS"));

    /** Blocks that workers without events are taken to hold. */
    public static final Setting<Long> MAX_TREE_SIZE =
            live(
                    Setting.number(
                                    "max-tree-size",
                                    1L << 20,
                                    1,
                                    PredictedPrefixesConfig.MAX_BLOCKS,
                                    "Approximate: (worker, block) pairs above which the oldest"
                                            + " prompts are dropped; about 80 bytes each.")
                            .alias("router-max-tree-size"));

    /** How much is left of these blocks when there were too many. */
    public static final Setting<Double> PRUNE_TARGET_RATIO =
            live(
                    Setting.decimal(
                                    "prune-target-ratio",
                                    0.8,
                                    0,
                                    1,
                                    "Approximate: part of these that is left then.")
                            .where(ratio -> ratio > 0, "above 0")
                            .alias("router-prune-target-ratio"));

    /** Whether blocks may be hashed for EAGLE without a word of it. */
    public static final Setting<Boolean> EAGLE_BLOCKS =
            row(
                    Setting.bool(
                            "eagle-blocks",
                            false,
                            "Match prompts by the hashes of engines that draft with EAGLE, too,"
                                    + " from the start; else from the first event that shows them."
                                    + " For events by other publishers than Kvasir's, which do not"
                                    + " say it."));

    /** Event messages that may wait for the index writer. */
    public static final Setting<Integer> EVENT_RING_SIZE =
            row(
                    Setting.integer(
                                    "event-ring-size",
                                    16_384,
                                    2,
                                    1 << 24,
                                    "Event messages that may wait for the index; about 1 KiB each."
                                            + " What does not fit is asked for again.")
                            .where(n -> Integer.bitCount(n) == 1, "a power of two"));

    /** How the thread that applies events waits for them. */
    public static final Setting<WaitMode> EVENT_WAIT =
            row(
                    Setting.choice(
                            "event-wait",
                            WaitMode.BLOCKING,
                            "How the thread that applies events waits for them; blocking costs"
                                    + " nothing while there are none."));

    /** Threads that receive events; 0 takes the number from the processors. */
    public static final Setting<Integer> EVENT_POLLERS =
            row(
                    Setting.integer(
                            "event-pollers",
                            0,
                            0,
                            64,
                            "Threads that receive events. 0 = one, or two from 16 processors on."));

    /** Largest event message accepted, in bytes. */
    public static final Setting<Long> MAX_EVENT_BYTES =
            row(
                    Setting.number(
                            "max-event-bytes",
                            64L << 20,
                            1,
                            Integer.MAX_VALUE,
                            "Largest event message accepted."));

    /**
     * Bytes of incomplete and waiting event messages of all sources; 0 takes them from the heap.
     */
    public static final Setting<Long> EVENT_RECEIVE_BYTES =
            row(
                    Setting.number(
                            "event-receive-bytes",
                            0L,
                            0,
                            Long.MAX_VALUE,
                            "Bytes of incomplete and waiting event messages of all workers. 0 = an"
                                    + " eighth of the heap, at most 256 MiB."));

    /** Longest silence of a replay endpoint. */
    public static final Setting<Duration> REPLAY_TIMEOUT =
            row(
                    Setting.duration(
                            "replay-timeout-ms",
                            2_000,
                            1,
                            "Longest silence of an engine that was asked for missing events."));

    /** How often a replay is asked for before it is given up. */
    public static final Setting<Integer> REPLAY_ATTEMPTS =
            row(
                    Setting.integer(
                            "replay-attempts",
                            3,
                            1,
                            1000,
                            "How often missing events are asked for before they count as lost."));

    /** Longest time of opening an event connection. */
    public static final Setting<Duration> EVENT_CONNECT_TIMEOUT =
            row(
                    Setting.duration(
                            "event-connect-timeout-ms",
                            2_000,
                            1,
                            "Limit of opening a connection for events, handshake included."));

    /** Pause before the first further try to open an event connection. */
    public static final Setting<Duration> EVENT_RECONNECT =
            row(
                    Setting.duration(
                            "event-reconnect-ms",
                            100,
                            1,
                            "Pause before the first further try to open a connection for events;"
                                    + " it doubles with each."));

    /** Longest pause between tries to open an event connection. */
    public static final Setting<Duration> EVENT_RECONNECT_MAX =
            row(
                    Setting.duration(
                            "event-reconnect-max-ms",
                            5_000,
                            1,
                            "Longest pause between tries to open a connection for events; at least"
                                    + " event-reconnect-ms."));

    /** Live event messages of one worker that may wait while it is replayed. */
    public static final Setting<Integer> EVENT_WAITING_MESSAGES =
            row(
                    Setting.integer(
                            "event-waiting-messages",
                            65_536,
                            1,
                            MAX,
                            "Live event messages of one worker that may wait while missing ones are"
                                    + " replayed; further ones are asked for later."));

    /** Bytes of these messages. */
    public static final Setting<Long> EVENT_WAITING_BYTES =
            row(
                    Setting.number(
                            "event-waiting-bytes",
                            32L << 20,
                            1,
                            Long.MAX_VALUE,
                            "Bytes of live event messages of one worker that may wait then."));

    /** Replays under way at a time. */
    public static final Setting<Integer> CONCURRENT_REPLAYS =
            row(
                    Setting.integer(
                            "concurrent-replays",
                            16,
                            1,
                            MAX,
                            "Engines that are asked for missing events at the same time."));

    /** Time after a connect at which missed newest messages are asked for. */
    public static final Setting<Duration> REPLAY_TAIL_CHECK =
            row(
                    Setting.duration(
                            "replay-tail-check-ms",
                            1_000,
                            0,
                            "Time after a connect at which an engine is asked for newest events"
                                    + " that were missed. 0 = never."));

    /** Silence of an engine that serves, after which its view is stale. */
    public static final Setting<Duration> STALE_AFTER =
            row(
                    Setting.duration(
                            "stale-after-ms",
                            5_000,
                            1,
                            "Time without an event in which an engine has served prompts with new"
                                    + " blocks, and after which what it announced is stale."));

    /** Prompts with new blocks that an engine has served in this silence. */
    public static final Setting<Integer> STALE_AFTER_PROMPTS =
            row(
                    Setting.integer(
                            "stale-after-prompts",
                            3,
                            1,
                            MAX,
                            "Prompts with new blocks that it has served in this time."));

    /** Time in which the credit of a stale view falls to nothing. */
    public static final Setting<Duration> STALE_DECAY =
            row(
                    Setting.duration(
                            "stale-decay-ms",
                            2_000,
                            1,
                            "Time in which cached blocks of a stale worker come to count"
                                    + " nothing."));

    /** Identity of this router among its replicas. */
    public static final Setting<Long> ROUTER_ID =
            row(
                    Setting.number(
                            "router-id",
                            null,
                            1,
                            Long.MAX_VALUE,
                            "Number of this router among its replicas, each another one. Not set,"
                                    + " it is random; one that is kept lets the others see a"
                                    + " restart at once."));

    /** Time between digests of own bookings. */
    public static final Setting<Duration> REPLICA_DIGEST =
            row(
                    Setting.duration(
                            "replica-digest-ms",
                            1_000,
                            10,
                            "Time between digests of the own bookings, by which replicas find what"
                                    + " they have lost."));

    /** Silence after which a replica's bookings are dropped. */
    public static final Setting<Duration> REPLICA_LEASE =
            row(
                    Setting.duration(
                            "replica-lease-ms",
                            10_000,
                            100,
                            "Silence after which the bookings of a replica count no more; several"
                                    + " times replica-digest-ms."));

    /** Bookings of other routers. */
    public static final Setting<Integer> REPLICA_MAX_BOOKINGS =
            row(
                    Setting.integer(
                            "replica-max-bookings",
                            65_536,
                            1,
                            1 << 27,
                            "Bookings of all replicas together that are counted; further ones are"
                                    + " not seen."));

    /** Where counters and errors are kept. */
    public static final Setting<Path> COUNTERS_DIR =
            row(
                    Setting.text(
                            "counters-dir",
                            "DIR",
                            Path::of,
                            null,
                            "Folder in which counters and distinct errors are kept in a mapped"
                                    + " file, for kvasir stat; one router a folder, best on a file"
                                    + " system in memory. Not set, they are not kept."));

    /** Decisions that are kept. */
    public static final Setting<Integer> DECISION_JOURNAL =
            row(
                    Setting.integer(
                            "decision-journal",
                            1024,
                            0,
                            DecisionJournal.MAX_RECORDS,
                            "Decisions that each router keeps outside the heap, with what was known"
                                    + " of the chosen worker and of the cheapest others; 0 keeps"
                                    + " none. One takes 320 bytes and 128 per candidate."));

    /** Candidates that are kept of a decision. */
    public static final Setting<Integer> DECISION_JOURNAL_CANDIDATES =
            row(
                    Setting.integer(
                            "decision-journal-candidates",
                            8,
                            1,
                            JournalRecord.MAX_CANDIDATES,
                            "Candidates that are kept of a decision: the chosen one and the"
                                    + " cheapest others."));

    /** Where decisions are kept. */
    public static final Setting<Path> DECISION_JOURNAL_DIR =
            row(
                    Setting.text(
                            "decision-journal-dir",
                            "DIR",
                            Path::of,
                            null,
                            "Folder in which the decisions are kept in a mapped file, which stays"
                                    + " when the router ends or dies, for kvasir replay --journal;"
                                    + " one router a folder, best on a file system in memory. Not"
                                    + " set, they end with the process."));

    /** Where snapshots of the index are kept. */
    public static final Setting<Path> STATE_DIR =
            row(
                    Setting.text(
                            "state-dir",
                            "DIR",
                            Path::of,
                            null,
                            "Folder of snapshots of what workers hold, on a local disk, from which"
                                    + " a restarted router continues; one router a folder. Not set,"
                                    + " nothing is kept."));

    /** Folder of the mapped file that has the index; {@code null} keeps it in memory. */
    public static final Setting<Path> STATE_MAPPED_DIR =
            row(
                    Setting.text(
                            "state-mapped-dir",
                            "DIR",
                            Path::of,
                            null,
                            "Folder of a mapped file that has the index itself, as large as it may"
                                + " grow, from which a router continues at once whose process was"
                                + " killed; on a local disk or in memory, one router a folder. Not"
                                + " set, the index ends with the process."));

    /** Folders of which each router needs its own. */
    public static final List<Setting<Path>> FOLDERS =
            List.of(COUNTERS_DIR, DECISION_JOURNAL_DIR, STATE_DIR, STATE_MAPPED_DIR);

    /** Time between two snapshots; zero for one at the close alone. */
    public static final Setting<Duration> SNAPSHOT_INTERVAL =
            row(
                    Setting.duration(
                            "snapshot-interval-ms",
                            60_000,
                            0,
                            "Time between two snapshots; there is one more at the close. 0 = that"
                                    + " one alone."));

    /** Event messages of one worker that may wait while its snapshot is made. */
    public static final Setting<Integer> SNAPSHOT_WAITING_MESSAGES =
            row(
                    Setting.integer(
                            "snapshot-waiting-messages",
                            4_096,
                            0,
                            MAX,
                            "Event messages of a worker that may wait while its snapshot is made;"
                                    + " if more come, this snapshot of it is given up."));

    /** How long a close waits for the last snapshot. */
    public static final Setting<Duration> SNAPSHOT_CLOSE_TIMEOUT =
            row(
                    Setting.duration(
                            "snapshot-close-timeout-ms",
                            10_000,
                            0,
                            "How long a close waits for the last snapshot."));

    /** All of them. */
    public static final SettingTable TABLE = new SettingTable(ROWS);

    private RouterSettings() {}

    /** A row of which a running router takes a change: {@code KvRouter.change}. */
    private static <T> Setting<T> live(Setting<T> setting) {
        return row(setting.live());
    }

    private static <T> Setting<T> row(Setting<T> setting) {
        ROWS.add(setting);
        return setting;
    }
}
