package io.kvasir.router;

import io.kvasir.core.index.PrefixIndex;
import io.kvasir.core.load.LoadBoard;
import io.kvasir.core.load.LoadSnapshot;
import io.kvasir.core.radix.OverlapScores;
import io.kvasir.pipeline.IndexState;

import java.util.Arrays;
import java.util.Locale;

/**
 * The outcome of one selection and the reason for it: every worker that was looked at, what it
 * holds, what it has to do and what it would have cost. Caller-owned and reusable; filled by {@link
 * KvRouter#select}, belongs to one thread at a time.
 *
 * <p>It keeps a mirror of all workers' loads, which a selection brings up to date and chooses by,
 * and what was matched. Costs and the like are computed from these when they are asked for. So
 * reuse one: a new decision copies all loads, a reused one what has changed.
 */
public final class Decision {
    private static final double MAX_COST = Double.MAX_VALUE / 4;

    /** Why a worker was not a candidate. */
    public enum Exclusion {
        /** It was a candidate. */
        NONE,
        /** Marked unavailable by whoever watches its health. */
        UNAVAILABLE,
        /** Excluded by the request: it failed before. */
        EXCLUDED,
        /** The request is pinned to another worker. */
        NOT_PINNED
    }

    private static final long[] NO_GROUPS = {};

    private WorkerSet roster = WorkerSet.EMPTY;
    private LoadSnapshot loads = new LoadSnapshot(1);
    private final MatchedGroups matched = new MatchedGroups();
    private Worker pinned;
    private long[] barred = NO_GROUPS; // by group of 64 slots: excluded, or not the pinned one
    private long[] candidates = NO_GROUPS; // by group: slots that may be chosen
    private long[] eventSequences = new long[8]; // by slot
    private boolean eventsKnown;
    private double[] costs = new double[8]; // by slot, where a cost model was asked
    private boolean priced;
    private int eligible;
    private int chosen = -1; // slot
    private double chosenCredit;

    private int blockSize;
    private int requestTokens;
    private int requestBlocks;
    private int reusableBlocks; // most blocks that an engine reuses
    private RoutingMode mode = RoutingMode.KV;
    private double overlapWeight;
    private double temperature;
    private double degradedCredit;

    /** An empty decision. */
    public Decision() {}

    /** Forgets the last selection and notes what this one is about. */
    void begin(
            RouteRequest request,
            int size,
            RoutingMode routingMode,
            double weight,
            double samplingTemperature) {
        roster = WorkerSet.EMPTY;
        eligible = 0;
        chosen = -1;
        priced = false;
        blockSize = size;
        requestTokens = request.tokenCount();
        requestBlocks = request.blockCount;
        reusableBlocks = reusableBlocks(requestTokens, size);
        mode = routingMode;
        overlapWeight = weight;
        temperature = samplingTemperature;
    }

    /** Notes how far each worker's events are in the index; before the match. */
    void eventSequences(WorkerSet registered, PrefixIndex index) {
        if (eventSequences.length < registered.slotEnd()) {
            eventSequences = new long[registered.slotEnd()];
        }
        index.appliedSequences(eventSequences, registered.slotEnd());
        roster = registered;
        eventsKnown = true;
    }

    /** Notes that the matches are not the index's own. */
    void noEventSequences(WorkerSet registered) {
        roster = registered;
        eventsKnown = false;
    }

    /** Takes over loads and matches; from here on the numbers stand still. */
    void look(
            RouteRequest request,
            OverlapScores cached,
            OverlapScores active,
            LoadBoard board,
            double creditWhenDegraded) {
        if (loads.slots() != board.slots()) {
            loads = new LoadSnapshot(board.slots());
        }
        loads.refresh(board, tokenWeight());
        matched.fill(roster.groups(), cached, active, reusableBlocks, overlapWeight);
        degradedCredit = creditWhenDegraded;
        bar(request);
        eligible = 0;
        for (int group = 0; group < roster.groups(); group++) {
            candidates[group] = roster.slots(group) & loads.openSlots(group) & ~barred[group];
            eligible += Long.bitCount(candidates[group]);
        }
    }

    private void bar(RouteRequest request) {
        pinned = request.pinned();
        if (barred.length < roster.groups()) {
            barred = new long[roster.groups()];
            candidates = new long[roster.groups()];
        }
        Arrays.fill(barred, pinned == null ? 0 : -1);
        if (pinned != null && roster.at(pinned.slot()) == pinned) {
            barred[pinned.slot() / Long.SIZE] = ~(1L << pinned.slot());
        }
        for (int i = 0; i < request.excludedCount(); i++) {
            final Worker worker = request.excluded(i);
            if (roster.at(worker.slot()) == worker) {
                barred[worker.slot() / Long.SIZE] |= 1L << worker.slot();
            }
        }
    }

