package io.kvasir.router;

import io.kvasir.core.index.PrefixIndex;
import io.kvasir.core.load.LoadBoard;
import io.kvasir.core.radix.OverlapScores;
import io.kvasir.router.journal.DecisionJournal;
import io.kvasir.router.journal.JournalRecord;
import io.kvasir.router.policy.CostModel;
import io.kvasir.router.policy.Eligibility.Verdict;
import io.kvasir.router.policy.RoutingMode;
import io.kvasir.router.policy.SelectionPolicy;
import io.kvasir.router.policy.WorkerCost;
import io.kvasir.router.session.SessionAffinity;

import java.util.Arrays;

/**
 * One selection: the prompt's numbers, the candidates with their loads and overlaps, what they
 * cost, and which was chosen. Filled by {@link PromptMatcher}, completed by {@link WorkerSelector},
 * read through the {@link Decision} that owns it; reused, one thread at a time.
 */
final class Selection {
    private static final double NS_PER_S = 1e9;
    private static final double MAX_COST = Double.MAX_VALUE / 4;

    /** Weights beyond it choose the same: costs stay far from the largest number. */
    private static final double MAX_WEIGHT = 1e100;

    private final Candidates candidates = new Candidates();
    private final CandidateCosts costs = new CandidateCosts(candidates);
    private long[] eventSequences = new long[8]; // by slot
    private boolean eventsKnown;
    private double[] modelCosts = new double[8]; // by slot, where a cost model was asked
    private boolean priced;
    private String policy = SelectionPolicy.LINEAR.name();
    private double[] pricedCosts = new double[8]; // the same by number of candidate
    private final CandidateCursor cursor = new CandidateCursor(this);
    private final AddedCosts added = new AddedCosts();
    private final Preferences preferences = new Preferences();
    private WorkerCost workerCost; // null where the request has none
    private int chosen = -1; // slot
    private JournalRecord record; // null before the first decision that is kept
    private RunnersUp runnersUp; // likewise
    private double chosenCredit;

    private RouterRules rules; // null before the first use
    private String requestIdOrNull; // for the log
    private int blockSize;
    private int requestTokens;
    private int requestBlocks;
    private int prefillTokens; // of the prompt, were nothing cached
    private int reusableBlocks; // most blocks that an engine reuses
    private int countedBlocks; // that the prompt adds, were none in use
    private RoutingMode mode = RoutingMode.KV;
    private double overlapWeight;
    private double overlapCredit = 1; // what a block on a device counts
    private double sharedMultiplier; // what one in shared storage does
    private double usualSharedMultiplier; // by the rules
    private double temperature;
    private PrefillPaces pacesOrNull; // null where they are not learned
    private long nowNs; // by which the paces say what is left
    private long affinityKey; // where the mode needs it
    private boolean hasSession; // one that is followed
    private long binding; // of the session
    private boolean bySession;
    private boolean hotCounts; // blocks that most hold count less in the cost
    private boolean onlyWithRoom;
    private boolean asked; // nothing is sent by it
    private Worker computing; // null for none
    private int computingBlocks;
    private int drawnSlot = -1; // of that worker, where it is a candidate
    private double drawnBlocks; // that it has to prefill anyway

    /** Forgets the last selection and takes what this one is about, and what it goes by. */
    void begin(RouteRequest request, int size, boolean countsBlocks, RouterRules current) {
        rules = current;
        request.usual(rules);
        candidates.begin(WorkerSet.EMPTY);
        chosen = -1;
        priced = false;
        added.clear();
        workerCost = request.cost();
        requestIdOrNull = request.id();
        blockSize = size;
        requestTokens = request.tokenCount();
        requestBlocks = request.blockCount;
        prefillTokens = request.prefills() ? requestTokens : 0;
        reusableBlocks = reusableBlocks(prefillTokens, size);
        countedBlocks = countsBlocks ? requestBlocks : 0;
        mode = mode(request);
        overlapWeight =
                request.tracksPrefill()
                        ? Math.min(MAX_WEIGHT, request.overlapWeightOr(rules.overlapWeight()))
                        : 0;
        overlapCredit = Math.min(MAX_WEIGHT, request.overlapCreditOr(1));
        usualSharedMultiplier = rules.sharedMultiplier();
        sharedMultiplier = request.sharedMultiplierOr(usualSharedMultiplier);
        temperature = request.temperatureOr(rules.temperature());
        affinityKey = mode == RoutingMode.CONSISTENT_HASH ? request.affinityKey() : 0;
        hasSession = false;
        binding = SessionAffinity.NONE;
        bySession = false;
        hotCounts = true;
        onlyWithRoom = request.isOnlyWithRoom();
        asked = false;
        computing = request.computingOrNull();
        computingBlocks = request.assumedBlocks();
        drawnSlot = -1;
    }

