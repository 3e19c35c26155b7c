package io.kvasir.router;

import io.kvasir.core.hash.BlockHasher;
import io.kvasir.core.hash.MultimodalHasher;
import io.kvasir.core.hash.TokenHasher;
import io.kvasir.core.load.ActiveRequests;
import io.kvasir.core.radix.OverlapScores;
import io.kvasir.router.policy.RoutingMode;
import io.kvasir.router.policy.WorkerCost;
import io.kvasir.router.settings.RouterSettings;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Objects;
import java.util.Set;

/**
 * One prompt to be routed, with its overrides. Made by {@link KvRouter#newRequest}, owned by one
 * thread at a time, reusable: {@link #reset} and fill again. It also owns the scratch memory of the
 * decision, so that routing allocates nothing once its arrays have grown to the longest prompt.
 */
public final class RouteRequest {
    private static final int[] NO_TOKENS = {};
    private static final long[] NO_HASHES = {};
    private static final long NO_SESSION = 0;

    /** What a request says of a switch of the router. */
    private enum Switch {
        NONE,
        ON,
        OFF;

        static Switch of(boolean on) {
            return on ? ON : OFF;
        }

        boolean or(boolean usual) {
            return this == NONE ? usual : this == ON;
        }
    }

    private final KvRouter maker;
    private final int blockSize;
    private final long hashSeed;
    private final int maxBlocks;
    private final TokenHasher hasher = new TokenHasher();
    private final long[] firstBlock = new long[1];
    private final PromptObjects objects = new PromptObjects();
    private final List<Worker> excluded = new ArrayList<>(4);
    private final Constraints constraints = new Constraints();
    private int[] tokens = NO_TOKENS;
    private int tokenCount;
    private String id; // null for none
    private String lora;
    private String salt;
    private RoutingMode mode;
    private double overlapWeight = Double.NaN;
    private double overlapCredit = Double.NaN;
    private double sharedMultiplier = Double.NaN;
    private double temperature = Double.NaN;
    private Worker pinned;
    private boolean anyRank; // of its server
    private long session = NO_SESSION;
    private long excludedTaints;
    private Switch prefillTracking = Switch.NONE;
    private Switch reuse = Switch.NONE;
    private Switch outputTracking = Switch.NONE;
    private boolean tracksPrefill;
    private boolean reuses;
    private boolean tracksOutput;
    private boolean watched;
    private boolean severalPrompts;
    private boolean readsNoCache;
    private boolean onlyWithRoom;
    private Worker assumedOn; // null where nothing is assumed
    private int assumedBlocks;
    private boolean assumedInUse;
    private boolean assumedComputing;
    private WorkerCost cost; // null for none
    private long deadlineNs = ActiveRequests.NO_DEADLINE;
    private boolean usualDeadline = true;

    OverlapScores cached;
    final OverlapScores active;
    final OverlapScores predicted; // null where nothing is predicted
    final TierScores tiers; // null where no tier below the device is followed
    long[] localHashes = new long[64];
    int blockCount;

    /** The same prompt as engines that draft with EAGLE announce it; see {@link #hashEagle}. */
    OverlapScores eagle;

    long[] eagleHashes = NO_HASHES;
    int eagleBlockCount;
    private boolean hashed;
    private boolean eagleHashed;
    private boolean seeded;
    private long seed;
    private String seededLora; // whose seed it is
    private String seededSalt;

    RouteRequest(
            KvRouter maker,
            int blockSize,
            long hashSeed,
            int maxBlocks,
            int maxSlots,
            boolean predicts,
            TierScores tiersOrNull) {
        this.maker = maker;
        this.blockSize = blockSize;
        this.hashSeed = hashSeed;
        this.maxBlocks = maxBlocks;
        this.cached = new OverlapScores(maxSlots);
        this.active = new OverlapScores(maxSlots);
        this.predicted = predicts ? new OverlapScores(maxSlots) : null;
        this.tiers = tiersOrNull;
    }

    /** Refuses to be routed by another router, whose blocks or hashes are others. */
    void checkMadeFor(KvRouter router) {
        if (maker != router) {
            throw new IllegalArgumentException(
                    "the request was made by another router: its block size="
                            + blockSize
                            + ", this router's="
                            + router.blockSize()
                            + "; make requests with newRequest() of the router that routes them");
        }
    }