    /** Asks a cost model for every candidate. */
    void price(CostModel model) {
        if (costs.length < roster.slotEnd()) {
            costs = new double[roster.slotEnd()];
        }
        for (int group = 0; group < roster.groups(); group++) {
            matched.addIfShared(group);
        }
        matched.listed().settleAll(loads, roster, candidates, degradedCredit);
        for (int slot = 0; slot < roster.slotEnd(); slot++) {
            costs[slot] = isEligible(slot) ? bounded(cost(model, slot)) : Double.NaN;
        }
        priced = true;
    }

    /** What a model says, as a number whose distance from any other is one too. */
    private static double bounded(double cost) {
        return Double.isNaN(cost) ? MAX_COST : Math.clamp(cost, -MAX_COST, MAX_COST);
    }

    private double cost(CostModel model, int slot) {
        return model.cost(
                overlapWeight,
                prefillBlocksOf(slot),
                decodeBlocksOf(slot),
                loads.activeRequests(slot));
    }

    void choose(int slot) {
        chosen = slot;
        chosenCredit = creditOf(roster.at(slot));
    }

    WorkerSet roster() {
        return roster;
    }

    /** Costs by slot where a model was asked, NaN for what cannot be chosen; else null. */
    double[] prices() {
        return priced ? costs : null;
    }

    int eligibleCount() {
        return eligible;
    }

    /** Blocks that a token to prefill counts. */
    double tokenWeight() {
        return overlapWeight / blockSize;
    }

    /**
     * The lowest relative cost of a candidate by the linear model, if all overlaps can be trusted:
     * the cost without what is the same for all.
     */
    double lowestBound() {
        double lowest = matched.listed().lowest(loads, candidates);
        for (int group = 0; group < roster.groups(); group++) {
            if (!matched.isListed(group)) {
                lowest = leastShared(group, lowest);
            }
        }
        return lowest;
    }

    /** The same as far as the overlaps can be trusted, after {@link #lowestBound}. */
    double lowestRelative() {
        double lowest = matched.listed().lowestSettled(loads, roster, candidates, degradedCredit);
        for (int group = 0; group < roster.groups(); group++) {
            if (!matched.isListed(group)) {
                final double least = leastShared(group, Double.POSITIVE_INFINITY);
                lowest =
                        least <= lowest && matched.addIfShared(group)
                                ? settled(group, lowest)
                                : Math.min(lowest, least);
            }
        }
        return lowest;
    }

    private double settled(int group, double lowest) {
        return matched.listed().settled(loads, roster, group, candidates, degradedCredit, lowest);
    }

    private double leastShared(int group, double limit) {
        return matched.leastShared(loads, group, candidates[group], limit);
    }

    /**
     * The next group, from one on, that may have the lowest relative cost of all.
     *
     * @return -1 when there is none
     */
    int next(int from, double lowest) {
        for (int group = from; group < roster.groups(); group++) {
            if (matched.boundOf(loads, group) <= lowest) {
                return group;
            }
        }
        return -1;
    }

    /** Candidates of a group whose relative cost is the lowest one of all, one bit each. */
    long slotsWith(int group, double lowest) {
        if (matched.isListed(group)) {
            return matched.listed().slotsWith(group, lowest);
        }
        return matched.sharedSlotsWith(loads, group, candidates[group], lowest);
    }

    /** Whether the cost of a slot that was computed by trusting its overlap is its cost. */
    boolean isExact(int slot) {
        return matched.isExact(roster, slot, degradedCredit);
    }

    /** The n-th candidate in order of slots, counted from 0. */
    int nthEligible(int n) {
        int left = n;
        for (int group = 0; group < roster.groups(); group++) {
            final int count = Long.bitCount(candidates[group]);
            if (left < count) {
                return group * Long.SIZE + WorkerSelector.nthBit(candidates[group], left);
            }
            left -= count;
        }
        throw new IndexOutOfBoundsException("candidate " + n + " of " + eligible);
    }

    /** The slot of the pinned worker, which is a candidate. */
    int pinnedSlot() throws RouteException {
        if (pinned == null) {
            throw new RouteException(
                    RouteException.Kind.INVALID,
                    "mode direct needs a pinned worker and the request names none");
        }
        return pinned.slot();
    }

