package io.kvasir.router;

import io.kvasir.core.index.StorageTier;
import io.kvasir.pipeline.source.IndexState;
import io.kvasir.router.policy.Eligibility;
import io.kvasir.router.policy.RoutingMode;
import io.kvasir.router.policy.SelectionPolicy;
import io.kvasir.router.policy.WorkerCost;
import io.kvasir.router.settings.RouterSettings;

import java.util.Locale;

/**
 * The outcome of one selection and the reason for it: every worker that was considered, what it
 * holds, what it has to do and what it would have cost. Caller-owned and reusable; filled by {@link
 * KvRouter#select}, belongs to one thread at a time.
 *
 * <p>It keeps a copy of all workers' loads, which a selection brings up to date and chooses by, and
 * what was matched. Costs and the like are computed from these when they are asked for. So reuse
 * one: a new decision copies all loads, a reused one what has changed.
 *
 * <p>Methods with an index are about one of the workers that were considered: {@code i} is
 * 0..{@link #candidateCount()} - 1, in order of registration.
 */
public final class Decision {
    /** Why a worker was not a candidate. */
    public enum Exclusion {
        /** It was a candidate. */
        NONE,
        /** Marked unavailable, as its health checks do. */
        UNAVAILABLE,
        /** Its cost is infinite for the request: {@link WorkerCost}. */
        OUT_OF_REACH,
        /** Excluded by the request: it failed before. */
        EXCLUDED,
        /**
         * Busy by a limit of load, such as {@link RouterSettings#BUSY_DECODE_BLOCKS}, or by the
         * selection policy.
         */
        BUSY,
        /** Has a taint that the request excludes, or a named one that it does not tolerate. */
        TAINTED,
        /** Has not the request's adapter: {@link RouterSettings#LORA_MODE}. */
        NO_ADAPTER,
        /** Has not a label that the request requires. */
        NO_LABEL,
        /** Not allowed by the selection policy: {@link Eligibility}. */
        INELIGIBLE,
        /** The request is pinned to another worker. */
        NOT_PINNED
    }

    private final Selection selection = new Selection();

    /** An empty decision. */
    public Decision() {}

    /** What this reads; filled by the router. */
    Selection selection() {
        return selection;
    }

    /** The worker to send the request to; null before a successful selection. */
    public Worker worker() {
        return isChosen() ? selection.workers().at(selection.chosen()) : null;
    }

    private boolean isChosen() {
        return selection.chosen() >= 0;
    }

    /**
     * Leading blocks of the prompt that the chosen worker holds, before the engine's rule that the
     * last token is always computed.
     */
    public int overlapBlocks() {
        return isChosen() ? selection.costs().overlap(selection.chosen()) : 0;
    }

    /**
     * Blocks of the prompt that the chosen worker holds in a tier, or can load from it, from where
     * those in the tiers above end; the device's are {@link #overlapBlocks()}.
     */
    public int overlapBlocks(StorageTier tier) {
        return isChosen() ? selection.costs().overlap(selection.chosen(), tier) : 0;
    }

    /** Leading blocks of the prompt that are in use on the chosen worker. */
    int activePrefixBlocks() {
        return selection.costs().activePrefix(selection.chosen());
    }

    /**
     * Prompt tokens that the chosen worker's engine is expected to report as cached, whatever tier
     * it takes them from. What the index cannot be trusted for counts less, down to nothing, as it
     * did in the choice. 0 where the worker does not compute the prompt.
     *
     * @return {@code min(overlap, ⌊(tokens − 1) / blockSize⌋) · blockSize · credit}, rounded down
     */
    public int predictedCachedTokens() {
        return (int) (selection.chosenCredit() * believedCachedTokens());
    }

    /**
     * The same as far as the index says, whatever it can be trusted for: what the engine must
     * report if the index is right.
     */
    public int believedCachedTokens() {
        return isChosen() ? reusableTokens(selection.costs().reach(selection.chosen())) : 0;
    }