    /**
     * Forgets everything but the grown arrays.
     *
     * @return this
     */
    public RouteRequest reset() {
        tokens = NO_TOKENS;
        tokenCount = 0;
        id = null;
        lora = null;
        salt = null;
        mode = null;
        overlapWeight = Double.NaN;
        overlapCredit = Double.NaN;
        sharedMultiplier = Double.NaN;
        temperature = Double.NaN;
        pinned = null;
        anyRank = false;
        session = NO_SESSION;
        excluded.clear();
        excludedTaints = 0;
        constraints.clear();
        prefillTracking = Switch.NONE;
        reuse = Switch.NONE;
        outputTracking = Switch.NONE;
        watched = false;
        severalPrompts = false;
        readsNoCache = false;
        onlyWithRoom = false;
        assumedOn = null;
        assumedInUse = false;
        assumedComputing = false;
        cost = null;
        objects.clear();
        usualDeadline = true;
        changed();
        return this;
    }

    /**
     * Sets the prompt.
     *
     * @param ids token ids as the engine computes them; not copied, must not change until the
     *     decision
     * @param count tokens used, 0..{@code ids.length}
     * @return this
     * @throws IndexOutOfBoundsException if {@code count} is negative or beyond the array
     */
    public RouteRequest tokens(int[] ids, int count) {
        Objects.requireNonNull(ids, "ids");
        Objects.checkFromIndexSize(0, count, ids.length);
        tokens = ids;
        tokenCount = count;
        changed();
        return this;
    }

    /**
     * Sets the caller's id of the request, by which the decision is found in the router's journal:
     * {@link KvRouter#journal}.
     *
     * @param requestId null for none; of a long one the beginning is kept
     * @return this
     */
    public RouteRequest id(String requestId) {
        id = requestId;
        return this;
    }

    /**
     * Sets the LoRA adapter, which is part of a block's identity.
     *
     * @param adapter its name; null or empty for the base model
     * @return this
     */
    public RouteRequest lora(String adapter) {
        lora = adapter;
        changed();
        return this;
    }

    /**
     * Sets the cache salt (cache namespace), which is part of a block's identity.
     *
     * @param cacheSalt the salt; null or empty for none
     * @return this
     */
    public RouteRequest salt(String cacheSalt) {
        salt = cacheSalt;
        changed();
        return this;
    }

    /**
     * Adds a multimodal object (an image, audio), which is part of the identity of every block that
     * it reaches into. Without it the blocks of a prompt with an image match nothing.
     *
     * @param id the engine's identifier of the object: the digest of its content, or the client's
     *     own where it sent one
     * @param offset first of the prompt's tokens that stand for the object
     * @param length how many tokens stand for it, as the engine has expanded them
     * @return this
     * @throws IllegalArgumentException if the tokens are none
     */
    public RouteRequest multimodal(String id, int offset, int length) {
        Objects.requireNonNull(id, "id");
        return multimodal(MultimodalHasher.objectHash(id), offset, length);
    }

    /**
     * Adds a multimodal object by the hash that its identifier has.
     *
     * @param hash as of {@link MultimodalHasher#objectHash}
     * @param offset first of the prompt's tokens that stand for the object
     * @param length how many tokens stand for it
     * @return this
     * @throws IllegalArgumentException if the tokens are none
     */
    public RouteRequest multimodal(long hash, int offset, int length) {
        objects.add(hash, offset, length);
        changed();
        return this;
    }

    private void changed() {
        hashed = false;
        eagleHashed = false;
    }

    /**
     * Overrides the router's mode for this request.
     *
     * @param override the mode; null for the router's own
     * @return this
     */
    public RouteRequest mode(RoutingMode override) {
        mode = override;
        return this;
    }

    /**
     * Overrides the weight of a block to prefill.
     *
     * @param weight finite, &ge; 0
     * @return this
     * @throws IllegalArgumentException if it is not
     */
    public RouteRequest overlapWeight(double weight) {
        overlapWeight = checkNotNegative("overlapWeight", weight);
        return this;
    }