    private RoutingMode mode(RouteRequest request) {
        final RoutingMode wanted = request.mode() == null ? rules.mode() : request.mode();
        return wanted == RoutingMode.DIRECT && request.isAnyRank() ? RoutingMode.KV : wanted;
    }

    /** Whether it is refused while no candidate has room. */
    boolean isOnlyWithRoom() {
        return onlyWithRoom;
    }

    /** Nothing is sent by it, so it takes no turn. */
    void onlyAsked() {
        asked = true;
    }

    boolean isOnlyAsked() {
        return asked;
    }

    /** What the decision goes by. */
    RouterRules rules() {
        return rules;
    }

    /** Version of that; 0 before the first selection. */
    long settingsVersion() {
        return rules == null ? 0 : rules.version();
    }

    /** A number for the values of that; 0 before the first selection. */
    long settingsNumber() {
        return rules == null ? 0 : rules.digest();
    }

    /** Takes what the request's session is bound to. */
    void session(long found) {
        hasSession = true;
        binding = found;
    }

    /** Whether the request is of a session that is followed. */
    boolean hasSession() {
        return hasSession;
    }

    /** What the request's session was bound to when it was looked up. */
    long binding() {
        return binding;
    }

    /** Slot of the session's worker; -1 where it has none that may be chosen. */
    int sessionSlot() {
        final int slot = SessionAffinity.slot(binding);
        final Worker worker = slot < 0 ? null : workers().at(slot);
        return worker != null && binding == binding(worker) && candidates.contains(slot)
                ? slot
                : -1;
    }

    /** What a session is bound to whose last request a worker had. */
    static long binding(Worker worker) {
        return SessionAffinity.binding(worker.slot(), worker.slotGeneration());
    }

    /** Whether the session decided. */
    boolean isBySession() {
        return bySession;
    }

    /** Hash that the mode goes by. */
    long affinityKey() {
        return affinityKey;
    }

    void chooseBySession(int slot) {
        choose(slot);
        bySession = true;
    }

    /** Takes the workers, and how far the events of each are in the index; before the match. */
    void begin(WorkerSet workers, PrefixIndex index) {
        if (eventSequences.length < workers.slotEnd()) {
            eventSequences = new long[workers.slotEnd()];
        }
        index.appliedSequences(eventSequences, workers.slotEnd());
        candidates.begin(workers);
        eventsKnown = true;
    }

    /** Takes the workers; the matches are not the index's own. */
    void begin(WorkerSet workers) {
        candidates.begin(workers);
        eventsKnown = false;
    }

    /** Takes what the workers are marked with, after the workers and before the loads. */
    void marks(RouteRequest request, WorkerMarks marks) {
        candidates.marks(request, marks, rules.loraMode());
        preferences.fill(request, marks);
    }

    /** Takes loads and matches; from here on the numbers stand still. */
    void fill(
            RouteRequest request,
            OverlapScores cached,
            OverlapScores active,
            TierScores tiersOrNull,
            LoadBoard board) {
        candidates.fill(
                request,
                board,
                overlapWeight / blockSize,
                rules.degradedCredit(),
                rules.busyLimits());
        costs.fill(cached, active, tiersOrNull, reusableBlocks, overlapWeight, rules.hotDiscount());
    }

    /** Takes the paces of the workers, and the time by the router's clock. */
    void paces(PrefillPaces paces, long atNs) {
        pacesOrNull = paces;
        nowNs = atNs;
    }

    /** How long the worker of a slot takes for a prompt beside all. */
    double pace(int slot) {
        return pacesOrNull == null ? 1 : pacesOrNull.of(workers().at(slot)).factor();
    }

    /** What is left of the prompts that are booked on a slot, in tokens. */
    double remainingPrefillTokens(int slot) {
        final long booked = Math.max(0, candidates.loads().prefillTokens(slot));
        return pacesOrNull == null
                ? booked
                : pacesOrNull.of(workers().at(slot)).remaining(booked, nowNs);
    }

    /** Takes the name of the policy that decides. */
    void decidedBy(String policyName) {
        policy = policyName;
    }

    /** Name of the policy that decided. */
    String policy() {
        return policy;
    }

    /** Asks which workers may be chosen; after the match, outside of all gates. */
    void judge(GuardedPolicy policy) {
        costs.settleAll();
        cursor.take();
        for (int n = 0; n < cursor.count(); n++) {
            final int slot = cursor.slot(n);
            final Verdict verdict = policy.judge(cursor.at(slot));
            if (verdict == null) {
                candidates.rejectUnjudged(slot);
            } else if (verdict != Verdict.ELIGIBLE) {
                candidates.reject(slot, verdict);
            }
        }
    }

