package io.kvasir.router;

import io.kvasir.core.index.PrefixIndex;
import io.kvasir.core.load.LoadBoard;
import io.kvasir.core.radix.OverlapScores;

/**
 * One selection: the prompt's numbers, the candidates with their loads and overlaps, what they
 * cost, and which was chosen. Filled by {@link PromptMatcher}, completed by {@link WorkerSelector},
 * read through the {@link Decision} that owns it; reused, one thread at a time.
 */
final class Selection {
    private static final double MAX_COST = Double.MAX_VALUE / 4;

    private final Candidates candidates = new Candidates();
    private final CandidateCosts costs = new CandidateCosts(candidates);
    private long[] eventSequences = new long[8]; // by slot
    private boolean eventsKnown;
    private double[] modelCosts = new double[8]; // by slot, where a cost model was asked
    private boolean priced;
    private final AddedCosts added = new AddedCosts(this);
    private WorkerCost workerCost; // null where the request has none
    private int chosen = -1; // slot
    private double chosenCredit;

    private int blockSize;
    private int requestTokens;
    private int requestBlocks;
    private int prefillTokens; // of the prompt, were nothing cached
    private int reusableBlocks; // most blocks that an engine reuses
    private int countedBlocks; // that the prompt adds, were none in use
    private RoutingMode mode = RoutingMode.KV;
    private double overlapWeight;
    private double temperature;

    /** Forgets the last selection and takes what this one is about. */
    void begin(
            RouteRequest request,
            int size,
            boolean countsBlocks,
            RoutingMode routingMode,
            double weight,
            double samplingTemperature) {
        candidates.begin(WorkerSet.EMPTY);
        chosen = -1;
        priced = false;
        added.clear();
        workerCost = request.cost();
        blockSize = size;
        requestTokens = request.tokenCount();
        requestBlocks = request.blockCount;
        prefillTokens = request.prefills() ? requestTokens : 0;
        reusableBlocks = reusableBlocks(prefillTokens, size);
        countedBlocks = countsBlocks ? requestBlocks : 0;
        mode = routingMode;
        overlapWeight = weight;
        temperature = samplingTemperature;
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

    /** Takes loads and matches; from here on the numbers stand still. */
    void fill(
            RouteRequest request,
            OverlapScores cached,
            OverlapScores active,
            LoadBoard board,
            double degradedCredit) {
        candidates.fill(request, board, overlapWeight / blockSize, degradedCredit);
        costs.fill(cached, active, reusableBlocks, overlapWeight);
    }

    /** Asks the request's own cost, if it has one; after the match, outside of all gates. */
    void addCosts() {
        if (workerCost != null) {
            added.ask(workerCost);
        }
    }

    /** What the request's own cost says of a candidate. */
    AddedCosts added() {
        return added;
    }

    /** Asks a cost model for every candidate. */
    void price(CostModel model) {
        final int end = candidates.workers().slotEnd();
        if (modelCosts.length < end) {
            modelCosts = new double[end];
        }
        costs.settleAll();
        for (int slot = 0; slot < end; slot++) {
            modelCosts[slot] = candidates.contains(slot) ? bounded(cost(model, slot)) : Double.NaN;
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
                        prefillBlocks(slot),
                        decodeBlocks(slot),
                        candidates.loads().activeRequests(slot))
                + added.blocks(slot);
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

    /** Costs by slot where a model was asked; NaN for what cannot be chosen. */
    double[] modelCosts() {
        return modelCosts;
    }

    /** Cost of a slot; NaN where it cannot be chosen. */
    double cost(int slot) {
        if (priced) {
            return modelCosts[slot];
        }
        return candidates.contains(slot) ? cost(CostModel.LINEAR, slot) : Double.NaN;
    }

    /** Blocks that a slot would have to prefill. */
    double prefillBlocks(int slot) {
        final int overlap = costs.overlap(slot);
        double cachedTokens = 0;
        if (overlap > 0) {
            cachedTokens = costs.credit(slot) * Math.min(overlap, reusableBlocks) * blockSize;
        }
        return (candidates.loads().prefillTokens(slot) + prefillTokens - cachedTokens) / blockSize;
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

    double temperature() {
        return temperature;
    }
}