    /**
     * Overrides what a block that a worker holds on its device counts in the cost: that many blocks
     * less to prefill. 1 is the router's own; 0 has the device's cache count nothing, and above 1
     * reuse counts more than it spares, down to no block to prefill at all. What lies in lower
     * tiers counts as before.
     *
     * <p>Counts with the linear cost alone, and in the choice alone: what is booked and predicted
     * is what the router takes to be cached. Has the cost of every candidate computed: about as
     * much as a temperature.
     *
     * @param credit finite, &ge; 0
     * @return this
     * @throws IllegalArgumentException if it is not
     * @see <a href="https://docs.nvidia.com/dynamo/">Dynamo's {@code overlap_score_credit}</a>
     */
    public RouteRequest overlapCredit(double credit) {
        overlapCredit = checkNotNegative("overlapCredit", credit);
        return this;
    }

    /**
     * Overrides what a block of shared storage counts against one on a device, where the worker's
     * own tiers end: {@link RouterSettings#SHARED_CACHE_MULTIPLIER}. Counts nothing where that is
     * 0, as the storage is not followed then; else as {@link #overlapCredit} does.
     *
     * @param multiplier 0 to 1
     * @return this
     * @throws IllegalArgumentException if it is not
     */
    public RouteRequest sharedCacheMultiplier(double multiplier) {
        if (!(multiplier >= 0 && multiplier <= 1)) {
            throw new IllegalArgumentException(
                    "sharedCacheMultiplier="
                            + multiplier
                            + " must be 0 to 1, as "
                            + RouterSettings.SHARED_CACHE_MULTIPLIER);
        }
        sharedMultiplier = multiplier;
        return this;
    }

    /**
     * Overrides the sampling temperature.
     *
     * @param override finite, &ge; 0; 0 takes the minimum
     * @return this
     * @throws IllegalArgumentException if it is not
     */
    public RouteRequest temperature(double override) {
        temperature = checkNotNegative("temperature", override);
        return this;
    }

    private static double checkNotNegative(String name, double value) {
        if (!(value >= 0 && value < Double.POSITIVE_INFINITY)) {
            throw new IllegalArgumentException(
                    name + "=" + value + " must be finite and not negative");
        }
        return value;
    }

    /**
     * Allows one worker only.
     *
     * @param worker the worker; null for any
     * @return this
     */
    public RouteRequest pin(Worker worker) {
        pinned = worker;
        anyRank = false;
        return this;
    }

    /**
     * Allows the data-parallel ranks of one server only, those that have its name; which of them is
     * decided as among all workers, in mode {@link RoutingMode#DIRECT} as in {@link
     * RoutingMode#KV}.
     *
     * @param rank any of them
     * @return this
     */
    public RouteRequest pinAnyRank(Worker rank) {
        pinned = Objects.requireNonNull(rank, "rank");
        anyRank = true;
        return this;
    }

    /**
     * Says which session the request belongs to: of one conversation, say. Its requests stay with
     * one worker where the router follows sessions ({@link RouterSettings#SESSION_TTL}). In mode
     * {@link RoutingMode#CONSISTENT_HASH} it is what is hashed, and nothing is remembered.
     *
     * @param id of any length; null or empty for none
     * @return this
     */
    public RouteRequest session(String id) {
        session = id == null || id.isEmpty() ? NO_SESSION : notNone(BlockHasher.seed(0, id, null));
        return this;
    }

    private static long notNone(long hash) {
        return hash == NO_SESSION ? 1 : hash;
    }

    /**
     * Takes a worker out of the candidates, for a retry elsewhere.
     *
     * @param worker the worker that failed
     * @return this
     */
    public RouteRequest exclude(Worker worker) {
        excluded.add(Objects.requireNonNull(worker, "worker"));
        return this;
    }

    /**
     * Takes all workers with a taint out of the candidates: those registered now and later. Costs
     * one operation per 64 workers and taint.
     *
     * @param taints one bit a taint, as in {@link WorkerSpec#taints}; 0 = none
     * @return this
     */
    public RouteRequest excludeTainted(long taints) {
        excludedTaints = taints;
        return this;
    }

    /**
     * Allows only workers with a label, or with a named taint, in every mode; with several calls
     * those that have all of them. Costs one operation per 64 workers and label.
     *
     * @param label {@code key=value} of {@link WorkerSpec#labels}, or the key alone of one without
     *     a value, or one of {@link WorkerSpec#namedTaints}, which is tolerated then
     * @return this
     * @throws IllegalArgumentException if it is empty, or more than 64 are required
     */
    public RouteRequest require(String label) {
        constraints.require(label);
        return this;
    }