    /** The same of its device alone: an engine need not load what lies below. */
    int believedDeviceTokens() {
        return reusableTokens(overlapBlocks());
    }

    /**
     * Prompt tokens that the chosen worker's device holds, of those that an engine reuses, whether
     * it computes the prompt or fetches what it lacks; counts less as {@link
     * #predictedCachedTokens} does.
     */
    public int predictedHeldTokens() {
        return isChosen()
                ? (int)
                        (selection.chosenCredit()
                                * cachedTokens(overlapBlocks(), requestTokens(), blockSize()))
                : 0;
    }

    /**
     * Prompt tokens that running requests of the chosen worker use, as far as it would reuse them.
     */
    int activePrefixTokens() {
        return reusableTokens(activePrefixBlocks());
    }

    private int reusableTokens(int blocks) {
        return Math.min(blocks, selection.reusableBlocks()) * selection.blockSize();
    }

    /** The state that the chosen worker's index was in; null before a successful selection. */
    public IndexState indexState() {
        return isChosen() ? selection.costs().state(selection.chosen()) : null;
    }

    /** Requests that were booked on the chosen worker. */
    public long activeRequests() {
        return isChosen() ? selection.candidates().loads().activeRequests(selection.chosen()) : 0;
    }

    /**
     * Tokens that the chosen worker has to compute until this prompt is computed: those of the
     * prompts before it included, less what it holds of this one.
     *
     * @return as of the decision; 0 before a successful selection
     */
    public double tokensToCompute() {
        return isChosen() ? selection.prefillBlocks(selection.chosen()) * selection.blockSize() : 0;
    }

    /**
     * Tokens of the prompt that the chosen worker has to prefill; what it loads from lower tiers
     * counts in part.
     */
    int prefillTokens() {
        final double held =
                selection.chosenCredit()
                        * selection.reusedBlocks(selection.chosen())
                        * selection.blockSize();
        return selection.prefillTokens() - (int) held;
    }

    /**
     * The engines' own rule for a prefix hit: whole blocks, and never the last token.
     *
     * @param overlapBlocks leading blocks held
     * @param tokenCount prompt length in tokens
     * @param blockSize tokens per block
     * @return tokens that need no prefill
     * @throws IllegalArgumentException if a number is negative, or the block size 0
     */
    public static int cachedTokens(int overlapBlocks, int tokenCount, int blockSize) {
        if (overlapBlocks < 0) {
            throw new IllegalArgumentException(
                    "overlapBlocks=" + overlapBlocks + " must be 0 or more");
        }
        if (tokenCount < 0) {
            throw new IllegalArgumentException("tokenCount=" + tokenCount + " must be 0 or more");
        }
        if (blockSize < 1) {
            throw new IllegalArgumentException("blockSize=" + blockSize + " must be 1 or more");
        }
        return Math.min(overlapBlocks, Selection.reusableBlocks(tokenCount, blockSize)) * blockSize;
    }

    /** Tokens of a block. */
    public int blockSize() {
        return selection.blockSize();
    }

    /** Full blocks of the prompt, which were matched. */
    public int requestBlocks() {
        return selection.requestBlocks();
    }

    /** The prompt's length in tokens. */
    public int requestTokens() {
        return selection.requestTokens();
    }

    /** Cost of the chosen worker in blocks; NaN before a successful selection. */
    public double cost() {
        return isChosen() ? selection.cost(selection.chosen()) : Double.NaN;
    }

    /**
     * The engine's number of the chosen worker's last event message that was in the index before
     * the prompt was matched; -1 when none.
     */
    public long eventSequence() {
        return isChosen() ? selection.eventSequence(selection.chosen()) : -1;
    }

    /** The mode that chose: the request's override, or the router's own. */
    public RoutingMode mode() {
        return selection.mode();
    }

    /** Whether the worker was chosen because it had the last request of the session. */
    public boolean bySession() {
        return selection.isBySession();
    }