    /**
     * Takes out workers of which the first token is expected too late; after the match, outside of
     * all gates. One without prompts before this one stays: no wait would make it faster, and its
     * pace would not be learned anew.
     *
     * @return whether all were looked at, so that costs are no bounds any more
     */
    boolean takeOutSlow(long latestNs) {
        final double secondsPerToken = pacesOrNull == null ? 0 : pacesOrNull.secondsPerToken();
        if (prefillTokens == 0 || !(secondsPerToken > 0)) {
            return false;
        }
        costs.settleAll();
        cursor.take();
        for (int n = 0; n < cursor.count(); n++) {
            final int slot = cursor.slot(n);
            if (candidates.loads().prefillTokens(slot) > 0) {
                final double own = prefillTokens - cachedTokens(slot);
                final double tokens = remainingPrefillTokens(slot) + own;
                final double expectedNs = tokens * pace(slot) * secondsPerToken * NS_PER_S;
                if (expectedNs > latestNs) {
                    candidates.takeOutSlow(slot, latestNs, expectedNs);
                }
            }
        }
        return true;
    }

    /** Asks the request's own cost, if it has one; after the match, outside of all gates. */
    void addCosts() {
        if (workerCost != null) {
            added.ask(workerCost, candidates, cursor);
        }
        if (computing != null
                && workers().at(computing.slot()) == computing
                && candidates.contains(computing.slot())) {
            final int slot = computing.slot();
            final double booked =
                    (double) Math.max(0, candidates.loads().prefillTokens(slot)) / blockSize;
            drawnSlot = slot;
            drawnBlocks = Math.min(computingBlocks, booked);
            added.change(slot, -overlapWeight * drawnBlocks, workers().slotEnd());
        }
    }

    /**
     * Whether the request says that cached blocks count something else; after the match. No bound
     * holds then: all costs are computed.
     */
    boolean countsOtherwise() {
        return overlapWeight > 0
                && reusableBlocks > 0
                && (overlapCredit != 1
                        || (sharedMultiplier != usualSharedMultiplier && costs.tiers().any()));
    }

    /**
     * Blocks that a slot would have to prefill as the request has cached ones count: never fewer
     * than none, beside those that it is drawn by.
     */
    private double countedPrefillBlocks(int slot) {
        final int device = Math.min(costs.overlap(slot), reusableBlocks);
        final TierOverlaps tiers = costs.tiers();
        final double counted =
                overlapCredit * (device - costs.hotDiscount(device))
                        + tiers.extra(slot)
                        + (sharedMultiplier - usualSharedMultiplier) * tiers.sharedReused(slot);
        final double blocks =
                (double) (candidates.loads().prefillTokens(slot) + prefillTokens) / blockSize;
        final double left = counted > 0 ? blocks - costs.credit(slot) * counted : blocks;
        return Math.max(slot == drawnSlot ? drawnBlocks : 0, left);
    }

    /** What the request's own cost says of a candidate. */
    AddedCosts added() {
        return added;
    }

    /** Whether labels of the workers change what they cost. */
    boolean prefersSome() {
        return preferences.any();
    }

    /** Asks a policy what every candidate costs. */
    void price(GuardedPolicy policy) {
        final int end = candidates.workers().slotEnd();
        if (modelCosts.length < end) {
            modelCosts = new double[end];
            pricedCosts = new double[end];
        }
        costs.settleAll();
        cursor.take();
        policy.price(cursor, pricedCosts, requestIdOrNull);
        hotCounts = policy.hasLinearCost();
        final boolean otherwise = hotCounts && countsOtherwise();
        Arrays.fill(modelCosts, 0, end, Double.NaN);
        for (int n = 0; n < cursor.count(); n++) {
            final int slot = cursor.slot(n);
            if (otherwise) {
                countOtherwise(n, slot, end);
            } else {
                pricedCosts[n] = bounded(pricedCosts[n] + added.blocks(slot) + hotCost(slot));
            }
            if (preferences.any()) {
                final double change = preferences.change(slot, pricedCosts[n]);
                added.change(slot, change, end);
                pricedCosts[n] = bounded(pricedCosts[n] + change);
            }
            modelCosts[slot] = pricedCosts[n];
        }
        priced = true;
    }

    /** Computes a linear cost anew, so that equal ones are equal to the last digit. */
    private void countOtherwise(int n, int slot, int end) {
        final double cost =
                CostModel.linear(overlapWeight, countedPrefillBlocks(slot), decodeBlocks(slot));
        final double change = cost - pricedCosts[n] - hotCost(slot);
        pricedCosts[n] = bounded(cost + added.blocks(slot));
        added.change(slot, change, end);
    }