    /**
     * Prefers workers with a label, or with a named taint: the cost of a worker is multiplied by
     * exp(−tanh(sum of the weights of what it has)). Counts where the cost decides, in mode {@link
     * RoutingMode#KV}, and has the cost of every candidate computed.
     *
     * @param label as for {@link #require}
     * @param weight finite; below 0 such workers are avoided
     * @return this
     * @throws IllegalArgumentException if the label is empty, the weight not finite, or more than
     *     64 are preferred
     */
    public RouteRequest prefer(String label, double weight) {
        constraints.prefer(label, weight);
        return this;
    }

    /**
     * Allows workers with a named taint: a worker is a candidate if the request tolerates all that
     * it has.
     *
     * @param taint one of {@link WorkerSpec#namedTaints}
     * @return this
     * @throws IllegalArgumentException if it is empty, or more than 64 are tolerated
     */
    public RouteRequest tolerate(String taint) {
        constraints.tolerate(taint);
        return this;
    }

    /**
     * Says whether the chosen worker computes the prompt. If not, because it fetches the blocks of
     * a prompt that another worker has computed, the prompt adds blocks in use and no work to
     * prefill: neither to the cost, where cached blocks then count nothing, nor to the load. If it
     * does, the prompt is work to prefill, and work to prefill has its weight in the choice, also
     * where the router counts none: {@link RouterSettings#TRACK_PREFILL_TOKENS}.
     *
     * @param track false if the prompt is computed elsewhere; unless it is set, the worker computes
     *     it, and it counts as the router's own setting says
     * @return this
     */
    public RouteRequest trackPrefillTokens(boolean track) {
        prefillTracking = Switch.of(track);
        return this;
    }

    /**
     * Overrides whether this request shares the blocks of a prefix that others of its worker use:
     * {@link RouterSettings#ASSUME_KV_REUSE}. If not, all of its blocks count as its own, for the
     * choice and while it runs.
     *
     * @param shares false if the engine does not share them
     * @return this
     */
    public RouteRequest assumeKvReuse(boolean shares) {
        reuse = Switch.of(shares);
        return this;
    }

    /**
     * Overrides whether blocks that this request generates count as load: {@link
     * RouterSettings#TRACK_OUTPUT_BLOCKS}.
     *
     * @param track false if they do not
     * @return this
     */
    public RouteRequest trackOutputBlocks(boolean track) {
        outputTracking = Switch.of(track);
        return this;
    }

    /** Takes what holds where the request says nothing. */
    void usual(RouterRules rules) {
        tracksPrefill = prefillTracking == Switch.ON || rules.tracksPrefill();
        reuses = !readsNoCache && reuse.or(rules.assumesReuse());
        tracksOutput = outputTracking.or(rules.tracksOutput());
    }

    /**
     * Says that the caller will not see the first output token, because the answer is not streamed:
     * the router finds out by itself when the prompt is computed, and is no work to prefill any
     * more. Where the worker's events are followed, that is when the prompt's last full block is
     * announced; elsewhere, and where the worker held all blocks, after the time that prompts took
     * whose first token was seen ({@link Lease#prefillComplete}), once some were. Before that it is
     * when the caller says so, or releases the booking.
     *
     * <p>A booking of such a request allocates, and copies the hashes of the prompt.
     *
     * @param unseen true if the first token is not seen; false unless it is set
     * @return this
     */
    public RouteRequest firstTokenUnseen(boolean unseen) {
        watched = unseen;
        return this;
    }

    /**
     * Says that the tokens are those of several prompts, one after the other, of a batch, or those
     * that a prompt begins with whose others are not known. No worker ever announces all of their
     * blocks: with {@link #firstTokenUnseen} they are computed after the time that prompts took
     * whose first token was seen, also where events are followed. A worker that announces nothing
     * meanwhile is not silent: all but the first may be cached.
     *
     * @param several true for a batch or a beginning; false unless it is set
     * @return this
     */
    public RouteRequest severalPrompts(boolean several) {
        severalPrompts = several;
        return this;
    }