    /**
     * Version of the router's settings that it was made by: {@link KvRouter#settingsVersion}; 0
     * before the first selection.
     */
    public long settingsVersion() {
        return selection.settingsVersion();
    }

    /**
     * A number for the values of the router's settings that it was made by: {@link
     * KvRouter#settingsNumber}; 0 before the first selection.
     */
    public long settingsNumber() {
        return selection.settingsNumber();
    }

    /** Name of the {@link SelectionPolicy} that decided. */
    public String policy() {
        return selection.policy();
    }

    /** The weight that a block to prefill had: the request's override, or the router's own. */
    public double overlapWeight() {
        return selection.overlapWeight();
    }

    /**
     * What a cached block of a worker's device counted in the linear cost: the request's override,
     * or 1.
     */
    public double overlapCredit() {
        return selection.overlapCredit();
    }

    /**
     * What a block of shared storage counted in the linear cost: the request's override, or the
     * router's own.
     */
    public double sharedCacheMultiplier() {
        return selection.sharedMultiplier();
    }

    /** The sampling temperature: the request's override, or the router's own. */
    public double temperature() {
        return selection.temperature();
    }

    /** How many workers were considered, candidates and excluded ones. */
    public int candidateCount() {
        return selection.workers().size();
    }

    /** A worker that was considered. */
    public Worker candidate(int i) {
        if (i < 0 || i >= candidateCount()) {
            throw new IndexOutOfBoundsException("candidate " + i + " of " + candidateCount());
        }
        return selection.workers().worker(i);
    }

    /** Why a worker was not a candidate; {@link Exclusion#NONE} for a candidate. */
    public Exclusion exclusion(int i) {
        return exclusion(candidate(i));
    }

    /**
     * Why a worker was not a candidate.
     *
     * @param worker of the router that decided
     * @return {@link Exclusion#UNAVAILABLE} too where it was not registered then
     */
    public Exclusion exclusion(Worker worker) {
        if (selection.workers().at(worker.slot()) != worker) {
            return Exclusion.UNAVAILABLE;
        }
        final Candidates candidates = selection.candidates();
        if (candidates.isPinnedElsewhere(worker)) {
            return Exclusion.NOT_PINNED;
        }
        if (candidates.isTainted(worker)) {
            return Exclusion.TAINTED;
        }
        if (candidates.lacksAdapter(worker.slot())) {
            return Exclusion.NO_ADAPTER;
        }
        if (candidates.suitability().lacksLabel(worker.slot())) {
            return Exclusion.NO_LABEL;
        }
        if (candidates.isDropped(worker.slot())) {
            return Exclusion.OUT_OF_REACH;
        }
        if (candidates.isIneligible(worker.slot())) {
            return Exclusion.INELIGIBLE;
        }
        if (candidates.isBarred(worker.slot())) {
            return Exclusion.EXCLUDED;
        }
        if (candidates.isBusy(worker.slot())) {
            return Exclusion.BUSY;
        }
        return candidates.contains(worker.slot()) ? Exclusion.NONE : Exclusion.UNAVAILABLE;
    }

    /**
     * How far the index could be trusted for a worker: the state that its cost was computed with;
     * where it had no part in the choice, the state now.
     */
    public IndexState state(int i) {
        return selection.costs().state(candidate(i).slot());
    }

    /** Leading blocks of the prompt that a worker holds. */
    public int overlapBlocks(int i) {
        return selection.costs().overlap(candidate(i).slot());
    }

    /** The same in a tier, or of shared storage, from where those in the tiers above end. */
    public int overlapBlocks(int i, StorageTier tier) {
        return selection.costs().overlap(candidate(i).slot(), tier);
    }

    /** Leading blocks of the prompt that running requests of a worker use now. */
    public int activePrefixBlocks(int i) {
        return selection.costs().activePrefix(candidate(i).slot());
    }

    /** Blocks that a worker would have to prefill, fractional. */
    public double prefillBlocks(int i) {
        return selection.prefillBlocks(candidate(i).slot());
    }