    /** Why there is nobody to choose. */
    RouteException noCandidate() {
        if (pinned != null) {
            return new RouteException(
                    RouteException.Kind.PINNED_UNAVAILABLE,
                    "the pinned worker " + pinned + " is gone or unavailable");
        }
        int excluded = 0;
        for (int i = 0; i < roster.size(); i++) {
            if (exclusion(i) == Exclusion.EXCLUDED) {
                excluded++;
            }
        }
        if (excluded > 0) {
            return new RouteException(
                    RouteException.Kind.ALL_EXCLUDED,
                    "no worker left: "
                            + excluded
                            + " failed this request before, "
                            + (roster.size() - excluded)
                            + " are unavailable");
        }
        return new RouteException(
                RouteException.Kind.NO_WORKERS,
                roster.size() == 0
                        ? "no worker is registered; name one with --worker or addWorker"
                        : "none of " + roster.size() + " registered workers is available");
    }

    private boolean isEligible(int slot) {
        return (candidates[slot / Long.SIZE] >>> slot & 1) != 0;
    }

    private IndexState stateOf(Worker worker) {
        final IndexState pricedBy = matched.state(worker.slot());
        return pricedBy == null ? worker.state() : pricedBy;
    }

    private double creditOf(Worker worker) {
        final double pricedBy = matched.credit(worker.slot());
        return Double.isNaN(pricedBy) ? worker.credit(degradedCredit) : pricedBy;
    }

    int activePrefixOf(int slot) {
        return matched.activePrefix(slot);
    }

    private double prefillBlocksOf(int slot) {
        final int overlap = matched.overlap(slot);
        double cachedTokens = 0;
        if (overlap > 0) {
            cachedTokens =
                    creditOf(roster.at(slot)) * Math.min(overlap, reusableBlocks) * blockSize;
        }
        return (loads.prefillTokens(slot) + requestTokens - cachedTokens) / blockSize;
    }

    private long decodeBlocksOf(int slot) {
        return loads.activeBlocks(slot) + requestBlocks - activePrefixOf(slot);
    }

    private long eventSequenceOf(int slot) {
        return eventsKnown ? eventSequences[slot] : -1;
    }

    private double costOf(int slot) {
        if (priced) {
            return costs[slot];
        }
        return isEligible(slot) ? cost(CostModel.LINEAR, slot) : Double.NaN;
    }

    /**
     * The worker to send the request to.
     *
     * @return null before a successful selection
     */
    public Worker worker() {
        return chosen < 0 ? null : roster.at(chosen);
    }

    /**
     * Leading blocks of the prompt that the chosen worker holds.
     *
     * @return blocks, before the engine's rule that the last token is always computed
     */
    public int overlapBlocks() {
        return chosen < 0 ? 0 : matched.overlap(chosen);
    }

    /**
     * Prompt tokens that the chosen worker's engine is expected to report as cached. What the index
     * cannot be trusted for counts less, down to nothing, as it did in the choice; the booking
     * leaves as much to prefill.
     *
     * @return {@code min(overlap, ⌊(tokens − 1) / blockSize⌋) · blockSize · credit}, rounded down
     */
    public int predictedCachedTokens() {
        return chosen < 0
                ? 0
                : (int) (chosenCredit * cachedTokens(overlapBlocks(), requestTokens, blockSize));
    }

    /**
     * The engines' own rule for a prefix hit: whole blocks, and never the last token.
     *
     * @param overlapBlocks leading blocks held
     * @param tokenCount prompt length in tokens
     * @param blockSize tokens per block
     * @return tokens that need no prefill
     */
    public static int cachedTokens(int overlapBlocks, int tokenCount, int blockSize) {
        return Math.min(overlapBlocks, reusableBlocks(tokenCount, blockSize)) * blockSize;
    }

    private static int reusableBlocks(int tokenCount, int blockSize) {
        return tokenCount == 0 ? 0 : (tokenCount - 1) / blockSize;
    }

    /**
     * Full blocks of the prompt.
     *
     * @return blocks that were matched
     */
    public int requestBlocks() {
        return requestBlocks;
    }

    /**
     * The prompt's length.
     *
     * @return tokens
     */
    public int requestTokens() {
        return requestTokens;
    }

    /**
     * Cost of the chosen worker.
     *
     * @return blocks; NaN before a successful selection
     */
    public double cost() {
        return chosen < 0 ? Double.NaN : costOf(chosen);
    }

    /**
     * Number of the chosen worker's last event message that was in the index before the prompt was
     * matched.
     *
     * @return the engine's number, -1 when none
     */
    public long eventSequence() {
        return chosen < 0 ? -1 : eventSequenceOf(chosen);
    }

    /**
     * The mode that chose.
     *
     * @return the request's override, or the router's own
     */
    public RoutingMode mode() {
        return mode;
    }

    /**
     * The weight that a block to prefill had.
     *
     * @return the request's override, or the router's own
     */
    public double overlapWeight() {
        return overlapWeight;
    }

    /**
     * The sampling temperature.
     *
     * @return the request's override, or the router's own
     */
    public double temperature() {
        return temperature;
    }