    /**
     * Says that the engine computes all of the prompt, whatever it holds of it, as vLLM does for
     * {@code prompt_logprobs}. No block counts as cached or shared, for the choice and while it
     * runs, and a worker that announces nothing meanwhile is not silent.
     *
     * @param anew true if it does; false unless it is set
     * @return this
     */
    public RouteRequest readsNoCache(boolean anew) {
        readsNoCache = anew;
        return this;
    }

    /**
     * Has the request be refused with {@link RouteException.Kind#NO_ROOM} while every worker that
     * it could use has more to prefill than {@link RouterSettings#QUEUE_THRESHOLD} or {@link
     * RouterSettings#QUEUE_PREFILL_TOKENS} allow. Where one has not, all may be chosen.
     *
     * @param only true to be refused then; false unless it is set
     * @return this
     */
    public RouteRequest onlyWithRoom(boolean only) {
        onlyWithRoom = only;
        return this;
    }

    /**
     * Has a worker count as one that holds leading blocks of the prompt, because it is computing
     * them for another request or has just done so, and its events do not say so yet.
     *
     * @param worker the worker
     * @param blocks leading blocks; where it is found to hold more, that counts
     * @return this
     * @throws IllegalArgumentException if {@code blocks} is not positive
     */
    public RouteRequest assumeHeld(Worker worker, int blocks) {
        if (blocks < 1) {
            throw new IllegalArgumentException("assumed blocks=" + blocks + " must be positive");
        }
        assumedOn = Objects.requireNonNull(worker, "worker");
        assumedBlocks = blocks;
        assumedInUse = false;
        assumedComputing = false;
        return this;
    }

    /**
     * The same where a running request uses them there, which the booking writer may not have
     * counted yet.
     *
     * @param worker the worker
     * @param blocks leading blocks
     * @return this
     * @throws IllegalArgumentException if {@code blocks} is not positive
     */
    public RouteRequest assumeInUse(Worker worker, int blocks) {
        assumeHeld(worker, blocks);
        assumedInUse = true;
        return this;
    }

    /**
     * The same where the worker is still computing them: they are in use there, and they are a part
     * of what it has to prefill before, which the request would have to wait for elsewhere, too.
     *
     * @param worker the worker
     * @param blocks leading blocks
     * @return this
     * @throws IllegalArgumentException if {@code blocks} is not positive
     */
    public RouteRequest assumeComputing(Worker worker, int blocks) {
        assumeInUse(worker, blocks);
        assumedComputing = true;
        return this;
    }

    /**
     * Adds a cost that depends on the worker and on this request, such as that of fetching blocks
     * from where they are. Has the cost of every candidate computed: about as much as a
     * temperature.
     *
     * @param own asked once per candidate on the thread that routes; null for none
     * @return this
     */
    public RouteRequest addCost(WorkerCost own) {
        cost = own;
        return this;
    }

    /**
     * Says when the booking ends if it is not released before, instead of {@link
     * RouterSettings#BOOKING_TIMEOUT} after it is made.
     *
     * @param timeNs a time by the clock of {@link KvRouter#tick}; one in the past ends the booking
     *     at the next tick
     * @return this
     */
    public RouteRequest deadline(long timeNs) {
        deadlineNs = Bookings.deadline(timeNs);
        usualDeadline = false;
        return this;
    }

    /**
     * Has the booking last until it is released or its worker is removed, whatever {@link
     * RouterSettings#BOOKING_TIMEOUT} is.
     *
     * @return this
     */
    public RouteRequest noDeadline() {
        deadlineNs = ActiveRequests.NO_DEADLINE;
        usualDeadline = false;
        return this;
    }

    /**
     * The prompt's length.
     *
     * @return tokens
     */
    public int tokenCount() {
        return tokenCount;
    }

    /**
     * Which workers the request may go to, as far as it says so itself.
     *
     * @return equal for requests that may go to the same ones
     */
    public Reach reach() {
        return new Reach(
                pinned,
                anyRank,
                excludedTaints,
                excluded.isEmpty() ? Set.of() : Set.copyOf(excluded),
                constraints.requiredSet(),
                constraints.toleratedSet(),
                adapter());
    }

    /**
     * The most leading blocks that any worker was found or assumed to hold when the request was
     * routed last.
     *
     * @return blocks; 0 where none holds the first one
     */
    public int deepestOverlap() {
        return cached.deepest();
    }