    /** Has a policy pick one of those that are priced; its slot. */
    int pick(GuardedPolicy policy) {
        final int picked = policy.pick(cursor, pricedCosts);
        if (picked >= 0) {
            return cursor.slot(picked);
        }
        for (int n = 0; n < cursor.count(); n++) {
            pricedCosts[n] = modelCosts[cursor.slot(n)]; // the picker may have written into them
        }
        return cursor.slot(policy.pickLowest(cursor, pricedCosts));
    }

    /** A number whose distance from any other is one too. */
    private static double bounded(double cost) {
        return Double.isNaN(cost) ? MAX_COST : Math.clamp(cost, -MAX_COST, MAX_COST);
    }

    void choose(int slot) {
        chosen = slot;
        chosenCredit = costs.credit(slot);
    }

    Candidates candidates() {
        return candidates;
    }

    WorkerSet workers() {
        return candidates.workers();
    }

    /** Overlaps and relative costs. */
    CandidateCosts costs() {
        return costs;
    }

    /** Whether a cost model was asked. */
    boolean isPriced() {
        return priced;
    }

    /** Cost of a slot; NaN where it cannot be chosen. */
    double cost(int slot) {
        if (priced) {
            return modelCosts[slot];
        }
        return candidates.contains(slot)
                ? CostModel.linear(overlapWeight, prefillBlocks(slot), decodeBlocks(slot))
                        + addedBlocks(slot)
                : Double.NaN;
    }

    /** What a candidate costs beside what its blocks to prefill and in use do. */
    double addedBlocks(int slot) {
        return added.blocks(slot) + hotCost(slot);
    }

    /** What the blocks of a candidate count less that most hold. */
    private double hotCost(int slot) {
        if (!hotCounts || !costs.hasHot() || costs.overlap(slot) == 0) {
            return 0;
        }
        final int reused = Math.min(costs.overlap(slot), reusableBlocks);
        return overlapWeight * costs.credit(slot) * costs.hotDiscount(reused);
    }

    /** Tokens of the prompt that a slot need not compute. */
    double cachedTokens(int slot) {
        return costs.reach(slot) > 0 ? costs.credit(slot) * reusedBlocks(slot) * blockSize : 0;
    }

    /**
     * Blocks of a slot that an engine reuses, those below the device by the weight of their tier.
     */
    double reusedBlocks(int slot) {
        return Math.min(costs.overlap(slot), reusableBlocks) + costs.tiers().extra(slot);
    }

    /** What all candidates' linear costs have in common, which relative costs leave out. */
    double commonCost() {
        return overlapWeight * prefillTokens / blockSize + countedBlocks;
    }

    /** The record that a decision is written in for a journal. */
    JournalRecord record(DecisionJournal journal) {
        if (record == null || record.capacity() != journal.candidates()) { // another router's
            record = journal.newRecord();
        }
        return record;
    }

    /** The candidates beside the chosen one, as many as a record lists. */
    RunnersUp runnersUp(int listed) {
        if (runnersUp == null || runnersUp.most() != listed - 1) {
            runnersUp = new RunnersUp(listed - 1);
        }
        return runnersUp;
    }

    /** Blocks that a slot would have to prefill. */
    double prefillBlocks(int slot) {
        return (candidates.loads().prefillTokens(slot) + prefillTokens - cachedTokens(slot))
                / blockSize;
    }

    /** Blocks that a slot would have in use. */
    long decodeBlocks(int slot) {
        return candidates.loads().activeBlocks(slot) + countedBlocks - costs.activePrefix(slot);
    }

    /** The last event of a slot in the index; -1 where there is none or it is not known. */
    long eventSequence(int slot) {
        return eventsKnown ? eventSequences[slot] : -1;
    }

    /** Most blocks that an engine reuses of a prompt: whole ones, and never the last token. */
    static int reusableBlocks(int tokenCount, int blockSize) {
        return tokenCount == 0 ? 0 : (tokenCount - 1) / blockSize;
    }

    /** Slot of the chosen worker; -1 before. */
    int chosen() {
        return chosen;
    }

    /** What a cached token counts on the chosen worker. */
    double chosenCredit() {
        return chosenCredit;
    }

    int blockSize() {
        return blockSize;
    }

    int requestTokens() {
        return requestTokens;
    }

    int requestBlocks() {
        return requestBlocks;
    }

    /** Tokens of the prompt that a worker without any of it has to prefill. */
    int prefillTokens() {
        return prefillTokens;
    }

    /** Most blocks that an engine reuses of the prompt; 0 where it does not compute it. */
    int reusableBlocks() {
        return reusableBlocks;
    }

    RoutingMode mode() {
        return mode;
    }

    double overlapWeight() {
        return overlapWeight;
    }

    /** What a block on a device counts. */
    double overlapCredit() {
        return overlapCredit;
    }

    /** What a block in shared storage counts. */
    double sharedMultiplier() {
        return sharedMultiplier;
    }

    double temperature() {
        return temperature;
    }
}