    /**
     * How many workers were looked at.
     *
     * @return candidates and excluded ones
     */
    public int candidateCount() {
        return roster.size();
    }

    /**
     * A worker that was looked at.
     *
     * @param i 0..{@link #candidateCount()}-1, in order of registration
     * @return the worker
     */
    public Worker candidate(int i) {
        return roster.worker(checkIndex(i));
    }

    /**
     * Why a worker was not a candidate.
     *
     * @param i 0..{@link #candidateCount()}-1
     * @return {@link Exclusion#NONE} for a candidate
     */
    public Exclusion exclusion(int i) {
        final Worker worker = candidate(i);
        if (pinned != null && pinned != worker) {
            return Exclusion.NOT_PINNED;
        }
        if ((barred[worker.slot() / Long.SIZE] >>> worker.slot() & 1) != 0) {
            return Exclusion.EXCLUDED;
        }
        return loads.isOpen(worker.slot()) ? Exclusion.NONE : Exclusion.UNAVAILABLE;
    }

    /**
     * How far the index could be trusted for a worker.
     *
     * @param i 0..{@link #candidateCount()}-1
     * @return the state that its cost was computed with; where it had no part in the choice, the
     *     state now
     */
    public IndexState state(int i) {
        return stateOf(candidate(i));
    }

    /**
     * Leading blocks of the prompt that a worker holds.
     *
     * @param i 0..{@link #candidateCount()}-1
     * @return blocks
     */
    public int overlapBlocks(int i) {
        return matched.overlap(candidate(i).slot());
    }

    /**
     * Leading blocks of the prompt that running requests of a worker use now.
     *
     * @param i 0..{@link #candidateCount()}-1
     * @return blocks
     */
    public int activePrefixBlocks(int i) {
        return activePrefixOf(candidate(i).slot());
    }

    /**
     * Blocks that a worker would have to prefill.
     *
     * @param i 0..{@link #candidateCount()}-1
     * @return blocks, fractional
     */
    public double prefillBlocks(int i) {
        return prefillBlocksOf(candidate(i).slot());
    }

    /**
     * Blocks that a worker would have in use.
     *
     * @param i 0..{@link #candidateCount()}-1
     * @return blocks
     */
    public long decodeBlocks(int i) {
        return decodeBlocksOf(candidate(i).slot());
    }

    /**
     * Requests booked on a worker when it was looked at.
     *
     * @param i 0..{@link #candidateCount()}-1
     * @return requests
     */
    public long activeRequests(int i) {
        return loads.activeRequests(candidate(i).slot());
    }

    /**
     * Number of a worker's last applied event message when it was looked at.
     *
     * @param i 0..{@link #candidateCount()}-1
     * @return the engine's number, -1 when none
     */
    public long eventSequence(int i) {
        return eventSequenceOf(candidate(i).slot());
    }

    /**
     * Cost of a worker.
     *
     * @param i 0..{@link #candidateCount()}-1
     * @return blocks; NaN when excluded
     */
    public double cost(int i) {
        return costOf(candidate(i).slot());
    }

    private int checkIndex(int i) {
        if (i < 0 || i >= roster.size()) {
            throw new IndexOutOfBoundsException("candidate " + i + " of " + roster.size());
        }
        return i;
    }

    /**
     * The decision for people: one line for the request, one per worker.
     *
     * @return several lines, each ended by a newline; allocates
     */
    public String explain() {
        final StringBuilder text = new StringBuilder(128 + 96 * roster.size());
        text.append(
                String.format(
                        Locale.ROOT,
                        "%s: %d tokens, %d blocks of %d; cost = %s · prefill + decode, temperature"
                                + " %s%n",
                        mode.spelling(),
                        requestTokens,
                        requestBlocks,
                        blockSize,
                        number(overlapWeight),
                        number(temperature)));
        for (int i = 0; i < roster.size(); i++) {
            final Worker worker = roster.worker(i);
            text.append(worker.slot() == chosen ? " -> " : "    ").append(worker).append(": ");
            if (exclusion(i) != Exclusion.NONE) {
                text.append("not a candidate, ").append(exclusion(i)).append('\n');
                continue;
            }
            text.append(
                    String.format(
                            Locale.ROOT,
                            "cost %.3f = prefill %.3f, decode %d; holds %d blocks (%s, event %d), "
                                    + "%d of them in use, %d requests%n",
                            cost(i),
                            prefillBlocks(i),
                            decodeBlocks(i),
                            overlapBlocks(i),
                            state(i),
                            eventSequence(i),
                            activePrefixBlocks(i),
                            activeRequests(i)));
        }
        return text.toString();
    }

    private static String number(double value) {
        return value == Math.rint(value) ? Long.toString((long) value) : Double.toString(value);
    }
}