    /**
     * Leading blocks that one worker was found or assumed to hold when the request was routed last.
     *
     * @param worker of the router that the request is made for
     * @return blocks; 0 where it does not hold the first one
     */
    public int overlap(Worker worker) {
        Objects.requireNonNull(worker, "worker");
        return cached.depth(worker.slot());
    }

    /**
     * The deepest {@link #overlap} of all workers but one.
     *
     * @param worker of the router that the request is made for
     * @return blocks; 0 where no other one holds the first one
     */
    public int deepestOverlapBeside(Worker worker) {
        Objects.requireNonNull(worker, "worker");
        int deepest = 0;
        for (int i = 0; i < cached.matchedSlots(); i++) {
            final int slot = cached.slotAt(i);
            deepest = Math.max(deepest, slot == worker.slot() ? 0 : cached.depth(slot));
        }
        return deepest;
    }

    /**
     * Hashes of the prompt's beginnings: equal where two prompts of one router begin with the same
     * blocks, adapter and salt. Allocates nothing.
     *
     * @param stride blocks by which a beginning is longer than the one before; 1 or more
     * @param out the hash of the first {@code (i + 1) · stride} blocks at index {@code i}
     * @return how many there are: as many as the prompt has, and {@code out} has room for
     * @throws IllegalArgumentException if the stride is less than 1
     */
    public int prefixKeys(int stride, long[] out) {
        Objects.requireNonNull(out, "out");
        if (stride < 1) {
            throw new IllegalArgumentException("stride=" + stride + " must be 1 or more");
        }
        hash();
        final int count = Math.min(out.length, blockCount / stride);
        long key = 0;
        for (int i = 0; i < count * stride; i++) {
            key = i == 0 ? localHashes[0] : BlockHasher.nextSequenceHash(key, localHashes[i]);
            if ((i + 1) % stride == 0) {
                out[i / stride] = key;
            }
        }
        return count;
    }

    /** Null for none. */
    String id() {
        return id;
    }

    RoutingMode mode() {
        return mode;
    }

    double overlapWeightOr(double usual) {
        return Double.isNaN(overlapWeight) ? usual : overlapWeight;
    }

    double overlapCreditOr(double usual) {
        return Double.isNaN(overlapCredit) ? usual : overlapCredit;
    }

    double sharedMultiplierOr(double usual) {
        return Double.isNaN(sharedMultiplier) ? usual : sharedMultiplier;
    }

    double temperatureOr(double usual) {
        return Double.isNaN(temperature) ? usual : temperature;
    }

    Worker pinned() {
        return pinned;
    }

    /** Whether the other ranks of the pinned worker's server will do as well. */
    boolean isAnyRank() {
        return anyRank;
    }

    /** Whether the request belongs to a session. */
    boolean hasSession() {
        return session != NO_SESSION;
    }

    /** Hash of the session's id, the same in every router. */
    long session() {
        return session;
    }

    /**
     * Hash of the session, or where there is none of the prompt's first block, or of all of a
     * shorter one; the same in every router.
     */
    long affinityKey() {
        if (hasSession() || tokenCount == 0) {
            return session;
        }
        final int length = Math.min(tokenCount, blockSize);
        hasher.localHashes(tokens, 0, length, length, BlockHasher.seed(lora, salt), firstBlock);
        return firstBlock[0];
    }

    int excludedCount() {
        return excluded.size();
    }

    Worker excluded(int i) {
        return excluded.get(i);
    }

    long excludedTaints() {
        return excludedTaints;
    }

    Constraints constraints() {
        return constraints;
    }

    /** The LoRA adapter; null for the base model. */
    String adapter() {
        return lora == null || lora.isEmpty() ? null : lora;
    }

    /** Null for none. */
    WorkerCost cost() {
        return cost;
    }

    /** Whether it is refused while no worker has room. */
    boolean isOnlyWithRoom() {
        return onlyWithRoom;
    }

    /** Adds what is assumed to what was found. */
    void assume(WorkerSet workers) {
        final int blocks = assumedBlocks();
        if (assumedOn != null && blocks > 0 && workers.at(assumedOn.slot()) == assumedOn) {
            cached.raise(assumedOn.slot(), blocks);
            if (assumedInUse && reuses) {
                active.raise(assumedOn.slot(), blocks);
            }
        }
    }

    /** Worker that is assumed to be computing blocks of the prompt; null for none. */
    Worker computingOrNull() {
        return assumedComputing ? assumedOn : null;
    }