    /** Blocks that a worker would have in use. */
    public long decodeBlocks(int i) {
        return selection.decodeBlocks(candidate(i).slot());
    }

    /** Requests booked on a worker when its load was read. */
    public long activeRequests(int i) {
        return selection.candidates().loads().activeRequests(candidate(i).slot());
    }

    /** The engine's number of a worker's last applied event message then; -1 when none. */
    public long eventSequence(int i) {
        return selection.eventSequence(candidate(i).slot());
    }

    /**
     * What a worker costs beside its blocks to prefill and in use, as part of {@link #cost(int)}:
     * what the request's own cost said, what cached blocks count less that most workers hold
     * ({@link RouterSettings#HOT_PREFIX_DISCOUNT}), and what the request says of their credit. 0
     * where the worker was excluded.
     */
    public double addedBlocks(int i) {
        final int slot = candidate(i).slot();
        return selection.candidates().contains(slot) ? selection.addedBlocks(slot) : 0;
    }

    /** Cost of a worker in blocks; NaN when excluded. */
    public double cost(int i) {
        return selection.cost(candidate(i).slot());
    }

    /**
     * The decision for people: one line for the request, one per worker.
     *
     * @return several lines, each ended by a newline; allocates
     */
    public String explain() {
        final StringBuilder text = new StringBuilder(128 + 96 * candidateCount());
        text.append(
                String.format(
                        Locale.ROOT,
                        "%s: %d tokens, %d blocks of %d; %s, temperature %s%n",
                        mode().spelling() + (bySession() ? ", by its session" : ""),
                        requestTokens(),
                        requestBlocks(),
                        selection.blockSize(),
                        policy().equals(SelectionPolicy.LINEAR.name())
                                ? "cost = "
                                        + number(overlapWeight())
                                        + " · prefill + decode"
                                        + creditText()
                                : "cost by selection-policy=" + policy(),
                        number(temperature())));
        for (int i = 0; i < candidateCount(); i++) {
            final Worker worker = candidate(i);
            text.append(worker.slot() == selection.chosen() ? " -> " : "    ");
            text.append(worker).append(": ").append(explain(i));
        }
        return text.toString();
    }

    /** What the request says of cached blocks; empty where it says nothing else than the router. */
    private String creditText() {
        return selection.countsOtherwise()
                ? ", overlap credit "
                        + number(overlapCredit())
                        + ", shared multiplier "
                        + number(sharedCacheMultiplier())
                : "";
    }

    private String explain(int i) {
        return exclusion(i) != Exclusion.NONE
                ? "not a candidate, " + exclusion(i) + '\n'
                : String.format(
                        Locale.ROOT,
                        "cost %.3f = prefill %.3f, decode %d%s; holds %d blocks%s (%s, event %d), "
                                + "%d of them in use, %d requests%n",
                        cost(i),
                        prefillBlocks(i),
                        decodeBlocks(i),
                        addedText(i),
                        overlapBlocks(i),
                        belowDevice(i),
                        state(i),
                        eventSequence(i),
                        activePrefixBlocks(i),
                        activeRequests(i));
    }

    private String addedText(int i) {
        final double added = addedBlocks(i);
        return added == 0 ? "" : String.format(Locale.ROOT, ", added %.3f", added);
    }

    /** What a worker holds in lower tiers; empty where that is nothing. */
    private String belowDevice(int i) {
        final StringBuilder text = new StringBuilder();
        for (StorageTier tier : StorageTier.values()) {
            final int blocks = overlapBlocks(i, tier);
            if (tier != StorageTier.DEVICE && blocks > 0) {
                text.append(" + ").append(blocks).append(' ');
                text.append(tier.name().toLowerCase(Locale.ROOT));
            }
        }
        return text.toString();
    }

    private static String number(double value) {
        return value == Math.rint(value) ? Long.toString((long) value) : Double.toString(value);
    }
}