    /** How many, as far as the prompt has them. */
    int assumedBlocks() {
        return Math.min(assumedBlocks, blockCount);
    }

    /** Whether the request shares blocks that others use. */
    boolean reuses() {
        return reuses;
    }

    /** Whether blocks that it generates count. */
    boolean tracksOutput() {
        return tracksOutput;
    }

    /** Whether the worker computes the prompt. */
    boolean prefills() {
        return prefillTracking.or(true);
    }

    /** Whether work to prefill counts: its own, and in the choice that of others. */
    boolean tracksPrefill() {
        return tracksPrefill;
    }

    /** Whether the router has to find out when the prompt is computed. */
    boolean isWatched() {
        return watched && prefills();
    }

    /** Whether the router's own rule says when the booking ends. */
    boolean hasUsualDeadline() {
        return usualDeadline;
    }

    /** The request's own; {@link ActiveRequests#NO_DEADLINE} when there is none. */
    long deadlineNs() {
        return deadlineNs;
    }

    /**
     * Hashes the prompt's full blocks once; blocks beyond the router's limit are counted, not
     * indexed.
     */
    void hash() {
        if (hashed) {
            return;
        }
        blockCount = Math.min(BlockHasher.blockCount(tokenCount, blockSize), maxBlocks);
        localHashes = grown(localHashes, blockCount);
        final long seed = seed();
        hasher.localHashes(tokens, 0, blockCount * blockSize, blockSize, seed, localHashes);
        objects.mixInto(localHashes, blockCount, tokens, blockSize, blockSize, seed);
        hashed = true;
    }

    /**
     * Hashes the prompt's full blocks as engines that draft with EAGLE do: each with the token
     * after it, so that the last one counts only if there is such a token. Once.
     */
    void hashEagle() {
        if (eagleHashed) {
            return;
        }
        if (eagle == null) {
            eagle = new OverlapScores(cached.maxSlots());
        }
        final int complete = BlockHasher.blockCount(Math.max(0, tokenCount - 1), blockSize);
        eagleBlockCount = Math.min(complete, maxBlocks);
        eagleHashes = grown(eagleHashes, eagleBlockCount);
        final long seed = seed();
        if (eagleBlockCount > 0) {
            BlockHasher.eagleLocalHashes(
                    tokens, 0, eagleBlockCount * blockSize + 1, blockSize, seed, eagleHashes);
        }
        objects.mixInto(eagleHashes, eagleBlockCount, tokens, blockSize, blockSize + 1, seed);
        eagleHashed = true;
    }

    /** Of the prompt's hashes; that of the last adapter and salt is remembered, also by a reset. */
    private long seed() {
        if (!Objects.equals(lora, seededLora) || !Objects.equals(salt, seededSalt) || !seeded) {
            seed = BlockHasher.seed(hashSeed, lora, salt);
            seededLora = lora;
            seededSalt = salt;
            seeded = true;
        }
        return seed;
    }

    /** Whether the engine announces those of the prompt's blocks that it has not held before. */
    boolean announcesNewBlocks() {
        return !severalPrompts && !readsNoCache;
    }

    /** Most blocks that an engine reuses of the prompt. */
    int reusableBlocks() {
        return Selection.reusableBlocks(tokenCount, blockSize);
    }

    boolean readsNoCache() {
        return readsNoCache;
    }

    /** The full blocks to watch for, a copy; none where no event tells of them. */
    long[] hashesOf(int newBlocks) {
        return newBlocks > 0 && !severalPrompts
                ? Arrays.copyOf(localHashes, blockCount)
                : NO_HASHES;
    }

    /** The same as engines announce it that draft with EAGLE, if there are such. */
    long[] eagleHashesOf(int newBlocks) {
        return newBlocks > 0 && eagleHashed && !severalPrompts
                ? Arrays.copyOf(eagleHashes, eagleBlockCount)
                : NO_HASHES;
    }

    /** Has what was found for EAGLE be all that was found. */
    void takeEagle() {
        final OverlapScores empty = cached;
        cached = eagle;
        eagle = empty;
    }

    private long[] grown(long[] hashes, int count) {
        return hashes.length >= count
                ? hashes
                : new long[Math.max(count, Math.min(maxBlocks, 2 * hashes.length))];
    }
}
